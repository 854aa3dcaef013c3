"""The source of a release counted again, for its auditor: nothing is drawn, no noise is made, nothing is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from funnel.audit.extras.base import Release
from funnel.audit.extras.policy import LOCK, PLAN, policy_of
from funnel.audit.extras.table import RARE, Known, Recounted
from funnel.audit.extras.wide import outline
from funnel.data import Label
from funnel.data.convert import joint_of, population_file, protocols_of
from funnel.engine import Engine
from funnel.engine.counting import joint_distribution
from funnel.engine.known import with_known
from funnel.format import population
from funnel.format.distances import DistancesFile
from funnel.format.population import PopulationFile
from funnel.ledger.people import people_key
from funnel.lock.lock import Lock, parse_lock
from funnel.lock.pin import kept_values, relabelled
from funnel.plan.compiled import Limits, planned
from funnel.plan.digest import digest as take_digest
from funnel.plan.distances import distances_of
from funnel.plan.draw import BATCH
from funnel.plan.partition import Partition, partition
from funnel.plan.population import NOTHING, Wanted, count_everybody, settled
from funnel.plan.stages import Count, Everybody, Name, Plan
from funnel.plan.tabulate import tabulate
from funnel.policy import Policy
from funnel.progress import silent
from funnel.release.named import digest


def recounting(table: Path, memory: str = "2GB") -> Callable[[Release], Recounted]:
    """How the source in `table` is counted for a release: by its own policy, and under its lock if it has one.

    What is returned raises Broken where the policy cannot be read, SourceError and PolicyError where it does not fit.
    """

    def recount(opened: Release) -> Recounted:
        policy = policy_of(opened)
        # An auditor needs no cluster: what SQL means, one engine says as well as another.
        source = policy.source.model_copy(update={"table": str(table.resolve())})
        policy = policy.model_copy(update={"source": source, "engine": "duckdb"})
        locked = opened.manifest.locked
        lock = None if locked is None else parse_lock(opened.read(LOCK).decode())
        return _recounted(policy, lock, opened, memory)

    return recount


def _recounted(policy: Policy, lock: Lock | None, opened: Release, memory: str) -> Recounted:
    """Wide blocks are cut into cells once more, or into those of the lock."""
    with planned(policy, Limits(memory), lock, _wanted(opened)) as (plan, engine, source):
        for name, values in kept_values(policy, lock).items():
            engine.provide(name, values)
        engine.prepare(plan.scan.statements)
        parts = partition(policy, plan.cells, engine, silent, () if lock is None else lock.cells)
        tabulate(engine, plan.count)
        found = _cells(policy, plan.count, engine, lock)
        names = None if plan.naming is None else _names(plan.naming, engine)
        key = people_key(opened.root)
        people = take_digest(policy, plan, source, engine, key)
        told = Recounted(json.loads(plan.text()), found, names=names, people=people)
        if plan.know is not None:
            told = _knowing(policy, lock, plan, engine, parts, told)
        told = replace(told, population=_everybody(policy, lock, plan, engine, opened))
    made = tuple(one.cells for one in parts) if lock is None else ()
    return replace(told, wide=made, distances=_near(opened, parts))


def _wanted(opened: Release) -> Wanted:
    """What was asked of everybody when the release was made, as its plan has it."""
    for step in json.loads(opened.read(PLAN))["steps"]:
        if step["step"] == Everybody.title:
            return Wanted(tuple(step["classes"]), tuple(map(tuple, step["secrets"])))
    return NOTHING


def _everybody(
    policy: Policy, lock: Lock | None, plan: Plan, engine: Engine, opened: Release
) -> PopulationFile | None:
    """Everybody in the source, in the blocks of the release."""
    if population.NAME not in opened.evidence.files or plan.everybody is None:
        return None
    counted = joint_distribution(engine, plan.count.cells, plan.count.secret, plan.count.blocks)
    joint = joint_of(opened.counts.secret, opened.counts.blocks, opened.counts.cells)
    found = settled(policy, lock, count_everybody(engine, plan.everybody, counted), joint)
    return population_file(plan.everybody.own, found) if found else None


def _near(opened: Release, parts: Sequence[Partition]) -> DistancesFile | None:
    """What distances.json has to say of the cells published, from the source; None where they are not those made."""
    if [outline(one) for one in opened.wide] != [outline(one.cells) for one in parts]:
        return None
    shown = [replace(one, cells=cells) for one, cells in zip(parts, opened.wide, strict=True)]
    return distances_of(shown, protocols_of(opened.protocol), opened.by_block)


def _knowing(
    policy: Policy, lock: Lock | None, plan: Plan, engine: Engine, parts: Sequence[Partition], told: Recounted
) -> Recounted:
    """With what somebody may know of the records."""
    if plan.know is None:
        return told
    joint = joint_distribution(engine, plan.count.cells, plan.count.secret, plan.count.blocks)
    inside = [column for one in parts for column in one.cells.columns]
    joint = with_known(engine, plan.know.statement, plan.know.levels, joint, plan.know.minimum, inside)
    joint = joint if lock is None else relabelled(policy, lock, joint).joint
    seen = joint.known()
    known = Counter[tuple[Label, Label, Known]]()
    rows = zip(seen.placed.tolist(), seen.known.tolist(), seen.counts.tolist(), strict=True)
    for (s, *x), codes, number in rows:
        labels = chain.from_iterable(block.values[code] for block, code in zip(joint.blocks, x, strict=True))
        values = (
            RARE if code < 0 else level.values[code] for level, code in zip(seen.levels, codes, strict=True)
        )
        known[joint.secret.values[s], tuple(labels), tuple(values)] += number
    return replace(told, levels=tuple((level.column, level.level) for level in seen.levels), known=known)


def _names(stage: Name, engine: Engine) -> tuple[int, str]:
    """The number of keys in the source, and their digest."""
    stream = engine.stream(f"SELECT * FROM ({stage.listing}) ORDER BY ALL", BATCH)
    return digest(batch.columns for batch in stream)


def _cells(policy: Policy, step: Count, engine: Engine, lock: Lock | None) -> Counter[tuple[Label, Label]]:
    """Records by the labels of the secret and of all public columns; under a lock in its values."""
    if lock is None or policy.estimate.epsilon is not None:
        width = len(step.secret)
        return Counter(
            {(tuple(row[:width]), tuple(row[width:-1])): row[-1] for row in engine.rows(step.cells)}
        )
    counted = joint_distribution(engine, step.cells, step.secret, step.blocks)
    joint = relabelled(policy, lock, counted).joint
    found = Counter[tuple[Label, Label]]()
    for (s, *x), number in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        values = [block.values[code] for block, code in zip(joint.blocks, x, strict=True)]
        found[joint.secret.values[s], tuple(part for value in values for part in value)] += number
    return found
