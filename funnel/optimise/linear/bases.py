"""Where many linear programs stand, and how they ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]
RUNNING, OPTIMAL, ENOUGH, EMPTY, GIVEN_UP = range(5)
"""How a program ended: solved, proven to be worth no more than was asked, without a point, or left where it stood."""
_OF_BASES, _OF_ANSWERS = ("rows", "values", "count"), ("how", "point", "index", "weight")


@dataclass(frozen=True, eq=False)
class Bases:
    """Where N programs stand: the inequalities that are met with equality, and the coordinates off their bounds.

    The first `count` (N,) entries of `rows` (N, k), where m stands for Σ w = 1, and as many of `values` (N, k); the
    rest of either is m + 1, and a.
    """

    rows: IntArray
    values: IntArray
    count: IntArray

    def __getitem__(self, chosen: IntArray | BoolArray) -> Bases:
        return Bases(self.rows[chosen], self.values[chosen], self.count[chosen])


@dataclass(frozen=True, eq=False)
class Answers:
    """How N programs ended (codes of this module), a point (N, a) each, multipliers and bases.

    `weight` (N, k) are the multipliers of the inequalities `index` (N, k), where m and m + 1 stand for none.
    """

    how: IntArray
    point: FloatArray
    index: IntArray
    weight: FloatArray
    bases: Bases

    @classmethod
    def nothing(cls, many: int, width: int, count: int, size: int) -> Answers:
        """No answers yet, with room for so many inequalities each."""
        none, nowhere = count + 1, size
        bases = Bases(np.full((many, width), none), np.full((many, width), nowhere), np.zeros(many, np.int64))
        how, index = np.zeros(many, np.int64), np.full((many, width), none)
        return cls(how, np.zeros((many, nowhere)), index, np.zeros((many, width)), bases)

    def wide(self, width: int, count: int, size: int) -> Answers:
        """The same with room for so many inequalities at least."""
        none, nowhere = count + 1, size
        if self.index.shape[1] >= width:
            return self
        bases = Bases(
            wide(self.bases.rows, width, none), wide(self.bases.values, width, nowhere), self.bases.count
        )
        weight = np.zeros((len(self.weight), width))
        weight[:, : self.weight.shape[1]] = self.weight
        return Answers(self.how, self.point, wide(self.index, width, none), weight, bases)


def wide(array: IntArray, width: int, filling: int) -> IntArray:
    """An array (N, k) with as many columns at least."""
    if array.shape[1] >= width:
        return array
    wide = np.full((len(array), width), filling, array.dtype)
    wide[:, : array.shape[1]] = array
    return wide


def joined(parts: list[Answers], count: int, size: int) -> Answers:
    """Answers one after the other."""
    width = max(part.index.shape[1] for part in parts)
    parts = [part.wide(width, count, size) for part in parts]
    bases = Bases(*(np.concatenate([getattr(part.bases, name) for part in parts]) for name in _OF_BASES))
    how, point, index, weight = (
        np.concatenate([getattr(part, name) for part in parts]) for name in _OF_ANSWERS
    )
    return Answers(how, point, index, weight, bases)
