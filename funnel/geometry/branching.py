"""How much a row of a cone can be worth at most: branch and bound over boxes, best first."""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass, field

import numpy as np

from funnel.geometry.pricing import Slice
from funnel.geometry.simplex import Answer
from funnel.model.joint import FloatArray

_WIDTH = 1e-13
"""Boxes narrower than this are not split any further."""
_KEPT = 0.9
"""Points worth less than one minus this share of the best so far are not worth keeping."""
_SAFETY = 1e-9
"""Margin, relative and absolute, for rounding errors where boxes shrink."""


@dataclass(frozen=True, eq=False)
class Peak:
    """What is known of max f: a bound from above, points (k, a) whose price is positive, boxes looked at."""

    bound: float
    points: FloatArray
    nodes: int


@dataclass(order=True)
class _Box:
    """A part of the slice: a bound on the price inside, where the over-estimate is largest, how far off it is."""

    order: tuple[float, int]
    lower: FloatArray = field(compare=False)
    upper: FloatArray = field(compare=False)
    point: FloatArray = field(compare=False)
    off: FloatArray = field(compare=False)


def peak(room: Slice, eta: FloatArray, *, tolerance: float, deadline: float, most: int, enough: int) -> Peak:
    """Bound f(w) = D(w||prior) - η·w over the slice, down to `tolerance` and no further.

    Boxes in which the over-estimate stays below `tolerance` are not looked into, so no bound is lower. Ends
    early when the time is over, after `most` boxes, or with `enough` points of price above tolerance.
    """
    search = _Search(room, eta, tolerance)
    search.add(*search.reach())
    nodes = 0
    while search.heap and nodes < most and len(search.points) < enough and time.monotonic() < deadline:
        search.split(heapq.heappop(search.heap))
        nodes += 1
    return Peak(search.bound(), np.array(search.points).reshape(-1, len(eta)), nodes)


