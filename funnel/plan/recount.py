"""The source of a release counted again, for its auditor: nothing is drawn, no noise is made, nothing is written."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from funnel.audit.extras.base import Release
from funnel.audit.extras.policy import LOCK, PLAN, policy_of
from funnel.audit.extras.table import RARE, Known, Recounted
from funnel.audit.extras.wide import outline
from funnel.data import Joint, Label
from funnel.data.convert import joint_of, population_file, protocols_of
from funnel.data.finer import Finer
from funnel.engine import Engine
from funnel.engine.counting import joint_distribution
from funnel.engine.known import with_known
from funnel.format import population
from funnel.format.distances import DistancesFile
from funnel.ledger.people import people_key
from funnel.lock.lock import Lock, parse_lock
from funnel.lock.pin import kept_values, relabelled
from funnel.plan.build import compile_plan
from funnel.plan.compiled import USUAL, planned
from funnel.plan.digest import digest as take_digest
from funnel.plan.distances import distances_of
from funnel.plan.draw import BATCH
from funnel.plan.partition import Partition, partition
from funnel.plan.population import NOTHING, Wanted, count_everybody, settled
from funnel.plan.stages import Everybody, Name, Plan
from funnel.plan.tabulate import tabulate
from funnel.policy import Policy
from funnel.progress import silent
from funnel.release.named import digest


def recounting(table: Path | str) -> Callable[[Release], Recounted]:
    """How the source in `table` is counted for a release: by its own policy, and under its lock if it has one.

    It is a path seen from the current folder, or an address as policies name it.

    What is returned raises Broken where the policy cannot be read, SourceError and PolicyError where it does not fit.
    """

    def recount(opened: Release) -> Recounted:
        policy = policy_of(opened)
        there = str(table) if "://" in str(table) else os.path.realpath(table)
        source = policy.source.model_copy(update={"table": there})
        policy = policy.model_copy(update={"source": source})
        locked = opened.manifest.locked
        lock = None if locked is None else parse_lock(opened.read(LOCK).decode())
        return _recounted(policy, lock, opened)

    return recount


def _recounted(policy: Policy, lock: Lock | None, opened: Release) -> Recounted:
    """Wide blocks are cut into cells once more, or into those of the lock."""
    # An auditor needs no cluster: what SQL means, one engine says as well as another.
    here, wanted = policy.model_copy(update={"engine": "duckdb"}), _wanted(opened)
    with planned(here, USUAL, lock, wanted) as (plan, engine, source):
        asked = compile_plan(policy, engine.schema(), source, None if lock is None else lock.checksum, wanted)
        for name, values in kept_values(policy, lock).items():
            engine.provide(name, values)
        engine.prepare(plan.scan.statements)
        records = 0 if plan.cells is None else engine.row(plan.inspect.statement)[0]
        parts = partition(policy, plan.cells, engine, silent, records, () if lock is None else lock.cells)
        tabulate(engine, plan.count)
        names = None if plan.naming is None else _names(plan.naming, engine)
        people = take_digest(policy, plan, source, engine, people_key(opened.root))
        made = tuple(one.cells for one in parts) if lock is None else ()
        told = Recounted(json.loads(asked.text()), Counter(), names=names, wide=made, people=people)
        if policy.estimate.epsilon is not None:
            width = len(plan.count.secret)
            rows = engine.rows(plan.count.cells)
            cells = Counter({(tuple(row[:width]), tuple(row[width:-1])): row[-1] for row in rows})
            told = replace(told, cells=cells)
        else:
            told = _counted(policy, lock, plan, engine, opened, parts, told)
    return replace(told, distances=_near(opened, parts))


def _counted(
    policy: Policy, lock: Lock | None, plan: Plan, engine: Engine, opened: Release, parts: Sequence[Partition],
    told: Recounted,
) -> Recounted:  # fmt: skip
    """With the records in the values of the release, what somebody may know of them, and everybody in the source."""
    joint = joint_distribution(engine, plan.count.cells, plan.count.secret, plan.count.blocks)
    if population.NAME in opened.evidence.files and plan.everybody is not None:
        shown = joint_of(opened.counts.secret, opened.counts.blocks, opened.counts.cells)
        everybody = settled(policy, lock, count_everybody(engine, plan.everybody, joint), shown)
        found = population_file(plan.everybody.own, everybody) if everybody else None
        told = replace(told, population=found)
    if (know := plan.know) is not None:
        inside = [column for one in parts for column in one.cells.columns]
        joint = with_known(engine, know.statement, know.levels, joint, know.minimum, inside)
    joint = joint if lock is None else relabelled(policy, lock, joint).joint
    cells = Counter[tuple[Label, Label]]()
    for codes, number in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        cells[_labels(joint, codes)] += number
    return _knowing(joint.known(), joint, replace(told, cells=cells)) if know else replace(told, cells=cells)


def _labels(joint: Joint, codes: Sequence[int]) -> tuple[Label, Label]:
    """The values of the secret, and those of all public columns."""
    s, *x = codes
    public = chain.from_iterable(block.values[code] for block, code in zip(joint.blocks, x, strict=True))
    return joint.secret.values[s], tuple(public)


def _knowing(seen: Finer, joint: Joint, told: Recounted) -> Recounted:
    """With what somebody may know of the records."""
    known = Counter[tuple[Label, Label, Known]]()
    rows = zip(seen.placed.tolist(), seen.known.tolist(), seen.counts.tolist(), strict=True)
    for placed, codes, number in rows:
        levels = zip(seen.levels, codes, strict=True)
        values = tuple(RARE if code < 0 else level.values[code] for level, code in levels)
        known[*_labels(joint, placed), values] += number
    return replace(told, levels=tuple((level.column, level.level) for level in seen.levels), known=known)


def _wanted(opened: Release) -> Wanted:
    """What was asked of everybody when the release was made, as its plan has it."""
    for step in json.loads(opened.read(PLAN))["steps"]:
        if step["step"] == Everybody.title:
            return Wanted(tuple(step["classes"]), tuple(map(tuple, step["secrets"])))
    return NOTHING


def _near(opened: Release, parts: Sequence[Partition]) -> DistancesFile | None:
    """What distances.json has to say of the cells published, from the source; None where they are not those made."""
    if [outline(one) for one in opened.wide] != [outline(one.cells) for one in parts]:
        return None
    shown = [replace(one, cells=cells) for one, cells in zip(parts, opened.wide, strict=True)]
    return distances_of(shown, protocols_of(opened.protocol), opened.by_block)


def _names(stage: Name, engine: Engine) -> tuple[int, str]:
    """The number of keys in the source, and their digest."""
    stream = engine.stream(f"SELECT * FROM ({stage.listing}) ORDER BY ALL", BATCH)
    return digest(batch.columns for batch in stream)
