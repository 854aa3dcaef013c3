"""How much a row of a cone can be worth at most: branch and bound over boxes of its slice.

In w = prior·v the price of a row is f(w) = Σ w ln w - linear·w, convex, so that chords over a box bound it by a linear
program, and the multipliers of that prove the bound. Whatever relaxes the slice (`Relaxation`) serves.

The search goes best first: open parts with a bound each are split until none can hold more than is known.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.budget import Budget
from funnel.optimise.columns.chords import APART, KEPT, SAFETY, TOWARDS, WIDTH, capped, chords, filled, xlogx
from funnel.optimise.columns.reach import Cut, Relaxation, proven
from funnel.optimise.columns.tree import Boxes, BoxTree, side_by_side
from funnel.optimise.linear.bases import GIVEN_UP, OPTIMAL, Answers, BoolArray, Objectives

Part = TypeVar("Part")
_EMPTY = 1e-7
"""By how much a half must lie outside its shrunk box to be left alone."""
_TRIES, _SETTLED = 40, -1
"""Times that a program may be left for later."""
_ROUNDING = 1e-11
"""Nats below the aim at which a program ends, so that its bound is below it as well."""


class BranchAndBound(ABC, Generic[Part]):
    """An upper bound on a maximum, lowered by splitting parts of where it may be.

    `closed` is a bound on all that was looked into, or is not worth it; `nodes` counts the parts that were split.
    """

    at_once = 1
    """Parts that are split together."""

    def __init__(self, closed: float) -> None:
        self.closed, self.nodes = closed, 0
        self._open: list[tuple[float, int, Part]] = []
        self._count = itertools.count()

    @property
    def bound(self) -> float:
        """Nothing anywhere is worth more."""
        return max(self.closed, -self._open[0][0] if self._open else -math.inf)

    def put(self, bound: float, part: Part) -> None:
        """Keep a part that is worth at most so much, to be split."""
        heapq.heappush(self._open, (-bound, next(self._count), part))

    def close(self, bound: float) -> None:
        """Give up on a part that is worth at most so much."""
        self.closed = max(self.closed, bound)

    def explore(self, budget: Budget) -> None:
        """Split the best parts until none is open, or there is `enough`, or the budget is spent."""
        while self._open and not self.enough() and not budget.over:
            count = int(min(self.at_once, budget.nodes, len(self._open)))
            split = self.split([heapq.heappop(self._open)[2] for _ in range(count)])
            self.nodes += split
            budget.spend(split)

    def taken(self, chosen: Callable[[Part], bool]) -> list[Part]:
        """Take the chosen parts out of those that are open, the best first."""
        entries = sorted(self._open, key=lambda entry: entry[:2])
        self._open = [entry for entry in entries if not chosen(entry[2])]
        return [entry[2] for entry in entries if chosen(entry[2])]

    def enough(self) -> bool:
        """Whether what was found is worth ending for."""
        return False

    @abstractmethod
    def split(self, parts: list[Part]) -> int:
        """Bound what the parts consist of, and `put` or `close` it; how many nodes that were."""


@dataclass(frozen=True, eq=False)
class Open:
    """A box to be split across coordinate `which` at `at`, or to be bounded again where it has `tries` left."""

    box: Boxes
    which: int
    at: float
    tries: int


class BoxSearch(BranchAndBound[Open]):
    """Bounds f(w) = Σ w ln w - linear·w over a slice {w >= 0 : Σ w = 1, …} down to `tolerance`, and no further.

    Boxes in which the bound stays below are not looked into, so it is never lower. `floor` is a price that the slice
    has. `cuts` cut off what it does not reach. A `tree` that was grown for other prices is gone through again first.
    `points` (a or more,) are where programs are best whose price is high; `many` of them are enough.
    """

    def __init__(
        self,
        programs: Relaxation,
        linear: FloatArray,
        *,
        tolerance: float,
        floor: float,
        cuts: list[Cut],
        tree: BoxTree | None = None,
        many: int,
    ) -> None:
        super().__init__(tolerance)
        self.programs, self.linear, self.cuts, self.many = programs, linear, cuts, many
        self.at_once = programs.at_once
        self.tolerance, self.floor = tolerance, max(tolerance, floor)
        self.tree = BoxTree(programs.size) if tree is None else tree
        self.highest = 0.0
        self.points: list[FloatArray] = []

    def run(self, budget: Budget) -> None:
        """Split boxes until none may hold a price above the tolerance, or there are points enough, or budget is not."""
        self.begin()
        self.explore(budget)
        self.settle()

    def enough(self) -> bool:
        """Whether there are points enough."""
        return len(self.points) >= self.many

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
        self.add(side_by_side([*parts, whole]))

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
        bases, enough = self.tree.bases(boxes.number), self.closed - base - _ROUNDING
        objectives = Objectives(boxes.lower, boxes.upper, slope, bases, enough, patient=not tries.any())
        answers = self.relaxed(objectives)
        found = proven(self.programs, answers, objectives)
        apart = _apart(boxes)
        if apart.any():
            found.weight[apart], found.rest[apart] = 0.0, slope[apart]
            found.top[apart], found.level[apart] = self.kept_out(boxes[apart], base[apart], slope[apart])
        bound = base + found.top
        self.tree.bounded(boxes.number, answers, found.weight, found.level)
        point = answers.point[:, : len(self.linear)].clip(boxes.lower, boxes.upper)
        self.note(answers, point)
        above = bound > self.closed
        self.tree.child[boxes.number[~above]] = 0
        left = np.where(answers.how == GIVEN_UP, tries - 1, _SETTLED)
        for place in np.flatnonzero(above & (left >= 0)):
            self.put(float(bound[place]), Open(boxes[np.array([place])], 0, 0.0, int(left[place])))
        above &= left < 0
        shrunk = self.shrunk(boxes, found.rest - found.level[:, None], bound)[above]
        middle = np.where((answers.how == OPTIMAL)[:, None], point, (boxes.lower + boxes.upper) / 2)
        return self.keep(shrunk, middle[above], bound[above])

    def relaxed(self, objectives: Objectives) -> Answers:
        """The linear programs of boxes, from where they, or the boxes that they are halves of, ended before."""
        return self.programs.solve(objectives)

    def kept_out(self, boxes: Boxes, base: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on what boxes that miss Σ w = 1 are worth, by multipliers of it so large that it is little; these."""
        top, level, _ = filled(slope, boxes.lower, boxes.upper)
        over, under = boxes.lower.sum(axis=1) - 1, 1 - boxes.upper.sum(axis=1)
        # Twice as much as is needed, so that rounding errors do not matter.
        excess = 2 * np.maximum(base + top - self.floor, 0.0) + 1.0
        level = level + np.where(over > 0, excess, -excess) / np.maximum(over, under)
        return capped(slope, level, boxes.lower, boxes.upper), level

    def note(self, answers: Answers, points: FloatArray) -> None:
        """Remember points that are worth a climb."""
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
                self.close(float(bound[place]))
                continue
            box = boxes[np.array([place])]
            self.put(float(bound[place]), Open(box, int(which[place]), float(at[place]), _SETTLED))
        return self.proper(side_by_side([left, right]))

    def proper(self, boxes: Boxes) -> Boxes:
        """Boxes in which there is something; what is nearly empty becomes so thin that it is flat."""
        inside = (boxes.lower - boxes.upper).max(axis=1, initial=0.0) <= _EMPTY
        self.tree.child[boxes.number[~inside]] = 0
        held = boxes[inside]
        return Boxes(held.number, np.minimum(held.lower, held.upper), held.upper)

    def settle(self) -> None:
        """Bound boxes whose programs were left for later, so that none stands in for what it is not worth."""
        later = self.taken(lambda entry: entry.tries >= 0)
        if later:
            self.add(side_by_side([entry.box for entry in later]), patient=True)

    def split(self, parts: list[Open]) -> int:
        """Cut the best boxes, each across the coordinate where the over-estimate is farthest off."""
        again = [entry for entry in parts if entry.tries >= 0]
        cut = [entry for entry in parts if entry.tries < 0]
        boxes, tries = [entry.box for entry in again], [entry.tries for entry in again]
        if cut:
            which, at = (np.array([getattr(entry, name) for entry in cut]) for name in ("which", "at"))
            boxes += self.tree.halves(side_by_side([entry.box for entry in cut]), which, at)
            tries += [_TRIES] * (2 * len(cut))
        self.add(self.look(side_by_side(boxes), np.array(tries)))
        return len(cut)


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
