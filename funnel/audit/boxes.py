"""A branch and bound gone through again: that no row of a cone is worth more than a peak, without any solver.

For w >= 0 with Σ w = 1 and G w <= 0, and any y >= 0, Σ w ln w - c·w is at most Σ (chord of w ln w) - (c + y G)·w
on a box l <= w <= u, since t ln t lies below its chords. That is linear, and whatever the level t, over the box at most
    value at the corner l + t (1 - Σ l) + Σ_x max(0, rate_x - t) (u_x - l_x).
So multipliers need no trust: bad ones prove less. Where the linear function stays below the peak, nothing need be
looked at again, so each box shrinks by as much before it is split in two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.audit.fields import IntArray
from funnel.audit.findings import broken

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
MARGIN = 1e-9
"""Nats by which a box may exceed the peak: a solver's multipliers are rounded."""
_AT_ONCE = 1 << 17
"""Numbers per array; boxes are gone through in groups of as many."""
_FLAT, _WHOLE = 1e-200, 2.0
_ROUNDING = 2.0**-52
_STEPS = 40
"""Roundings of a sum in NumPy and of what goes into it."""


@dataclass(frozen=True, eq=False)
class Tree:
    """n boxes, parents first. Box 0 is [0, 1]^a, the others are halves.

    Box k is the part of box `parent[k]`, once that has been shrunk, where coordinate `which[k]` is at most `at[k]`,
    or at least that where `upper[k]`. It shrinks, or is closed, by the multipliers value[starts[k]:starts[k+1]] of
    the inequalities `index`, and by `level[k]` of Σ w = 1.
    """

    parent: IntArray
    which: IntArray
    at: FloatArray
    upper: BoolArray
    starts: IntArray
    index: IntArray
    value: FloatArray
    level: FloatArray

    def __len__(self) -> int:
        return len(self.parent)


def check_tree(tree: Tree, file: str, size: int, free: bool) -> IntArray:
    """The children (n, 2) of each box, -1 for none, lower half first.

    `size` is a, `free` allows multipliers below zero. Raises AuditFailure where a box has other children than both
    halves of one split.
    """
    count, own = len(tree), np.arange(len(tree))
    for what, wrong in (
        ("does not follow its parent", (tree.parent < 0) | (tree.parent >= own)),
        ("is cut across no coordinate", (tree.which < 0) | (tree.which >= size)),
        ("is cut at no number", ~np.isfinite(tree.at)),
    ):
        _none(file, wrong[1:], what, count)
    _none(file, ~np.isfinite(tree.level), "has a level that is no number", count)
    if not np.isfinite(tree.value).all() or (not free and (tree.value < 0).any()):
        raise broken(
            file, "a multiplier is not one", expected="numbers from zero on", found=_worst(tree.value)
        )
    children = np.full((count, 2), -1, np.int64)
    half = tree.upper[1:].astype(np.int64)
    children[tree.parent[1:], half] = own[1:]
    split = children[:, 0] >= 0
    _none(file, split != (children[:, 1] >= 0), "is split into one half only", count)
    if 2 * int(split.sum()) != count - 1:
        raise broken(
            file, "a box has a half twice", expected=f"{2 * int(split.sum()) + 1} boxes", found=count
        )
    low, high = children[split].T
    apart = (tree.which[low] != tree.which[high]) | (tree.at[low] != tree.at[high])
    _none(file, apart, "is split at two places at once", count)
    return children


def _none(file: str, wrong: BoolArray, what: str, count: int) -> None:
    """Raises AuditFailure for the first box that is wrong."""
    if wrong.any():
        raise broken(
            file, f"a box {what}", expected="a tree of boxes", found=f"{int(wrong.sum())} such of {count}"
        )


def _worst(values: FloatArray) -> object:
    """A multiplier that is none."""
    wrong = values[~np.isfinite(values)]
    return wrong[0] if len(wrong) else values.min()


