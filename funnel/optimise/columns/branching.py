"""How much a row of a cone can be worth at most: branch and bound over boxes, best first."""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass, field

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.certificate import Proof
from funnel.optimise.columns.boxes import Search
from funnel.optimise.columns.chords import (
    APART,
    KEPT,
    MISSED,
    SAFETY,
    TOWARDS,
    WIDTH,
    capped,
    chords,
    filled,
    xlogx,
)
from funnel.optimise.columns.pricing import Slice
from funnel.optimise.columns.recording import Record
from funnel.optimise.linear.highs import Answer
from funnel.optimise.linear.many import Programs

_POINTS = 32
"""Points that are told, the best ones."""


@dataclass(frozen=True, eq=False)
class Peak:
    """What is known of max f: a bound from above, points (k, a) whose price is positive, boxes looked at.

    `proof` is why the bound holds; None for lifted cones, and where there were too many boxes.
    """

    bound: float
    points: FloatArray
    nodes: int
    proof: Proof | None


@dataclass(frozen=True, eq=False)
class _Box:
    """A part of the slice, and its number in the record."""

    number: int
    lower: FloatArray
    upper: FloatArray


@dataclass(order=True)
class _Open:
    """A box to be split: a bound on the price inside, where the over-estimate is largest, how far off it is."""

    order: tuple[float, int]
    box: _Box = field(compare=False)
    point: FloatArray = field(compare=False)
    off: FloatArray = field(compare=False)


def peak(room: Slice, eta: FloatArray, *, tolerance: float, deadline: float, most: int, enough: int) -> Peak:
    """Bound f(w) = D(w||prior) - η·w over the slice, down to `tolerance` and no further.

    Boxes in which the over-estimate stays below `tolerance` are not looked into, so no bound is lower. Ends
    early when the time is over, after `most` boxes, or with `enough` points of price above tolerance.
    """
    if room.programs is not None:
        return _at_once(room, room.programs, eta, tolerance, deadline=deadline, most=most, enough=enough)
    search = _Search(room, eta, tolerance)
    search.begin()
    nodes = 0
    while search.heap and nodes < most and len(search.points) < enough and time.monotonic() < deadline:
        search.split(heapq.heappop(search.heap))
        nodes += 1
    proof = search.record.proof(room.matrix, room.equalities)
    return Peak(search.bound(), np.array(search.points).reshape(-1, len(eta)), nodes, proof)


def _at_once(
    room: Slice,
    programs: Programs,
    eta: FloatArray,
    tolerance: float,
    *,
    deadline: float,
    most: int,
    enough: int,
) -> Peak:
    """The same for a slice whose inequalities are all known: many boxes at once, in a tree that is kept."""
    search = Search(programs, room.matrix, room.cuts, room.tree)
    floor = -float(eta @ room.prior)
    search.run(np.log(room.prior) + eta, floor, tolerance, deadline=deadline, most=most, enough=enough)
    room.tree = search.tree
    best = sorted(search.points, key=lambda point: float(search.linear @ point - xlogx(point).sum()))[
        :_POINTS
    ]
    points = room.all_inside(np.array(best).reshape(-1, len(eta)))
    proof = search.tree.proof(room.matrix, room.equalities)
    return Peak(search.bound(), points, search.nodes, proof)


