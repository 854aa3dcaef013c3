"""How much a row of a convex cone can be worth at most: branch and bound as in `branching`, many boxes at a time.

The polyhedron around the cone grows sides wherever the best point of a box is worth too much and no row of the cone.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.certificate import Proof
from funnel.optimise.columns.chords import APART, MISSED, SAFETY, TOWARDS, WIDTH, chords, xlogx
from funnel.optimise.columns.pricing import Peak
from funnel.optimise.columns.recording import Record
from funnel.optimise.convex.cone import ConvexSlice, begun_anew
from funnel.optimise.linear.programs import Answers, Bases, filled

_AT_ONCE = 256
"""Boxes that are split at a time."""
_ROUNDS = 16
"""Times that a box is looked at again because its best point was cut off."""
_BEYOND = 1.02
"""How far beyond what a coordinate reaches it is cut off, so that multipliers of what is beyond are not too large."""


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Boxes (n, a) by their numbers in the record, their best points, and the bases of these."""

    number: IntArray
    lower: FloatArray
    upper: FloatArray
    point: FloatArray
    bases: Bases

    def take(self, which: IntArray) -> _Boxes:
        """Some of them."""
        return _Boxes(
            self.number[which],
            self.lower[which],
            self.upper[which],
            self.point[which],
            self.bases.take(which),
        )


_Open = tuple[float, int, _Boxes, int]
"""A box to be split: minus a bound on the price inside, a tie breaker, and where it is among others."""


def crowded(room: ConvexSlice, eta: FloatArray, *, tolerance: float, deadline: float, enough: int) -> Peak:
    """Bound f(w) = D(w||prior) - eta·w over the slice, down to `tolerance` and no further.

    Ends early when the time is over, or with `enough` rows of price above tolerance.
    """
    search = _Search(room, eta, tolerance)
    search.begin()
    nodes = 0
    while search.heap and len(search.points) < enough and time.monotonic() < deadline:
        nodes += search.split()
    return Peak(search.bound(), np.array(search.points).reshape(-1, len(eta)), nodes, search.proof())


