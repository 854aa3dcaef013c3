"""Several public blocks: one protocol each, and a bound that holds for all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from funnel.data import AnyProtocol, Joint
from funnel.data.channel import Channel, check_size
from funnel.errors import InternalError, PlanError, SolverError, SourceError
from funnel.measure import clock
from funnel.measure.exact import rational
from funnel.measure.information import public_entropy, released_information
from funnel.measure.leakage import AnyLeakage
from funnel.mechanisms.base import Mechanism, Solved
from funnel.notions import Arranged, Notion
from funnel.text import counted

if TYPE_CHECKING:
    from funnel.measure.faithful import FaithfulFigures

_ATTEMPTS = 3
"""Times that budgets are raised after the first solution, whose leakage is mostly below the bound."""
_HALVINGS = 10
"""Steps of the bisection for a common factor of budgets that are too large together."""
_CLOSE = 0.98
"""Share of the bound that is close enough to stop."""


@dataclass(frozen=True)
class Candidate:
    """A mechanism that might have been used: the share of H(X) that it keeps, or why it was passed over.

    And what it leaves as it is.
    """

    mechanism: str
    normalised: float | None
    reason: str | None
    faithful: FaithfulFigures | None = None


@dataclass(frozen=True, eq=False)
class Protection:
    """The protocols of all blocks of `arranged`, the budgets they were solved at, their shares of epsilon as asked.

    `mechanism` is the one used; `candidates` those that it was chosen from, None where the policy names it.
    """

    arranged: Arranged
    mechanism: Mechanism
    solved: tuple[Solved, ...]
    budgets: tuple[float, ...]
    shares: tuple[float, ...]
    candidates: tuple[Candidate, ...] | None = None

    @cached_property
    def channel(self) -> Channel:
        """All blocks side by side, as they are released."""
        return Channel(self.arranged.joint, self.protocols)

    @property
    def joint(self) -> Joint:
        """The joint distribution in the blocks that were sanitised."""
        return self.arranged.joint

    @property
    def notion(self) -> Notion:
        """The notion, with everything settled that depends on the table."""
        return self.arranged.notion

    @property
    def protocols(self) -> tuple[AnyProtocol, ...]:
        """One protocol per block."""
        return tuple(one.protocol for one in self.solved)

    @cached_property
    def leakage(self) -> AnyLeakage:
        """What the whole release leaks, in the notion's own measure."""
        return self.notion.leakage(self.channel)

    @property
    def holds(self) -> bool:
        """Whether the whole release keeps the bound, as measured."""
        return self.notion.holds(self.channel, self.leakage)

    @cached_property
    def kept(self) -> float:
        """I(X;Y) in nats, of all blocks together."""
        return float(released_information(self.joint, self.protocols, self.channel.table))

    @cached_property
    def faithful(self) -> FaithfulFigures:
        """What is left of rows and totals as they are."""
        from funnel.measure.faithful import told

        return told(self.joint, self.protocols)

    @cached_property
    def entropy(self) -> float:
        """H(X) in nats."""
        return public_entropy(self.joint)

    @property
    def normalised(self) -> float:
        """I(X;Y)/H(X); a constant X loses nothing."""
        return self.kept / self.entropy if self.entropy else 1.0

    def told_candidates(self) -> list[dict[str, Any]] | None:
        """JSON form of the candidates; None where the policy names its mechanism."""
        return None if self.candidates is None else [asdict(one) for one in self.candidates]

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
    *,
    minimum: int = 1,
    beliefs: float | None = None,
) -> Protection:
    """Solve every block so that the product of their protocols keeps the notion's bound.

    Budgets of blocks solved apart do not add up ([DS] Theorem 4 does not hold). So block by block, each
    protocol must keep its share of ε given every combination of what the earlier blocks release; then the
    chain rule makes the shares add up. What comes out is measured as one channel, and the budgets are raised
    by a common factor while the measurement allows, or lowered until it does where the shares need not add up.
    The notion arranges the blocks first; `minimum` is the number of records that each value of X has.
    With `beliefs` protocols are made from beliefs rounded outward to such steps, and from nothing else of the table.
    Raises SolverError, PlanError.
    """
    arranged = arrange(joint, notion, minimum)
    blocks = len(arranged.joint.blocks)
    split = tuple(shares) if blocks == len(shares) else (1.0,)
    if beliefs is not None:
        return _refuse_constant(_from_beliefs(arranged, mechanism, split, progress, rational(beliefs), minimum))
    found = _solve(arranged, mechanism, split, 1.0, progress)
    if not found.holds:
        found = _lower_budgets(mechanism, found, progress)
    elif blocks > 1 and not notion.exact_zero:
        found = _raise_budgets(mechanism, found, progress)
    return _refuse_constant(found)


def _from_beliefs(
    arranged: Arranged,
    mechanism: Mechanism,
    shares: tuple[float, ...],
    progress: Callable[[str], None],
    step: Fraction,
    minimum: int,
) -> Protection:
    """Solved for all tables that round alike; budgets stay what they are, as to measure would be to look at this one.

    Where a mechanism keeps totals these are what they are, else they are rounded too. What comes out is a release of
    the true table. Raises InternalError where that does not keep the bound.
    """
    kept = mechanism.of_totals == "kept"
    rounded = arranged.joint.believed(step, minimum, exact=kept)
    if kept:
        _refuse_moved(arranged.joint, rounded, minimum)
    found = _solve(replace(arranged, joint=rounded), mechanism, shares, 1.0, progress)
    solved = tuple(one.unproven() for one in found.solved)
    found = replace(found, arranged=arranged, solved=solved)
    if not found.holds:
        raise InternalError(f"{mechanism.kind} keeps {found.notion.notion} for rounded beliefs, not for the true ones")
    return found


