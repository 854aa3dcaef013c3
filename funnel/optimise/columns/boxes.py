"""How much a row of a cone can be worth at most: branch and bound over boxes, many at a time, best first.

The cone is one whose inequalities are all known, so that every box is a small linear program over the same ones.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.columns.chords import APART, KEPT, SAFETY, TOWARDS, WIDTH, capped, chords, xlogx
from funnel.optimise.columns.reach import Cut
from funnel.optimise.columns.tree import Boxes, Tree
from funnel.optimise.linear.bases import GIVEN_UP, OPTIMAL, Answers, BoolArray
from funnel.optimise.linear.many import Programs
from funnel.optimise.linear.programs import filled

_EMPTY = 1e-7
"""By how much a half must lie outside its shrunk box to be left alone."""
_AT_ONCE = 64
"""Boxes that are split at a time."""
_LOST = 1e-13
"""What rounding errors may add to a bound, as a share of the multipliers it comes from."""
_TRIES, _SETTLED = 40, -1
"""Times that a program may be left for later."""
_ROUNDING = 1e-11
"""Nats below the aim at which a program ends, so that its bound is below it as well."""


@dataclass(order=True)
class _Open:
    """A box to be split, with a bound on the price inside as its order; `tries` where it is to be bounded again."""

    order: tuple[float, int]
    box: Boxes
    which: int
    at: float
    tries: int


class Search:
    """Bounds f(w) = Σ w ln w - linear·w over the slice {w >= 0 : Σ w = 1, matrix @ w <= 0}, down to a tolerance.

    `cuts` cut off what it does not reach. A tree that was grown for other prices is gone through again first.
    """

    def __init__(self, programs: Programs, matrix: FloatArray, cuts: list[Cut], tree: Tree | None) -> None:
        self.programs, self.matrix = programs, matrix
        self.equations = np.arange(len(matrix) + 2) >= len(matrix) - programs.equalities
        self.tree = Tree(programs.size, programs.count) if tree is None else tree
        self.sizes = np.append(np.abs(matrix).max(axis=1, initial=0.0), [0.0, 0.0])
        self.cuts = cuts

    def run(
        self, linear: FloatArray, floor: float, tolerance: float, *, deadline: float, most: int, enough: int
    ) -> None:
        """Split boxes until none may hold a price above the tolerance, or something else ends it (see `peak`).

        `floor` is a price that the slice has.
        """
        self.linear, self.tolerance = linear, tolerance
        self.floor = max(tolerance, floor)
        self.closed, self.highest, self.nodes = tolerance, 0.0, 0
        self.heap: list[_Open] = []
        self.points: list[FloatArray] = []
        self._count = itertools.count()
        self.begin()
        while self.heap and self.nodes < most and len(self.points) < enough and time.monotonic() < deadline:
            self.split(min(_AT_ONCE, most - self.nodes))
        self.settle()

    def bound(self) -> float:
        """No point of the slice has a higher price."""
        return max(self.closed, -self.heap[0].order[0] if self.heap else -np.inf)

    def begin(self) -> None:
        """Look at what the slice reaches of each coordinate, and the rest apart; then at the boxes there are."""
        tree, size = self.tree, self.programs.size
        whole = Boxes(np.zeros(1, np.int64), np.zeros((1, size)), np.ones((1, size)))
        parts = []
        for cut in self.cuts:
            if tree.child[whole.number[0]]:
                sides = tree.below(whole)
            else:
                sides = tree.halves(whole, np.array([cut.which]), np.array([cut.at]))
            whole, rest = sides if cut.upper else sides[::-1]
            parts.append(rest)
        self.add(_joined([*parts, whole]))

    def add(self, boxes: Boxes, *, patient: bool = False) -> None:
        """Bound the price on boxes, and on what they were split into before where that is not low enough."""
        while len(boxes):
            boxes = self.look(boxes, np.full(len(boxes), 0 if patient else _TRIES))

    def look(self, boxes: Boxes, tries: IntArray) -> Boxes:
        """Bound the price on boxes; keep those where it may exceed the tolerance, or return their halves.

        `tries` (N,) says how often their programs may still be left for later.
        """
        chord, base = chords(boxes.lower, boxes.upper)
        slope = chord - self.linear
        answers = self.solved(boxes, slope, self.closed - base - _ROUNDING, patient=not tries.any())
        weight = self.proper_weight(answers)
        rest = slope - np.matmul(weight[:, None, :], self.programs.extended[answers.index])[:, 0, :-1]
        top, level, _ = filled(rest, boxes.lower, boxes.upper)
        apart = _apart(boxes)
        if apart.any():
            weight[apart], rest[apart] = 0.0, slope[apart]
            top[apart], level[apart] = self.kept_out(boxes[apart], base[apart], slope[apart])
        bound = base + top + _LOST * (np.abs(weight) * self.sizes[answers.index]).sum(axis=1)
        self.tree.bounded(boxes.number, answers, weight, level)
        self.note(answers, boxes)
        above = bound > self.closed
        self.tree.child[boxes.number[~above]] = 0
        left = np.where(answers.how == GIVEN_UP, tries - 1, _SETTLED)
        for place in np.flatnonzero(above & (left >= 0)):
            self.put(boxes[np.array([place])], float(bound[place]), 0, 0.0, int(left[place]))
        above &= left < 0
        shrunk = self.shrunk(boxes, rest - level[:, None], bound)[above]
        point = np.where((answers.how == OPTIMAL)[:, None], answers.point, (boxes.lower + boxes.upper) / 2)
        return self.keep(shrunk, point[above], bound[above])

    def solved(self, boxes: Boxes, slope: FloatArray, enough: FloatArray, *, patient: bool) -> Answers:
        """The linear programs of boxes, from where they, or the boxes that they are halves of, ended before."""
        bases = self.tree.bases(boxes.number)
        new = bases.count == 0
        if new.any():
            fresh = self.programs.fresh(slope[new])
            bases.rows[new, :1], bases.values[new, :1], bases.count[new] = fresh.rows, fresh.values, 1
        return self.programs.solve(boxes.lower, boxes.upper, slope, bases, enough, patient=patient)

    def proper_weight(self, answers: Answers) -> FloatArray:
        """Multipliers (N, k) with the sign that a bound needs, zero where they are none of an inequality."""
        weight = np.where(self.equations[answers.index], answers.weight, np.maximum(answers.weight, 0.0))
        return np.where((answers.index < len(self.matrix)) & np.isfinite(weight), weight, 0.0)

    def kept_out(self, boxes: Boxes, base: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on what boxes that miss Σ w = 1 are worth, by multipliers of it so large that it is little; these."""
        top, level, _ = filled(slope, boxes.lower, boxes.upper)
        over, under = boxes.lower.sum(axis=1) - 1, 1 - boxes.upper.sum(axis=1)
        # Twice as much as is needed, so that rounding errors do not matter.
        excess = 2 * np.maximum(base + top - self.floor, 0.0) + 1.0
        level = level + np.where(over > 0, excess, -excess) / np.maximum(over, under)
        return capped(slope, level, boxes.lower, boxes.upper), level

    def note(self, answers: Answers, boxes: Boxes) -> None:
        """Remember points that are worth a climb."""
        points = answers.point.clip(boxes.lower, boxes.upper)
        worth = np.where(answers.how == OPTIMAL, xlogx(points).sum(axis=1) - points @ self.linear, -np.inf)
        for place in np.flatnonzero(worth > self.tolerance):
            if worth[place] > (1 - KEPT) * self.highest:
                self.highest = max(self.highest, float(worth[place]))
                self.points.append(answers.point[place])

    def shrunk(self, boxes: Boxes, rate: FloatArray, bound: FloatArray) -> Boxes:
        """The parts of boxes where the over-estimate can exceed the tolerance.

        Away from the better end of each interval it falls at this rate (N, a), once the multipliers are paid for.
        """
        excess = (bound - self.tolerance)[:, None]
        reach = excess / np.maximum(np.abs(rate), WIDTH) * (1 + SAFETY) + SAFETY
        lower = np.where(rate > 0, np.maximum(boxes.lower, boxes.upper - reach), boxes.lower)
        upper = np.where(rate < 0, np.minimum(boxes.upper, boxes.lower + reach), boxes.upper)
        return Boxes(boxes.number, lower, upper)

    def keep(self, boxes: Boxes, point: FloatArray, bound: FloatArray) -> Boxes:
        """Remember boxes to be split; the halves of those that have been split are returned."""
        split = self.tree.child[boxes.number] > 0
        left, right = self.tree.below(boxes[split])
        which, at, off = _where(boxes.lower, boxes.upper, point.clip(boxes.lower, boxes.upper))
        for place in np.flatnonzero(~split):
            if off[place] <= 0:
                self.closed = max(self.closed, float(bound[place]))
                continue
            box = boxes[np.array([place])]
            self.put(box, float(bound[place]), int(which[place]), float(at[place]), _SETTLED)
        return self.proper(_joined([left, right]))

    def put(self, box: Boxes, bound: float, which: int, at: float, tries: int) -> None:
        """Remember one box."""
        heapq.heappush(self.heap, _Open((-bound, next(self._count)), box, which, at, tries))

    def proper(self, boxes: Boxes) -> Boxes:
        """Boxes in which there is something; what is nearly empty becomes so thin that it is flat."""
        inside = (boxes.lower - boxes.upper).max(axis=1, initial=0.0) <= _EMPTY
        self.tree.child[boxes.number[~inside]] = 0
        held = boxes[inside]
        return Boxes(held.number, np.minimum(held.lower, held.upper), held.upper)

    def settle(self) -> None:
        """Bound boxes whose programs were left for later, so that none stands in for what it is not worth."""
        later = [entry for entry in self.heap if entry.tries >= 0]
        if later:
            self.heap = [entry for entry in self.heap if entry.tries < 0]
            heapq.heapify(self.heap)
            self.add(_joined([entry.box for entry in later]), patient=True)

    def split(self, most: int) -> None:
        """Cut the best boxes, each across the coordinate where the over-estimate is farthest off."""
        best = [heapq.heappop(self.heap) for _ in range(min(most, len(self.heap)))]
        again = [entry for entry in best if entry.tries >= 0]
        cut = [entry for entry in best if entry.tries < 0]
        parts, tries = [entry.box for entry in again], [entry.tries for entry in again]
        if cut:
            boxes = _joined([entry.box for entry in cut])
            which, at = (np.array([getattr(entry, name) for entry in cut]) for name in ("which", "at"))
            self.nodes += len(cut)
            parts += self.tree.halves(boxes, which, at)
            tries += [_TRIES] * (2 * len(cut))
        self.add(self.look(_joined(parts), np.array(tries)))


def _joined(parts: list[Boxes] | tuple[Boxes, ...]) -> Boxes:
    """Boxes side by side."""
    return Boxes(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("number", "lower", "upper"))
    )


def _apart(boxes: Boxes) -> BoolArray:
    """Whether boxes miss Σ w = 1."""
    over, under = boxes.lower.sum(axis=1) > 1 + APART, boxes.upper.sum(axis=1) < 1 - APART
    return np.asarray(over | under)


def _where(
    lower: FloatArray, upper: FloatArray, point: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """The coordinate across which each box is best cut, where, and by how much the chord is off there.

    Between where it is farthest off in general and the point that it likes best.
    """
    chord, _ = chords(lower, upper)
    off = xlogx(lower) + chord * (point - lower) - xlogx(point)
    several = np.arange(len(point))
    which = off.argmax(axis=1)
    low, high = lower[several, which], upper[several, which]
    widest = np.clip(np.exp(chord[several, which] - 1), low, high)
    at = widest + TOWARDS * (point[several, which] - widest)
    return which, at, np.where(high - low < WIDTH, 0.0, off[several, which])
