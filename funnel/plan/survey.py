"""Before a run: how large its problem will be, the way that will be taken, and what of it the run will refuse."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from funnel.data.alphabet import folded
from funnel.engine import Engine, Source
from funnel.engine.counting import cardinalities, occurring
from funnel.mechanisms import Outlook
from funnel.mechanisms.product import arrange
from funnel.notions import Shape
from funnel.plan import stages
from funnel.plan.compiled import check_apart, located
from funnel.plan.count import count, declared_table, look
from funnel.plan.stages import Plan
from funnel.plan.tabulate import Merged
from funnel.policy import Policy


@dataclass(frozen=True)
class Sizes:
    """Cardinalities: c values of the secret, a_j values of each block, and the solver expected for each.

    `inside` are the columns of each wide block, () of a plain one; `merged` what becomes of rare values. `outlooks` say
    more of a solver that searches: None for any other. `noted` is what a person should know before a run.
    """

    secret: int
    blocks: tuple[int, ...]
    inside: tuple[tuple[str, ...], ...]
    merged: tuple[Merged, ...]
    solvers: tuple[str, ...]
    arrangement: str = ""
    outlooks: tuple[Outlook | None, ...] = ()
    noted: tuple[str, ...] = ()

    @property
    def product(self) -> int:
        """Combinations of the secret and all blocks, on which leakage is measured."""
        return self.secret * math.prod(self.blocks)

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        told = {
            "sensitive": self.secret,
            "public": list(self.blocks),
            "product": self.product,
            "rare": [asdict(one) for one in self.merged],
            "solver": list(self.solvers),
            "search": [None if outlook is None else outlook.as_dict() for outlook in self.outlooks],
            "noted": list(self.noted),
        }
        return told | ({"arrangement": self.arrangement} if self.arrangement else {})


def survey(policy: Policy, plan: Plan, engine: Engine, source: Source) -> Sizes:
    """Count as a run would, and refuse what it would till it solves; nothing is drawn or spent, and no value is told.

    Raises FunnelError.
    """
    with located(source):
        check_apart(policy, source)
        accepts = _accepted(policy)
        merged = _refuse(policy, plan, engine)
    why = ""
    if plan.everybody is not None and plan.everybody.own is not None:
        from funnel.policy.terms import unmeasured

        why = unmeasured(policy)
    noted = (f"it leaves people out, and no finite bound is known of what that tells: {why}",) if why else ()
    return replace(_sizes(policy, plan, engine, merged), noted=(*noted, *accepts))


def _accepted(policy: Policy) -> tuple[str, ...]:
    """What the ledger says before anything is counted: refusals, and what the policy changes or accepts.

    Raises LedgerError.
    """
    told = policy.accept or policy.estimate.epsilon is not None
    if not policy.private.exists() and not told:
        return ()
    from funnel.ledger.journal import Journal

    entries = Journal(policy.private).releases()
    if not entries and not told:
        return ()
    from funnel.ledger.budget import accepted, check_known, rebudgeted

    check_known(policy, entries)
    return (*rebudgeted(policy, entries), *accepted(policy, entries))


def _refuse(policy: Policy, plan: Plan, engine: Engine) -> tuple[Merged, ...]:
    """Whatever a run refuses before it solves; of a private estimate what it refuses before noise is drawn."""
    if policy.estimate.epsilon is not None:
        looked = look(policy, plan, engine)
        declared_table(policy, plan.count, engine)
        return looked.merged
    counted = count(policy, plan, engine)
    for block in counted.joint.blocks:
        policy.mechanism.check_values(block)
    arrange(counted.joint, policy.privacy, plan.count.minimum)
    return counted.merged


def _sizes(policy: Policy, plan: Plan, engine: Engine, merged: tuple[Merged, ...]) -> Sizes:
    """Cardinalities of what was counted, and what the mechanism says to problems of that size."""
    stage = plan.count
    secret, *blocks = cardinalities(engine, len(stage.secret), [len(block) for block in stage.blocks])
    shape = _shape(policy, stage, tuple(blocks), engine)
    ahead = policy.privacy.foresee(shape, policy.estimate.minimum)
    solved = (shape.combinations,) if ahead.together else shape.blocks
    outlooks = tuple(_outlook(policy, secret, shape, solved, index) for index in range(len(solved)))
    solvers = tuple(
        policy.mechanism.forecast(policy.privacy, secret, size) if outlook is None else outlook.words()
        for size, outlook in zip(solved, outlooks, strict=True)
    )
    inside = tuple(block.columns if block.cells else () for block in policy.blocks)
    return Sizes(secret, tuple(blocks), inside, merged, solvers, ahead.why, outlooks)


def _outlook(
    policy: Policy, secret: int, shape: Shape, solved: tuple[int, ...], index: int
) -> Outlook | None:
    """What to expect of the search for a block's protocol; sizes are those of the worst data."""
    if policy.estimate.beliefs is not None:
        return None
    extent = policy.privacy.extent(secret, shape, solved, index)
    return None if extent is None else policy.mechanism.outlook(extent)


def _shape(policy: Policy, stage: stages.Count, blocks: tuple[int, ...], engine: Engine) -> Shape:
    """Cardinalities by which a notion arranges the blocks."""
    combinations, fewest = occurring(engine, [len(block) for block in stage.blocks])
    hidden = {folded(column) for column in policy.sensitive}
    public = {folded(column) for block in policy.blocks for column in block.columns}
    return Shape(blocks, combinations, fewest, hidden <= public)
