"""The source of a release counted again, for its auditor: nothing is drawn, no noise is made, nothing is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from funnel.audit.extras.base import Release
from funnel.audit.extras.policy import LOCK, policy_of
from funnel.audit.extras.table import Recounted
from funnel.cells.cells import Cells
from funnel.data import Label
from funnel.engine import Engine
from funnel.engine.counting import joint_distribution
from funnel.lock.lock import Lock, parse_lock
from funnel.lock.pin import kept_values, relabelled
from funnel.plan.partition import macros
from funnel.plan.prepare import Limits, planned
from funnel.plan.stages import Count
from funnel.plan.tabulate import tabulate
from funnel.policy import Policy


def recounting(table: Path, memory: str = "2GB") -> Callable[[Release], Recounted]:
    """How the source in `table` is counted for a release: by its own policy, and under its lock if it has one.

    What is returned raises Broken where the policy cannot be read, SourceError and PolicyError where it does not fit.
    """

    def recount(opened: Release) -> Recounted:
        policy = policy_of(opened)
        policy = policy.model_copy(
            update={"source": policy.source.model_copy(update={"table": str(table.resolve())})}
        )
        locked = opened.manifest.locked
        lock = None if locked is None else parse_lock(opened.read(LOCK).decode())
        return _recounted(policy, lock, opened.wide, memory)

    return recount


def _recounted(policy: Policy, lock: Lock | None, cells: Sequence[Cells], memory: str) -> Recounted:
    """Wide blocks are counted by the cells that were published, which whoever made them chose."""
    with planned(policy, Limits(memory), lock) as (plan, engine, _):
        for name, values in kept_values(policy, lock).items():
            engine.provide(name, values)
        engine.prepare(plan.scan.statements)
        if plan.cells is not None:
            engine.prepare(plan.cells.statements + macros(policy, plan.cells, cells))
        tabulate(engine, plan.count)
        return Recounted(json.loads(plan.text()), _cells(policy, plan.count, engine, lock))


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
