"""Proofs of a bound on R1·v_s / R2·v_s' for every distribution in a ball, from a guess found in floats.

For any shifts τ1, τ2 >= 0, with t1 = top of v_s + τ1, t2 = bottom of v_s' - τ2, and any lower bounds
A1 <= M_r(t1 - v_s; P̂_{X|s}), A2 <= M_r(v_s' - t2; P̂_{X|s'}), the inequality of `extremes` says

    R1·v_s <= t1 - A1 E(h1),    R2·v_s' >= t2 + A2 E(h2),    E(h(D)) = e^{-D}.

E has affine lower bounds E(h) >= c - d·h: for α >= 1/2 it is convex, and these are its tangents; for α < 1/2 take d = 0
and c = E(h(B)/w). What is left is linear in (h1, h2) >= 0 with w1 h1 + w2 h2 <= h(B), and h <= -1/r where r < 0, so it
is worst where one secret spends all it can and the other what is left: a bound k on the ratio is proved as soon as

    t1 - A1 (c1 - d1 h1) <= k (t2 + A2 (c2 - d2 h2))    at those two corners (h1, h2),                      (*)

or as soon as top of v_s <= k · bottom of v_s', whatever the distributions.

The tangent at h(D) = g is d = E(g)/(1+rg), c = d (1+(1+r)g). For α = 2 all numbers but e^{B/2} are rationals: A =
(Σ P̂ √z)² from integer square roots, E(g) = (1+g/2)^-2. For other orders they are the ends of enclosures on the side of
privacy, 300 binary digits wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from funnel.data.joint import FloatArray
from funnel.measure.ball import Ball, RowExtremes
from funnel.measure.exact import ends
from funnel.measure.extremes import Pairs
from funnel.measure.uncertainty import budget

_POINT = 192
"""Binary digits behind the point under square roots, which keep half of them."""
_GRID = 10**18
"""Certified ratios are rounded up to a multiple of 1/_GRID."""
_BITS = 300
"""Binary digits of enclosures."""


@dataclass(frozen=True)
class Numbers:
    """What shows one inequality: τ1 and τ2, in weights, and the h at which the tangents of both secrets touch E."""

    above: float
    below: float
    spent: float
    other_spent: float

    @classmethod
    def of(cls, ball: Ball, rows: RowExtremes, pairs: Pairs, index: int) -> Numbers:
        """Those of one candidate."""
        shifts = [float(part[index]) * float(rows.scale[int(pairs.y[index])]) for part in pairs.shifts]
        # Where r < 0, h stays below -1/r; at the end itself a tangent has no slope.
        most = -(1 - 2.0**-40) / ball.exponent if ball.exponent < 0 else math.inf
        spent = [min(float(budget(part[index], ball.exponent)), most) for part in pairs.divergences]
        return cls(shifts[0], shifts[1], spent[0], spent[1])


def proved(ball: Ball, rows: RowExtremes, pairs: Pairs) -> FloatArray:
    """The k that (*) proves for each candidate (k,), in floats; infinite where it proves none."""
    r, lines = ball.exponent, []
    for divergence, mean in zip(pairs.divergences, pairs.means, strict=True):
        if 2 * ball.order < 1:
            lines.append((mean * np.exp(-divergence), np.zeros(len(mean))))
        else:
            slope = mean * np.exp(-(1 + r) * divergence)
            lines.append((slope * (1 + (1 + r) * budget(divergence, r)), slope))
    (c1, d1), (c2, d2) = lines
    upper, lower = (
        rows.peak[pairs.y, pairs.first] + pairs.shifts[0] - c1,
        rows.base[pairs.y, pairs.second] - pairs.shifts[1] + c2,
    )
    both = [(upper + d1 * h1, lower - d2 * h2) for h1, h2 in ball.corners(pairs.first, pairs.second)]
    return np.maximum(*(np.where(low > 0, high / np.maximum(low, 1e-300), np.inf) for high, low in both))


@dataclass(frozen=True, eq=False)
class Certifier:
    """Exact proofs for the rows of one protocol; `rows` come from integer weights."""

    ball: Ball
    rows: RowExtremes

    def ratio(self, pairs: Pairs, index: int) -> Fraction | None:
        """The smallest k that (*) proves for one candidate, rounded up to 18 decimals; None where it proves none."""
        y, first, second = int(pairs.y[index]), int(pairs.first[index]), int(pairs.second[index])
        top, bottom = int(self.rows.top[y, first]), int(self.rows.bottom[y, second])
        shown = Numbers.of(self.ball, self.rows, pairs, index)
        upper, lower = top + Fraction(shown.above), bottom - Fraction(shown.below)
        a1 = self._mean(first, [upper - int(v) for v in self.rows.values[y, first]])
        a2 = self._mean(second, [int(v) - lower for v in self.rows.values[y, second]])
        (c1, d1), (c2, d2) = self._line(shown.spent, first), self._line(shown.other_spent, second)
        both = [
            (upper - a1 * (c1 - d1 * h1), lower + a2 * (c2 - d2 * h2))
            for h1, h2 in self._corners(first, second)
        ]
        exact = max(high / low for high, low in both) if all(low > 0 for _, low in both) else None
        if bottom > 0:
            exact = min(Fraction(top, bottom), exact) if exact is not None else Fraction(top, bottom)
        return None if exact is None else Fraction(math.ceil(exact * _GRID), _GRID)

    def _corners(self, first: int, second: int) -> list[tuple[Fraction, Fraction]]:
        """(h1, h2) where one secret spends all it can and the other what is left, from above."""
        r, found = self._exponent, []
        for one, other in ((first, second), (second, first)):
            most = min(self._spendable(one), -1 / r) if r < 0 else self._spendable(one)
            rest = self._spendable(other) - most * Fraction(self._records[one], self._records[other])
            found.append((most, rest) if one == first else (rest, most))
        return found

    def _mean(self, s: int, gaps: list[Fraction]) -> Fraction:
        """M_r(gap; P̂_{X|s}) from below."""
        terms = [(count, gap) for count, gap in zip(self.ball.table[s].tolist(), gaps, strict=True) if count]
        if self.ball.order == 2:
            total = sum(count * math.isqrt((z.numerator << _POINT) // z.denominator) for count, z in terms)
            return Fraction(total * total, self._records[s] ** 2 << _POINT)
        if any(z == 0 for _, z in terms):  # a lower bound whatever the order
            return Fraction(0)
        return _mean_below(self._exponent, terms)

    def _line(self, spent: float, s: int) -> tuple[Fraction, Fraction]:
        """An affine lower bound c - d·h of E(h), proved; the numbers of `affine`."""
        r, at = self._exponent, Fraction(spent)
        if 2 * self.ball.order < 1:
            return self._remains(self._spendable(s)), Fraction(0)
        slope = self._remains(at) / (1 + r * at)
        return slope * (1 + (1 + r) * at), slope

    def _remains(self, spent: Fraction) -> Fraction:
        """E(h) = (1+rh)^(-1/r) from below; a tangent may be lowered to a share of itself, for E is never negative."""
        from flint import ctx

        r, base = self._exponent, 1 + self._exponent * spent
        if base <= 0:
            return Fraction(0)
        if self.ball.order == 2:
            return 1 / base**2
        with ctx.workprec(_BITS):
            return ends(_ball(base) ** _ball(-1 / r) if r else _ball(-spent).exp())[0]

    def _spendable(self, s: int) -> Fraction:
        """h(B)/P̂_s from above."""
        return self._budget * sum(self._records) / self._records[s]

    @cached_property
    def _records(self) -> list[int]:
        """Records of each secret."""
        found: list[int] = self.ball.table.sum(axis=1).tolist()
        return found

    @cached_property
    def _exponent(self) -> Fraction:
        """r = (α-1)/α."""
        return (self.ball.order - 1) / self.ball.order

    @cached_property
    def _budget(self) -> Fraction:
        """h(B) from above."""
        from flint import ctx

        r, radius = self._exponent, self.ball.radius
        with ctx.workprec(_BITS):
            return ends((_ball(r * radius).exp() - 1) / _ball(r))[1] if r else radius


def _mean_below(r: Fraction, terms: list[tuple[int, Fraction]]) -> Fraction:
    """(Σ n z^r / Σ n)^{1/r} of positive z with weights n, or its limit at r = 0, from below."""
    from flint import arb, ctx

    total = sum(count for count, _ in terms)
    with ctx.workprec(_BITS):
        if r == 0:
            logs = sum((count * _ball(z).log() for count, z in terms), arb(0))
            return ends((logs / total).exp())[0]
        powers = sum((count * _ball(z) ** _ball(r) for count, z in terms), arb(0))
        return ends((powers / total) ** _ball(1 / r))[0]


def _ball(number: Fraction) -> Any:
    """A rational, enclosed to the digits asked for."""
    from flint import arb, fmpq

    return arb(fmpq(number.numerator, number.denominator))
