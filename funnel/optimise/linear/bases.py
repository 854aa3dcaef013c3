"""What many linear programs have in common, where they stand, and how they ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]
Kind = TypeVar("Kind", bound=np.generic)
RUNNING, OPTIMAL, ENOUGH, EMPTY, GIVEN_UP = range(5)
"""How a program ended: solved, proven to be worth no more than was asked, without a point, or left where it stood."""
SUM, NONE = -2, -1
"""What stands in the place of an inequality: Σ w = 1, and nothing."""


class Constraints:
    """Σ w = 1, and matrix @ w <= 0 with `matrix` (m, a), whose last `equalities` rows are equations.

    Where there are no equations, `more` inequalities may come later; those that are `live` (indices) enter bases.
    """

    def __init__(self, matrix: FloatArray, equalities: int = 0) -> None:
        self.size, self.equalities = matrix.shape[1], equalities
        self.matrix = matrix
        self._extend()

    def more(self, rows: FloatArray) -> None:
        """Further inequalities (k, a), which are live as well."""
        live = np.append(self.live, len(self.matrix) + np.arange(len(rows)))
        self.matrix = np.vstack([self.matrix, rows])
        self._extend()
        self.heed(live)

    def heed(self, live: IntArray) -> None:
        """Let only these inequalities enter bases."""
        self.live, self.transposed = live, np.ascontiguousarray(self.matrix[live].T)

    def _extend(self) -> None:
        """The inequalities, and what SUM and NONE stand for, with their limits."""
        count = len(self.matrix)
        self.extended = np.zeros((count + 2, self.size + 1))
        self.extended[:-2, :-1], self.extended[SUM, :-1] = self.matrix, 1.0
        # Within the simplex no row is lower than its least coefficient: a limit that never binds.
        least = self.matrix.min(axis=1, initial=0.0) - 1.0
        least[count - self.equalities :] = 0.0
        self.low = np.concatenate([least, [1.0, 0.0]])
        self.high = np.concatenate([np.zeros(count), [1.0, 0.0]])
        self.fixed = self.low == self.high
        self.heed(np.arange(count))


@dataclass(frozen=True, eq=False)
class Bases:
    """Where N programs stand: the inequalities that are met with equality, and the coordinates off their bounds.

    The first `count` (N,) entries of `rows` (N, k) and as many of `values` (N, k); the rest of either is NONE.
    """

    rows: IntArray
    values: IntArray
    count: IntArray

    @classmethod
    def none(cls, many: int, width: int) -> Bases:
        """Of programs that have not begun."""
        empty = np.full((many, width), NONE)
        return cls(empty, empty.copy(), np.zeros(many, np.int64))

    def __getitem__(self, chosen: IntArray | BoolArray) -> Bases:
        return Bases(self.rows[chosen], self.values[chosen], self.count[chosen])


@dataclass(frozen=True, eq=False)
class Objectives:
    """What N programs maximise: slope·w within boxes lower <= w <= upper, (N, a) each, begun from their bases.

    A program may end as soon as it is known to be worth at most `enough` (N,), and where nobody is `patient` the few
    that take long may be left for another time.
    """

    lower: FloatArray
    upper: FloatArray
    slope: FloatArray
    bases: Bases
    enough: FloatArray
    patient: bool = True

    @classmethod
    def anywhere(cls, slope: FloatArray, bases: Bases | None = None, *, patient: bool = True) -> Objectives:
        """To the end, and in no box: all w are in [0, 1]."""
        bases = Bases.none(len(slope), 1) if bases is None else bases
        least = np.full(len(slope), -np.inf)
        return cls(np.zeros_like(slope), np.ones_like(slope), slope, bases, least, patient)

    def __len__(self) -> int:
        return len(self.slope)

    def __getitem__(self, chosen: IntArray | BoolArray) -> Objectives:
        return Objectives(
            self.lower[chosen],
            self.upper[chosen],
            self.slope[chosen],
            self.bases[chosen],
            self.enough[chosen],
            self.patient,
        )

    def since(self, answers: Answers) -> Objectives:
        """The same, begun from where answers ended."""
        return replace(self, bases=answers.bases)


@dataclass(frozen=True, eq=False)
class Answers:
    """How N programs ended (codes of this module), a point (N, a) each, multipliers and bases.

    `weight` (N, k) are the multipliers of the inequalities `index` (N, k), which may be SUM or NONE. `left` (N,) is
    what they leave of variables that are in no box, at most.
    """

    how: IntArray
    point: FloatArray
    index: IntArray
    weight: FloatArray
    left: FloatArray
    bases: Bases

    @classmethod
    def nothing(cls, many: int, width: int, size: int) -> Answers:
        """No answers yet, with room for so many inequalities each."""
        zero, index = np.zeros(many), np.full((many, width), NONE)
        weight = np.zeros((many, width))
        return cls(
            zero.astype(np.int64), np.zeros((many, size)), index, weight, zero, Bases.none(many, width)
        )

    def replaced(self, places: IntArray, better: Answers) -> Answers:
        """The same with other answers at some places."""
        place = np.arange(len(self.how))
        place[places] = len(place) + np.arange(len(places))
        return joined([self, better])[place]

    def __getitem__(self, chosen: IntArray | BoolArray) -> Answers:
        return Answers(
            self.how[chosen],
            self.point[chosen],
            self.index[chosen],
            self.weight[chosen],
            self.left[chosen],
            self.bases[chosen],
        )

    def wide(self, width: int) -> Answers:
        """The same with room for so many inequalities at least."""
        if self.index.shape[1] >= width:
            return self
        rows, values = widened(self.bases.rows, width), widened(self.bases.values, width)
        weight = widened(self.weight, width, 0)
        bases = Bases(rows, values, self.bases.count)
        return Answers(self.how, self.point, widened(self.index, width), weight, self.left, bases)


def widened(array: npt.NDArray[Kind], width: int, filling: int = NONE) -> npt.NDArray[Kind]:
    """An array (N, k) with as many columns at least."""
    return np.pad(array, ((0, 0), (0, max(width - array.shape[1], 0))), constant_values=filling)


def joined(parts: list[Answers]) -> Answers:
    """Answers one after the other."""
    width = max(part.index.shape[1] for part in parts)
    parts = [part.wide(width) for part in parts]
    bases = [part.bases for part in parts]
    return Answers(
        np.concatenate([part.how for part in parts]),
        np.concatenate([part.point for part in parts]),
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.left for part in parts]),
        Bases(
            np.concatenate([one.rows for one in bases]),
            np.concatenate([one.values for one in bases]),
            np.concatenate([one.count for one in bases]),
        ),
    )
