"""Sums over records of any function of their true values, estimated from what was released of them, with covariances.

A record x = (x_1, …, x_r) is answered with y = (y_1, …, y_r), block by block, by protocols Q_j. For f(x), numbers c(y)
with Σ_y c(y) Π_j Q_j(y_j|x_j) = f(x) for every x make Σ_y M_y c(y) an unbiased estimate of Σ_x N_x f(x), whatever N is:
the inverses of the Q_j applied along the axes of f, one after the other; the matrix of their product is never made.
Where the expected totals of one block's answers are known to be the true ones, c = f does as well, and varies less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol as Interface

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.measure.recovery import Choices, Inverse, anew, choices, seen, spread, swing

_ZERO = 1e-6
"""Part of the largest |f| that rounding may leave of what an inverse cannot reach."""


class Undoing(Interface):
    """How functions of true values become numbers for answers. Arrays have an axis for each block."""

    @property
    def possible(self) -> Sequence[Choices]:
        """By block the answers that one record can have."""

    def estimable(self, f: FloatArray) -> bool:
        """Whether some numbers for answers are right on average, for every record."""

    def numbers(self, f: FloatArray) -> FloatArray:
        """Such numbers c (m_1, …, m_r) for a function f (a_1, …, a_r)."""

    def own(self, f: FloatArray, g: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray | None:
        """Numbers whose mean given x is E[c|x] E[d|x]; None where there are none, or nobody knows them."""


@dataclass(frozen=True, eq=False)
class Inverted:
    """By the inverses of the blocks' protocols."""

    inverses: Sequence[Inverse]

    @property
    def possible(self) -> Sequence[Choices]:
        """By block the answers that one record can have."""
        return [one.possible for one in self.inverses]

    def estimable(self, f: FloatArray) -> bool:
        """Whether nothing of f lies where an inverse does not reach: in no block."""
        most = _ZERO * float(np.abs(f).max(initial=0))
        left = ((axis, one.residual) for axis, one in enumerate(self.inverses) if one.residual is not None)
        return all(np.abs(np.tensordot(f, rest, (axis, 0))).max(initial=0) <= most for axis, rest in left)

    def numbers(self, f: FloatArray) -> FloatArray:
        """One inverse along each axis."""
        return along(f, [one.matrix for one in self.inverses])

    def own(self, f: FloatArray, g: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray | None:
        """Those of f g."""
        both = f * g
        return self.numbers(both) if self.estimable(both) else None


@dataclass(frozen=True, eq=False)
class AtFace:
    """Of one block whose answer y counts for `weights` (b,) records of the value `place` (b,), on average.

    `chances` are Q (b, a). That holds for the counts that the protocol was made for, and for no others.
    """

    chances: FloatArray
    place: IntArray
    weights: FloatArray

    @cached_property
    def possible(self) -> Sequence[Choices]:
        """The answers that one record can have."""
        return [choices(self.chances > 0)]

    def estimable(self, f: FloatArray) -> bool:
        """All functions are."""
        return True

    def numbers(self, f: FloatArray) -> FloatArray:
        """What the answer says, weighed."""
        return np.asarray(self.weights * f[self.place])

    def own(self, f: FloatArray, g: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray | None:
        """The product of the means given x, of which the totals are known on average as well."""
        return self.numbers((c @ self.chances) * (d @ self.chances))

    def squares(self, c: FloatArray, d: FloatArray) -> FloatArray:
        """Numbers for the mean of c d given x."""
        return self.numbers((c * d) @ self.chances)


@dataclass(frozen=True, eq=False)
class Functional:
    """A function f of true values and its numbers c for answers."""

    f: FloatArray
    c: FloatArray

    @property
    def most(self) -> float:
        """The most that one record's answer counts for; nothing where that is no more than what a record has."""
        found, own = (float(np.abs(one).max(initial=0.0)) for one in (self.c, self.f))
        return found if found > own * (1 + 1e-9) else 0.0


@dataclass(frozen=True, eq=False)
class Tally:
    """How many records were given each answer, (m_1, …, m_r), and how answers are undone."""

    counts: IntArray
    undoing: Undoing

    def functional(self, f: FloatArray) -> Functional | None:
        """A function that has an unbiased estimate; None for another."""
        return Functional(f, self.undoing.numbers(f)) if self.undoing.estimable(f) else None

    def total(self, one: Functional) -> float:
        """The estimate of Σ_x N_x f(x)."""
        return float((self.counts * one.c).sum())

    def swing(self, numbers: FloatArray) -> float:
        """The most that another answer to one record changes a total of numbers for answers."""
        return swing(numbers, self.undoing.possible)

    def covariance(self, one: Functional, other: Functional) -> float:
        """An unbiased estimate of the covariance of two totals over the draws, N being what it is.

        Where there is none, a conservative one, as if the records, too, had been drawn anew from those at hand; and so
        where the estimate of a variance comes out negative.
        """
        both = self.undoing.own(one.f, other.f, one.c, other.c)
        if both is None:
            return anew(self.counts, one.c, other.c)
        if isinstance(self.undoing, AtFace):
            found = float((self.counts * (self.undoing.squares(one.c, other.c) - both)).sum())
            return max(found, 0.0) if one is other else found
        own = float((self.counts * both).sum())
        if one is other:
            return seen(spread(self.counts, one.c, own), one.c, self.undoing.possible)
        return float((self.counts * one.c * other.c).sum()) - own


def along(table: FloatArray, matrices: Sequence[FloatArray]) -> FloatArray:
    """A table (a_1, …, a_r) with a matrix (m_j, a_j) applied to each of its axes."""
    for matrix in matrices:  # takes the first axis and puts the new one last
        table = np.tensordot(table, matrix, (0, 1))
    return table


def tabulated(codes: IntArray, counts: IntArray, sizes: Sequence[int]) -> IntArray:
    """Rows of codes (m, r) with their counts (m,), as a table with an axis of each size."""
    place = np.ravel_multi_index(tuple(codes.T), tuple(sizes)) if codes.shape[1] else np.zeros(len(codes), np.int64)
    found = np.zeros(int(np.prod(sizes)), np.int64)
    np.add.at(found, place, counts)
    return found.reshape(tuple(sizes))
