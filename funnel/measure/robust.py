"""Leakage that holds for every distribution near the estimate, proved in exact arithmetic ([RLDP] Definition 1).

What is measured: max of P(y|s)/P(y|s') over outputs y, secrets s ≠ s' and P in F = {P : D_α(P̂||P) <= B}. The worst
pair of conditional distributions is searched in floats (`extremes`); pairs that come near it are bounded exactly
(`certificate`), and what `robust_certificate` writes shows all the others to whoever checks.

The numbers that show a bound are written down for a checker that does not search. For every output y and two secrets
s ≠ s' the inequality P(y|s) <= K P(y|s') over F = {P : D_α(P̂||P) <= B} follows from the ends of the two rows of
weights alone, of which nothing is written; or from two shifts and two tangents (`certificate` (*)). Where two secrets
may each have the whole radius, the tangents touch there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.data.sending import sent
from funnel.format.robust import Pair, RobustFile
from funnel.measure import clock, leakage
from funnel.measure.ball import Ball, RowExtremes
from funnel.measure.certificate import Certifier, Numbers, proved
from funnel.measure.extremes import CHUNK, FARTHEST, Pairs, paired, whole
from funnel.measure.leakage import Leakage
from funnel.measure.uncertainty import divergence_at

_REJECTED = 1e-9
"""A ratio attained in floats this far above the bound is a violation; searches err by less."""
_ROUNDING = 1e-9
"""Relative: more than floats lose in a bound; what they show by less is left to exact arithmetic."""
_LEAST_RADIUS = Fraction(1, 10**12)
"""Nats. A smaller radius above zero counts as this one: a larger set, in which floats still find their way."""
Triple = tuple[int, int, int]
"""An output y, and secrets s and s'."""


def robust_leakage(
    table: IntArray,
    weights: IntArray,
    possible: npt.NDArray[np.bool_],
    radius: Fraction,
    order: Fraction = Fraction(2),
) -> Leakage:
    """A certified upper bound on max ln P(y|s)/P(y|s') over F, for counts (c, a) and weights W[y, s|1, x].

    Above the true maximum by a relative 1e-8 at most, for α >= 1/2; for smaller orders both secrets are given the
    whole radius, which is more. `radius` B in nats. Infinite where a chance can be driven to zero, or where that cannot
    be excluded. ValueError as for `Ball`; SolverError when the time of the `clock` is over.
    """
    if radius == 0:
        return leakage.ldp(sent(table, weights))
    search = Search.of(table, weights[weights.any(axis=(1, 2))], possible, radius, order)
    top, certifier = search.largest(), Certifier(search.ball, search.rows)
    best: Fraction | None = Fraction(1)
    if top is not None and (best := certifier.ratio(*top)) is not None:
        best = max(best, Fraction(1))
        others = [certifier.ratio(*one) for one in clock.in_time(search.unproved(best))]
        best = None if None in others else max([best, *(other for other in others if other is not None)])
    return Leakage(best)


def robust_holds(
    table: IntArray,
    weights: IntArray,
    possible: npt.NDArray[np.bool_],
    radius: Fraction,
    order: Fraction,
    bound: Fraction,
) -> bool:
    """Whether P(y|s) <= bound·P(y|s') is proved for all y, s ≠ s' and all P of F; arguments as for `robust_leakage`.

    Stops at the first violation that floats see; exact arithmetic only where the margin does not decide. SolverError
    when the time of the `clock` is over.
    """
    if radius == 0:
        return leakage.ldp(sent(table, weights)).within(bound)
    search = Search.of(table, weights[weights.any(axis=(1, 2))], possible, radius, order)
    if bound < 1 or search.exceeds(float(bound) * (1 + _REJECTED)):
        return False
    certifier = Certifier(search.ball, search.rows)
    certified = (certifier.ratio(*one) for one in clock.in_time(search.unproved(bound)))
    return all(ratio is not None and ratio <= bound for ratio in certified)


