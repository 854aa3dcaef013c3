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

    def covariance(self, counts: IntArray, one: Functional, other: Functional) -> float:
        """As `Tally.covariance`, of answers that were given so often (m_1, …, m_r)."""


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

    def covariance(self, counts: IntArray, one: Functional, other: Functional) -> float:
        """What Σ M c d has beyond an estimate of Σ N f g; where there is none, that of records drawn anew."""
        both = one.f * other.f
        if not self.estimable(both):
            return anew(counts, one.c, other.c)
        own = float((counts * self.numbers(both)).sum())
        if one is other:
            return seen(spread(counts, one.c, own), one.c, self.possible)
        return float((counts * one.c * other.c).sum()) - own


@dataclass(frozen=True, eq=False)
class AtFace:
    """Of one block whose answer y counts for `weights` (b,) records of the value `place` (b,), on average.

    `chances` are Q (b, a). That holds for the counts that the protocol was made for, and for no others: `shares` (a,)
    are those of these values, where they are published.
    """

    chances: FloatArray
    place: IntArray
    weights: FloatArray
    shares: FloatArray | None = None

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

    def covariance(self, counts: IntArray, one: Functional, other: Functional) -> float:
        """Σ_x N_x Cov(c, d|x), with N as it is published, else as it is estimated.

        Nearly all of an estimate may rest on answers that few records give, and be nothing where none did. Where N is
        not published, no answer counts for more than a record; there a variance is no less than one record's.
        """
        each = (one.c * other.c) @ self.chances - (one.c @ self.chances) * (other.c @ self.chances)
        known = None if self.shares is None else counts.sum() * self.shares
        found = float(counts @ self.numbers(each) if known is None else known @ each)
        return max(found, float(each.max()), 0.0) if one is other else found


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
        return self.undoing.covariance(self.counts, one, other)


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
