"""Rows whose averages over groups stay close: what the part z of a row that belongs to one group can be.

A group has weights D = {R : L <= R <= U, ΣR = 1}. With M(z) = max R·z and m(z) = min R·z over D, the parts allowed
are {z >= 0 : m(z) >= low, M(z) <= high}. At a vertex of this polytope z takes two levels x > y at most, besides
zero: M is attained with one coordinate, or several that tie, between L and U, and so is m; every other coordinate
adds one unknown, and each tie but one equation. So a vertex is a label per coordinate, and x, y solve two equations.

The cone of such rows is searched by sorting instead of linear programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.worst_case import UncertaintySets

if TYPE_CHECKING:
    from funnel.optimise.worst_case import UncertaintySets

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
    def of(cls, sets: UncertaintySets, prior: FloatArray) -> Groups:
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
class PartLimits:
    """m(z) >= low and M(z) <= high, for the group `which`; arrays of one shape (k,)."""

    which: IntArray
    low: FloatArray
    high: FloatArray

    def __getitem__(self, some: IntArray) -> PartLimits:
        return PartLimits(self.which[some], self.low[some], self.high[some])


class Means(NamedTuple):
    """M(z) = most_x x + most_y y and m(z) = least_x x + least_y y of parts with levels x and y; arrays of one shape."""

    most_x: FloatArray
    most_y: FloatArray
    least_x: FloatArray
    least_y: FloatArray

    @classmethod
    def of(cls, above: FloatArray, below: FloatArray, whole: npt.ArrayLike, room: npt.ArrayLike) -> Means:
        """From the sums of L and U - L over the coordinates at x, and at y, (2, ...); `whole` is Σ(U - L) of all."""
        (floor, gap), (floor_2, gap_2), whole, room = above, below, np.asarray(whole), np.asarray(room)
        zeros, gap, gap_2 = whole - gap - gap_2, np.maximum(gap, 0.0), np.maximum(gap_2, 0.0)
        return cls(
            floor + np.minimum(gap, room),
            floor_2 + np.clip(room - gap, 0, gap_2),
            floor + np.clip(room - zeros - gap_2, 0, gap),
            floor_2 + np.clip(room - zeros, 0, gap_2),
        )

    def levels(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The x and y with M = high and m = low."""
        determinant = self.most_x * self.least_y - self.most_y * self.least_x
        return (
            (high * self.least_y - low * self.most_y) / determinant,
            (self.most_x * low - self.least_x * high) / determinant,
        )


def _best(groups: Groups, limits: PartLimits, above: FloatArray, below: FloatArray) -> FloatArray:
    """Levels x >= y with M = high and m = low, or one level that meets one of them, and what it is worth, (3, k, j).

    `above` and `below` (k, j, 4) are the sums of L, U - L, p and a price over the coordinates at x and at y. Worth is
    Σ p z ln z minus the price of z, -inf where there are no such levels.
    """
    low, high = limits.low[:, None], limits.high[:, None]
    whole, room = groups.spread.sum(axis=1)[limits.which][:, None], groups.room[limits.which][:, None]
    sizes, sizes_2 = (np.moveaxis(part[..., :2], -1, 0) for part in (above, below))
    means = Means.of(sizes, sizes_2, whole, room)
    (prior, cost), (prior_2, cost_2) = (np.moveaxis(part[..., 2:], -1, 0) for part in (above, below))
    with np.errstate(all="ignore"):
        x, y = means.levels(low, high)
        pair = (prior_2 > 0) & (x >= y) & (y >= 0) & np.isfinite(x)
        worth = prior * x * np.log(x) + prior_2 * y * np.log(np.maximum(y, _TINY)) - cost * x - cost_2 * y
        most, least = high / means.most_x, low / means.least_x
        single = (prior_2 <= 0) & (most >= least * (1 - 1e-12)) & np.isfinite(most)
        ends = [np.where(single, prior * at * np.log(at) - cost * at, -np.inf) for at in (most, least)]
    x = np.where(pair, x, np.where(ends[0] >= ends[1], most, least))
    return np.stack([x, np.where(pair, y, 0.0), np.where(pair, worth, np.maximum(*ends))])