class _Search:
    """Boxes that may still hold a better row."""

    def __init__(self, room: ConvexSlice, eta: FloatArray, tolerance: float) -> None:
        self.room, self.tolerance = room, tolerance
        self.linear = np.log(room.prior) + eta
        self.points: list[FloatArray] = []
        self.heap: list[_Open] = []
        self.closed = tolerance
        # Releasing nothing has a price, too, so no bound is ever below that.
        self.floor = max(tolerance, -float(eta @ room.prior))
        self.record = Record(kept=True)
        self._count = itertools.count()

    def bound(self) -> float:
        """No row of the slice has a higher price."""
        return max(self.closed, -self.heap[0][0] if self.heap else -np.inf)

    def proof(self) -> Proof | None:
        """The boxes, with the inequalities that carry a multiplier."""
        whole = self.record.proof(self.room.matrix, 0)
        if whole is None:
            return None
        used, index = np.unique(whole.index, return_inverse=True)
        return replace(whole, inequalities=self.room.matrix[used], index=index)

    def begin(self) -> None:
        """Look at the part of the simplex that the slice can reach; the rest is cut off."""
        size = len(self.linear)
        number = np.array([self.record.box(0, 0, 0.0, upper=False)])
        box = _Boxes(
            number, np.zeros((1, size)), np.ones((1, size)), np.zeros((1, size)), Bases.none(1, size)
        )
        lower, upper = np.zeros((size, size)), np.ones((size, size))
        enough = np.full(size, -np.inf)
        answers = self.room.best(np.eye(size), lower, upper, enough, Bases.none(size, size))
        most, _, _ = filled(np.eye(size) - self.spent(answers), lower, upper)
        for place in np.flatnonzero(most * _BEYOND < 1):
            both = self.halves(box, np.array([place]), most[[place]] * _BEYOND)
            box = both.take(np.array([0]))
            self.shut(both.take(np.array([1])), answers, np.array([place]))
        self.look(box)

    def shut(self, boxes: _Boxes, answers: Answers, shown: IntArray) -> None:
        """Close boxes that no row reaches, as multipliers of some answers show."""
        nothing = Answers(
            answers.point[shown],
            answers.bases.take(shown),
            answers.multipliers[shown],
            np.ones(len(shown), np.bool_),
        )
        chord, base = chords(boxes.lower, boxes.upper)
        weight, level, rest, bound = self.bounds(boxes, nothing, chord - self.linear, base)
        for box, kind in enumerate(nothing.bases.kind):
            self.record.sparse(int(boxes.number[box]), kind, weight[box], float(level[box]))
        self.keep(boxes, np.flatnonzero(bound > self.closed), bound, rest - level[:, None])

    def spent(self, answers: Answers) -> FloatArray:
        """The inequalities combined by the multipliers of each answer (n, a)."""
        sides = self.room.matrix[np.maximum(answers.bases.kind, 0)]
        return np.asarray(np.einsum("nj,nja->na", answers.weights, sides))

    def split(self) -> int:
        """Cut the boxes of highest bounds in two, across where the over-estimate is farthest off; how many."""
        taken = [heapq.heappop(self.heap) for _ in range(min(_AT_ONCE, len(self.heap)))]
        boxes = _gathered([(group, place) for _, _, group, place in taken])
        own = np.arange(len(taken))
        chord, _ = chords(boxes.lower, boxes.upper)
        off = xlogx(boxes.lower) + chord * (boxes.point - boxes.lower) - xlogx(boxes.point)
        which = off.argmax(axis=1)
        low, high = boxes.lower[own, which], boxes.upper[own, which]
        stuck = (off[own, which] <= 0) | (high - low < WIDTH)
        for box in np.flatnonzero(stuck):
            self.closed = max(self.closed, -taken[box][0])
        widest = np.exp(chord[own, which] - 1).clip(low, high)
        at = widest + TOWARDS * (boxes.point[own, which] - widest)
        rest = np.flatnonzero(~stuck)
        if len(rest):
            self.look(self.halves(boxes.take(rest), which[rest], at[rest]))
        return len(taken)

    def halves(self, boxes: _Boxes, which: npt.NDArray[np.intp], at: FloatArray) -> _Boxes:
        """The parts where a coordinate is at most a number, then those where it is at least."""
        own = np.arange(len(at))
        left, right = boxes.upper.copy(), boxes.lower.copy()
        left[own, which] = right[own, which] = at
        number = [
            self.record.box(int(parent), int(place), float(cut), upper=upper)
            for upper in (False, True)
            for parent, place, cut in zip(boxes.number, which, at, strict=True)
        ]
        twice = boxes.take(np.tile(own, 2))
        return _Boxes(
            np.array(number), np.vstack([boxes.lower, right]), np.vstack([left, boxes.upper]), twice.point,
            twice.bases,
        )  # fmt: skip

    def look(self, boxes: _Boxes) -> None:
        """Bound the price on boxes, and keep them for later unless nothing above the tolerance is there.

        Where the best point is worth more and no row of the cone, it is cut off and the box looked at again.
        """
        for last in [False] * _ROUNDS + [True]:
            chord, base = chords(boxes.lower, boxes.upper)
            slope = chord - self.linear
            answers = self.room.best(
                slope, boxes.lower, boxes.upper, self.tolerance - base - SAFETY, boxes.bases
            )
            boxes = replace(
                boxes,
                point=answers.point.clip(boxes.lower, boxes.upper),
                bases=begun_anew(answers.bases, answers.empty),
            )
            weight, level, rest, bound = self.bounds(boxes, answers, slope, base)
            open_ = bound > self.closed
            again = np.zeros(len(bound), np.bool_) if last else self.cut_off(boxes, open_ & ~answers.empty)
            for box in np.flatnonzero(~again):
                kind = answers.bases.kind[box]
                self.record.sparse(int(boxes.number[box]), kind, weight[box], float(level[box]))
            self.keep(boxes, np.flatnonzero(open_ & ~again), bound, rest - level[:, None])
            if not again.any():
                break
            boxes = boxes.take(np.flatnonzero(again))

    def bounds(
        self, boxes: _Boxes, answers: Answers, slope: FloatArray, base: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Multipliers of the places (n, a), that of Σ w = 1 (n,), what is left of the slope (n, a), bounds (n,)."""
        lower, upper, weight = boxes.lower, boxes.upper, answers.weights
        spent = self.spent(answers)
        over = np.where(lower.sum(axis=1) > 1, lower.sum(axis=1) - 1, np.minimum(upper.sum(axis=1) - 1, 0.0))
        apart = np.abs(over) > APART
        # An empty box has multipliers so large that nothing there is worth the tolerance, by twice what is needed.
        top, plain, _ = filled(slope, lower, upper)
        excess = 2 * np.maximum(base + top - self.floor, 0.0) + 1.0
        missed, _, _ = filled(-spent, lower, upper)
        clear = missed < -MISSED * weight.sum(axis=1)
        grown = np.where(clear, excess / np.where(clear, -missed, 1.0), 0.0)
        factor = np.where(apart, 0.0, np.where(answers.empty, grown, 1.0))
        weight, rest = weight * factor[:, None], slope - spent * factor[:, None]
        _, level, _ = filled(rest, lower, upper)
        level = np.where(apart, plain + excess / np.where(apart, over, 1.0), level)
        rate = rest - level[:, None]
        return weight, level, rest, base + level + np.maximum(rate * lower, rate * upper).sum(axis=1)

    def cut_off(self, boxes: _Boxes, some: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Of some boxes, those whose best point is worth more than the tolerance until now, when it was cut off."""
        again = np.zeros(len(some), np.bool_)
        worth = xlogx(boxes.point).sum(axis=1) - boxes.point @ self.linear
        high = np.flatnonzero(some & (worth > self.tolerance))
        if len(high):
            rows, outside = self.room.land(boxes.point[high])
            good = xlogx(rows).sum(axis=1) - rows @ self.linear > self.tolerance
            self.points.extend(rows[good])
            again[high[outside & ~good]] = True
        return again

    def keep(self, boxes: _Boxes, which: IntArray, bound: FloatArray, rate: FloatArray) -> None:
        """Remember boxes to be split, each shrunk to where the over-estimate can exceed the tolerance.

        Away from the better end of each interval it falls at this rate, once the multipliers are paid for.
        """
        kept, rate = boxes.take(which), rate[which]
        reach = (bound[which] - self.tolerance)[:, None] / np.maximum(np.abs(rate), WIDTH)
        reach = reach * (1 + SAFETY) + SAFETY
        lower = np.where(rate > 0, np.maximum(kept.lower, kept.upper - reach), kept.lower)
        upper = np.where(rate < 0, np.minimum(kept.upper, kept.lower + reach), kept.upper)
        kept = replace(kept, lower=lower, upper=upper, point=kept.point.clip(lower, upper))
        for place in range(len(which)):
            heapq.heappush(self.heap, (-float(bound[which[place]]), next(self._count), kept, place))


def _gathered(places: list[tuple[_Boxes, int]]) -> _Boxes:
    """Single boxes of several groups side by side."""
    lower, upper, point = (
        np.array([side[place] for side, place in sides])
        for sides in zip(
            *(((one.lower, at), (one.upper, at), (one.point, at)) for one, at in places), strict=True
        )
    )
    kind, which = (
        np.array(part) for part in zip(*((b.bases.kind[k], b.bases.which[k]) for b, k in places), strict=True)
    )
    return _Boxes(np.array([one.number[at] for one, at in places]), lower, upper, point, Bases(kind, which))