@dataclass(frozen=True, eq=False)
class Search:
    """All candidates of one protocol, those first that would be worst if every secret had the whole radius."""

    ball: Ball
    rows: RowExtremes
    _found: list[Pairs] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        table: IntArray,
        weights: npt.NDArray[Any],
        possible: npt.NDArray[np.bool_],
        radius: Fraction,
        order: Fraction,
    ) -> Search:
        """Weights W[y, s|1, x], integers or floats."""
        ball = Ball(table, possible, max(radius, _LEAST_RADIUS) if radius > 0 else radius, order)
        return cls(ball, RowExtremes.of(ball, weights))

    @cached_property
    def outer(self) -> FloatArray:
        """Bounds on each ratio (b, c, c), the whole radius for both secrets; zero where nothing is asked."""
        (up_shift, up_mean), (low_shift, low_mean) = whole(self.ball, self.rows)
        rest = np.exp(-np.minimum(divergence_at(self.ball.spendable, self.ball.exponent), FARTHEST))
        peak, base = self.rows.peak, self.rows.base
        upper, lower = peak + up_shift - up_mean * rest, base - low_shift + low_mean * rest
        ratio = upper[:, :, None] / np.maximum(lower, 1e-300)[:, None, :]
        ratio = np.minimum(ratio, peak[:, :, None] / np.maximum(base, 1e-300)[:, None, :]) * (1 + _ROUNDING)
        asked = (self.rows.top > 0)[:, :, None] & ~np.eye(len(rest), dtype=bool)
        return np.asarray(np.where(asked, ratio, 0.0))

    @cached_property
    def _order(self) -> list[IntArray]:
        """Flat places of `outer` in chunks, largest first; what cannot exceed 1 is left out."""
        flat = self.outer.ravel()
        places = np.flatnonzero(flat > 1)
        places = places[np.argsort(-flat[places], kind="stable")]
        size = max(256, CHUNK // self.ball.support.shape[1])
        return [places[start : start + size] for start in range(0, len(places), size)]

    def candidates(self, bound: float) -> Iterator[Pairs]:
        """The chunks in which some ratio is not proved to keep the bound by `outer`, each searched once."""
        for index, places in enumerate(self._order):
            if self.outer.ravel()[places[0]] <= bound:
                return
            if index == len(self._found):
                self._found.append(paired(self.ball, self.rows, *np.unravel_index(places, self.outer.shape)))
            yield self._found[index]

    def largest(self) -> tuple[Pairs, int] | None:
        """The candidate with the largest ratio that floats find; None where no ratio can exceed 1."""
        best = None
        for pairs in self.candidates(1.0):
            index = int(pairs.ratio.argmax())
            clock.check()
            if best is None or pairs.ratio[index] > best[0].ratio[best[1]]:
                best = pairs, index
            if self._outer_of(pairs).min() <= best[0].ratio[best[1]]:
                break
        return best

    def exceeds(self, bound: float) -> bool:
        """Whether floats find a ratio above the bound at all."""
        return any((pairs.ratio > bound).any() for pairs in clock.in_time(self.candidates(bound)))

    def unproved(self, bound: Fraction) -> list[tuple[Pairs, int]]:
        """Candidates that floats do not show to keep the bound, by more than rounding can have cost."""
        return [
            (pairs, int(index))
            for pairs in self.candidates(float(bound))
            for index in np.flatnonzero(
                np.minimum(proved(self.ball, self.rows, pairs) * (1 + _ROUNDING), self._outer_of(pairs))
                > float(bound)
            )
        ]

    def _outer_of(self, pairs: Pairs) -> FloatArray:
        """The bounds of `outer` on some candidates."""
        return np.asarray(self.outer[pairs.y, pairs.first, pairs.second])


def robust_certificate(
    table: IntArray,
    weights: IntArray,
    possible: npt.NDArray[np.bool_],
    radius: Fraction,
    order: Fraction,
    bound: Fraction,
) -> RobustFile:
    """What shows P(y|s) <= bound P(y|s') for all y, s ≠ s' and P of F; arguments as for `robust_leakage`.

    It does show it where `robust_leakage` is at most `bound`. Of a radius of zero nothing is written: the
    estimate alone is a sum. ValueError as for `Ball`.
    """
    if radius == 0:
        return RobustFile("funnel-robust/1", ())
    outputs = np.flatnonzero(weights.any(axis=(1, 2)))
    search = Search.of(table, weights[outputs], possible, radius, order)
    found = _together(search, float(bound))
    found |= _apart(search, float(bound), found.keys())
    pairs = (Pair(int(outputs[y]), s, other, *vars(one).values()) for (y, s, other), one in sorted(found.items()))
    return RobustFile("funnel-robust/1", tuple(pairs))


def _together(search: Search, bound: float) -> dict[Triple, Numbers]:
    """Numbers for the triples that take both secrets together; none below order one half."""
    found: dict[Triple, Numbers] = {}
    for pairs in search.candidates(bound) if 2 * search.ball.order >= 1 else ():
        places = pairs.y, pairs.first, pairs.second
        for index in np.flatnonzero(search.outer[places] > bound).tolist():
            y, s, other = (int(place[index]) for place in places)
            found[y, s, other] = Numbers.of(search.ball, search.rows, pairs, index)
    return found


def _apart(search: Search, bound: float, covered: Container[Triple]) -> dict[Triple, Numbers]:
    """Numbers for all others that the ends of the rows may not show: each secret spends all it can."""
    ball, rows = search.ball, search.rows
    needed = rows.peak[:, :, None] > bound * (1 - 2.0**-50) * rows.base[:, None, :]
    (above, _), (below, _) = whole(ball, rows)
    above, below = above * rows.scale[:, None], below * rows.scale[:, None]
    most = np.minimum(ball.spendable, -(1 - 2.0**-40) / ball.exponent if ball.exponent < 0 else np.inf).tolist()
    triples = (tuple(one) for one in np.argwhere(needed & ~np.eye(len(ball.table), dtype=bool)).tolist())
    return {
        (y, s, other): Numbers(float(above[y, s]), float(below[y, other]), most[s], most[other])
        for y, s, other in triples
        if (y, s, other) not in covered
    }
