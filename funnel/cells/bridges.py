"""Which entries of a table follow from sums of others: the bridges of a graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.data.joint import IntArray

Mask = npt.NDArray[np.bool_]


def bridges(parts: IntArray, pools: IntArray) -> Mask:
    """Which hidden entries (m, v) are alone in holding two sides of the graph together, as a mask.

    Every entry with a part (not -1) ties its part to its pool. Edges outside a spanning tree get random labels, an
    edge of the tree the exclusive or of those whose cycle it is on: it is a bridge where that is zero (D. Pritchard,
    R. Thurimella, ACM Transactions on Algorithms 7, 2011), or for labels of 64 bits by a chance of 2^-64.
    """
    hidden = parts >= 0
    left = np.unique(parts[hidden], return_inverse=True)[1]
    right = np.unique(pools[hidden], return_inverse=True)[1]
    found = np.zeros(hidden.shape, bool)
    if len(left):
        found[hidden] = _of_edges(left, right + int(left.max()) + 1)
    return found


def _of_edges(left: IntArray, right: IntArray) -> Mask:
    """Which edges (e,) between vertices counted from 0 are bridges."""
    size = int(right.max()) + 1
    above, order = _spanning(left, right, size)
    inside = (above[left] == right) | (above[right] == left)
    labels = np.random.default_rng(0).integers(1, 1 << 63, len(left))
    crossed = np.zeros(size + 1, np.int64)
    np.bitwise_xor.at(crossed, left[~inside], labels[~inside])
    np.bitwise_xor.at(crossed, right[~inside], labels[~inside])
    total, parents = crossed.tolist(), above.tolist()
    for vertex in order[:0:-1].tolist():
        total[parents[vertex]] ^= total[vertex]
    below = np.where(above[left] == right, left, right)
    return np.asarray(inside & (np.array(total)[below] == 0))


def _spanning(left: IntArray, right: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The vertex above each in a spanning forest (`size` above roots), and all vertices, each behind the one above."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    graph = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(size, size))
    parts = connected_components(graph, directed=False)[1]
    roots = np.unique(parts, return_index=True)[1]
    ends = np.append(left, np.full(len(roots), size)), np.append(right, roots)
    whole = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(size + 1, size + 1)).tocsr()
    order, above = breadth_first_order(whole, size, directed=False)
    return above.astype(np.int64), order.astype(np.int64)