def _refuse_moved(joint: Joint, rounded: Joint, minimum: int) -> None:
    """Of combinations of several blocks that few records have, only that is left: totals add up to others then."""
    blocks = range(len(joint.blocks))
    if any((joint.table(index).sum(axis=0) != rounded.table(index).sum(axis=0)).any() for index in blocks):
        columns = " + ".join(column for block in joint.blocks for column in block.columns)
        raise PlanError(
            "below-minimum",
            f"some combinations of {columns} have fewer than {minimum:,} records, whose numbers are rounded with their "
            "beliefs: totals that follow from them cannot be kept",
            advice="Write `totals: free` under `mechanism`, leave `estimate.beliefs` out, release fewer columns, or "
            "make them coarser with `groups` or `bins`.",
        )


def arrange(joint: Joint, notion: Notion, minimum: int) -> Arranged:
    """The blocks as the notion wants them, once no reason is seen why no mechanism could serve them.

    What is refused here is refused by every mechanism. Raises PlanError, SourceError, SolverError.
    """
    arranged = notion.arrange(joint, minimum)
    check_size(arranged.joint, [1] * len(arranged.joint.blocks))
    if arranged.joint is not joint:
        _refuse_rare(arranged, minimum)
    if notion.exact_zero:
        _refuse_determined(joint)
    return arranged


def _solve(
    arranged: Arranged,
    mechanism: Mechanism,
    shares: tuple[float, ...],
    factor: float,
    progress: Callable[[str], None],
) -> Protection:
    """Solve the blocks one after the other at `factor` times their shares of epsilon, none above epsilon.

    The largest alphabet first: later ones carry more conditions.
    """
    joint, solved, most = arranged.joint, dict[int, Solved](), arranged.notion.epsilon
    budgets = [min(most * share * factor, most) for share in shares]
    for index in sorted(range(len(joint.blocks)), key=lambda j: -len(joint.blocks[j])):
        clock.check()
        progress(f"{'+'.join(joint.blocks[index].columns)} at epsilon {budgets[index]:.3g}")
        before = {j: one.protocol for j, one in solved.items()}
        demand = arranged.notion.at(budgets[index]).demand(joint, before, index)
        solved[index] = mechanism.solve(joint.block(index), demand)
    ordered = tuple(solved[index] for index in range(len(solved)))
    if len(ordered) > 1:
        # A block's optimum given what other blocks release bounds nothing that anyone would ask about.
        ordered = tuple(one.unproven() for one in ordered)
    return Protection(arranged, mechanism, ordered, tuple(budgets), shares)


def _raise_budgets(mechanism: Mechanism, found: Protection, progress: Callable[[str], None]) -> Protection:
    """Raise all budgets by a common factor while the product, as measured, keeps the bound.

    Leakage is near proportional to the budgets, so each step aims at the bound; a step too far is halved.
    """
    factor, step = 1.0, _room(found)
    for _ in range(_ATTEMPTS):
        if step < 1 / _CLOSE:
            break
        try:
            bolder = _solve(found.arranged, mechanism, found.shares, factor * step, progress)
        except SolverError:
            break  # what was found keeps the bound; a bolder try that fails takes nothing away
        if bolder.holds:
            found, factor, step = bolder, factor * step, _room(bolder)
        else:
            step = 1 + (step - 1) / 2
    return found


def _lower_budgets(mechanism: Mechanism, found: Protection, progress: Callable[[str], None]) -> Protection:
    """Scale all budgets down until the product, as measured, keeps the bound; only where shares need not add up.

    The largest common factor that serves, by bisection. Raises InternalError where shares do add up, since
    then the first solution keeps the bound.
    """
    if found.notion.adds_up:
        raise InternalError(f"{mechanism.kind} does not keep {found.notion.notion} at {found.notion.epsilon}")
    low, high, kept = 0.0, 1.0, None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        milder = _solve(found.arranged, mechanism, found.shares, middle, progress)
        if milder.holds:
            kept, low = milder, middle
        else:
            high = middle
    if kept is None:
        raise SolverError(
            "nothing-to-release",
            f"no budgets of blocks solved apart were found that keep {found.notion.notion} together",
            status="empty",
            advice="Use `solve: sequential` or `solve: joint`.",
        )
    return kept


def _room(found: Protection) -> float:
    """How many times the measured leakage fits into the bound, at most four."""
    epsilon = found.notion.epsilon
    return epsilon / max(found.leakage.nats, epsilon / 4)


def _refuse_rare(arranged: Arranged, minimum: int) -> None:
    """What holds for every value of the policy's blocks must hold for the combinations that they became."""
    for index, block in enumerate(arranged.joint.blocks):
        counts = arranged.joint.table(index).sum(axis=0)
        if rare := int((counts < minimum).sum()):
            names = [name for name, count in zip(block.names(), counts, strict=True) if count < minimum]
            shown = "; ".join(names[:4]) + (", …" if rare > 4 else "")
            raise SourceError(
                "below-minimum",
                f"{rare:,} of {counted(len(block), 'combination')} of {' + '.join(block.columns)} "
                f"{'has a count' if rare == 1 else 'have counts'} below {minimum:,}, and they are one alphabet here "
                f"({arranged.why})",
                values=shown,
                advice="Make the columns coarser with `groups` or `bins` (a secret that is released too, in the "
                "source), release fewer of them, or lower `estimate.minimum` if that disclosure is acceptable.",
            )


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
            "the protocol that was found says nothing about the public columns",
            status="empty",
            advice=f"Use {protection.notion.looser}, or a public column that depends less on the secret; or another "
            "mechanism, or a larger `time_limit` where one ended the search.",
        )
    return protection
