"""Bounds on the worth of a group's parts in cells of their two levels: what `bound` searches with.

M(z) = min over t of (1-ΣL) t + Σ L z + (U-L)(z-t)+, at t = x, y or 0, and m(z) = max over t' of (1-ΣL) t' + Σ L z -
(U-L)(t'-z)+ likewise. For each of the nine cases and multipliers a, b >= 0 of M <= high and m >= low, the worth is at
most a sum over coordinates of the best label's: convex in (x, y), so largest at the corners of a cell.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.groups.levels import HIGH, LOW, ZERO, Groups

BoolArray = npt.NDArray[np.bool_]
SLACK = 1e-9
"""Relative width by which conditions are relaxed against rounding errors."""
_NONE = -1e18
"""The worth of a label that is not allowed."""
_DESCENTS = 8
"""Steps that look for better multipliers of a cell."""


@dataclass(frozen=True)
class End:
    """Parts with m(z) >= low and M(z) <= high should be worth `target` (nats) at most."""

    low: float
    high: float
    target: float


@dataclass(frozen=True, eq=False)
class Cells:
    """k cells x0 <= x <= x1, y0 <= y <= y1, (4, k); allowed labels (3, n, k); multipliers and cases t, t' (k,)."""

    box: FloatArray
    allowed: BoolArray
    a: FloatArray
    b: FloatArray
    upper: IntArray
    lower: IntArray

    def __getitem__(self, index: BoolArray | IntArray | slice) -> Cells:
        place = np.arange(len(self))[index]
        return Cells(*(getattr(self, field.name).take(place, axis=-1) for field in fields(self)))

    def __len__(self) -> int:
        return int(self.box.shape[1])


def joined(cells: list[Cells]) -> Cells:
    """Several lots of cells as one."""
    return Cells(*(np.concatenate([getattr(one, f.name) for one in cells], axis=-1) for f in fields(Cells)))


def halves(cells: Cells, x: FloatArray, y: FloatArray) -> list[Cells]:
    """Cells cut in two across the relatively wider level."""
    box = cells.box
    by_x = (box[1] - box[0]) / (box[1] + 0.05) >= (box[3] - box[2]) / (box[3] + 0.05)
    parts = []
    for side in (0, 1):
        half = box.copy()
        half[1 - side] = np.where(by_x, x, half[1 - side])
        half[3 - side] = np.where(by_x, half[3 - side], y)
        parts.append(Cells(half, cells.allowed, cells.a, cells.b, cells.upper, cells.lower))
    return parts


@dataclass(frozen=True, eq=False)
class Levels:
    """What labels take at levels x, y of cells (k,): x and y themselves, t and t', and what lies beyond these."""

    x: FloatArray
    y: FloatArray
    high_t: FloatArray
    low_t: FloatArray
    x_over: FloatArray
    y_over: FloatArray
    y_under: FloatArray

    @classmethod
    def at(cls, cells: Cells, x: FloatArray, y: FloatArray) -> Levels:
        """A case's own formula is linear in the levels also where a corner has x < y: the bound stays one."""
        upper, lower = cells.upper, cells.lower
        high_t, low_t = (np.where(case == 0, x, np.where(case == 1, y, 0.0)) for case in (upper, lower))
        over = np.where(upper == 2, y, 0.0), np.where(lower == 0, x - y, 0.0)
        return cls(x, y, high_t, low_t, np.where(upper == 0, 0.0, x - high_t), *over)


