"""Which column depends on which: a tree of columns, chosen by how far pairs are off without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from funnel.data.joint import FloatArray, IntArray

Pair = tuple[int, int]
PER_COLUMN = 8
"""Pairs for each column that profiles are made to agree with: what that takes then grows with columns, not pairs."""
_LEAST = 1e-3
"""Pairs whose distance is less without being tied together are left so."""


def distances(tables: Sequence[FloatArray], pairs: Mapping[Pair, IntArray]) -> dict[Pair, float]:
    """How far the pairs of a table whose columns are independent inside cells are from the true ones.

    `tables` are masses (m, groups) of each column's groups in cells; `pairs` the counts (groups, groups) of two columns
    a > b in the whole table.
    """
    sizes = tables[0].sum(axis=1)
    shares = [np.divide(table, sizes[:, None]) for table in tables]
    return {(a, b): _distance(tables[a].T @ shares[b], pair) for (a, b), pair in pairs.items()}


def spanning(far: Mapping[Pair, float], columns: int) -> list[int]:
    """The parent of each column, -1 for none: the tree of the largest sum of distances of its pairs.

    As C. K. Chow and C. N. Liu, IEEE Transactions on Information Theory 14, 1968, who weigh by information.
    """
    chosen = list[Pair]()
    block = np.arange(columns)
    for a, b in _farthest(far):
        if far[a, b] >= _LEAST and block[a] != block[b]:
            chosen.append((a, b))
            block[block == block[a]] = block[b]
    return _rooted(chosen, columns)


def fitted(far: Mapping[Pair, float], parents: Sequence[int]) -> list[Pair]:
    """The pairs that profiles are to agree with: those of the tree, and the farthest, `PER_COLUMN` for each column."""
    tree = {(max(a, b), min(a, b)) for a, b in enumerate(parents) if b >= 0}
    return sorted(tree | set(_farthest(far)[: PER_COLUMN * len(parents)]))


def _farthest(far: Mapping[Pair, float]) -> list[Pair]:
    return sorted(far, key=lambda key: (-far[key], key))


def _distance(expected: FloatArray, true: IntArray) -> float:
    return float(np.abs(expected - true).sum()) / (2 * int(true.sum()))


def _rooted(edges: Sequence[tuple[int, int]], number: int) -> list[int]:
    """Parents in a forest whose roots have the most neighbours."""
    near: list[list[int]] = [[] for _ in range(number)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    found, seen = [-1] * number, set[int]()
    for root in sorted(range(number), key=lambda column: (-len(near[column]), column)):
        stack = [] if root in seen else [root]
        seen.add(root)
        while stack:
            column = stack.pop()
            for other in near[column]:
                if other not in seen:
                    seen.add(other)
                    found[other] = column
                    stack.append(other)
    return found
