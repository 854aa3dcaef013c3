"""The worst pairs of conditional distributions for single rows, all pairs of secrets at once, in floating point.

A row v keeps R1·v_s <= k R2·v_s' for all (R1, R2) that occur together in F as (P_{X|s}, P_{X|s'}) when the largest
value of R1·v_s - k R2·v_s' is not above zero. By `extremes`, R1·v_s = top - g·R1 and R2·v_s' = bottom + g'·R2 with gaps
g, g' >= 0, and the extremes are R1 ∝ P (g + τ)^{-1/α}, R2 ∝ P' (g' + τ')^{-1/α}. They spend all there is,
w h(D) + w' h(D') = h(B), and a little more would gain both the same: M e^{-(1+r)D} / w = k M' e^{-(1+r)D'} / w'.
Two equations for ln τ and ln τ', which Newton's method solves; each pair is an inequality that all allowed rows keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.measure.ball import Ball
from funnel.measure.extremes import moments
from funnel.measure.uncertainty import budget

LEAST_ORDER = Fraction(1, 2)
"""From this order on pairs that occur together form a convex set."""
_STEPS, _CLOSE = 50, 1e-5
"""Newton steps, and the change of ln τ after which the next one would be rounding."""
_LONGEST = 4.0
"""Longest step in ln τ."""
_LEAST, _FARTHEST = 40.0, 60.0
"""How far ln τ may be below the logarithm of the largest gap, and how far D may rise beyond what τ = 0 reaches."""
_ROOM = 1e-9
"""Share of h(B) that pairs leave unspent, so that exact arithmetic finds them inside F."""
_MOVES = 60
_TINY = 1e-12
"""A gap from which τ is measured where there is none."""
_CHUNK = 1 << 18
"""About so many numbers per array."""


@dataclass(frozen=True, eq=False)
class _Half:
    """One half of every pair: P over what is possible (q, m), w (q,), places in a row (q, m), and which are real."""

    chances: FloatArray
    share: FloatArray
    place: IntArray
    real: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _End:
    """An extreme R (k, m); w h(D), the logarithm of what a little more of it gains, and their derivatives in ln τ."""

    spent: FloatArray
    growth: FloatArray
    gain: FloatArray
    rise: FloatArray
    extreme: FloatArray


@dataclass(eq=False)
class _Gaps:
    """Halves of pairs within rows: P (k, m), w (k,), gaps (k, m), a place without one, ln τ, where τ counts as 0.

    `longest` step that ln τ may take, and the `last` it took.
    """

    chances: FloatArray
    share: FloatArray
    gaps: FloatArray
    end: FloatArray
    at: FloatArray
    floor: FloatArray
    longest: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, sides: tuple[_Half, _Half], parts: tuple[FloatArray, FloatArray]) -> _Gaps:
        """Of both sides, one after the other; gaps (k, m) are infinite where nothing is possible."""
        gaps = np.concatenate(parts)
        end = np.zeros(gaps.shape)
        end[np.arange(len(gaps)), gaps.argmin(axis=1)] = 1.0
        gaps = np.where(np.isfinite(gaps), gaps, 0.0)
        largest = np.log(np.maximum(gaps.max(axis=1), _TINY))
        count = len(parts[0]) // max(len(sides[0].share), 1)
        chances = np.concatenate([np.tile(side.chances, (count, 1)) for side in sides])
        share = np.concatenate([np.tile(side.share, count) for side in sides])
        longest, last = np.full(len(gaps), _LONGEST), np.zeros(len(gaps))
        return cls(chances, share, gaps, end, largest + 1.0, largest - _LEAST, longest, last)

    def move(self, step: FloatArray) -> None:
        """Change ln τ by a step (k,), or by less where that is long; ever less where it goes to and fro."""
        back = (step * self.last < 0) & (np.abs(step) > np.abs(self.last) / 2)
        self.longest = np.where(back, self.longest / 2, self.longest)
        self.last = np.clip(step, -self.longest, self.longest)
        self.at = np.maximum(self.at + self.last, self.floor - _FARTHEST)


class Adversary:
    """Finds the pairs of F = {P : D_α(P̂||P) <= B} that exceed a ratio k the most.

    For counts N[s, x] (c, a), the cells that are `possible`, B > 0 nats, α >= 1/2, k > 1. With fewer than two secrets
    there are no pairs. ValueError as for `Ball`, and for other k, B, α.
    """

    def __init__(
        self,
        table: IntArray,
        possible: npt.NDArray[np.bool_],
        radius: Fraction,
        order: Fraction,
        ratio: float,
    ) -> None:
        ball = Ball(table, possible, radius, order)
        if radius <= 0 or order < LEAST_ORDER or ratio <= 1:
            raise ValueError(
                "an adversary has a positive radius, an order from one half on, and a ratio above one"
            )
        self.ratio, self.order, self.size = ratio, float(order), table.shape[1]
        self._exponent = ball.exponent
        self._whole = float(budget(float(radius), ball.exponent))
        first, second = np.nonzero(~np.eye(len(table), dtype=bool))
        self._halves = _side(ball, first), _side(ball, second)
        self._beside = np.log(ratio) + np.log(self._halves[0].share / self._halves[1].share)

    def worst(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much rows v >= 0 (k, a) exceed the worst inequalities of q pairs of secrets (k, q); these (k, q, a).

        Each is R1 - ratio·R2, scaled to -1 at the all-ones vector: the excess is the multiple of that which v needs.
        (R1, R2) lies strictly inside F, whatever is lost in floats.
        """
        pairs, width = self._halves[0].chances.shape
        step = max(1, _CHUNK // max(2 * pairs * width, 1))
        parts = [self._inequalities(rows[start : start + step]) for start in range(0, len(rows), step)]
        cuts = np.concatenate([np.zeros((0, pairs, self.size)), *parts])
        return np.asarray((cuts @ rows[:, :, None])[:, :, 0]), cuts

    def _inequalities(self, rows: FloatArray) -> FloatArray:
        """R1 - ratio·R2 of the worst pairs for some rows, scaled."""
        one, two = self._halves
        count, (pairs, width) = len(rows), one.chances.shape
        above, below = rows[:, one.place], rows[:, two.place]
        top = np.where(one.real, above, -np.inf).max(axis=2, initial=-np.inf)
        bottom = np.where(two.real, below, np.inf).min(axis=2, initial=np.inf)
        gaps = (
            np.where(one.real, top[:, :, None] - above, np.inf).reshape(-1, width),
            np.where(two.real, below - bottom[:, :, None], np.inf).reshape(-1, width),
        )
        found = self._within(self._extremes(_Gaps.of(self._halves, gaps)))
        matrix = np.zeros((count, pairs, self.size))
        index = np.arange(count)[:, None, None], np.arange(pairs)[None, :, None]
        np.add.at(matrix, (*index, one.place[None]), found[0].reshape(count, pairs, width))
        np.add.at(matrix, (*index, two.place[None]), -self.ratio * found[1].reshape(count, pairs, width))
        return matrix / (self.ratio - 1)

    def _extremes(self, both: _Gaps) -> FloatArray:
        """All R1, then all R2, that spend h(B) and gain the same on both sides, nearly."""
        half = len(both.share) // 2
        beside = np.tile(self._beside, half // len(self._beside)) if half else np.zeros(0)
        one, two = slice(0, half), slice(half, None)
        for _ in range(_STEPS):
            end = self._measured(both)
            over = end.spent[one] + end.spent[two] - self._whole
            uneven = end.gain[one] - end.gain[two] - beside
            slope = -end.growth[one] * end.rise[two] - end.growth[two] * end.rise[one]
            slope = np.where(np.abs(slope) > 1e-250, slope, 1e-250)
            step = np.concatenate(
                [
                    over * end.rise[two] + uneven * end.growth[two],
                    over * end.rise[one] - uneven * end.growth[one],
                ]
            )
            step /= np.concatenate([slope, slope])
            both.move(step)
            if np.abs(both.last).max(initial=0.0) < _CLOSE:
                break
        return self._measured(both).extreme

    def _measured(self, side: _Gaps) -> _End:
        """The extreme for the τ of a side, what it spends and gains, and the derivatives of both in ln τ."""
        shift, r = np.exp(np.maximum(side.at, side.floor)), self._exponent
        now = moments(self.order, side.chances, side.gaps, shift)
        # Below the floor τ is zero, and what is more of D moves mass to where there is no gap.
        beyond = np.maximum(side.floor - side.at, 0.0)
        divergence, slope = now.divergence + beyond, np.where(beyond > 0, -1.0, now.slope)
        mean = (now.tilted * (1 + side.gaps / shift[:, None])).sum(axis=1)
        grown = np.exp(r * divergence)
        kept = np.exp(-beyond)[:, None]
        return _End(
            side.share * ((grown - 1) / r if r else divergence),
            side.share * grown * slope,
            np.log(now.mean * shift) - (1 + r) * divergence,
            np.where(beyond > 0, 0.0, 1 / mean) - (1 + r) * slope,
            kept * now.tilted + (1 - kept) * side.end,
        )

    def _within(self, pair: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The pairs moved towards the estimate, both by the same share, until they are inside F by a hair."""
        half = len(pair) // 2
        count = half // max(len(self._beside), 1)
        seen = np.concatenate([np.tile(side.chances, (count, 1)) for side in self._halves])
        share = np.concatenate([np.tile(side.share, count) for side in self._halves])
        part, limit = np.ones(half), self._whole * (1 - _ROOM)
        for _ in range(_MOVES):
            moved = seen + np.concatenate([part, part])[:, None] * (pair - seen)
            each = share * self._spent(seen, moved)
            spent = each[:half] + each[half:]
            out = spent > limit
            if not out.any():
                return moved[:half], moved[half:]
            # What is spent grows as the square of the way, at first.
            part[out] *= np.minimum(np.sqrt(limit / spent[out]), 1 - _ROOM)
        return seen[:half], seen[half:]

    def _spent(self, estimate: FloatArray, other: FloatArray) -> FloatArray:
        """h(D_α(P||R)) of pairs of distributions (k, m), infinite where R lacks what P has."""
        ratio = np.where(estimate > 0, other, 1.0) / np.where(estimate > 0, estimate, 1.0)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if self.order == 1:
                return np.asarray(-(estimate * np.log(ratio)).sum(axis=1))
            step = self.order - 1
            raised = (estimate * np.expm1(-step * np.log(ratio))).sum(axis=1)
            return budget(np.log1p(np.maximum(raised, -1.0)) / step, self._exponent)


def _side(ball: Ball, secrets: npt.NDArray[np.intp]) -> _Half:
    """What each pair sees of these secrets."""
    width = int(ball.possible.sum(axis=1).max())
    place = np.argsort(~ball.possible, axis=1, kind="stable")[:, :width].astype(np.int64)
    counts = np.take_along_axis(ball.table, place, axis=1)
    chances = counts / ball.table.sum(axis=1, keepdims=True)
    real = np.take_along_axis(ball.possible, place, axis=1)
    return _Half(chances[secrets], ball.shares[secrets], place[secrets], real[secrets])
