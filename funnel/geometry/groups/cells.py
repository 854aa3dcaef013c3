"""Bounds on the worth of a group's parts in cells of their two levels: what `bound` searches with.

M(z) = min over t of (1-ΣL) t + Σ L z + (U-L)(z-t)+, at t = x, y or 0, and m(z) = max over t' of (1-ΣL) t' + Σ L z -
(U-L)(t'-z)+ likewise. For each of the nine cases and multipliers a, b >= 0 of M <= high and m >= low, the worth is at
most a sum over coordinates of the best label's: convex in (x, y), so largest at the corners of a cell.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from funnel.geometry.groups.levels import HIGH, LOW, ZERO, Groups
from funnel.model.joint import FloatArray, IntArray

SLACK = 1e-9
"""Relative width by which conditions are relaxed against rounding errors."""
_NONE = -1e18
"""The worth of a label that is not allowed."""
_DESCENTS = 12
"""Steps that look for better multipliers of a cell."""


@dataclass(frozen=True)
class End:
    """Parts with m(z) >= low and M(z) <= high should be worth `target` (nats) at most."""

    low: float
    high: float
    target: float


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells (k, 4) x0 <= x <= x1, y0 <= y <= y1; allowed labels (k, n, 3); multipliers and cases t, t' (k, 1)."""

    box: FloatArray
    allowed: npt.NDArray[np.bool_]
    a: FloatArray
    b: FloatArray
    upper: IntArray
    lower: IntArray

    def __getitem__(self, index: npt.NDArray[np.bool_] | IntArray | slice) -> Cells:
        return Cells(*(getattr(self, field.name)[index] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.box)


def joined(cells: list[Cells]) -> Cells:
    """Several lots of cells as one."""
    return Cells(*(np.concatenate([getattr(one, f.name) for one in cells]) for f in fields(Cells)))


def halves(cells: Cells, x: FloatArray, y: FloatArray) -> list[Cells]:
    """Cells cut in two across the relatively wider level."""
    box = cells.box
    by_x = (box[:, 1] - box[:, 0]) / (box[:, 1] + 0.05) >= (box[:, 3] - box[:, 2]) / (box[:, 3] + 0.05)
    parts = []
    for side in (0, 1):
        half = box.copy()
        half[by_x, 1 - side], half[~by_x, 3 - side] = x[by_x, 0], y[~by_x, 0]
        parts.append(Cells(half, cells.allowed, cells.a, cells.b, cells.upper, cells.lower))
    return parts


class Bounds:
    """One group's parts at prices eta (n,), between one end or two; `raised` is by how much targets are exceeded."""

    def __init__(self, groups: Groups, group: int, eta: FloatArray, ends: tuple[End, ...]) -> None:
        size = int(groups.real[group].sum())
        self.groups, self.group, self.ends, self.full = groups, group, ends, eta
        self.low, self.high = min(end.low for end in ends), max(end.high for end in ends)
        self.floor, self.gap, self.prior = (
            part[group, :size] for part in (groups.lower, groups.spread, groups.prior)
        )
        self.eta, self.room = eta[:size], float(groups.room[group])
        self.raised = 0.0
        self.reach = np.minimum(self.floor + self.gap, self.floor + self.room)

    def possible(self, cells: Cells) -> Cells:
        """Cells in which labels can meet the case: t and t' are where the room runs out."""
        allowed = cells.allowed.copy()
        allowed[:, :, HIGH] &= cells.box[:, [0]] * self.reach <= self.high * (1 + SLACK)
        allowed[:, :, LOW] &= cells.box[:, [2]] * self.reach <= self.high * (1 + SLACK)
        ok = np.asarray(allowed.any(axis=-1)).all(axis=1) & (cells.box[:, 1] >= cells.box[:, 2])
        cases: list[tuple[IntArray, int, int]] = [
            (cells.upper[:, 0], HIGH, ZERO),
            (np.asarray(2 - cells.lower[:, 0]), ZERO, HIGH),
        ]
        for case, first, last in cases:
            begun, ended = self.reached(allowed, first), self.reached(allowed, last)
            whole, room = self.gap.sum(), self.room
            ok &= np.where(case == 0, begun[1] >= room - SLACK, True)
            ok &= np.where(case == 1, (begun[0] <= room + SLACK) & (whole - ended[0] >= room - SLACK), True)
            ok &= np.where(case == 2, whole - ended[1] <= room + SLACK, True)
        return Cells(cells.box, allowed, cells.a, cells.b, cells.upper, cells.lower)[ok]

    def reached(self, allowed: npt.NDArray[np.bool_], label: int) -> tuple[FloatArray, FloatArray]:
        """The least and the largest Σ(U - L) over the coordinates with a label."""
        must = allowed[:, :, label] & (allowed.sum(axis=-1) == 1)
        return must @ self.gap, allowed[:, :, label] @ self.gap

    def options(self, cells: Cells, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """What each label is worth, (k, n, 3), and the rest, without the target, at the worse end, which is named.

        x, y are (k, 1).
        """
        a, b, low_t = cells.a, cells.b, self.level(cells.lower, x, y)
        high_t = self.level(cells.upper, x, y)
        # A case's own formula is linear in the levels also where a corner has x < y: the bound stays one.
        x_over = np.where(cells.upper == 0, 0.0, np.where(cells.upper == 1, x - y, x))
        y_over, y_under = np.where(cells.upper == 2, y, 0.0), np.where(cells.lower == 0, x - y, 0.0)
        at_x = self.prior * x * np.log(x) - (self.eta + (a - b) * self.floor) * x - a * self.gap * x_over
        log_y = np.log(np.where(y > 0, y, 1.0))
        at_y = (
            self.prior * y * log_y
            - (self.eta + (a - b) * self.floor) * y
            - self.gap * (a * y_over + b * y_under)
        )
        worth = np.stack([-b * self.gap * low_t, at_x, at_y], axis=-1)
        room = self.room * (b * low_t - a * high_t)
        rest = np.array([(a * end.high - b * end.low + room - end.target)[:, 0] for end in self.ends])
        return np.where(cells.allowed, worth, _NONE), rest.max(axis=0), rest.argmax(axis=0)

    def level(self, case: IntArray, x: FloatArray, y: FloatArray) -> FloatArray:
        """t, where the case puts it."""
        return np.asarray(np.where(case == 0, x, np.where(case == 1, y, 0.0)))

    def corners(self, cells: Cells) -> list[tuple[FloatArray, FloatArray]]:
        """The levels at the four corners."""
        return [(cells.box[:, [i]], cells.box[:, [j]]) for i in (0, 1) for j in (2, 3)]

    def bounds(self, cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """The bound of each cell, with the multipliers that give it, and the labels that it likes; any will do.

        Steps along subgradients, of the length that would reach the target if the bound were linear.
        """
        count = len(cells)
        best, a, b = np.full(count, np.inf), cells.a.copy(), cells.b.copy()
        likely, active = np.zeros((count, len(self.eta)), np.int64), np.arange(count)
        for step in range(_DESCENTS):
            here = cells[active]
            values = [self.options(here, x, y) for x, y in self.corners(here)]
            totals = np.array([worth.max(axis=-1).sum(axis=1) + rest for worth, rest, _ in values])
            which, rows = totals.argmax(axis=0), np.arange(len(active))
            value = totals[which, rows]
            labels = np.array([worth.argmax(axis=-1) for worth, _, _ in values])[which, rows]
            end = np.array([end for _, _, end in values])[which, rows]
            up = value < best[active]
            best[active[up]], likely[active[up]] = value[up], labels[up]
            a[active[up]], b[active[up]] = here.a[up], here.b[up]
            going = value > self.raised
            if step == _DESCENTS - 1 or not going.any():
                break
            x, y = here.box[rows, which // 2][:, None], here.box[rows, 2 + which % 2][:, None]
            moved = self.moved(here, labels, x, y, value, end)
            cells.a[active], cells.b[active] = moved
            active = active[going]
        return best, a, b, likely

    def moved(
        self, cells: Cells, labels: IntArray, x: FloatArray, y: FloatArray, value: FloatArray, end: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """The multipliers one step on."""
        at_x, at_y = labels == HIGH, labels == LOW
        x_over = np.where(cells.upper == 0, 0.0, np.where(cells.upper == 1, x - y, x))
        y_over, y_under = np.where(cells.upper == 2, y, 0.0), np.where(cells.lower == 0, x - y, 0.0)
        low_t, high_t = self.level(cells.lower, x, y), self.level(cells.upper, x, y)
        plain = self.floor * (at_x * x + at_y * y)
        most = (plain + self.gap * (at_x * x_over + at_y * y_over)).sum(axis=1, keepdims=True)
        least = (plain - self.gap * ((labels == ZERO) * low_t + at_y * y_under)).sum(axis=1, keepdims=True)
        high = np.array([each.high for each in self.ends])[end][:, None]
        low = np.array([each.low for each in self.ends])[end][:, None]
        to_a, to_b = high - self.room * high_t - most, least - low + self.room * low_t
        to_a, to_b = (
            np.where((multiplier <= 0) & (slope > 0), 0.0, slope)
            for multiplier, slope in ((cells.a, to_a), (cells.b, to_b))
        )
        step = np.maximum(value - self.raised, SLACK)[:, None] / (to_a**2 + to_b**2 + 1e-12)
        return np.maximum(cells.a - step * to_a, 0.0), np.maximum(cells.b - step * to_b, 0.0)

    def fixed(self, cells: Cells) -> Cells:
        """Cells without the labels with which they cannot exceed the target."""
        may = np.zeros(cells.allowed.shape, bool)
        for x, y in self.corners(cells):
            worth, rest, _ = self.options(cells, x, y)
            best = worth.max(axis=-1, keepdims=True)
            may |= (best.sum(axis=1)[:, :, None] + rest[:, None, None] - best + worth) > self.raised
        return Cells(cells.box, cells.allowed & may, cells.a, cells.b, cells.upper, cells.lower)
