"""Robust LDP ([RLDP] Definition 1): P(y|s) <= K P(y|s') for all y, all s ≠ s', and every P with D_α(P̂ || P) <= B.

P̂ are the shares of the counts N[s, x]; D_α is the Rényi divergence of order α; P ranges over distributions on the cells
(s, x) that are possible. Below, R = P_{X|s}, P̂_s its estimate and w = P̂(s); v is the row of weights of y under s, M_r
the power mean with weights P̂_s and exponent r = (α-1)/α (the geometric mean where r = 0), and h(D) = (e^(rD)-1)/r
(h(D) = D where r = 0), so that e^-D = E(h(D)) with E(h) = (1+rh)^(-1/r).

Lemma 1 (Hölder's inequality). D_α(P̂_s || R) <= D and z >= 0 give R·z >= e^-D M_r(z). So for any numbers >= 0
    R·v >= min v - below + E(h(D)) M_r(v - min v + below),
    R·v <= max v + above - E(h(D)) M_r(max v + above - v).
Lemma 2 ([RLDP] Theorem 1, for all secrets at once). In the ball, Σ_s w_s h(D_s) <= h(B) with D_s = D_α(P̂_s || P_{X|s}):
    given the conditionals, the nearest P gives each s the mass w_s e^(r D_s), up to a common factor. So two secrets
    have w h + w' h' <= h(B), each h >= 0 and, where r < 0, at most -1/r.
Lemma 3. E falls from 1, and stays >= 0. Where α >= 1/2 it is convex, so it lies above its tangent at any g,
    E(h) >= E(g) (1 + (1+r)g - h)/(1 + rg), with anything from 0 to E(g) in the place of E(g); else it is concave. So a
    sum of both secrets' tangents, or of E itself where that is concave, is least at an end of what Lemma 2 leaves: one
    spends all it can, the other the rest.

A triple (y, s, s') is shown where max v <= K min v', or where at both these ends the upper end of R·v by Lemma 1 is at
most K times the lower end of R'·v'. The certificate gives `above`, `below` and both g; nothing is searched. Order 2
takes integer square roots; other orders take logarithms and exponentials of 100 digits from `decimal`, which rounds
both correctly, moved by a relative 10^-40 to the side of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from funnel.audit.kernel.exact import BoolArray, IntArray, exp, exp_below, log
from funnel.audit.kernel.verdict import Broken
from funnel.format.robust import Pair, RobustFile

_POINT = 128
"""Bits behind the point of `above` and `below`, cut there, for any number will do; square roots have 32 less."""
_ROUNDING = Fraction(1, 10**40)
_ZERO, HALF = Fraction(0), Fraction(1, 2)


@dataclass(frozen=True, eq=False)
class Ball:
    """{P : D_α(P̂ || P) <= B} around counts N[s, x] (c, a), on the cells that are `possible`; α = `order`, B = `radius`.

    A cell with records is possible, whatever is said of it. Raises Broken where a secret has no records: the ball gives
    it mass, and no estimate P̂_s bounds its row.
    """

    counts: IntArray
    possible: BoolArray
    order: Fraction
    radius: Fraction

    def __post_init__(self) -> None:
        if not self.counts.any(axis=1).all():
            what = "robust privacy is not known of a secret value without records"
            raise Broken("counts.json", what, "records of every secret value", "none")

    @cached_property
    def exponent(self) -> Fraction:
        """r."""
        return (self.order - 1) / self.order

    @cached_property
    def whole(self) -> Fraction:
        """h(B), from above."""
        r = self.exponent
        if r == 0 or self.radius == 0:
            return self.radius
        grown = exp(r * self.radius) * (1 + _ROUNDING if r > 0 else 1 - _ROUNDING)
        return (grown - 1) / r

    @cached_property
    def shares(self) -> list[Fraction]:
        """w of every secret."""
        return [Fraction(int(row.sum()), int(self.counts.sum())) for row in self.counts]

    def ends(self, s: int, other: int) -> Iterator[tuple[Fraction, Fraction]]:
        """(h, h') of two secrets where one spends all it can and the other what is left."""
        for first, second in ((s, other), (other, s)):
            most = self.whole / self.shares[first]
            most = min(most, -1 / self.exponent) if self.exponent < 0 else most
            rest = (self.whole - self.shares[first] * most) / self.shares[second]
            yield (most, rest) if first == s else (rest, most)

    def left(self, h: Fraction) -> Fraction:
        """E(h), from below."""
        base = 1 + self.exponent * h
        if base <= 0:
            return _ZERO
        if self.order == 2:
            return 1 / base**2
        return exp_below(-h if self.exponent == 0 else -log(base) / self.exponent)

    def at(self, h: Fraction, g: Fraction) -> Fraction:
        """What Lemma 3 puts in the place of E(h): the tangent at g, or E itself where it is concave."""
        if self.order < HALF:
            return self.left(h)
        base = 1 + self.exponent * g
        return self.left(g) * (1 + g + self.exponent * g - h) / base if base > 0 else _ZERO

    def mean(self, s: int, gaps: list[int]) -> Fraction:
        """M_r, from below, of a number >= 0 for each x that occurs with s; in 2^-_POINT, as what is taken."""
        terms, r = list(zip(self.counts[s][self.counts[s] > 0].tolist(), gaps, strict=True)), self.exponent
        total = sum(n for n, _ in terms)
        if self.order == 2:
            return Fraction(sum(n * math.isqrt(gap << 64) for n, gap in terms) ** 2, total**2 << 64)
        logs = [(n, log(Fraction(gap))) for n, gap in terms if gap]
        if not logs or (r <= 0 and len(logs) < len(terms)):
            return _ZERO
        if r == 0:
            return exp(sum((n * one for n, one in logs), _ZERO) / total) * (1 - _ROUNDING)
        return exp_below(log(sum((n * exp(r * one) for n, one in logs), _ZERO) / total) / r)


class _Rows:
    """The rows v of a protocol W[y, s|1, x], integers, as a ball sees them: their largest and least weights (b, c)."""

    def __init__(self, ball: Ball, weights: IntArray) -> None:
        self.ball, self.weights = ball, np.broadcast_to(weights, (len(weights), *ball.counts.shape))
        there = np.broadcast_to(ball.possible | (ball.counts > 0), self.weights.shape)
        self.top = np.where(there, self.weights, -1).max(axis=2)
        self.bottom = np.where(there, self.weights, np.iinfo(np.int64).max).min(axis=2)
        self._means: dict[tuple[int, int, int], tuple[Fraction, Fraction]] = {}

    def line(self, y: int, s: int, way: int, beyond: float) -> tuple[Fraction, Fraction]:
        """t and A of Lemma 1, A what E stands before: t is `beyond` the largest weight (`way` 1) or the least (-1)."""
        (numerator, denominator), end = beyond.as_integer_ratio(), int((self.top if way > 0 else self.bottom)[y, s])
        place = (end << _POINT) + way * ((numerator << _POINT) // denominator)
        if (y, s, place) not in self._means:
            row = self.weights[y, s][self.ball.counts[s] > 0].tolist()
            mean = self.ball.mean(s, [abs(place - (v << _POINT)) for v in row])
            self._means[y, s, place] = Fraction(place, 1 << _POINT), mean / (1 << _POINT)
        return self._means[y, s, place]


def not_shown(
    ball: Ball, weights: IntArray, ratio: Fraction, certificate: RobustFile
) -> tuple[int, int, int] | None:
    """The first (y, s, s') for which a certificate does not show P(y|s) <= ratio P(y|s'); None where it shows all.

    Weights W[y, s|1, x] (b, c or 1, a) are integers below 2^63.
    """
    rows, numbers = _Rows(ball, weights), {(one.output, one.secret, one.other): one for one in certificate.pairs}
    for y, (top, bottom) in enumerate(zip(rows.top.tolist(), rows.bottom.tolist(), strict=True)):
        if max(top) <= ratio * min(bottom):
            continue
        for s, other in np.argwhere(~np.eye(len(top), dtype=bool)).tolist():
            if top[s] > ratio * bottom[other]:
                given = numbers.get((y, s, other))
                if given is None or not _shown(rows, given, ratio):
                    return y, s, other
    return None


def _shown(rows: _Rows, pair: Pair, ratio: Fraction) -> bool:
    """Whether Lemmas 1 to 3 show one triple."""
    ball, y, s, other = rows.ball, pair.output, pair.secret, pair.other
    high, above = rows.line(y, s, 1, pair.above)
    low, below = rows.line(y, other, -1, pair.below)
    spent = Fraction(pair.spent), Fraction(pair.other_spent)
    return all(
        high - above * ball.at(h, spent[0]) <= ratio * (low + below * ball.at(rest, spent[1]))
        for h, rest in ball.ends(s, other)
    )
