"""Counts inside cells, of which none under `support` can be read: such entries are told for larger parts of the tree.

In every cell the entries below the support are put together, with the next rarest until they have it together. Their
sum stands for the cell; which values they are is told by the node above, for all of its cells together, in the same
way; and so on up to the root. What is published of a cell is its large entries, and its rest times the distribution
above: a function of counts that are each zero or at least `support`. Nothing is lost on the way, so that the pooled
masses of a value add up to its count in the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.cells.tree import Tree
from funnel.data.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Pooled:
    """What is told of every node of a tree: `told` (nodes, v) counts of its own, `rest` (nodes,) records told above."""

    told: IntArray
    rest: IntArray


def pool(counts: IntArray, tree: Tree, support: int) -> Pooled:
    """What can be told of counts (m, v) of values in cells, by node.

    Values with a positive total below `support` are told by nobody: they stay in the rest of the root.
    """
    told = np.zeros((len(tree.nodes), counts.shape[1]), np.int64)
    rest = np.zeros(len(tree.nodes), np.int64)
    told[tree.leaves] = counts
    for place in range(len(tree.nodes) - 1, 0, -1):  # children stand behind their parents
        small = _small(told[place], support)
        rest[place] = told[place, small].sum()
        told[tree.parents[place], small] += told[place, small]
        told[place, small] = 0
    return _lifted(Pooled(told, rest), tree, counts.sum(axis=0), support)


def _small(counts: IntArray, support: int) -> IntArray:
    """Places of the entries that are put together: those below the support, and the next until they have it."""
    order = np.argsort(counts, kind="stable")
    order = order[counts[order] > 0]
    total = np.cumsum(counts[order])
    rare = int((counts[order] < support).sum())
    return order[: max(rare, int(np.searchsorted(total, support)) + 1)] if rare else order[:0]


def spread(pooled: Pooled, tree: Tree, prior: FloatArray | None = None) -> FloatArray:
    """The mass (m, v) of every value in every cell, as anybody can work it out from what is told.

    `prior` (v,) says how the rest of the root is shared by the values that are told nowhere above; it has none where
    every value has support.
    """
    found = pooled.told.astype(float)
    if pooled.rest[0] and prior is not None:
        share = np.where(pooled.told[0] == 0, prior, 0.0)
        found[0] += pooled.rest[0] * share / share.sum()
    for place in range(1, len(tree.nodes)):
        if pooled.rest[place]:
            above = found[tree.parents[place]]
            found[place] += pooled.rest[place] * above / above.sum()
    return found[tree.leaves]


def _lifted(pooled: Pooled, tree: Tree, totals: IntArray, support: int) -> Pooled:
    """Every value of the root has support there: it takes in the value's part that is told nearest to it."""
    told, rest = pooled.told, pooled.rest
    depths = _depths(tree)
    for value in np.flatnonzero((told[0] > 0) & (told[0] < support) & (totals >= support)):
        while told[0, value] < support:
            places = np.flatnonzero(told[1:, value]) + 1
            place = int(places[np.lexsort((told[places, value], depths[places]))[0]])
            number, told[place, value] = told[place, value], 0
            while place:
                rest[place] += number
                place = int(tree.parents[place])
            told[0, value] += number
    rest[0] = told[0, totals < support].sum()
    told[0, totals < support] = 0
    return Pooled(told, rest)


def _depths(tree: Tree) -> IntArray:
    """Splits above each node."""
    found = np.zeros(len(tree.nodes), np.int64)
    for place in range(1, len(tree.nodes)):
        found[place] = found[tree.parents[place]] + 1
    return found