class Bounds:
    """One group's parts at prices eta (n,), between one end or two; `raised` is by how much targets are exceeded."""

    def __init__(self, groups: Groups, group: int, eta: FloatArray, ends: tuple[End, ...]) -> None:
        size = int(groups.real[group].sum())
        self.groups, self.group, self.ends, self.full = groups, group, ends, eta
        self.low, self.high = min(end.low for end in ends), max(end.high for end in ends)
        self.lows, self.highs, self.targets = (
            np.array([getattr(end, name) for end in ends])[:, None] for name in ("low", "high", "target")
        )
        self.floor, self.gap, self.prior = (
            part[group, :size] for part in (groups.lower, groups.spread, groups.prior)
        )
        self.eta, self.room = eta[:size], float(groups.room[group])
        self.stack = np.column_stack([self.prior, -self.eta, -self.floor, -self.gap])
        self.raised = 0.0
        self.reach = np.minimum(self.floor + self.gap, self.floor + self.room)

    def possible(self, cells: Cells) -> Cells:
        """Cells in which labels can meet the case: t and t' are where the room runs out."""
        allowed = cells.allowed.copy()
        most = (self.high * (1 + SLACK) / self.reach)[:, None]
        allowed[HIGH] &= cells.box[0] <= most
        allowed[LOW] &= cells.box[2] <= most
        ok = allowed.any(axis=0).all(axis=0) & (cells.box[1] >= cells.box[2])
        number = allowed.sum(axis=0, dtype=np.int8)
        whole, room = self.gap.sum(), self.room
        for case, first, last in ((cells.upper, HIGH, ZERO), (2 - cells.lower, ZERO, HIGH)):
            (begun, most_begun), (ended, most_ended) = (
                (self.gap @ (allowed[label] & (number == 1)), self.gap @ allowed[label])
                for label in (first, last)
            )
            ok &= (case != 0) | (most_begun >= room - SLACK)
            ok &= (case != 1) | ((begun <= room + SLACK) & (whole - ended >= room - SLACK))
            ok &= (case != 2) | (whole - most_ended <= room + SLACK)
        return Cells(cells.box, allowed, cells.a, cells.b, cells.upper, cells.lower)[ok]

    def worths(self, cells: Cells, at: Levels, banned: FloatArray) -> FloatArray:
        """What each label is worth, (3, n, k); `banned` (3, n, k) is added."""
        a, b = cells.a, cells.b
        pull = a - b
        high = [_xlogx(at.x), at.x, pull * at.x, a * at.x_over]
        low = [_xlogx(at.y), at.y, pull * at.y, a * at.y_over + b * at.y_under]
        worth = np.empty(banned.shape)
        np.multiply(self.stack[:, 3:], b * at.low_t, out=worth[ZERO])
        np.matmul(self.stack, np.array(high), out=worth[HIGH])
        np.matmul(self.stack, np.array(low), out=worth[LOW])
        worth += banned
        return worth

    def rests(self, cells: Cells, at: Levels) -> FloatArray:
        """What is worth something besides the labels, less the target, at each end, (ends, k)."""
        room = self.room * (cells.b * at.low_t - cells.a * at.high_t)
        return np.asarray(cells.a * self.highs - cells.b * self.lows - self.targets + room)

    def corners(self, cells: Cells) -> list[Levels]:
        """The levels at the four corners."""
        return [Levels.at(cells, cells.box[i], cells.box[j]) for i in (0, 1) for j in (2, 3)]

    def bounds(self, cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The bound of each cell, with the multipliers that give it; any will do.

        Steps along subgradients, of the length that would reach the target if the bound were linear.
        """
        best, a, b = np.full(len(cells), np.inf), cells.a.copy(), cells.b.copy()
        here, banned, active = cells, _banned(cells.allowed), np.arange(len(cells))
        for step in range(_DESCENTS):
            totals = np.array([self.total(here, at, banned) for at in self.corners(here)])
            which, rows = totals.argmax(axis=0), np.arange(len(here))
            value = totals[which, rows]
            up = value < best[active]
            rising = active[up]
            best[rising], a[rising], b[rising] = value[up], here.a[up], here.b[up]
            going = value > self.raised
            if step == _DESCENTS - 1 or not going.any():
                break
            if not going.all():
                kept = np.flatnonzero(going)
                active, here, banned, value = (
                    active[kept],
                    here[kept],
                    banned.take(kept, axis=-1),
                    value[kept],
                )
                which, rows = which[kept], np.arange(len(here))
            at = Levels.at(here, here.box[which // 2, rows], here.box[2 + which % 2, rows])
            moved = self.moved(here, self.worths(here, at, banned), at, value)
            here = Cells(here.box, here.allowed, *moved, here.upper, here.lower)
        return best, a, b

    def total(self, cells: Cells, at: Levels, banned: FloatArray) -> FloatArray:
        """The bound at one point of each cell, (k,)."""
        worth = self.worths(cells, at, banned)
        best = np.maximum(worth[0], worth[1], out=worth[0])
        np.maximum(best, worth[2], out=best)
        return np.asarray(best.sum(axis=0) + self.rests(cells, at).max(axis=0))

    def moved(
        self, cells: Cells, worth: FloatArray, at: Levels, value: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The multipliers one step on, where labels are worth so much."""
        terms, low = np.stack([self.floor, self.gap]), worth[LOW] > worth[ZERO]
        high = worth[HIGH] > np.where(low, worth[LOW], worth[ZERO])
        (floor, gap), (floor_2, gap_2) = (terms @ mask.astype(float) for mask in (high, low & ~high))
        plain = floor * at.x + floor_2 * at.y
        most = plain + gap * at.x_over + gap_2 * at.y_over
        least = plain - (self.gap.sum() - gap - gap_2) * at.low_t - gap_2 * at.y_under
        end = self.rests(cells, at).argmax(axis=0)
        to_a = self.highs[end, 0] - self.room * at.high_t - most
        to_b = least - self.lows[end, 0] + self.room * at.low_t
        to_a, to_b = (
            np.where((multiplier <= 0) & (slope > 0), 0.0, slope)
            for multiplier, slope in ((cells.a, to_a), (cells.b, to_b))
        )
        step = np.maximum(value - self.raised, SLACK) / (to_a**2 + to_b**2 + 1e-12)
        return np.maximum(cells.a - step * to_a, 0.0), np.maximum(cells.b - step * to_b, 0.0)

    def fixed(self, cells: Cells) -> Cells:
        """Cells without the labels with which they cannot exceed the target."""
        may, banned = np.zeros(cells.allowed.shape, bool), _banned(cells.allowed)
        for at in self.corners(cells):
            worth = self.worths(cells, at, banned)
            best = worth.max(axis=0)
            most = best.sum(axis=0) + self.rests(cells, at).max(axis=0) - self.raised
            may |= worth > best - most
        return Cells(cells.box, cells.allowed & may, cells.a, cells.b, cells.upper, cells.lower)

    def centres(self, cells: Cells, x: FloatArray, y: FloatArray) -> FloatArray:
        """The bound at one point x, y (k,) of each cell."""
        return self.total(cells, Levels.at(cells, x, y), _banned(cells.allowed))

    def liked(self, cells: Cells) -> IntArray:
        """The labels (n, k) that bounds like in the middle of cells."""
        x, y = cells.box[:2].mean(axis=0), cells.box[2:].mean(axis=0)
        return np.asarray(self.worths(cells, Levels.at(cells, x, y), _banned(cells.allowed)).argmax(axis=0))


def _banned(allowed: BoolArray) -> FloatArray:
    """What labels that are not allowed are worth less."""
    return np.where(allowed, 0.0, _NONE)


def _xlogx(values: FloatArray) -> FloatArray:
    """t ln t, zero at zero."""
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))
