"""A branch and bound gone through again: that no row of a cone is worth more than a peak, without any solver.

For w >= 0 with Σ w = 1 and G w <= 0, and any y >= 0, Σ w ln w - c·w is at most Σ (chord of w ln w) - (c + y G)·w
on a box l <= w <= u, since t ln t lies below its chords. That is linear, and whatever the level t, over the box at most
    value at the corner l + t (1 - Σ l) + Σ_x max(0, rate_x - t) (u_x - l_x).
So multipliers need no trust: bad ones prove less. Where the linear function stays below the peak, nothing need be
looked at again, so each box shrinks by as much before it is split in two.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.audit.kernel.verdict import Broken
from funnel.format.solution import MOST_BYTES, PROOF, Proof

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Boxes = tuple[IntArray, FloatArray, FloatArray]
"""Their numbers (k,), and lower and upper corners (k, a)."""
MARGIN = 1e-9
"""Nats by which a box may exceed the peak: a solver's multipliers are rounded."""
_AT_ONCE = 1 << 17
"""Numbers per array; boxes are gone through in groups of as many."""
_FLAT, _WHOLE = 1e-200, 2.0
_ROUNDING, _STEPS = 2.0**-52, 40
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
    upper: IntArray
    starts: IntArray
    index: IntArray
    value: FloatArray
    level: FloatArray

    def __len__(self) -> int:
        return len(self.parent)


def read_proof(raw: bytes, told: Proof, size: int) -> tuple[FloatArray, Tree]:
    """The inequalities (m, a) on w that proof.bin holds, and its boxes. Raises Broken."""
    layout = told.layout(size)
    whole = sum(count * np.dtype(kind).itemsize for _, kind, count in layout)
    if whole > MOST_BYTES or told.boxes < 1:
        raise Broken(PROOF, "the proof is none", f"boxes, and at most {MOST_BYTES} bytes", whole)
    parts = _parts(_unpacked(raw, whole), layout)
    inequalities = next(parts).astype(float).reshape(told.inequalities, size)
    parent, which, at, upper, counts, index, value, level = parts
    starts = np.concatenate([[0], counts.astype(np.int64).cumsum()])
    if (upper > 1).any() or starts[-1] != told.multipliers or (index >= told.inequalities).any():
        raise Broken(PROOF, "the proof's parts do not fit together", "halves, counts, inequalities", "others")
    whole_numbers = (one.astype(np.int64) for one in (parent, which, upper, index))
    parent, which, upper, index = whole_numbers
    tree = Tree(parent, which, at.astype(float), upper, starts, index, value.astype(float), level.astype(float))
    return inequalities, tree


def _unpacked(packed: bytes, whole: int) -> bytes:
    """Exactly `whole` bytes; nothing beyond them is ever unpacked."""
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(packed, whole + 1)
        if len(found) == whole and not reader.eof:
            found += reader.decompress(reader.unconsumed_tail, 1)
    except zlib.error as error:
        raise Broken(PROOF, "the proof cannot be unpacked", "a zlib stream", str(error)) from None
    if len(found) != whole or not reader.eof or reader.unused_data:
        raise Broken(PROOF, "the proof has another size than its parts", f"{whole} bytes", "another size")
    return found


def _parts(raw: bytes, layout: list[tuple[str, str, int]]) -> Iterator[npt.NDArray[Any]]:
    """The arrays of a layout, little-endian, one after the other."""
    place = 0
    for _, kind, count in layout:
        yield np.frombuffer(raw, kind, count, place)
        place += count * np.dtype(kind).itemsize


def children_of(tree: Tree, size: int, *, free: bool) -> IntArray:
    """The children (n, 2) of each box, -1 for none, lower half first.

    `size` is a, `free` allows multipliers below zero. Raises Broken where a box has other children than both halves
    of one split, or something is no number.
    """
    count, own = len(tree), np.arange(len(tree))
    children = np.full((count, 2), -1, np.int64)
    ordered = (tree.parent[1:] >= 0) & (tree.parent[1:] < own[1:])
    cut = (tree.which[1:] >= 0) & (tree.which[1:] < size) & np.isfinite(tree.at[1:])
    numbers = np.isfinite(tree.level).all() and np.isfinite(tree.value).all()
    if not ordered.all() or not cut.all():
        raise Broken(PROOF, "a box is no half of one before it", "a tree of boxes", "another order, or another cut")
    if not numbers or (not free and (tree.value < 0).any()):
        raise Broken(PROOF, "a multiplier is not one", "numbers from zero on", tree.value.min(initial=0.0))
    children[tree.parent[1:], tree.upper[1:]] = own[1:]
    split = children[:, 0] >= 0
    low, high = children[split].T
    halves = (split == (children[:, 1] >= 0)).all() and 2 * int(split.sum()) == count - 1
    if not halves or (tree.which[low] != tree.which[high]).any() or (tree.at[low] != tree.at[high]).any():
        raise Broken(PROOF, "a box is not split into two halves at one place", "both halves, each once", "others")
    return children