class _Search:
    """Boxes that may still hold a better point."""

    def __init__(self, room: Slice, eta: FloatArray, tolerance: float) -> None:
        self.room, self.tolerance = room, tolerance
        self.linear = np.log(room.prior) + eta
        self.points: list[FloatArray] = []
        self.heap: list[_Open] = []
        self.closed, self.highest = tolerance, 0.0
        # Releasing nothing has a price, too, so no bound is ever below that.
        self.floor = max(tolerance, -float(eta @ room.prior))
        self.record = Record(kept=not room.lift.shape[1])
        self._count = itertools.count()

    def bound(self) -> float:
        """No point of the slice has a higher price."""
        return max(self.closed, -self.heap[0].order[0] if self.heap else -np.inf)

    def begin(self) -> None:
        """Look at what the slice reaches of each coordinate; the rest is cut off."""
        size = len(self.linear)
        box = _Box(self.record.box(0, 0, 0.0, upper=False), np.zeros(size), np.ones(size))
        for cut in self.room.cuts:
            sides = self.halves(box, cut.which, cut.at)
            box, rest = sides if cut.upper else sides[::-1]
            self.keep_out(rest, cut.weight)
        self.add(box)

    def halves(self, box: _Box, which: int, at: float) -> tuple[_Box, _Box]:
        """The parts of a box where a coordinate is at most a number, and at least."""
        left, right = box.upper.copy(), box.lower.copy()
        left[which] = right[which] = at
        return (
            _Box(self.record.box(box.number, which, at, upper=False), box.lower, left),
            _Box(self.record.box(box.number, which, at, upper=True), right, box.upper),
        )

    def add(self, box: _Box) -> None:
        """Bound the price on a box, and keep it for later unless nothing above the tolerance is there."""
        chord, base = chords(box.lower, box.upper)
        slope = chord - self.linear
        answer = self.room.best_in(box.lower, box.upper, slope)
        if answer.status != "optimal":
            self.keep_out(box, self.room.weight(answer.ray))
            return
        weight = self.room.weight(answer.multipliers)
        rest = slope - weight @ self.room.matrix
        top, level = filled(rest, box.lower, box.upper)
        bound = float(base) + top + self.room.leftover(weight)
        self.record.bounded(box.number, weight, level)
        point = answer.point[: len(chord)].clip(box.lower, box.upper)
        self.note(answer, point)
        if bound > self.closed:
            self.keep(bound, self.shrunk(box, rest - level, bound), point)

    def note(self, answer: Answer, point: FloatArray) -> None:
        """Remember a point that is worth a climb."""
        worth = float(xlogx(point).sum() - self.linear @ point)
        if worth > max(self.tolerance, (1 - KEPT) * self.highest):
            self.highest = max(self.highest, worth)
            self.points.append(self.room.inside(answer.point))

    def keep(self, bound: float, box: _Box, point: FloatArray) -> None:
        """Remember a box, to be split."""
        chord, _ = chords(box.lower, box.upper)
        point = point.clip(box.lower, box.upper)
        off = xlogx(box.lower) + chord * (point - box.lower) - xlogx(point)
        heapq.heappush(self.heap, _Open((-bound, next(self._count)), box, point, off))

    def keep_out(self, box: _Box, weight: FloatArray) -> None:
        """Close a box that no row is in, by multipliers so large that nothing there is worth the tolerance.

        `weight` (m,) are some that no row can meet there. Where they fail, the box is looked into later.
        """
        chord, base = chords(box.lower, box.upper)
        slope = chord - self.linear
        top, level = filled(slope, box.lower, box.upper)
        # Twice as much as is needed, so that rounding errors do not matter.
        excess = 2 * max(float(base) + top - self.floor, 0.0) + 1.0
        over = float(box.lower.sum()) - 1, 1 - float(box.upper.sum())
        if max(over) > APART:
            level += excess / over[0] if over[0] > 0 else -excess / over[1]
            weight = np.zeros(len(self.room.matrix))
        else:
            miss, _ = filled(-(weight @ self.room.matrix), box.lower, box.upper)
            miss += self.room.leftover(weight)
            weight = weight * (excess / -miss if miss < -MISSED * np.abs(weight).sum() else 0.0)
            _, level = filled(slope - weight @ self.room.matrix, box.lower, box.upper)
        rest = slope - weight @ self.room.matrix
        bound = float(base + capped(rest, level, box.lower, box.upper)) + self.room.leftover(weight)
        self.record.bounded(box.number, weight, level)
        if bound > self.closed:
            self.keep(bound, box, (box.lower + box.upper) / 2)

    def shrunk(self, box: _Box, rate: FloatArray, bound: float) -> _Box:
        """The part of a box where the over-estimate can exceed the tolerance.

        Away from the better end of each interval it falls at this rate (a,), once the multipliers are paid for.
        """
        reach = (bound - self.tolerance) / np.maximum(np.abs(rate), WIDTH) * (1 + SAFETY) + SAFETY
        lower = np.where(rate > 0, np.maximum(box.lower, box.upper - reach), box.lower)
        upper = np.where(rate < 0, np.minimum(box.upper, box.lower + reach), box.upper)
        return _Box(box.number, lower, upper)

    def split(self, open_: _Open) -> None:
        """Cut a box across the coordinate where the over-estimate is farthest off.

        Between where it is farthest off in general and the point that it likes best.
        """
        box, which = open_.box, int(np.argmax(open_.off))
        low, high = float(box.lower[which]), float(box.upper[which])
        if open_.off[which] <= 0 or high - low < WIDTH:
            self.closed = max(self.closed, -open_.order[0])
            return
        chord, _ = chords(box.lower[[which]], box.upper[[which]])
        widest = float(np.clip(np.exp(chord[0] - 1), low, high))
        at = widest + TOWARDS * (float(open_.point[which]) - widest)
        for half in self.halves(box, which, at):
            self.add(half)
