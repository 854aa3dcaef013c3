"""Several public blocks: one protocol each, and a bound that holds for all of them together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from funnel.errors import InternalError, SolverError
from funnel.mechanisms.base import Mechanism, Solved
from funnel.model import Joint, Protocol
from funnel.model.channel import ExactArray, check_size, released_table
from funnel.notions import Notion

_HALVINGS = 12
_STEPS = 3
"""Bisections after the bound has held once: the factor is then within a tenth of the one that breaks it."""


@dataclass(frozen=True, eq=False)
class Protection:
    """The protocols of all blocks, the table T[s, y…] they release, and each block's certified bound and budget."""

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

    Budgets do not add up over blocks ([DS] Theorem 4 does not hold), so nothing is assumed about the product:
    it is measured, and the budgets are scaled by one common factor, up or down, until its leakage meets the
    bound. Raises SolverError, PlanError.
    """
    if notion.exact_zero:
        _refuse_determined(joint)
    if len(joint.blocks) == 1:
        return _refuse_constant(_single(joint, notion, mechanism))
    check_size(joint, [1] * len(joint.blocks))
    blocks = [joint.block(index) for index in range(len(joint.blocks))]

    def attempt(scale: float) -> Protection:
        progress(f"solving {len(blocks)} blocks at {scale:.0%} of the budget")
        budgets = tuple(notion.epsilon * share * scale for share in shares)
        solved = tuple(
            mechanism.solve(block, notion.scaled(share * scale))
            for block, share in zip(blocks, shares, strict=True)
        )
        return Protection(solved, budgets, released_table(joint, [one.protocol for one in solved]))

    search = _exact if notion.exact_zero else _scaled
    return _refuse_constant(search(attempt, notion, 1 / max(shares)))


def _single(joint: Joint, notion: Notion, mechanism: Mechanism) -> Protection:
    """One block: all of ε, and the mechanism's own word is the measurement of the whole."""
    solved = mechanism.solve(joint, notion)
    table = released_table(joint, [solved.protocol])
    if not notion.holds(table):
        raise InternalError(
            f"the {mechanism.kind} protocol does not keep {notion.notion} at epsilon {notion.epsilon}"
        )
    return Protection((solved,), (notion.epsilon,), table)


def _refuse_determined(joint: Joint) -> None:
    """With ε = 0, a column that gives the secret away cannot be released in any recognisable form."""
    for index, block in enumerate(joint.blocks):
        if ((joint.table(index) > 0).sum(axis=0) == 1).all():
            public, secret = " + ".join(block.columns), " + ".join(joint.secret.columns)
            raise SolverError(
                "nothing-to-release",
                f"{public} determines {secret}: every value of the one belongs to a single "
                "value of the other, so nothing that depends on it is perfectly private",
                status="empty",
                advice=f"Leave {public} out, or use `notion: lip` with an epsilon above zero.",
            )


def _refuse_constant(protection: Protection) -> Protection:
    """A release whose every column is constant serves nobody, and hides that nothing could be released."""
    if any(len(solved.protocol.inputs) > 1 for solved in protection.solved) and all(
        len(solved.protocol.outputs) == 1 for solved in protection.solved
    ):
        raise SolverError(
            "nothing-to-release",
            "the only release that keeps the bound says nothing about the public columns",
            status="empty",
            advice="Use a larger epsilon, or a public column that depends less on the secret.",
        )
    return protection


def _exact(attempt: Callable[[float], Protection], notion: Notion, _: float) -> Protection:
    """With ε = 0 there is nothing to scale: the product is perfectly private, or it is refused."""
    found = attempt(1.0)
    if not notion.holds(found.table):
        raise SolverError(
            "nothing-to-release",
            "each block alone hides the secret perfectly, all blocks together do not",
            status="empty",
            advice="Put the columns into one block: `public: [[a, b]]`.",
        )
    return found


def _scaled(attempt: Callable[[float], Protection], notion: Notion, most: float) -> Protection:
    """The best of a bisection for the largest common factor that keeps the bound.

    Halve until the bound holds, then close in on the factor that breaks it; `most` gives a block all of ε.
    """
    high, scale = 2 * most, most
    found = attempt(scale)
    while not notion.holds(found.table):
        if scale < most / 2**_HALVINGS:
            raise SolverError(
                "nothing-to-release",
                "no split of epsilon keeps the bound on the product of the blocks",
                status="empty",
                advice="Put the columns into one block, or release fewer of them.",
            )
        high, scale = scale, scale / 2
        found = attempt(scale)
    for _ in range(_STEPS if scale < most else 0):
        middle = math.sqrt(scale * high)
        closer = attempt(middle)
        if notion.holds(closer.table):
            scale, found = middle, closer
        else:
            high = middle
    return found