class Replay:
    """Goes through a tree for Σ w ln w - linear·w over the simplex where rows (m, a) @ w <= 0.

    `linear` (a,); rows have largest coefficient one, so that what floats lose can be told from the multipliers.
    """

    @np.errstate(all="ignore")
    def __init__(self, tree: Tree, children: IntArray, rows: FloatArray, linear: FloatArray, peak: float) -> None:
        from scipy.sparse import csr_array

        self.tree, self.children, self.rows, self.linear, self.peak = tree, children, rows, linear, peak
        self.weights = csr_array((tree.value, tree.index, tree.starts), shape=(len(tree), len(rows)))
        each = np.diff(tree.starts)
        spent = np.bincount(np.repeat(np.arange(len(tree)), each), np.abs(tree.value), len(tree))
        large = 4 * (spent + np.abs(linear).max() + np.abs(tree.level)) + len(linear)
        self.lost = _ROUNDING * (_STEPS + int(each.max(initial=0))) * large
        self.step = max(1, _AT_ONCE // len(linear))

    @np.errstate(all="ignore")
    def run(self) -> int:
        """The number of boxes gone through. Raises Broken where one that is not split may exceed the peak."""
        size, seen = len(self.linear), 0
        waiting: list[Boxes] = [(np.zeros(1, np.int64), np.zeros((1, size)), np.ones((1, size)))]
        while waiting:
            group = self._next(waiting)
            seen += len(group[0])
            (left, lower, upper), excess = self._shrunk(*group)
            children = self.children[left]
            leaves = children[:, 0] < 0
            if leaves.any():
                most = self.peak + float(excess[leaves].max())
                what = "a box is not split, and rows in it may be worth more than the peak"
                raise Broken(PROOF, what, f"at most {self.peak:.6g} nats", f"{most:.9g} nats")
            if len(left):
                waiting.append(self._halves(children, lower, upper))
        return seen

    def _next(self, waiting: list[Boxes]) -> Boxes:
        """As many boxes as are gone through at once, the latest first, so that few have to wait."""
        taken = [waiting.pop()]
        while waiting and sum(len(one[0]) for one in taken) < self.step:
            taken.append(waiting.pop())
        ids, lower, upper = (np.concatenate(part) for part in zip(*taken, strict=True))
        if len(ids) > self.step:
            waiting.append((ids[self.step :], lower[self.step :], upper[self.step :]))
        return ids[: self.step], lower[: self.step], upper[: self.step]

    def _shrunk(self, ids: IntArray, lower: FloatArray, upper: FloatArray) -> tuple[Boxes, FloatArray]:
        """The boxes in which the peak may be exceeded, shrunk to where, and by how much (nats)."""
        width, room = upper - lower, 1 - lower.sum(axis=1)
        # What is no number, for a multiplier too large, must not pass for an empty box, nor for a closed one.
        held = ~((width < 0).any(axis=1) | (room < -MARGIN) | (room > width.sum(axis=1) + MARGIN))
        ids, lower, width, room = ids[held], lower[held], width[held], np.maximum(room[held], 0.0)
        low = xlogx(lower)
        chord = np.divide(xlogx(lower + width) - low, width, out=np.zeros_like(width), where=width > 0)
        slope = self.linear + np.asarray(self.weights[ids] @ self.rows)
        corner, rate = (low - slope * lower).sum(axis=1), chord - slope
        least, most, best = lower, lower + width, np.full(len(ids), np.inf)
        for level in (self.tree.level[ids], _filling(rate, width, room)):
            beyond = rate - level[:, None]
            bound = corner + level * room + (np.maximum(beyond, 0.0) * width).sum(axis=1)
            excess = bound + self.lost[ids] - self.peak
            best = np.minimum(best, excess)
            # Away from the better end of an interval the bound falls by `beyond`: so far, and it is at the peak.
            reach = np.maximum(excess, 0.0)[:, None] / np.maximum(np.abs(beyond), _FLAT) * (1 + MARGIN)
            reach = np.nan_to_num(reach, nan=_WHOLE)
            least = np.where(beyond > 0, np.maximum(least, lower + width - reach), least)
            most = np.where(beyond < 0, np.minimum(most, lower + reach), most)
        still = ~(best <= MARGIN)
        return (ids[still], least[still], most[still]), best[still]

    def _halves(self, children: IntArray, lower: FloatArray, upper: FloatArray) -> Boxes:
        """Both halves of each box."""
        which, at = self.tree.which[children[:, 0]], self.tree.at[children[:, 0]]
        row, left, right = np.arange(len(children)), upper.copy(), lower.copy()
        left[row, which] = np.minimum(left[row, which], at)
        right[row, which] = np.maximum(right[row, which], at)
        return children.T.ravel(), np.concatenate([lower, right]), np.concatenate([left, upper])


def _filling(rate: FloatArray, width: FloatArray, room: FloatArray) -> FloatArray:
    """The rate (k,) at which `room` is used up, filling the intervals of the largest rate first: the best level."""
    order = np.argsort(-rate, axis=1)
    filled = np.take_along_axis(width, order, axis=1).cumsum(axis=1)
    place = np.minimum((filled < room[:, None]).sum(axis=1), rate.shape[1] - 1)
    row = np.arange(len(rate))
    return np.asarray(rate[row, order[row, place]])


def xlogx(values: FloatArray) -> FloatArray:
    """t ln t, zero at zero."""
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))
