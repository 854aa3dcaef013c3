"""Which column depends on which: a tree of columns, chosen by how far pairs are off without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from funnel.data.joint import FloatArray

_LEAST = 1e-3
"""Pairs whose distance is less without being tied together are left so."""


def spanning(tables: Sequence[FloatArray], pairs: Mapping[tuple[int, int], FloatArray]) -> list[int]:
    """The parent of each column, -1 for none: the tree of the largest sum of distances of its pairs.

    `tables` are masses (m, groups) of each column's groups in cells; `pairs` the masses (groups, groups) of two
    columns a > b in the whole table. The distance is that of a table whose columns are independent inside cells (as
    C. K. Chow, C. N. Liu, IEEE Transactions on Information Theory 14, 1968, who weigh by information).
    """
    sizes = tables[0].sum(axis=1)
    shares = [np.divide(table, sizes[:, None]) for table in tables]
    far = {(a, b): _distance(tables[a].T @ shares[b], pair) for (a, b), pair in pairs.items()}
    chosen = list[tuple[int, int]]()
    block = np.arange(len(tables))
    for a, b in sorted(far, key=lambda key: (-far[key], key)):
        if far[a, b] >= _LEAST and block[a] != block[b]:
            chosen.append((a, b))
            block[block == block[a]] = block[b]
    return _rooted(chosen, len(tables))


def _distance(expected: FloatArray, true: FloatArray) -> float:
    return float(np.abs(expected - true).sum()) / (2 * float(true.sum()))


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