class Replay:
    """Goes through a tree for Σ w ln w - linear·w over the simplex where rows (m, a) @ w <= 0.

    `linear` (a,); rows have largest coefficient one, so that what floats lose can be told from the multipliers.
    """

    @np.errstate(all="ignore")
    def __init__(
        self, tree: Tree, children: IntArray, rows: FloatArray, linear: FloatArray, peak: float
    ) -> None:
        from scipy.sparse import csr_array

        self.tree, self.children, self.linear, self.peak = tree, children, linear, peak
        shape = (len(tree), len(rows))
        self._weights = csr_array((tree.value, tree.index, tree.starts), shape=shape)
        self._rows = rows
        box = np.repeat(np.arange(len(tree)), np.diff(tree.starts))
        spent = np.bincount(box, np.abs(tree.value), len(tree))
        widest = int(np.diff(tree.starts).max(initial=0))
        large = 4 * (spent + np.abs(linear).max() + np.abs(tree.level)) + len(linear)
        self._lost = _ROUNDING * (_STEPS + widest) * large
        self._step = max(1, _AT_ONCE // len(linear))

    @np.errstate(all="ignore")
    def run(self, file: str) -> int:
        """The number of boxes gone through. Raises AuditFailure where one that is not split may exceed the peak."""
        size, seen = len(self.linear), 0
        waiting = [(np.zeros(1, np.int64), np.zeros((1, size)), np.ones((1, size)))]
        while waiting:
            group = self._next(waiting)
            seen += len(group[0])
            left, lower, upper, excess = self._shrunk(*group)
            children = self.children[left]
            open_leaf = children[:, 0] < 0
            if open_leaf.any():
                worst = int(np.argmax(np.where(open_leaf, excess, -np.inf)))
                raise broken(
                    file,
                    f"box {int(left[worst])} is not split, and rows in it may be worth more than the peak",
                    expected=f"at most {self.peak:.6g} nats",
                    found=f"{self.peak + float(excess[worst]):.9g} nats",
                )
            if len(left):
                waiting.append(self._halves(children, lower, upper))
        return seen

    def _next(
        self, waiting: list[tuple[IntArray, FloatArray, FloatArray]]
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """As many boxes as are gone through at once, the latest first, so that few have to wait."""
        taken = [waiting.pop()]
        while waiting and sum(len(ids) for ids, _, _ in taken) < self._step:
            taken.append(waiting.pop())
        ids, lower, upper = (np.concatenate(part) for part in zip(*taken, strict=True))
        if len(ids) > self._step:
            waiting.append((ids[self._step :], lower[self._step :], upper[self._step :]))
        return ids[: self._step], lower[: self._step], upper[: self._step]

    def _shrunk(
        self, ids: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """The boxes in which the peak may be exceeded, shrunk to where, and by how much (nats)."""
        width = upper - lower
        room = 1 - lower.sum(axis=1)
        # What is no number, for a multiplier too large, must not pass for an empty box, nor for a closed one.
        empty = (width < 0).any(axis=1) | (room < -MARGIN) | (room > width.sum(axis=1) + MARGIN)
        held = ~empty
        ids, lower, width, room = ids[held], lower[held], width[held], np.maximum(room[held], 0.0)
        low, rise = _xlogx(lower), _xlogx(lower + width) - _xlogx(lower)
        chord = np.divide(rise, width, out=np.zeros_like(width), where=width > 0)
        slope = self.linear + np.asarray(self._weights[ids] @ self._rows)
        corner, rate = (low - slope * lower).sum(axis=1), chord - slope
        least, most, best = lower, lower + width, np.full(len(ids), np.inf)
        for level in (self.tree.level[ids], _filling(rate, width, room)):
            beyond = rate - level[:, None]
            bound = corner + level * room + (np.maximum(beyond, 0.0) * width).sum(axis=1)
            excess = bound + self._lost[ids] - self.peak
            best = np.minimum(best, excess)
            # Away from the better end of an interval the bound falls by `beyond`: so far, and it is at the peak.
            steep = np.maximum(np.abs(beyond), _FLAT)
            reach = np.nan_to_num(np.maximum(excess, 0.0)[:, None] / steep * (1 + MARGIN), nan=_WHOLE)
            least = np.where(beyond > 0, np.maximum(least, lower + width - reach), least)
            most = np.where(beyond < 0, np.minimum(most, lower + reach), most)
        still = ~(best <= MARGIN)
        return ids[still], least[still], most[still], best[still]

    def _halves(
        self, children: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Both halves of each box."""
        which, at = self.tree.which[children[:, 0]], self.tree.at[children[:, 0]]
        row = np.arange(len(children))
        left, right = upper.copy(), lower.copy()
        left[row, which] = np.minimum(left[row, which], at)
        right[row, which] = np.maximum(right[row, which], at)
        return children.T.ravel(), np.concatenate([lower, right]), np.concatenate([left, upper])


def _filling(rate: FloatArray, width: FloatArray, room: FloatArray) -> FloatArray:
    """The rate (k,) at which `room` is used up, filling the intervals of the largest rate first: the best level."""
    order = np.argsort(-rate, axis=1)
    filled = np.take_along_axis(width, order, axis=1).cumsum(axis=1)
    place = np.minimum((filled < room[:, None]).sum(axis=1), rate.shape[1] - 1)
    return np.asarray(rate[np.arange(len(rate)), order[np.arange(len(rate)), place]])


def _xlogx(values: FloatArray) -> FloatArray:
    """t ln t, zero at zero."""
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))
