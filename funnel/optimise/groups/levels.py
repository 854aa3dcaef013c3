"""Rows whose averages over groups stay close: what the part z of a row that belongs to one group can be.

A group has weights D = {R : L <= R <= U, ΣR = 1}. With M(z) = max R·z and m(z) = min R·z over D, the parts allowed
are {z >= 0 : m(z) >= low, M(z) <= high}. At a vertex of this polytope z takes two levels x > y at most, besides
zero: M is attained with one coordinate, or several that tie, between L and U, and so is m; every other coordinate
adds one unknown, and each tie but one equation. So a vertex is a label per coordinate, and x, y solve two equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray

if TYPE_CHECKING:
    from funnel.optimise.worst_case import Sets

ZERO, HIGH, LOW = 0, 1, 2
"""Labels of coordinates: zero, the level x, the level y <= x."""
_TINY = 1e-300
_RISE = 1e-12
"""Rise of the worth (nats) up to which a change of label got nowhere."""
_STEPS = 60
"""Changes of labels from one start; far fewer are needed."""


@dataclass(frozen=True, eq=False)
class Groups:
    """c groups side by side, n coordinates each at most; the arrays (c, n) are zero beyond a group's own.

    `lower` L, `spread` U - L, `prior` p; `room` 1 - ΣL (c,); `place` of a coordinate in the row (a,), -1 for none.
    """

    lower: FloatArray
    spread: FloatArray
    prior: FloatArray
    room: FloatArray
    place: IntArray
    dimension: int

    @classmethod
    def of(cls, sets: Sets, prior: FloatArray) -> Groups:
        """Groups of the sets, for a row with prior p (a,)."""
        shape = len(sets.members), max(map(len, sets.members))
        lower, spread, own, place = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.full(shape, -1)
        for s, members in enumerate(sets.members):
            size = len(members)
            lower[s, :size], spread[s, :size] = sets.lower[s], sets.upper[s] - sets.lower[s]
            own[s, :size], place[s, :size] = prior[members], members
        return cls(lower, spread, own, np.maximum(1 - lower.sum(axis=1), 0.0), place, sets.dimension)

    @property
    def count(self) -> int:
        """The number of groups c."""
        return len(self.room)

    @property
    def real(self) -> npt.NDArray[np.bool_]:
        """Which entries are coordinates, (c, n)."""
        return self.place >= 0

    def split(self, rows: FloatArray) -> FloatArray:
        """Rows (..., a) by groups, (..., c, n)."""
        return np.asarray(np.where(self.real, rows[..., self.place], 0.0))

    def joined(self, parts: FloatArray) -> FloatArray:
        """Parts (..., c, n) as rows (..., a)."""
        rows = np.zeros((*parts.shape[:-2], self.dimension))
        rows[..., self.place[self.real]] = parts[..., self.real]
        return rows

    def extremes(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights R (k, c, n) in D that make R·z greatest, and least, for each group of the rows (k, a)."""
        parts = self.split(rows)
        return self._filled(np.where(self.real, -parts, np.inf)), self._filled(
            np.where(self.real, parts, np.inf)
        )

    def _filled(self, keys: FloatArray) -> FloatArray:
        """The weights that give the room to the smallest keys first."""
        order = np.argsort(keys, axis=-1, kind="stable")
        spread = np.take_along_axis(np.broadcast_to(self.spread, keys.shape), order, axis=-1)
        filled = np.minimum(np.cumsum(spread, axis=-1), self.room[:, None])
        extra = np.zeros(keys.shape)
        np.put_along_axis(extra, order, np.diff(filled, axis=-1, prepend=0.0), axis=-1)
        return np.asarray(self.lower + extra)


@dataclass(frozen=True, eq=False)
class Limits:
    """m(z) >= low and M(z) <= high, for the group `which`; arrays of one shape (k,)."""

    which: IntArray
    low: FloatArray
    high: FloatArray


def xlogx(values: FloatArray) -> FloatArray:
    """t ln t, zero at zero."""
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


