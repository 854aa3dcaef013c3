"""Boxes of a branch and bound, kept so that they can be looked at again under other prices, and read by others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.certificate import Proof
from funnel.optimise.linear.bases import NONE, Answers, Bases, BoolArray, widened

MOST = 200_000
"""Boxes up to which a proof is written down; larger ones take too long to read again."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Some boxes of a tree: their numbers (N,), and where they lie (N, a)."""

    number: IntArray
    lower: FloatArray
    upper: FloatArray

    def __getitem__(self, chosen: IntArray | BoolArray) -> Boxes:
        return Boxes(self.number[chosen], self.lower[chosen], self.upper[chosen])

    def __len__(self) -> int:
        return len(self.number)


def side_by_side(parts: Sequence[Boxes]) -> Boxes:
    """Boxes of several groups as one group."""
    return Boxes(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("number", "lower", "upper"))
    )


class BoxTree:
    """Where each box comes from, the multipliers that bound it, and the basis that these come from.

    Box k is the part of box `parent[k]` where coordinate `which[k]` is at most `at[k]`, or at least where `upper[k]`;
    its halves are the boxes `child[k]` and `child[k] + 1`, where that is not zero. `proof` says what multipliers prove.
    """

    _GROWING = ("parent", "which", "at", "upper", "child", "level", "used", "index", "weight", "values")

    def __init__(self, size: int) -> None:
        self.size, self.length = size, 1
        self.parent, self.which, self.child, self.used = (np.zeros(64, np.int64) for _ in range(4))
        self.at, self.level, self.upper = np.zeros(64), np.zeros(64), np.zeros(64, bool)
        self.index, self.values = np.full((64, 2), NONE), np.full((64, 2), NONE)
        self.weight: FloatArray = np.zeros((64, 2))

    def halves(self, boxes: Boxes, which: IntArray, at: FloatArray) -> tuple[Boxes, Boxes]:
        """Cut each box in two: where a coordinate is at most a number, and where it is at least that."""
        many = len(boxes)
        self._grow(self.length + 2 * many)
        lower_half = self.length + 2 * np.arange(many)
        self.child[boxes.number] = lower_half
        for number, upper in ((lower_half, False), (lower_half + 1, True)):
            self.parent[number], self.which[number], self.at[number] = boxes.number, which, at
            self.upper[number], self.used[number] = upper, self.used[boxes.number]
            self.index[number], self.values[number] = self.index[boxes.number], self.values[boxes.number]
        self.length += 2 * many
        return self.below(boxes)

    def below(self, boxes: Boxes) -> tuple[Boxes, Boxes]:
        """Both halves of boxes that have been cut."""
        low, row = self.child[boxes.number], np.arange(len(boxes))
        which, at = self.which[low], self.at[low]
        left, right = boxes.upper.copy(), boxes.lower.copy()
        left[row, which] = np.minimum(left[row, which], at)
        right[row, which] = np.maximum(right[row, which], at)
        return Boxes(low, boxes.lower, left), Boxes(low + 1, right, boxes.upper)

    def bounded(self, number: IntArray, answers: Answers, weight: FloatArray, level: FloatArray) -> None:
        """What bounds boxes: multipliers (N, k) of the answers' inequalities, and that of Σ w = 1; and their bases."""
        self._widen(answers.index.shape[1])
        for array, filling, given in (
            (self.index, NONE, answers.index),
            (self.values, NONE, answers.bases.values),
            (self.weight, 0, weight),
        ):
            array[number] = filling
            array[number, : given.shape[1]] = given
        self.level[number], self.used[number] = level, answers.bases.count

    def bases(self, number: IntArray) -> Bases:
        """Where the programs of boxes ended."""
        count = self.used[number]
        width = max(int(count.max(initial=1)), 1)
        spare = np.arange(width) >= count[:, None]
        rows, values = self.index[number, :width], self.values[number, :width]
        return Bases(np.where(spare, NONE, rows), np.where(spare, NONE, values), count)

    def descendants(self, top: int) -> IntArray:
        """All boxes below one, in the order of their numbers: halves next to each other."""
        found, layer = [np.zeros(0, np.int64)], np.array([top])
        while len(layer):
            low = self.child[layer]
            low = low[low > 0]
            layer = np.concatenate([low, low + 1])
            found.append(layer)
        return np.sort(np.concatenate(found))

    def proof(self, inequalities: FloatArray, equalities: int) -> Proof | None:
        """All of it, as far as it is needed; None where there are too many boxes."""
        keep = np.append(0, self.descendants(0))
        if len(keep) > MOST:
            return None
        place = np.zeros(self.length, np.int64)
        place[keep] = np.arange(len(keep))
        index, weight = self.index[keep], self.weight[keep]
        used = weight != 0
        return Proof(
            inequalities,
            equalities,
            place[self.parent[keep]],
            self.which[keep],
            self.at[keep],
            self.upper[keep],
            np.append(0, used.sum(axis=1).cumsum()),
            index[used],
            weight[used],
            self.level[keep],
        )

    def _widen(self, wide: int) -> None:
        """Room for so many inequalities in each basis."""
        if wide > self.index.shape[1]:
            self.index, self.values = widened(self.index, wide), widened(self.values, wide)
            self.weight = widened(self.weight, wide, 0)

    def _grow(self, length: int) -> None:
        """Room for so many boxes."""
        have = len(self.parent)
        if length > have:
            more = max(length, 2 * have) - have
            for name in self._GROWING:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)]))