class _Search:
    """Boxes that may still hold a better point."""

    def __init__(self, room: Slice, eta: FloatArray, tolerance: float) -> None:
        self.room, self.tolerance = room, tolerance
        self.linear = np.log(room.prior) + eta
        self.points: list[FloatArray] = []
        self.heap: list[_Box] = []
        self.closed, self.highest = tolerance, 0.0
        self._count = itertools.count()

    def reach(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value of every coordinate on the slice."""
        size = len(self.linear)
        low, high = np.zeros(size), np.ones(size)
        for x, row in enumerate(np.eye(size)):
            high[x] = min(self._limit(row), 1.0)
            low[x] = max(-self._limit(-row), 0.0)
        return low, high

    def _limit(self, slope: FloatArray) -> float:
        """A bound on slope·w."""
        answer = self.room.best(slope)
        if answer.status != "optimal":
            return float(slope.max())
        return _safe(self.room, answer, slope, np.zeros(len(slope)), np.ones(len(slope)))

    def bound(self) -> float:
        """No point of the slice has a higher price."""
        return max(self.closed, -self.heap[0].order[0] if self.heap else -np.inf)

    def add(self, lower: FloatArray, upper: FloatArray) -> None:
        """Bound the price on a box, and keep it for later unless nothing above the tolerance is there."""
        chord, base = _secant(lower, upper)
        slope = chord - self.linear
        answer = self.room.best_in(lower, upper, slope)
        if answer.status == "empty":
            return
        if answer.status != "optimal":
            bound = base + float(np.maximum(slope * lower, slope * upper).sum())
            self.keep(bound, lower, upper, (lower + upper) / 2)
            return
        bound = base + _safe(self.room, answer, slope, lower, upper)
        point = answer.point[: len(lower)].clip(lower, upper)
        worth = float(_xlogx(point).sum() - self.linear @ point)
        if worth > max(self.tolerance, (1 - _KEPT) * self.highest):
            self.highest = max(self.highest, worth)
            self.points.append(self.room.inside(answer.point))
        self.keep(bound, *self.tighten(answer, slope, base, lower, upper), point)

    def keep(self, bound: float, lower: FloatArray, upper: FloatArray, point: FloatArray) -> None:
        """Remember a box, unless nothing in it is worth a search."""
        if bound <= self.closed:
            return
        chord, _ = _secant(lower, upper)
        off = _xlogx(lower) + chord * (point - lower) - _xlogx(point)
        heapq.heappush(self.heap, _Box((-bound, next(self._count)), lower, upper, point, off))

    def tighten(
        self, answer: Answer, slope: FloatArray, base: float, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The part of a box where the over-estimate can exceed the tolerance, by the solver's multipliers.

        With them the over-estimate base + slope·w is at most the sum over coordinates of something linear, that
        falls at a known rate from one end of the interval to the other.
        """
        weight = _weight(self.room, answer.multipliers)
        rate = slope - weight @ self.room.matrix - answer.multipliers[-1]
        top = base + answer.multipliers[-1] + np.maximum(rate * lower, rate * upper).sum()
        excess = max(float(top) + _leftover(self.room, weight) - self.tolerance, 0.0)
        reach = excess / np.maximum(np.abs(rate), _WIDTH) * (1 + _SAFETY) + _SAFETY
        low = np.where(rate > 0, np.maximum(lower, upper - reach), lower)
        return low, np.where(rate < 0, np.minimum(upper, lower + reach), upper)

    def split(self, box: _Box) -> None:
        """Cut a box across the coordinate where the over-estimate is farthest off.

        Half way between the point that the over-estimate likes best and where it is farthest off in general.
        """
        which = int(np.argmax(box.off))
        low, high = box.lower[which], box.upper[which]
        if box.off[which] <= 0 or high - low < _WIDTH:
            self.closed = max(self.closed, -box.order[0])
            return
        chord, _ = _secant(box.lower, box.upper)
        widest = np.clip(np.exp(chord[which] - 1), low, high)
        at = (box.point[which] + widest) / 2
        left, right = box.upper.copy(), box.lower.copy()
        left[which] = right[which] = at
        self.add(box.lower, left)
        self.add(right, box.upper)


def _xlogx(values: FloatArray) -> FloatArray:
    """t ln t, zero at zero."""
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


def _secant(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, float]:
    """Slopes of the chords of t ln t over intervals, and the sum of what they take at zero."""
    width = upper - lower
    flat = width < _WIDTH
    rise = (_xlogx(upper) - _xlogx(lower)) / np.where(flat, 1.0, width)
    slope = np.where(flat, 1 + np.log(np.maximum(upper, _WIDTH)), rise)
    return slope, float((_xlogx(lower) - slope * lower).sum())


def _weight(room: Slice, multipliers: FloatArray) -> FloatArray:
    """The multipliers (m,) of the constraints, with the sign that a bound needs."""
    return multipliers[:-1] if room.equalities else np.maximum(multipliers[:-1], 0.0)


def _safe(room: Slice, answer: Answer, slope: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """A bound on slope·w over a box of the slice that holds whatever the multipliers are.

    Adding non-negative multiples of the constraints leaves a linear function to maximise over the box and the
    simplex: by filling up the coordinates, best first.
    """
    weight = _weight(room, answer.multipliers)
    rest = slope - weight @ room.matrix
    order = np.argsort(-rest)
    filled = np.minimum(np.cumsum((upper - lower)[order]), max(1 - lower.sum(), 0.0))
    filled[1:] -= filled[:-1].copy()
    return float(rest @ lower + rest[order] @ filled) + _leftover(room, weight)


def _leftover(room: Slice, weight: FloatArray) -> float:
    """What a combination of the constraints leaves of auxiliaries, a rounding error, if those are of size one."""
    return float(np.abs(weight @ room.lift).sum()) if room.lift.shape[1] else 0.0