def levels(
    above: FloatArray,
    below: FloatArray,
    whole: FloatArray,
    room: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The levels x >= y with M = high and m = low, or one level that meets one of them, and what it is worth.

    `above` and `below` (..., 4) are the sums of L, U - L, p and a price over the coordinates at x and at y; `whole`
    is Σ(U - L). Worth is Σ p z ln z minus the price of z, -inf where there are no such levels.
    """
    (floor, gap, prior, cost), (floor_2, gap_2, prior_2, cost_2) = (
        np.moveaxis(above, -1, 0),
        np.moveaxis(below, -1, 0),
    )
    most_x, most_y, least_x, least_y = averages(floor, gap, floor_2, gap_2, whole, room)
    with np.errstate(all="ignore"):
        determinant = most_x * least_y - most_y * least_x
        x, y = (high * least_y - low * most_y) / determinant, (most_x * low - least_x * high) / determinant
        pair = (prior_2 > 0) & (x >= y) & (y >= 0) & np.isfinite(x)
        worth = prior * x * np.log(x) + prior_2 * y * np.log(np.maximum(y, _TINY)) - cost * x - cost_2 * y
        worth = np.where(pair, worth, -np.inf)
        most, least = high / most_x, low / least_x
        single = (prior_2 <= 0) & (most >= least * (1 - 1e-12)) & np.isfinite(most)
        ends = [np.where(single, prior * at * np.log(at) - cost * at, -np.inf) for at in (most, least)]
    one = np.where(ends[0] >= ends[1], most, least)
    x = np.where(pair, x, one)
    return x, np.where(pair, y, 0.0), np.where(pair, worth, np.maximum(*ends))


def averages(
    floor: FloatArray,
    gap: FloatArray,
    floor_2: FloatArray,
    gap_2: FloatArray,
    whole: FloatArray,
    room: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """M and m as multiples of the levels x and y, from sums of L and U - L over the coordinates at each."""
    zeros, gap, gap_2 = whole - gap - gap_2, np.maximum(gap, 0.0), np.maximum(gap_2, 0.0)
    most_x, most_y = floor + np.minimum(gap, room), floor_2 + np.clip(room - gap, 0, gap_2)
    least_x, least_y = (
        floor + np.clip(room - zeros - gap_2, 0, gap),
        floor_2 + np.clip(room - zeros, 0, gap_2),
    )
    return most_x, most_y, least_x, least_y


def of_labels(
    groups: Groups, limits: Limits, eta: FloatArray, labels: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The parts (k, n) that labels (k, n) stand for, and their worth at prices eta (k, n); -inf for none."""
    stack = _stack(groups, limits, eta)
    above, below = ((stack * (labels == label)[..., None]).sum(axis=1) for label in (HIGH, LOW))
    which = limits.which
    x, y, worth = levels(
        above, below, groups.spread[which].sum(axis=1), groups.room[which], limits.low, limits.high
    )
    return _parts(labels, x, y), worth


def climb(
    groups: Groups, limits: Limits, eta: FloatArray, labels: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """From each start (k, n) to labels of which no single change is worth more: parts, worth (k,), labels."""
    labels = np.where(groups.real[limits.which], labels, ZERO)
    stack, worth = _stack(groups, limits, eta), np.full(len(labels), -np.inf)
    x, y, active = np.zeros(len(labels)), np.zeros(len(labels)), np.arange(len(labels))
    whole, width = groups.spread.sum(axis=1), labels.shape[1]
    for _ in range(_STEPS):
        which = limits.which[active]
        above, below = _neighbours(stack[active], labels[active])
        high, low = limits.high[active, None], limits.low[active, None]
        found = levels(above, below, whole[which][:, None], groups.room[which][:, None], low, high)
        best = found[2].argmax(axis=1)
        at = np.arange(len(active)), best
        up = found[2][at] > worth[active] + _RISE
        rows = active[up]
        worth[rows], x[rows], y[rows] = (part[at][up] for part in (found[2], found[0], found[1]))
        moved = up & (best > 0)
        active, best = active[moved], best[moved] - 1
        if not len(active):
            break
        entry = active, best % width
        labels[entry] = (labels[entry] + best // width + 1) % 3
    return _parts(labels, x, y), worth, labels


def _stack(groups: Groups, limits: Limits, eta: FloatArray) -> FloatArray:
    """What a coordinate adds to the sums of `levels`, (k, n, 4)."""
    which = limits.which
    return np.stack([groups.lower[which], groups.spread[which], groups.prior[which], eta], axis=-1)


def _neighbours(stack: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sums (k, 1 + 2n, 4) over the two levels, as labels are and with each coordinate's label changed in turn."""
    sums = []
    for label in (HIGH, LOW):
        now = (labels == label)[..., None]
        total = (stack * now).sum(axis=1, keepdims=True)
        changed = [total + stack * (((labels + step) % 3 == label)[..., None] * 1.0 - now) for step in (1, 2)]
        sums.append(np.concatenate([total, *changed], axis=1))
    # The sum of nothing is exactly nothing: the levels depend on whether any coordinate is at y.
    above, below = sums
    number = np.concatenate(
        [(labels == LOW).sum(axis=1)[:, None]]
        + [
            (labels == LOW).sum(axis=1)[:, None] + ((labels + step) % 3 == LOW) * 1 - (labels == LOW)
            for step in (1, 2)
        ],
        axis=1,
    )
    return above, np.where((number > 0)[..., None], below, 0.0)


def _parts(labels: IntArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """z from labels and levels."""
    return np.asarray(np.where(labels == HIGH, x[:, None], np.where(labels == LOW, y[:, None], 0.0)))
