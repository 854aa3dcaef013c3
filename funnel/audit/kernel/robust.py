"""Robust LDP ([RLDP] Definition 1): P(y|s) <= K P(y|s') for all y, all s ≠ s', and every P with D_α(P̂ || P) <= B.

P̂ are the shares of the counts N[s, x]; D_α is the Rényi divergence of order α; P ranges over distributions on the cells
(s, x) that are possible. Below, R = P_{X|s}, P̂_s its estimate and w = P̂(s); v is the row of weights of y under s, M_r
the power mean with weights P̂_s and exponent r = (α-1)/α (the geometric mean where r = 0), and h(D) = (e^(rD)-1)/r
(h(D) = D where r = 0), so that e^-D = E(h(D)) with E(h) = (1+rh)^(-1/r).

Lemma 1 (Hölder's inequality). D_α(P̂_s || R) <= D and z >= 0 give R·z >= e^-D M_r(z). So for any numbers >= 0
    R·v >= min v - below + E(h(D)) M_r(v - min v + below),
    R·v <= max v + above - E(h(D)) M_r(max v + above - v).
Lemma 2 ([RLDP] Theorem 1, for all secrets at once). In the ball, Σ_s w_s h(D_s) <= h(B) with D_s = D_α(P̂_s || P_{X|s}):
    given the conditionals, the nearest P gives each s the mass w_s e^(r D_s), up to a common factor. Hence h(D_s) is
    at most h(B)/w_s, and w h(D) + w' h(D') <= h(B) for two secrets.
Lemma 3. Where α >= 1/2, E is convex, so it lies above its tangent at any g: E(h) >= E(g) (1 + (1+r)g - h)/(1 + rg); and
    since E >= 0, the same holds with anything from 0 to E(g) in place of E(g).

A triple (y, s, s') is shown by any of three tests:
    ends      max v <= K min v';
    singles   the upper end of R·v by Lemma 1, with h(D) = h(B)/w, is at most K times the lower end of R'·v';
    pairs     the same with the tangents of Lemma 3, which fall in h and h'. These are >= 0, w h + w' h' <= h(B), and,
              where r < 0, at most -1/r: it is worst that one spends all it can, and the other what is left.
The certificate gives `above` and `below` for singles, and those and both g (`spent`) for pairs; nothing is searched.
Order 2 takes integer square roots; other orders take logarithms and exponentials of 100 digits from `decimal`, which
rounds both correctly, moved by a relative 10^-40 to the side of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.audit.kernel.exact import exp, exp_below, log
from funnel.audit.kernel.verdict import Broken
from funnel.format.robust import Pair, RobustFile

_POINT = 128
"""Bits behind the point of `above` and `below`, cut there, for any number will do; square roots have 32 less."""
_ROUNDING = Fraction(1, 10**40)
HALF = Fraction(1, 2)
Ends = dict[tuple[int, int], Fraction]


@dataclass(frozen=True, eq=False)
class Ball:
    """{P : D_α(P̂ || P) <= B} around counts N[s, x] (c, a), on the cells that are `possible`; α = `order`, B = `radius`.

    A cell with records is possible, whatever is said of it. Raises Broken where B > 0 and a secret has no records: the
    ball gives it mass, and no estimate P̂_s bounds its row. At B = 0 such a secret puts no constraint.
    """

    counts: npt.NDArray[Any]
    possible: npt.NDArray[np.bool_]
    order: Fraction
    radius: Fraction

    def __post_init__(self) -> None:
        if self.radius and not self.counts.any(axis=1).all():
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
        total = int(self.counts.sum())
        return [Fraction(int(row.sum()), total) for row in self.counts]

    @cached_property
    def occurring(self) -> list[tuple[npt.NDArray[np.intp], list[int]]]:
        """The x that occur with each secret, and how often."""
        return [(np.flatnonzero(row), row[row > 0].tolist()) for row in self.counts]

    def left(self, spent: Fraction) -> Fraction:
        """E(h), from below."""
        base = 1 + self.exponent * spent
        if base <= 0:
            return Fraction(0)
        if self.order == 2:
            return 1 / base**2
        power = -spent if self.exponent == 0 else -log(base) / self.exponent
        return exp_below(power)

    def mean(self, secret: int, gaps: list[int]) -> Fraction:
        """M_r, from below, of a number >= 0 for each x that occurs with the secret; in 2^-_POINT, as what is taken."""
        counts, r = self.occurring[secret][1], self.exponent
        terms, total = list(zip(counts, gaps, strict=True)), sum(counts)
        if self.order == 2:
            return Fraction(sum(n * math.isqrt(gap << 64) for n, gap in terms) ** 2, total**2 << 64)
        if r <= 0 and min(gaps) == 0:
            return Fraction(0)
        logs = [(n, log(Fraction(gap))) for n, gap in terms if gap]
        if not logs:
            return Fraction(0)
        if r == 0:
            return exp(sum((n * one for n, one in logs), Fraction(0)) / total) * (1 - _ROUNDING)
        powers = sum((n * exp(r * one) for n, one in logs), Fraction(0)) / total
        return exp_below(log(powers) / r)


class _Rows:
    """The rows of a protocol W[y, s|1, x], integers, as a ball sees them."""

    def __init__(self, ball: Ball, weights: npt.NDArray[Any]) -> None:
        self.ball = ball
        self.weights = np.broadcast_to(weights, (len(weights), *ball.counts.shape))
        everywhere = np.broadcast_to(ball.possible | (ball.counts > 0), self.weights.shape)
        self.top = np.where(everywhere, self.weights, -1).max(axis=2)
        self.bottom = np.where(everywhere, self.weights, np.iinfo(np.int64).max).min(axis=2)

    def upper(self, y: int, s: int, above: float) -> tuple[Fraction, Fraction]:
        """t and A, such that R·v <= t - E(h(D)) A."""
        end = (int(self.top[y, s]) << _POINT) + _parts(above)
        mean = self.ball.mean(s, [end - (v << _POINT) for v in self._row(y, s)])
        return Fraction(end, 1 << _POINT), mean / (1 << _POINT)

    def lower(self, y: int, s: int, below: float) -> tuple[Fraction, Fraction]:
        """t and A, such that R·v >= t + E(h(D)) A."""
        end = (int(self.bottom[y, s]) << _POINT) - _parts(below)
        mean = self.ball.mean(s, [(v << _POINT) - end for v in self._row(y, s)])
        return Fraction(end, 1 << _POINT), mean / (1 << _POINT)

    @property
    def means(self) -> Ends:
        """P̂_s·v, exactly."""
        return {
            (y, s): Fraction(sum(n * v for n, v in zip(counts, self._row(y, s), strict=True)), sum(counts))
            for s, (_, counts) in enumerate(self.ball.occurring)
            for y in range(len(self.weights) if counts else 0)
        }

    def _row(self, y: int, s: int) -> list[int]:
        """v, where x occurs with s."""
        row: list[int] = self.weights[y, s, self.ball.occurring[s][0]].tolist()
        return row


def not_shown(
    ball: Ball, weights: npt.NDArray[Any], ratio: Fraction, certificate: RobustFile
) -> tuple[int, int, int] | None:
    """The first (y, s, s') for which a certificate does not show P(y|s) <= ratio P(y|s'); None where it shows all.

    Weights W[y, s|1, x] (b, c or 1, a) are integers below 2^63.
    """
    rows = _Rows(ball, weights)
    together = {(one.output, one.secret, one.other): one for one in certificate.pairs}
    highs, lows = _singles(rows, certificate)
    for y, s, other in _open(rows, ratio):
        pair = together.get((y, s, other))
        if pair is not None and ball.order >= HALF and _pair_holds(rows, pair, ratio):
            continue
        high, low = highs.get((y, s)), lows.get((y, other))
        if high is None or low is None or high > ratio * low:
            return y, s, other
    return None


def _open(rows: _Rows, ratio: Fraction) -> Iterator[tuple[int, int, int]]:
    """The triples that the ends of the rows do not show."""
    seen = [s for s, share in enumerate(rows.ball.shares) if share]
    for y, (top, bottom) in enumerate(zip(rows.top.tolist(), rows.bottom.tolist(), strict=True)):
        if not seen or max(top[s] for s in seen) <= ratio * min(bottom[s] for s in seen):
            continue
        for s in seen:
            yield from ((y, s, other) for other in seen if other != s and top[s] > ratio * bottom[other])


def _singles(rows: _Rows, certificate: RobustFile) -> tuple[Ends, Ends]:
    """Upper and lower ends of R·v by output and secret: from Lemmas 1 and 2, or, where B = 0, the sum itself."""
    ball, highs, lows = rows.ball, Ends(), Ends()
    if ball.radius == 0:
        return rows.means, rows.means
    for one in certificate.singles:
        y, s = one.output, one.secret
        if y >= len(rows.top) or s >= len(ball.shares):
            continue
        left = ball.left(ball.whole / ball.shares[s])
        high, above = rows.upper(y, s, one.above)
        low, below = rows.lower(y, s, one.below)
        highs[y, s], lows[y, s] = high - left * above, low + left * below
    return highs, lows


def _pair_holds(rows: _Rows, pair: Pair, ratio: Fraction) -> bool:
    """Whether Lemmas 1 to 3 show one triple."""
    ball, r = rows.ball, rows.ball.exponent
    w, g = (
        (ball.shares[pair.secret], ball.shares[pair.other]),
        (Fraction(pair.spent), Fraction(pair.other_spent)),
    )
    if min(1 + r * one for one in g) <= 0:
        return False
    high, above = rows.upper(pair.output, pair.secret, pair.above)
    low, below = rows.lower(pair.output, pair.other, pair.below)
    scales = [mean * ball.left(one) / (1 + r * one) for mean, one in zip((above, below), g, strict=True)]
    for first in (0, 1):
        most = min(ball.whole / w[first], -1 / r) if r < 0 else ball.whole / w[first]
        rest = (ball.whole - w[first] * most) / w[1 - first]
        spent = (most, rest) if first == 0 else (rest, most)
        gain, other_gain = (scales[k] * (1 + (1 + r) * g[k] - spent[k]) for k in (0, 1))
        if high - gain > ratio * (low + other_gain):
            return False
    return True


def _parts(number: float) -> int:
    """A number >= 0 in parts of 2^-_POINT, rounded down."""
    numerator, denominator = number.as_integer_ratio()
    return (numerator << _POINT) // denominator
