"""Several public blocks: one protocol each, and a bound that holds for all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from funnel.errors import InternalError, SolverError
from funnel.mechanisms.base import Mechanism, Solved
from funnel.model import Joint, Protocol
from funnel.model.channel import ExactArray, check_size, given_outputs, released_table
from funnel.notions import Notion

_ATTEMPTS = 3
"""Times that budgets are raised after the first solution, whose leakage is mostly below the bound."""
_CLOSE = 0.98
"""Share of the bound that is close enough to stop."""


@dataclass(frozen=True, eq=False)
class Protection:
    """The protocols of all blocks, the budgets they were solved at, and the table T[s, y…] that they release."""

    solved: tuple[Solved, ...]
    budgets: tuple[float, ...]
    table: ExactArray

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """One protocol per block."""
        return tuple(one.protocol for one in self.solved)

    @property
    def bound(self) -> float | None:
        """Certified upper bound of I(X;Y) in nats: only a single block is claimed to be optimal."""
        return self.solved[0].bound if len(self.solved) == 1 else None


def protect(
    joint: Joint,
    notion: Notion,
    mechanism: Mechanism,
    shares: Sequence[float],
    progress: Callable[[str], None] = lambda _: None,
) -> Protection:
    """Solve every block so that the product of their protocols keeps the notion's bound.

    Budgets of blocks solved apart do not add up ([DS] Theorem 4 does not hold). So block by block, each
    protocol must keep its share of ε given every combination of what the earlier blocks release; then the
    chain rule makes the shares add up. What comes out is measured as one channel, and the budgets are raised
    by a common factor while the measurement allows. Raises SolverError, PlanError.
    """
    check_size(joint, [1] * len(joint.blocks))
    if notion.exact_zero:
        _refuse_determined(joint)
    found = _solve(joint, notion, mechanism, [notion.epsilon * share for share in shares], progress)
    if not notion.holds(found.table):
        raise InternalError(f"{mechanism.kind} does not keep {notion.notion} at epsilon {notion.epsilon}")
    if len(joint.blocks) > 1 and not notion.exact_zero:
        found = _raise_budgets(joint, notion, mechanism, found, progress)
    return _refuse_constant(found)


def _solve(
    joint: Joint,
    notion: Notion,
    mechanism: Mechanism,
    budgets: Sequence[float],
    progress: Callable[[str], None],
) -> Protection:
    """Solve the blocks one after the other, the largest alphabet first: later ones carry more conditions."""
    solved: dict[int, Solved] = {}
    for index in sorted(range(len(joint.blocks)), key=lambda j: -len(joint.blocks[j])):
        progress(f"{'+'.join(joint.blocks[index].columns)} at epsilon {budgets[index]:.3g}")
        before = {j: one.protocol for j, one in solved.items()}
        conditions = given_outputs(joint, before, index)
        solved[index] = mechanism.solve(joint.block(index), notion.at(budgets[index]), conditions)
    ordered = tuple(solved[index] for index in range(len(solved)))
    if len(ordered) > 1:
        # A block's optimum given what other blocks release bounds nothing that anyone would ask about.
        ordered = tuple(replace(one, bound=None) for one in ordered)
    table = released_table(joint, [one.protocol for one in ordered])
    return Protection(ordered, tuple(budgets), table)


def _raise_budgets(
    joint: Joint,
    notion: Notion,
    mechanism: Mechanism,
    found: Protection,
    progress: Callable[[str], None],
) -> Protection:
    """Raise all budgets by a common factor while the product, as measured, keeps the bound.

    Leakage is near proportional to the budgets, so each step aims at the bound; a step too far is halved.
    """
    step = _room(notion, found)
    for _ in range(_ATTEMPTS):
        if step < 1 / _CLOSE:
            break
        budgets = [min(budget * step, notion.epsilon) for budget in found.budgets]
        bolder = _solve(joint, notion, mechanism, budgets, progress)
        if notion.holds(bolder.table):
            found, step = bolder, _room(notion, bolder)
        else:
            step = 1 + (step - 1) / 2
    return found


def _room(notion: Notion, found: Protection) -> float:
    """How many times the measured leakage fits into the bound, at most four."""
    return notion.epsilon / max(notion.leakage(found.table).nats, notion.epsilon / 4)


def _refuse_determined(joint: Joint) -> None:
    """With ε = 0, a column that gives the secret away cannot be released in any recognisable form."""
    for index, block in enumerate(joint.blocks):
        if ((joint.table(index) > 0).sum(axis=0) == 1).all():
            public, secret = " + ".join(block.columns), " + ".join(joint.secret.columns)
            raise SolverError(
                "nothing-to-release",
                f"{public} determines {secret}: every value of the one belongs to a single value of the other, "
                "so nothing that depends on it is perfectly private",
                status="empty",
                advice=f"Leave {public} out, or use `notion: lip` with an epsilon above zero.",
            )


def _refuse_constant(protection: Protection) -> Protection:
    """A release whose every column is constant serves nobody, and hides that nothing could be released."""
    varied = any(len(one.protocol.inputs) > 1 for one in protection.solved)
    if varied and all(len(one.protocol.outputs) == 1 for one in protection.solved):
        raise SolverError(
            "nothing-to-release",
            "the only release that keeps the bound says nothing about the public columns",
            status="empty",
            advice="Use a larger epsilon, or a public column that depends less on the secret.",
        )
    return protection
