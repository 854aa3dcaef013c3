"""The distribution of a row, column by column, given its cell: exactly what the weights of profiles say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from funnel.data.joint import FloatArray

Marginal = tuple[int, ...]
"""Columns, in order."""


class RowLaw:
    """Codes of columns of which each depends on its cell and on the group of another column's value.

    Columns form a tree, with one more above all roots, of a single group. Given the cell and the group of a column's
    value, what lies on different sides of the column is independent. `labels` (m,) weigh the cells. Of every column:
    its parent (-1: none), `links` (m, groups of the parent, groups) the chances of its groups, and `own` (m, groups,
    codes) those of its codes given its group.
    """

    def __init__(
        self,
        labels: FloatArray,
        parents: Sequence[int],
        links: Sequence[FloatArray],
        own: Sequence[FloatArray],
    ) -> None:
        top = len(parents)
        self._parents = [top if parent < 0 else parent for parent in parents]
        self._links = links
        self._ways = [self._way(column) for column in range(top)]
        self._given = {(column, column): one for column, one in enumerate(own)}
        self._groups = {top: np.asarray(labels, float)[:, None]}
        for column in sorted(range(top), key=lambda column: len(self._ways[column])):
            above = self._groups[self._parents[column]]
            self._groups[column] = (above[:, None, :] @ links[column])[:, 0, :]

    def marginal(self, key: Marginal) -> FloatArray:
        """The chances of the codes of some columns, in an array with an axis for each; times the sum of the labels."""
        middle = self.middle(key)
        weights = self.groups(middle).ravel()
        return _mixed(weights, [self.given(middle, column).reshape(len(weights), -1) for column in key])

    def groups(self, column: int) -> FloatArray:
        """The masses (m, groups) of a column's groups."""
        return self._groups[column]

    def middle(self, key: Marginal) -> int:
        """The column that up to three columns lie on different sides of: the lowest that two of them have above."""
        if len(key) == 1:
            return key[0]
        shared = [
            next(above for above in self._ways[a] if above in self._ways[b]) for a, b in combinations(key, 2)
        ]
        return max(shared, key=lambda column: len(self._ways[column]) if column < len(self._ways) else 0)

    def given(self, middle: int, column: int) -> FloatArray:
        """The chances (m, groups, codes) of a column's codes, given each group of another column in each cell."""
        if (middle, column) not in self._given:
            way = self._ways[column]
            if middle in way:
                below = way[way.index(middle) - 1]
                found = self._links[below] @ self.given(below, column)
            else:
                found = self._upwards(middle) @ self.given(self._parents[middle], column)
            self._given[middle, column] = found
        return self._given[middle, column]

    def _way(self, column: int) -> list[int]:
        """The column and all above it."""
        found = [column]
        while found[-1] < len(self._parents):
            found.append(self._parents[found[-1]])
        return found

    def _upwards(self, column: int) -> FloatArray:
        """The chances (m, groups, groups of the parent) of the parent's groups, given those of a column."""
        joint = self._groups[self._parents[column]][:, :, None] * self._links[column]
        total = joint.sum(axis=1, keepdims=True)
        shares = np.divide(joint, total, out=np.zeros(joint.shape), where=total > 0)
        return np.asarray(shares.transpose(0, 2, 1))


def _mixed(weights: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """Σ_i w_i Π_k parts[k][i, .], an array with an axis for each part (n, codes)."""
    some = weights > 0
    product = weights[some][:, None]
    for part in parts[:-1]:
        product = (product[:, :, None] * part[some][:, None, :]).reshape(len(product), -1)
    return np.asarray(product.T @ parts[-1][some]).reshape([part.shape[1] for part in parts])
