"""Two secret values at once: the pairs (P_{X|s}, P_{X|s'}) that occur together in an uncertainty set.

With x_i = e^((α-1) b_i/α), b_i the divergence of R_i from its estimate and w_i the secret's share, minimising over
P_S shows that R_1 and R_2 occur together in F = {P : D_α(P̂ || P) <= B} exactly when
    α > 1:  w_1 x_1 + w_2 x_2 <= E      α < 1:  w_1 x_1 + w_2 x_2 >= E      E = e^((α-1)B/α) - (1 - w_1 - w_2)
    α = 1:  w_1 b_1 + w_2 b_2 <= B
and then, by `ends`, for t_1 >= max v_1, t_2 <= min v_2, A_i = M(|v_i - t_i|) and any K,
    R_1·v_1 - K R_2·v_2 <= t_1 - K t_2 - (q_1 e^-b_1 + q_2 e^-b_2),    q = (A_1, K A_2).
Hölder's inequality bounds the bracket from below by (Σ q_i^(1/(1+β)) w_i^(β/(1+β)))^(1+β) E^-β, β = α/(α-1), and
the inequality of the means does so at α = 1. Where the whole is not above zero, no pair has a ratio above K: floats
look for t_1, t_2 and the least such K, rationals judge. For α < 1/2 the bracket is not convex, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.audit.apart import Apart, Triple
from funnel.audit.ends import HALVINGS, POINT, FloatArray, below, depth, mean_below, power_mean
from funnel.audit.logarithms import exp_above, exp_below_any, power_above, power_below

LEAST_ORDER = Fraction(1, 2)
_ROUNDS = 12
_SETTLED = 1e-13
_SPLITS, _COARSE = 32, 30
"""Halvings for a split, and for each t on the way: an error of 10^-6 in t moves a bound by its square."""
_SPLITS_FINE = 52
"""At order 1/2 the bracket has an edge along which the best t lie, and an error counts in full."""
_BEYOND = 1 + 1e-11
"""How far beyond that edge t_1 is put, for on its near side a larger K proves nothing."""
_ROOM = tuple(Fraction(1, 10**digits) for digits in range(13, 3, -1))
"""By which shares of itself a ratio is raised until a certificate proves it."""
_EDGE = 1e-6
_FEW = 64
_AT_ONCE = 1 << 20
_LARGEST = 1e300
_FARTHEST = 1e40


@dataclass(frozen=True)
class _Budget:
    """What divergence costs: c = x for α > 1, b at α = 1, -x below, so that w_1 c_1 + w_2 c_2 is at most a whole."""

    order: Fraction
    radius: Fraction

    @property
    def power(self) -> Fraction:
        """β; not asked for at α = 1."""
        return self.order / (self.order - 1)

    @property
    def free(self) -> float:
        """c of the estimate itself."""
        return float((self.order > 1) - (self.order < 1))

    def limit(self, shares: Fraction) -> Fraction:
        """E, from the side that allows more: the whole of c for α >= 1, at α = 1 the radius, below minus the whole."""
        if self.order == 1:
            return self.radius
        if self.order > 1:
            return exp_above(self.radius / self.power) - (1 - shares)
        return exp_below_any(self.radius / self.power) - (1 - shares)

    def shrink(self, cost: FloatArray) -> FloatArray:
        """e^-b."""
        if self.order == 1:
            return np.asarray(np.exp(-cost))
        return np.asarray(np.abs(cost) ** -float(self.power))

    def fall(self, cost: FloatArray) -> FloatArray:
        """Minus the derivative of e^-b by c."""
        if self.order == 1:
            return np.asarray(np.exp(-cost))
        power = float(self.power)
        return np.asarray(abs(power) * np.abs(cost) ** (-power - 1))

    def least(self, q: tuple[Fraction, Fraction], w: tuple[Fraction, Fraction]) -> Fraction:
        """A rational at or below every q_1 e^-b_1 + q_2 e^-b_2."""
        both = w[0] + w[1]
        limit = self.limit(both)
        if self.order == 1:
            if min(q) <= 0:
                return Fraction(0)
            means = [power_below(one / share, share / both) for one, share in zip(q, w, strict=True)]
            return both * means[0] * means[1] * exp_below_any(-limit / both)
        if self.order == LEAST_ORDER:
            return max(limit, Fraction(0)) * min(one / share for one, share in zip(q, w, strict=True))
        if limit <= 0 or (self.order < 1 and min(q) <= 0):
            return Fraction(0)
        # Rounded so that the whole comes out low: the outer power is positive for α > 1 and negative below.
        outer = 1 + self.power
        side = power_below if outer > 0 else power_above
        summed = sum(
            (
                side(one, 1 / outer) * side(share, self.power / outer)
                for one, share in zip(q, w, strict=True)
                if one > 0
            ),
            Fraction(0),
        )
        return power_below(summed, outer) * power_below(limit, -self.power) if summed else Fraction(0)


class Together:
    """Pairs of distributions that occur in F together; `most` is the ratio that they have apart."""

    def __init__(self, apart: Apart, most: Fraction) -> None:
        self._apart, self._most = apart, most
        self._seen = apart.uncertainty.seen
        self._order = apart.uncertainty.order
        self._budget = _Budget(self._order, apart.uncertainty.radius)
        self._edged = self._order == LEAST_ORDER
        self._width = max(len(one.places) for one in self._seen)

    def largest(self) -> Fraction:
        """The certified ratio: the largest that floats find, then the least above it that is proven for all."""
        ratio = self._found()
        certified = Fraction(ratio)
        for part in self._parts(self._apart.above(certified)):
            _, far = self._search(part, ratio)
            for triple, (first, second) in zip(part, far.tolist(), strict=True):
                certified = self._proven(triple, first, second, certified)
        return max(certified, Fraction(1))

    def _found(self) -> float:
        """The largest ratio, in floats, by Dinkelbach's method: the worst pairs at one ratio give the next.

        A few promising triples first, for the ratio that they reach leaves few others to look at.
        """
        ratio = 1.0
        for few in (_FEW, None):
            for _ in range(_ROUNDS):
                before, triples = ratio, self._apart.above(Fraction(ratio))
                if few is None and len(triples) <= _FEW:
                    return min(ratio, float(self._most))
                for part in self._parts(triples[:few]):
                    ratio = max(ratio, float(self._search(part, before)[0].max()))
                if ratio <= before * (1 + _SETTLED):
                    break
        return min(ratio, float(self._most))

    def _parts(self, triples: list[Triple]) -> Iterator[list[Triple]]:
        """As many triples at a time as fit into memory."""
        step = max(1, _AT_ONCE // self._width)
        return (triples[start : start + step] for start in range(0, len(triples), step))

    @np.errstate(all="ignore")
    def _search(self, triples: list[Triple], ratio: float) -> tuple[FloatArray, FloatArray]:
        """For each triple: the ratio of the pair that is worst at `ratio` (m,), and its two depths (m, 2).

        max R_1·v_1 - ratio·min R_2·v_2 is concave along w_1 c_1 + w_2 c_2 = whole; its slope, by the envelope
        theorem, is fall_1 A_1 - ratio (w_1/w_2) fall_2 A_2, and is bisected.
        """
        first, second = self._side(triples, 1), self._side(triples, 2)
        w1, w2, free = first.shares, second.shares, self._budget.free
        limits = [self._limit(triple) for triple in triples]
        whole = np.array(limits) * (1 if free >= 0 else -1)
        low, high = np.full(len(triples), free), (whole - w2 * free) / w1
        for _ in range(_SPLITS_FINE if self._edged else _SPLITS):
            middle = (low + high) / 2
            rising = first.fall(middle) * w2 > ratio * w1 * second.fall((whole - w1 * middle) / w2)
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        c1, c2 = low, (whole - w1 * low) / w2
        needed = ratio * w1 / w2 * second.fall(c2), first.fall(c1) * w2 / (ratio * w1)
        far = np.stack([first.matched(c1, needed[0]), second.matched(c2, needed[1])], axis=1)
        far[:, 0] *= _BEYOND if self._edged else 1
        least = second.mean(c2)
        reached = np.where(least > 0, -first.mean(c1) / np.where(least > 0, least, 1), _LARGEST)
        return np.nan_to_num(reached, nan=1.0), np.clip(np.nan_to_num(far), 0, _FARTHEST)

    def _limit(self, triple: Triple) -> float:
        return float(self._budget.limit(self._seen[triple[1]].share + self._seen[triple[2]].share))

    def _side(self, triples: list[Triple], side: int) -> _Side:
        """Rows of one of the two secret values; those of fewer inputs repeat their least."""
        rows, chances = np.zeros((len(triples), self._width)), np.zeros((len(triples), self._width))
        shares = np.empty(len(triples))
        for place, triple in enumerate(triples):
            seen = self._seen[triple[side]]
            row = self._apart.rows[triple[side]][triple[0]] * (-1 if side == 1 else 1)
            rows[place], rows[place, : len(row)] = row.min(), row
            chances[place, : len(row)] = seen.chances
            shares[place] = float(seen.share)
        return _Side(rows, chances, shares, self._budget)

    def _proven(self, triple: Triple, first: float, second: float, least: Fraction) -> Fraction:
        """The least ratio tried, from `least` on, that these t_1 and t_2 prove for one triple."""
        y, s, other = triple
        high, low = -self._apart.rows[s][y], self._apart.rows[other][y]
        one, two = self._seen[s], self._seen[other]
        t1, t2 = below(int(high.min()), first), below(int(low.min()), second)
        means = mean_below(high, t1, one, self._order), mean_below(low, t2, two, self._order)
        for room in (Fraction(0), *_ROOM):
            ratio = least * (1 + room)
            bracket = self._budget.least((means[0], ratio * means[1]), (one.share, two.share))
            if Fraction(-t1, 1 << POINT) - ratio * Fraction(t2, 1 << POINT) <= bracket:
                return ratio
        return max(least, Fraction(self._apart.highs[s][y], self._apart.lows[other][y]))


@dataclass(frozen=True, eq=False)
class _Side:
    """Rows v (m, a), negated where the highest mean is asked for, P̂ (m, a) and the secret's shares (m,)."""

    rows: FloatArray
    chances: FloatArray
    shares: FloatArray
    budget: _Budget

    def far(self, cost: FloatArray, halvings: int = HALVINGS) -> FloatArray:
        """The depth of the best t for R at this cost."""
        order = float(self.budget.order)
        return depth(self.rows, self.chances, self.budget.shrink(self._within(cost)), order, halvings)

    def _within(self, cost: FloatArray) -> FloatArray:
        """No R costs less than the estimate; for α < 1 none costs more than x = 0."""
        free = self.budget.free
        return np.asarray(np.clip(cost, free, -1e-12 if free < 0 else np.inf))

    def _mean(self, far: FloatArray) -> FloatArray:
        """A."""
        least = self.rows.min(axis=1)
        return power_mean(self.rows - (least - far)[:, None], self.chances, float(self.budget.order))

    def fall(self, cost: FloatArray) -> FloatArray:
        """How fast the lowest mean falls with c."""
        halvings = HALVINGS if self.budget.order == LEAST_ORDER else _COARSE
        return np.asarray(self._mean(self.far(cost, halvings)) * self.budget.fall(self._within(cost)))

    def mean(self, cost: FloatArray) -> FloatArray:
        """The lowest mean at this cost."""
        far = self.far(cost)
        shrink = self.budget.shrink(self._within(cost))
        return np.asarray(self.rows.min(axis=1) - far + shrink * self._mean(far))

    def matched(self, cost: FloatArray, needed: FloatArray) -> FloatArray:
        """The depth of t; near the estimate, where every depth proves the same, the one whose fall is `needed`."""
        above = (self.chances * (self.rows - self.rows.min(axis=1, keepdims=True))).sum(axis=1)
        near = self.budget.shrink(self._within(cost)) >= 1 - _EDGE
        fall = self.budget.fall(np.full_like(cost, self.budget.free))
        return np.where(near, np.maximum(needed / fall - above, 0), self.far(cost))