def climb(
    groups: Groups, limits: PartLimits, eta: FloatArray, labels: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """From each start (k, n) to labels of which no single change is worth more: parts, worth (k,), labels.

    `eta` (k, n) are prices. Worth is -inf where no labels on the way stand for a part.
    """
    labels = np.where(groups.real[limits.which], labels, ZERO)
    which, width = limits.which, labels.shape[1]
    stack = np.stack([groups.lower[which], groups.spread[which], groups.prior[which], eta], axis=-1)
    known, active = np.full((3, len(labels)), -np.inf), np.arange(len(labels))
    for _ in range(_STEPS):
        found = _best(groups, limits[active], *_neighbours(stack[active], labels[active]))
        best = found[2].argmax(axis=1)
        reached = found[:, np.arange(len(active)), best]
        up = reached[2] > known[2, active] + _RISE
        known[:, active[up]] = reached[:, up]
        moved = up & (best > 0)
        active, best = active[moved], best[moved] - 1
        if not len(active):
            break
        entry = active, best % width
        labels[entry] = (labels[entry] + best // width + 1) % 3
    x, y = (np.where(known[2] > -np.inf, level, 0.0)[:, None] for level in known[:2])
    return np.where(labels == HIGH, x, np.where(labels == LOW, y, 0.0)), known[2], labels


def _neighbours(stack: FloatArray, labels: IntArray) -> list[FloatArray]:
    """Sums (k, 1 + 2n, 4) over the two levels, as labels are and with each coordinate's label changed in turn."""
    sums = []
    for label in (HIGH, LOW):
        now = (labels == label)[..., None] * 1.0
        total = (stack * now).sum(axis=1, keepdims=True)
        number = now.sum(axis=1, keepdims=True)
        changes = [((labels + step) % 3 == label)[..., None] - now for step in (1, 2)]
        # The sum of nothing is exactly nothing: the levels depend on whether any coordinate is at y.
        some = np.concatenate([number, *(number + change for change in changes)], axis=1) > 0
        sums.append(
            np.where(some, np.concatenate([total, *(total + stack * one for one in changes)], axis=1), 0.0)
        )
    return sums


class GroupCone:
    """What rounding has to know of `box_cone(sets, ratio)`: R·v <= ratio · R'·v for all R in D_s, R' in D_s', s ≠ s'.

    Its worst inequalities are found by sorting each group of a row, so that no auxiliary variables are written out.
    ValueError where the ratio is not above one, so that all-ones is not inside.
    """

    equalities: tuple[tuple[int, ...], ...] = ()
    complete = False

    def __init__(self, sets: UncertaintySets, ratio: float) -> None:
        if ratio <= 1:
            raise ValueError("the all-ones vector is not strictly inside the cone")
        self.groups, self.ratio, self.dimension = (
            Groups.of(sets, np.ones(sets.dimension)),
            ratio,
            sets.dimension,
        )

    def facets(self, matrix: FloatArray) -> FloatArray:
        """The inequality that each row of a (b, a) matrix exceeds most, or misses least, -1 at all-ones."""
        most, least = self.groups.extremes(matrix)
        parts = self.groups.split(matrix)
        top, bottom = (most * parts).sum(axis=-1), (least * parts).sum(axis=-1)
        excess = top[:, :, None] - self.ratio * bottom[:, None, :]
        count = self.groups.count
        excess[:, np.arange(count), np.arange(count)] = -np.inf
        worst = excess.reshape(len(matrix), -1).argmax(axis=1)
        rows, (s, other) = np.arange(len(matrix)), np.unravel_index(worst, (count, count))
        chosen = np.zeros(most.shape)
        chosen[rows, s] = most[rows, s]
        chosen[rows, other] -= self.ratio * least[rows, other]
        return self.groups.joined(chosen) / (self.ratio - 1)
