"""How much the part of a row that belongs to one group can be worth at most: branch and bound over its two levels.

A vertex has levels x >= y and a label per coordinate (`levels`). Cells of the levels are cut and labels fixed
until what is left cannot exceed the target (`cells`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.geometry.groups.cells import SLACK, Bounds, Cells, End, halves, joined
from funnel.geometry.groups.levels import HIGH, LOW, ZERO, Groups, Limits, averages, climb, of_labels, xlogx
from funnel.model.joint import FloatArray, IntArray

_LISTED = 243
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
_CLIMBS = 64
"""Cells of each round from which a climb looks for a better vertex."""
_AT_ONCE = 40_000
"""Cells in one round; the worst come first."""


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
        cases, count = np.array([(t, u) for t in range(3) for u in range(3)]), len(cells)
        cases = np.repeat(cases, count, axis=0)
        box, ones = np.tile(cells, (9, 1)), np.ones((9 * count, 1))
        allowed = np.ones((len(box), len(self.eta), 3), bool)
        mass = float(self.prior.sum())
        return Cells(box, allowed, ones * mass / 2, ones * mass / 3, cases[:, :1], cases[:, 1:])

    def split(self, cells: Cells) -> list[Cells]:
        """What is left of the cells, cut in two; none where nothing can exceed the target."""
        cells = self.possible(cells)
        if not len(cells):
            return []
        value, a, b, likely = self.bounds(cells)
        self.try_out(likely[np.argsort(-value, kind="stable")[:_CLIMBS]])
        cells = Cells(cells.box, cells.allowed, a, b, cells.upper, cells.lower)
        kept = value > self.raised
        cells, value = self.fixed(cells[kept]), value[kept]
        if not len(cells):
            return []
        number = np.prod(cells.allowed.sum(axis=-1).astype(float), axis=1)
        self.listed(cells[(number > 0) & (number <= _LISTED)])
        kept = number > _LISTED
        return self.cut(cells[kept], value[kept]) if kept.any() else []

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
        counts = cells.allowed.sum(axis=-1)
        number = counts.prod(axis=1)
        owner = np.repeat(np.arange(len(cells)), number)
        rest = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
        order = np.argsort(~cells.allowed, axis=-1, kind="stable")
        labels = np.zeros((len(owner), counts.shape[1]), np.int64)
        for u in range(counts.shape[1]):
            labels[:, u] = order[owner, u, rest % counts[owner, u]]
            rest //= counts[owner, u]
        if len(self.ends) == 1:
            self.remember(labels, self.of(labels))
        else:
            self.remember(labels, self.along(labels))

    def along(self, labels: IntArray) -> FloatArray:
        """By how much vertices exceed the target at most, between the two ends; -inf where they never exist.

        Levels are linear on the way and worth is convex in them, so that the ends of where they exist decide.
        """
        high, low = (labels == HIGH) * 1.0, (labels == LOW) * 1.0
        sums = (high @ self.floor, high @ self.gap, low @ self.floor, low @ self.gap)
        most_x, most_y, least_x, least_y = averages(*sums, np.asarray(self.gap.sum()), np.asarray(self.room))
        lows, highs = (
            np.array([getattr(end, name) for end in self.ends])[:, None] for name in ("low", "high")
        )
        two, best = low.any(axis=1), np.full(len(labels), -np.inf)
        with np.errstate(all="ignore"):
            determinant = most_x * least_y - most_y * least_x
            x = (highs * least_y - lows * most_y) / determinant
            y = np.where(two, (most_x * lows - least_x * highs) / determinant, 0.0)
            most, least = highs / most_x, lows / least_x
            begin, end = _where(np.where(two, x - y, most - least), np.where(two, y, 1.0))
            for level in (np.where(two, x, most), np.where(two, x, least)):
                for at in (begin, end):
                    here, there = (first + at * (last - first) for first, last in (level, y))
                    best = np.maximum(best, self.excess(high, low, here, there, at))
        return np.where(begin <= end, best, -np.inf)

    def excess(
        self, high: FloatArray, low: FloatArray, x: FloatArray, y: FloatArray, at: FloatArray
    ) -> FloatArray:
        """Worth of the levels beyond the target, a share `at` of the way from end to end; -inf where undefined."""
        above, below = (xlogx(np.maximum(level, 0.0)) for level in (x, y))
        worth = (high @ self.prior) * above + (low @ self.prior) * below
        first, last = (end.target for end in self.ends)
        beyond = worth - (high @ self.eta) * x - (low @ self.eta) * y - first - at * (last - first)
        return np.asarray(np.where(np.isfinite(x) & np.isfinite(y), beyond, -np.inf))

    def try_out(self, labels: IntArray) -> None:
        """Climb from labels that bounds like, at each end."""
        padded = self.padded(labels)
        for end in self.ends:
            limits, eta = self.terms(len(padded), end)
            _, worth, reached = climb(self.groups, limits, eta, padded)
            self.remember(reached[:, : len(self.eta)], worth - end.target)

    def of(self, labels: IntArray) -> FloatArray:
        """By how much the vertices that labels (k, size) stand for exceed the target; with one end only."""
        limits, eta = self.terms(len(labels), self.ends[0])
        return of_labels(self.groups, limits, eta, self.padded(labels))[1] - self.ends[0].target

    def terms(self, count: int, end: End) -> tuple[Limits, FloatArray]:
        """The limits and prices, `count` times."""
        limits = Limits(np.full(count, self.group), np.full(count, end.low), np.full(count, end.high))
        return limits, np.broadcast_to(self.full, (count, len(self.full)))

    def padded(self, labels: IntArray) -> IntArray:
        """Labels (k, size) as (k, n)."""
        padded = np.zeros((len(labels), len(self.full)), np.int64)
        padded[:, : labels.shape[1]] = labels
        return padded

    def remember(self, labels: IntArray, excess: FloatArray) -> None:
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
        x, y = (box[:, [0]] + box[:, [1]]) / 2, (box[:, [2]] + box[:, [3]]) / 2
        worth, rest, _ = self.options(cells, x, y)
        centre = worth.max(axis=-1).sum(axis=1) + rest
        meet, near = box[:, 0] <= box[:, 3], (box[:, 3] < _NEAR_ZERO * box[:, 0])[:, None]
        zero, high, low = (cells.allowed[..., label] for label in (ZERO, HIGH, LOW))
        coarse = np.where(near, high & (zero | low), zero & (high | low))
        fine = np.where(near, zero & low, high & low)
        wide = (box[:, 3] > _NARROW * box[:, 2]) & (box[:, 3] - box[:, 2] > _THIN)
        across = (centre - self.raised < (value - self.raised) / 2) | (box[:, 1] > _NARROW * box[:, 0]) | wide
        across |= meet & ((box[:, 1] > _CLOSE * box[:, 0]) | ~coarse.any(axis=1)) | ~(coarse | fine).any(
            axis=1
        )
        return [*halves(cells[across], x[across], y[across]), *self.told(cells, ~across, coarse, fine, near)]

    def told(
        self,
        cells: Cells,
        kept: npt.NDArray[np.bool_],
        coarse: npt.NDArray[np.bool_],
        fine: npt.NDArray[np.bool_],
        near: npt.NDArray[np.bool_],
    ) -> list[Cells]:
        """Cells cut at a label: the one that stands apart, or not."""
        cells, coarse, fine, near = cells[kept], coarse[kept], fine[kept], near[kept]
        weight = self.floor + self.gap
        which = np.where(coarse, weight + 10, np.where(fine, weight, -1.0)).argmax(axis=1)
        rows = np.arange(len(cells))
        label = np.where(coarse[rows, which] != near[:, 0], ZERO, HIGH)
        only = np.arange(3) == label[:, None]
        parts = []
        for mask in (only, ~only):
            allowed = cells.allowed.copy()
            allowed[rows, which] &= mask
            part = Cells(cells.box, allowed, cells.a, cells.b, cells.upper, cells.lower)
            parts.append(part[allowed[rows, which].any(axis=-1)])
        return parts


def _where(*linear: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The shares of the way from end to end between which all of several linear functions (2, k) are >= 0."""
    begin, end = np.zeros(linear[0].shape[1]), np.ones(linear[0].shape[1])
    for first, last in linear:
        root = first / (first - last)
        begin = np.where((first < 0) & (last >= 0), np.maximum(begin, root), begin)
        end = np.where((first >= 0) & (last < 0), np.minimum(end, root), end)
        never = ~(first >= 0) & ~(last >= 0)
        begin, end = np.where(never, 1.0, begin), np.where(never, 0.0, end)
    return begin, end
