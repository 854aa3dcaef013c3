"""How far a release's marginals are from the true ones: total variation, half the sum of absolute differences.

Expected ones are exact: they follow from the weights of the profiles, pooling and rounding included, and from how the
labels are distributed. Columns are coded first: values of an ordered column by at most 20 quantiles of the true rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from funnel.cells.columns import Codes, Column
from funnel.cells.profile import BITS, Profile, drawing_order
from funnel.data.joint import FloatArray, IntArray

QUANTILES = 20
Marginal = tuple[int, ...]


@dataclass(frozen=True)
class Distances:
    """Distances of marginals, by their columns."""

    of: dict[Marginal, float]

    def mean(self, columns: int) -> float:
        """Over all marginals of so many columns; 0 where there are none."""
        found = [value for key, value in self.of.items() if len(key) == columns]
        return float(np.mean(found)) if found else 0.0

    def largest(self, columns: int) -> float:
        """Over all marginals of so many columns; 0 where there are none."""
        return max((value for key, value in self.of.items() if len(key) == columns), default=0.0)


def coding(column: Column, codes: Codes, quantiles: int = QUANTILES) -> IntArray:
    """By which code every value (v,) of a column goes: a quantile where it is ordered, else its own."""
    counts = np.bincount(codes, minlength=len(column))
    if not column.ordered:
        return np.arange(len(column))
    numbers = len(column) - (column.values[-1] is None)
    before = np.cumsum(counts[:numbers]) - counts[:numbers]
    total = max(int(counts[:numbers].sum()), 1)
    found = np.minimum(before * quantiles // total, quantiles - 1)
    coded = np.unique(found, return_inverse=True)[1]
    return np.append(coded, [coded.max(initial=-1) + 1] * (len(column) - numbers)).astype(np.int64)


def marginals(columns: int, triples: int, draw: np.random.Generator) -> list[Marginal]:
    """All single columns and pairs, and of the triples at most so many, drawn without repetition."""
    found = [key for size in (1, 2) for key in combinations(range(columns), size)]
    every = list(combinations(range(columns), 3))
    chosen = draw.permutation(len(every))[:triples]
    return found + [every[place] for place in sorted(chosen)]


def between(
    first: Sequence[Codes], second: Sequence[Codes], codings: Sequence[IntArray], keys: Iterable[Marginal]
) -> Distances:
    """Distances between two tables, given by the codes (n,) of their columns."""
    one, other = ([coded[column] for coded, column in zip(codings, t, strict=True)] for t in (first, second))
    sizes = [int(coded.max()) + 1 for coded in codings]
    return Distances({key: _variation(_table(one, sizes, key), _table(other, sizes, key)) for key in keys})


def expected(
    profiles: Sequence[Profile],
    labels: FloatArray,
    codes: Sequence[Codes],
    codings: Sequence[IntArray],
    keys: Iterable[Marginal],
) -> Distances:
    """Distances between a table (codes of its columns) and what rows of labels with this distribution (m,) expect."""
    true = [coded[column] for coded, column in zip(codings, codes, strict=True)]
    sizes = [int(coded.max()) + 1 for coded in codings]
    law = Law(profiles, labels / labels.sum(), codings)
    return Distances({key: _variation(_table(true, sizes, key), law.marginal(key)) for key in keys})


class Law:
    """The distribution of a filled row over coded columns, mixed over labels with probabilities (m,).

    Columns form a tree, with one more above all roots, of a single group. Given the cell and the group of a column's
    value, what lies on different sides of the column is independent.
    """

    def __init__(self, profiles: Sequence[Profile], labels: FloatArray, codings: Sequence[IntArray]) -> None:
        self._labels, top = labels, len(profiles)
        self._parents = [top if one.parent < 0 else one.parent for one in profiles]
        self._links = [one.links / (1 << BITS) for one in profiles]
        self._groups: dict[int, FloatArray] = {top: np.ones((len(labels), 1))}
        for column in drawing_order(profiles):
            self._groups[column] = np.einsum(
                "tg,tgh->th", self._groups[self._parents[column]], self._links[column]
            )
        self._seen = {
            (column, column): _coded(profile, coding)
            for column, (profile, coding) in enumerate(zip(profiles, codings, strict=True))
        }
        self._ways = [self._way(column) for column in range(top)]

    def marginal(self, key: Marginal) -> FloatArray:
        """The chances of the coded values of some columns, in an array with an axis for each."""
        middle = self._middle(key)
        weights = (self._labels[:, None] * self._groups[middle]).ravel()
        parts = [self._given(middle, column) for column in key]
        return _mixed(weights, [part.reshape(len(weights), -1) for part in parts])

    def _way(self, column: int) -> list[int]:
        """The column and all above it."""
        found = [column]
        while found[-1] < len(self._parents):
            found.append(self._parents[found[-1]])
        return found

    def _middle(self, key: Marginal) -> int:
        """The column that up to three columns lie on different sides of: the lowest that two of them have above."""
        if len(key) == 1:
            return key[0]
        shared = [
            next(above for above in self._ways[a] if above in self._ways[b]) for a, b in combinations(key, 2)
        ]
        return max(shared, key=lambda column: len(self._ways[column]) if column < len(self._ways) else 0)

    def _given(self, middle: int, column: int) -> FloatArray:
        """The chances (m, groups, codes) of a column's codes, given each group of another column in each cell."""
        if (middle, column) not in self._seen:
            way = self._ways[column]
            if middle in way:
                below = way[way.index(middle) - 1]
                found = self._links[below] @ self._given(below, column)
            else:
                found = self._upwards(middle) @ self._given(self._parents[middle], column)
            self._seen[middle, column] = found
        return self._seen[middle, column]

    def _upwards(self, column: int) -> FloatArray:
        """The chances (m, groups, groups of the parent) of the parent's groups, given those of a column."""
        joint = self._groups[self._parents[column]][:, :, None] * self._links[column]
        total = joint.sum(axis=1, keepdims=True)
        shares = np.divide(joint, total, out=np.zeros(joint.shape), where=total > 0)
        return np.asarray(shares.transpose(0, 2, 1))


def _coded(profile: Profile, coding: IntArray) -> FloatArray:
    """The chances (m, groups, codes) of a column's codes, given its groups."""
    shape = profile.links.shape[2], int(coding.max()) + 1
    found = np.zeros((len(profile.values), *shape))
    for value, (group, code) in enumerate(zip(profile.groups, coding, strict=True)):
        found[:, group, code] += profile.values[:, value] / (1 << BITS)
    return found


def _mixed(weights: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """Σ_i w_i Π_k parts[k][i, .], an array with an axis for each part (n, codes)."""
    some = weights > 0
    product = weights[some][:, None]
    for part in parts[:-1]:
        product = (product[:, :, None] * part[some][:, None, :]).reshape(len(product), -1)
    return (product.T @ parts[-1][some]).reshape([part.shape[1] for part in parts])


def _table(codes: Sequence[IntArray], sizes: Sequence[int], key: Marginal) -> FloatArray:
    """The shares of the coded values of some columns, in an array with an axis for each."""
    place = np.zeros(len(codes[0]), np.int64)
    for column in key:
        place = place * sizes[column] + codes[column]
    shape = [sizes[column] for column in key]
    return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape) / len(place)


def _variation(first: FloatArray, second: FloatArray) -> float:
    return float(np.abs(first - second).sum()) / 2
