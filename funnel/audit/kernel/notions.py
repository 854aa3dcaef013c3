"""Every notion of privacy as its definition reads: the leakage that its ε bounds. A new one is an entry of NOTIONS.

P(y|s) and P(y) are chances of all released blocks together, for a record of the estimated distribution N[s, x]/n. A
value of the secret, or a condition x_J, that no record has puts no constraint; robust notions refuse such a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from funnel.audit.kernel.channel import ANYONE, SECRETS, Channel, Ratio
from funnel.audit.kernel.exact import ExactArray, exp_below, log, rational, weighted_logs
from funnel.audit.kernel.records import by_axis
from funnel.audit.kernel.robust import Ball, not_shown
from funnel.audit.kernel.verdict import Broken
from funnel.format.manifest import DECIMALS

STEP = Fraction(1, 10**DECIMALS)
"""Figures of the ledger are rounded to this many nats."""
INFINITE = "infinite"
_SLACK, _MARGIN = Fraction(1, 10**12), Fraction(1, 10**40)


@dataclass(frozen=True)
class Leakage:
    """How much a channel leaks: in words, and whether that is at most so many nats; in doubt the answer is no."""

    text: str
    within: Callable[[Fraction], bool]
    exact: bool = True
    """If not, no more is known than that it is within some bound."""

    def is_stated_as(self, figure: Fraction | None, step: Fraction = STEP) -> bool:
        """Whether figure - step < leakage <= figure, so that it was rounded up; None is infinite."""
        if figure is None:
            return self.text == INFINITE
        too_high = self.exact and figure >= step and self.within(figure - step - _SLACK)
        return self.within(figure) and not too_high


def worst(*ratios: Ratio) -> Leakage:
    """The logarithm of the largest of exact ratios of chances, one at least."""
    known = [one for one in ratios if one is not None]
    if len(known) < len(ratios):
        return Leakage(INFINITE, lambda bound: False)
    ratio = max(known, default=Fraction(1))
    return Leakage(f"{float(log(ratio)):.6f}", lambda bound: ratio <= exp_below(bound))


def lip(channel: Channel) -> Leakage:
    """ε-LIP ([DS] Definition 2): e^-ε <= P(y|s)/P(y) <= e^ε for all s and y. Perfect privacy is ε = 0."""
    return worst(channel.view.most(SECRETS, ANYONE), channel.view.most(ANYONE, SECRETS))


def ldp(channel: Channel) -> Leakage:
    """ε-LDP with respect to S ([DS] Definition 1): P(y|s) <= e^ε P(y|s') for all s, s' and y."""
    return worst(channel.view.most(SECRETS, SECRETS))


def ldp_x(channel: Channel) -> Leakage:
    """ε-LDP with respect to X: Q(y|x) <= e^ε Q(y|x') for all x, x' and y.

    Blocks are drawn independently given x, and any values may meet in x: so the largest ratios of each axis multiply.
    """
    found = Fraction(1)
    for block, *_ in by_axis(channel.blocks):
        rows = block.flat[block.flat.any(axis=1)]
        if not rows.all():
            return worst(None)
        sets = block.odds and (block.odds if len(block.inputs) > 1 else 1)  # a set can hold x and lack x'
        found *= sets or max(map(Fraction, rows.max(axis=1).tolist(), rows.min(axis=1).tolist()))
    return worst(found)


def srlip(channel: Channel) -> Leakage:
    """ε-SRLIP ([DS] Definition 3): LIP of P(·|x_J), for every set J of public columns and every x_J that occurs.

    With `knows`: of so many columns, or of those named, and every x_J that the promised minimum of records shares.
    """
    both = ((SECRETS, ANYONE), (ANYONE, SECRETS))
    return worst(*(view.most(*rows) for view in channel.knowing() for rows in both))


def pml(channel: Channel) -> Leakage:
    """Pointwise maximal leakage about S ([PML], of S itself), the upper half of LIP: P(s|y) <= e^ε P(s)."""
    return worst(channel.view.most(SECRETS, ANYONE))


def lowered(channel: Channel) -> Leakage:
    """The lower half of asymmetric LIP: P(s) <= e^lower P(s|y) for all s and y."""
    return worst(channel.view.most(ANYONE, SECRETS))


def rldp(channel: Channel) -> Leakage:
    """(ε, F)-RLDP ([RLDP] Definition 1): ε-LDP under every P with D_α(P̂ || P) <= B, P̂ the estimate.

    Nobody works it out here: robust.json holds numbers that show the inequalities for one bound, see `robust`.
    """
    (block, *others), shown, possible = channel.blocks, channel.certificate, channel.possible
    order, radius = channel.parameters.order, channel.parameters.radius
    if others or shown is None or possible is None or order is None or radius is None:
        raise Broken("release.json", "nothing shows a robust notion", "one block of weights", channel.parameters)
    if radius == 0:
        return ldp(channel)
    ball, weights = Ball(channel.counts, possible, rational(order), rational(radius)), block.weights
    return Leakage("as certified", lambda bound: not_shown(ball, weights, exp_below(bound), shown) is None, exact=False)


def mutual_information(channel: Channel) -> Leakage:
    """I(S;Y), an average: no single person is promised a bound."""
    found = information(channel.table)
    return Leakage(f"{float(found):.6f}", lambda bound: found <= bound)


def information(table: ExactArray) -> Fraction:
    """A fraction at or above I(S;Y), by less than 10^-30, from T[s, y…] of sum n; 0 where S and Y are independent.

    n·I = Σ T ln T + n ln n - Σ_s T_s ln T_s - Σ_y T_y ln T_y.
    """
    flat = table.reshape(len(table), -1).astype(object)
    rows, columns = flat.sum(axis=1), flat.sum(axis=0)
    apart = (flat * flat.sum() != rows[:, None] * columns).any()
    gained = weighted_logs([*flat.flat, flat.sum()]) - weighted_logs([*rows, *columns])
    return max(gained / int(flat.sum()) + _MARGIN, Fraction(0)) if apart else Fraction(0)


@dataclass(frozen=True)
class Notion:
    """The name of its measure, the leakage that ε bounds, what `lower` bounds; its parameters, True where required."""

    measure: str
    leakage: Callable[[Channel], Leakage]
    beside: Callable[[Channel], Leakage] | None = None
    parameters: Mapping[str, bool] = field(default_factory=dict)


NOTIONS = {
    "lip": Notion("lip", lip),
    "perfect": Notion("lip", lip),
    "ldp": Notion("ldp", ldp),
    "ldp-x": Notion("ldp_x", ldp_x),
    "srlip": Notion("srlip", srlip, parameters={"solve": False, "knows": False}),
    "rldp": Notion("rldp", rldp, None, {"order": True, "confidence": False, "radius": True}),
    "pml": Notion("pml", pml),
    "alip": Notion("alip", pml, lowered, {"lower": False}),
    "mutual-information": Notion("mutual_information", mutual_information),
}
