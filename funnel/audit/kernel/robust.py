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
both correctly, moved by a relative 10^-50 or more to the side of privacy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import isqrt

import numpy as np

from funnel.audit.kernel.exact import BoolArray, IntArray, exp, exp_below, log
from funnel.audit.kernel.verdict import Broken
from funnel.format.robust import RobustFile

_POINT = 128
"""Bits behind the point of `above` and `below`, cut there, for any number will do; square roots have 32 less."""
_ROUNDING = Fraction(1, 10**40)
_ZERO, _HALF = Fraction(0), Fraction(1, 2)


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

    @property
    def exponent(self) -> Fraction:
        """r."""
        return (self.order - 1) / self.order

    @cached_property
    def whole(self) -> Fraction:
        """h(B), from above."""
        r = self.exponent
        if not r * self.radius:
            return self.radius
        return (exp(r * self.radius) * (1 + _ROUNDING if r > 0 else 1 - _ROUNDING) - 1) / r

    def ends(self, own: Fraction, other: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
        """(h, h') of two secrets of these masses w, where one spends all it can and the other what is left."""
        most = [self.whole / own, self.whole / other]
        h, h_other = (min(one, -1 / self.exponent) if self.exponent < 0 else one for one in most)
        yield h, (self.whole - own * h) / other
        yield (self.whole - other * h_other) / own, h_other

    def left(self, h: Fraction) -> Fraction:
        """E(h), from below, and so below one where h > 0, though digits end."""
        base = 1 + self.exponent * h
        if base <= 0:
            return _ZERO
        if self.order == 2:
            return 1 / base**2
        return exp_below(-log(base) / self.exponent if self.exponent else -h) * (1 - _ROUNDING if h else 1)

    def at(self, h: Fraction, g: Fraction) -> Fraction:
        """What Lemma 3 puts in the place of E(h): the tangent at g, or E itself where it is concave."""
        if self.order < _HALF:
            return self.left(h)
        base = 1 + self.exponent * g
        return self.left(g) * (base + g - h) / base if base > 0 else _ZERO

    def mean(self, s: int, gaps: list[int]) -> Fraction:
        """M_r, from below, of a whole number for each x that occurs with s."""
        terms, r = list(zip(self.counts[s][self.counts[s] > 0].tolist(), gaps, strict=True)), self.exponent
        total = sum(n for n, _ in terms)
        if self.order == 2:
            return Fraction(sum(n * isqrt(gap << 64) for n, gap in terms) ** 2, total**2 << 64)
        logs = [(n, log(Fraction(gap))) for n, gap in terms if gap]
        if not logs or (r <= 0 and len(logs) < len(terms)):
            return _ZERO
        if not r:
            return exp_below(sum((n * one for n, one in logs), _ZERO) / total)
        least = min(one for _, one in logs)  # only ratios are raised; less than e^-10000 as that, which lowers M_r
        powers = sum((n * exp(max(r * (one - least), Fraction(-10_000))) for n, one in logs), _ZERO)
        return exp_below(least + log(powers / total) / r)


def not_shown(ball: Ball, weights: IntArray, ratio: Fraction, certificate: RobustFile) -> tuple[int, int, int] | None:
    """The first (y, s, s') for which a certificate does not show P(y|s) <= ratio P(y|s'); None where it shows all.

    Weights W[y, s|1, x] (b, c or 1, a) are integers below 2^63.
    """
    rows = np.broadcast_to(weights, (len(weights), *ball.counts.shape))
    there = np.broadcast_to(ball.possible | (ball.counts > 0), rows.shape)
    top, bottom = np.where(there, rows, -1).max(axis=2), np.where(there, rows, np.iinfo(np.int64).max).min(axis=2)

    @cache
    def lemma1(y: int, s: int, way: int, beyond: float) -> tuple[Fraction, Fraction]:
        """t and M, by which R·v <= t - E M (`way` 1) or R·v >= t + E M (-1): t is `beyond` all v, M = M_r(|t - v|)."""
        end = int((top if way > 0 else bottom)[y, s]) << _POINT
        place = end + way * int(Fraction(beyond) * (1 << _POINT))
        gaps = [abs(place - (weight << _POINT)) for weight in rows[y, s][ball.counts[s] > 0].tolist()]
        return Fraction(place, 1 << _POINT), ball.mean(s, gaps) / (1 << _POINT)

    pairs = {(one.output, one.secret, one.other): one for one in certificate.pairs}
    shares = [Fraction(number, int(ball.counts.sum())) for number in ball.counts.sum(axis=1).tolist()]
    most = np.array([int(ratio * least) for least in bottom.ravel().tolist()], object).reshape(bottom.shape)
    open_ = (top[:, :, None] > most[:, None, :]) & ~np.eye(len(ball.counts), dtype=bool)
    for y, s, other in np.argwhere(open_).tolist():
        if (one := pairs.get((y, s, other))) is None:
            return y, s, other
        (high, mean), (low, mean_other) = lemma1(y, s, 1, one.above), lemma1(y, other, -1, one.below)
        for h, h_other in ball.ends(shares[s], shares[other]):
            left, left_other = ball.at(h, Fraction(one.spent)), ball.at(h_other, Fraction(one.other_spent))
            if high - left * mean > ratio * (low + left_other * mean_other):
                return y, s, other
    return None
