"""How much the part of a row that belongs to one group can be worth at most: branch and bound over its two levels.

A vertex has levels x >= y and a label per coordinate (`levels`). Cells of the levels are cut and labels fixed
until what is left cannot exceed the target (`cells`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.groups.cells import SLACK, BoolArray, Bounds, Cells, End, halves, joined
from funnel.optimise.groups.levels import HIGH, LOW, ZERO, Groups, Limits, averages, climb, levels, xlogx

Labels = npt.NDArray[np.integer]
_LISTED = 81
"""Combinations of labels up to which they are tried one by one."""
_STEP_X, _STEP_Y = 0.2, 0.25
"""Width of the first cells, in ln x and ln y."""
_LEAST_Y = -3.0
"""ln y below which there is one first cell."""
_NARROW, _THIN = 1.07, 0.03
"""Ratio, or width, of a cell from which labels are fixed."""
_CLOSE = 1.01
"""The same where x and y may be equal, so that their labels are the same."""
_NEAR_ZERO = 0.3
"""Share of x below which y is nearer to zero, so that labels are told from x first."""
_CLIMBS = 8
"""Cells of each round from which a climb looks for a better vertex."""
_AT_ONCE = 1_024
"""Cells in one round, so few that they stay in the cache; halves come first."""


@dataclass(frozen=True, eq=False)
class Top:
    """By how much the targets are exceeded at most, labels (k, n) of vertices that do so, cells looked at."""

    excess: float
    labels: IntArray
    nodes: int


def top(
    groups: Groups,
    group: int,
    eta: FloatArray,
    ends: tuple[End, ...],
    *,
    deadline: float,
    most: int,
) -> Top:
    """Bound Σ p z ln z - η·z over a group's parts, eta (n,), down to the target and no further.

    With two ends, low, high and target move from the one to the other together, and the bound holds all the way.
    Better vertices found on the way raise the target. Ends early after `most` cells or when the time is over; the
    bound holds all the same.
    """
    search = _Search(groups, group, eta, ends)
    pending, nodes, excess = search.first(), 0, 0.0
    while len(pending):
        if nodes >= most or time.monotonic() >= deadline:
            excess = search.over(pending)
            break
        now, pending = pending[:_AT_ONCE], pending[_AT_ONCE:]
        nodes += len(now)
        pending = joined([*search.split(now), pending])
    return Top(search.raised + max(excess, 0.0), search.found(), nodes)


class _Search(Bounds):
    """Cells that may still hold a better part."""

    def __init__(self, groups: Groups, group: int, eta: FloatArray, ends: tuple[End, ...]) -> None:
        super().__init__(groups, group, eta, ends)
        self.better: list[IntArray] = []

    def first(self) -> Cells:
        """All cells that a vertex can be in, in all cases."""
        most = self.high / self.reach.min() * (1 + SLACK)
        across = np.exp(np.arange(0, np.log(most / self.low) + _STEP_X, _STEP_X)) * self.low
        down = np.append(0.0, np.exp(np.arange(_LEAST_Y, max(np.log(most), _LEAST_Y) + 2 * _STEP_Y, _STEP_Y)))
        across[0] *= 1 - SLACK
        pairs = [
            (i, j) for i in range(len(across) - 1) for j in range(len(down) - 1) if down[j] <= across[i + 1]
        ]
        cells = np.array([(across[i], across[i + 1], down[j], down[j + 1]) for i, j in pairs]).reshape(-1, 4)
        count, mass = 9 * len(cells), float(self.prior.sum())
        upper, lower = np.divmod(np.repeat(np.arange(9), len(cells)), 3)
        allowed = np.ones((3, len(self.eta), count), bool)
        start = np.full(count, mass / 2), np.full(count, mass / 3)
        return Cells(np.tile(cells.T, 9), allowed, *start, upper, lower)

    def split(self, cells: Cells) -> list[Cells]:
        """What is left of the cells, cut in two; none where nothing can exceed the target."""
        cells = self.possible(cells)
        if not len(cells):
            return []
        value, a, b = self.bounds(cells)
        cells = Cells(cells.box, cells.allowed, a, b, cells.upper, cells.lower)
        self.try_out(self.liked(cells[np.argsort(-value, kind="stable")[:_CLIMBS]]).T)
        above = value > self.raised
        cells, value = self.fixed(cells[above]), value[above]
        if not len(cells):
            return []
        number = cells.allowed.sum(axis=0).astype(float).prod(axis=0)
        self.listed(cells[(number > 0) & (number <= _LISTED)])
        kept = np.flatnonzero(number > _LISTED)
        return self.cut(cells[kept], value[kept]) if len(kept) else []

    def over(self, cells: Cells) -> float:
        """By how much cells that were not looked into may exceed the target as it is now."""
        cells = self.possible(cells)
        return float(self.bounds(cells)[0].max()) - self.raised if len(cells) else 0.0

    def found(self) -> IntArray:
        """Labels of vertices above the target, padded."""
        return np.array(self.better, np.int64).reshape(-1, len(self.full))

    def listed(self, cells: Cells) -> None:
        """Try all labels that are left."""
        if not len(cells):
            return
        counts = cells.allowed.sum(axis=0)
        number = counts.prod(axis=0)
        owner = np.repeat(np.arange(len(cells)), number)
        rest = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
        order = np.argsort(~cells.allowed, axis=0, kind="stable").astype(np.int8)
        labels = np.empty((len(counts), len(owner)), np.int8)
        for u, choices in enumerate(counts):
            if choices.max() == 1:
                labels[u] = order[0, u, owner]
            else:
                rest, digit = np.divmod(rest, choices[owner])
                labels[u] = order[digit, u, owner]
        self.remember(labels.T, self.of(labels) if len(self.ends) == 1 else self.along(labels))

    def along(self, labels: Labels) -> FloatArray:
        """By how much vertices (n, k) exceed the target at most, between the two ends; -inf where they never exist.

        Levels are linear on the way and worth is convex in them, so that the ends of where they exist decide.
        """
        above, below = self.sums(labels)
        whole, room = np.asarray(self.gap.sum()), np.asarray(self.room)
        most_x, most_y, least_x, least_y = averages(above[0], above[1], below[0], below[1], whole, room)
        two, best = below[2] > 0, np.full(above.shape[1], -np.inf)
        lows, highs = self.lows, self.highs
        with np.errstate(all="ignore"):
            determinant = most_x * least_y - most_y * least_x
            x = (highs * least_y - lows * most_y) / determinant
            y = np.where(two, (most_x * lows - least_x * highs) / determinant, 0.0)
            most, least = highs / most_x, lows / least_x
            begin, end = where_all(np.where(two, x - y, most - least), np.where(two, y, 1.0))
            for level in (np.where(two, x, most), np.where(two, x, least)):
                for at in (begin, end):
                    here, there = (first + at * (last - first) for first, last in (level, y))
                    best = np.maximum(best, self.excess(above, below, here, there, at))
        return np.where(begin <= end, best, -np.inf)

    def excess(
        self, above: FloatArray, below: FloatArray, x: FloatArray, y: FloatArray, at: FloatArray
    ) -> FloatArray:
        """Worth of the levels beyond the target, a share `at` of the way from end to end; -inf where undefined."""
        at_x, at_y = (xlogx(np.maximum(level, 0.0)) for level in (x, y))
        first, last = self.targets[:, 0]
        worth = above[2] * at_x + below[2] * at_y - above[3] * x - below[3] * y
        beyond = worth - first - at * (last - first)
        return np.asarray(np.where(np.isfinite(x) & np.isfinite(y), beyond, -np.inf))

    def sums(self, labels: Labels) -> tuple[FloatArray, FloatArray]:
        """The sums of L, U - L, p and the price over the coordinates at x, and at y, of labels (n, k); (4, k) each."""
        terms = np.stack([self.floor, self.gap, self.prior, self.eta])
        return terms @ (labels == HIGH).astype(float), terms @ (labels == LOW).astype(float)

    def of(self, labels: Labels) -> FloatArray:
        """By how much the vertices that labels (n, k) stand for exceed the target; with one end only."""
        above, below = self.sums(labels)
        (end,) = self.ends
        whole, room, low, high = (np.asarray(one) for one in (self.gap.sum(), self.room, end.low, end.high))
        return levels(above.T, below.T, whole, room, low, high)[2] - end.target

    def try_out(self, labels: IntArray) -> None:
        """Climb from labels that bounds like, at each end."""
        padded = self.padded(labels)
        for end in self.ends:
            limits, eta = self.terms(len(padded), end)
            _, worth, reached = climb(self.groups, limits, eta, padded)
            self.remember(reached[:, : len(self.eta)], worth - end.target)

    def terms(self, count: int, end: End) -> tuple[Limits, FloatArray]:
        """The limits and prices, `count` times."""
        limits = Limits(np.full(count, self.group), np.full(count, end.low), np.full(count, end.high))
        return limits, np.broadcast_to(self.full, (count, len(self.full)))

    def padded(self, labels: Labels) -> IntArray:
        """Labels (k, size) as (k, n)."""
        padded = np.zeros((len(labels), len(self.full)), np.int64)
        padded[:, : labels.shape[1]] = labels
        return padded

    def remember(self, labels: Labels, excess: FloatArray) -> None:
        """Raise the target to the best vertex found."""
        best = int(excess.argmax())
        if excess[best] > self.raised:
            self.raised = float(excess[best])
            self.better.append(self.padded(labels[[best]])[0])

    def cut(self, cells: Cells, value: FloatArray) -> list[Cells]:
        """Cells cut across the wider level, or at the label of the coordinate that weighs most.

        Labels whose levels are next to each other are told apart last: near x = y, high and low are the same.
        """
        box = cells.box
        x, y = (box[0] + box[1]) / 2, (box[2] + box[3]) / 2
        centre = self.centres(cells, x, y)
        meet, near = box[0] <= box[3], box[3] < _NEAR_ZERO * box[0]
        zero, high, low = (cells.allowed[label] for label in (ZERO, HIGH, LOW))
        coarse = np.where(near, high & (zero | low), zero & (high | low))
        fine = np.where(near, zero & low, high & low)
        wide = (box[3] > _NARROW * box[2]) & (box[3] - box[2] > _THIN)
        across = (centre - self.raised < (value - self.raised) / 2) | (box[1] > _NARROW * box[0]) | wide
        across |= meet & ((box[1] > _CLOSE * box[0]) | ~coarse.any(axis=0)) | ~(coarse | fine).any(axis=0)
        return [*halves(cells[across], x[across], y[across]), *self.told(cells, ~across, coarse, fine, near)]

    def told(
        self, cells: Cells, kept: BoolArray, coarse: BoolArray, fine: BoolArray, near: BoolArray
    ) -> list[Cells]:
        """Cells cut at a label: the one that stands apart, or not."""
        place = np.flatnonzero(kept)
        cells, near = cells[place], near[place]
        coarse, fine = (mask.take(place, axis=-1) for mask in (coarse, fine))
        weight = (self.floor + self.gap)[:, None]
        which = np.where(coarse, weight + 10, np.where(fine, weight, -1.0)).argmax(axis=0)
        rows = np.arange(len(cells))
        label = np.where(coarse[which, rows] != near, ZERO, HIGH)
        only = np.arange(3)[:, None] == label
        parts = []
        for mask in (only, ~only):
            allowed = cells.allowed.copy()
            allowed[:, which, rows] &= mask
            part = Cells(cells.box, allowed, cells.a, cells.b, cells.upper, cells.lower)
            parts.append(part[np.flatnonzero(allowed[:, which, rows].any(axis=0))])
        return parts


def where_all(*linear: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The shares of the way from end to end between which all of several linear functions (2, k) are >= 0."""
    begin, end = np.zeros(linear[0].shape[1]), np.ones(linear[0].shape[1])
    for first, last in linear:
        root = first / (first - last)
        begin = np.where((first < 0) & (last >= 0), np.maximum(begin, root), begin)
        end = np.where((first >= 0) & (last < 0), np.minimum(end, root), end)
        never = ~(first >= 0) & ~(last >= 0)
        begin, end = np.where(never, 1.0, begin), np.where(never, 0.0, end)
    return begin, end
