"""From a table's columns and their cells to profiles: what is told of them, and what follows.

Told are, as `pooling.py` says, the counts of values in cells, and of groups of every two columns in the whole table;
the sizes of cells, the totals of values, and the tree itself. Profiles are a function of these alone, rounded
besides. Whoever takes them apart learns sums of at least `support` records, and no smaller count of one entry follows
from those of one table by addition; the sum of several entries may. That counts are not negative, and that several
tables are about the same people, may narrow one down.

Which column depends on which is a tree of columns, chosen by how far pairs are off without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from funnel.cells.columns import Codes, Vocabulary
from funnel.cells.counts import counted, direction, met, tallied
from funnel.cells.distance import coding
from funnel.cells.fit import fit
from funnel.cells.pooling import told
from funnel.cells.profile import Profile, rounded
from funnel.cells.tree import Nesting, Tree
from funnel.data.joint import FloatArray, IntArray

QUANTILES = 20
"""Groups of an ordered column at most."""
GROUPS = 48
"""Groups of another column at most."""
PARTS = 16
"""Weights are in steps of at most the 16th part of a record: finer ones say nothing, and make the file longer."""
Pair = tuple[int, int]
PER_COLUMN = 8
"""Pairs for each column that profiles are made to agree with: what that takes then grows with columns, not pairs."""
_LEAST = 1e-3
"""Pairs whose distance is less without being tied together are left so."""


class TellingSplits(Exception):  # noqa: N818 - nothing is wrong, the tree is to be another one
    """By the splits of a `column` a small count of its values in some cell follows from what is told."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


def profiles(
    columns: Sequence[Vocabulary], codes: Sequence[Codes], cells: IntArray, tree: Tree, support: int,
    records: IntArray | None = None,
) -> tuple[Profile, ...]:  # fmt: skip
    """A profile of every column, in order, from the codes (n,) of its rows and their cells (n,).

    Rows stand for so many `records` (n,); None: for one each. Raises TellingSplits.
    """
    groups = [_grouped(column, own, records) for column, own in zip(columns, codes, strict=True)]
    widths = [int(group.max()) + 1 for group in groups]
    beside = met([group[own] for group, own in zip(groups, codes, strict=True)], widths, records)
    masses, tables = list[FloatArray](), list[FloatArray]()
    for place, column in enumerate(columns):
        counts = counted(codes[place], len(column), cells, len(tree), records)
        order = _order(groups[place], beside[place], column.ordered)
        sums = told(counts, tree.nesting, support, order, tree.possible(place, len(column)))
        if sums.gives_away(support):
            raise TellingSplits(place)
        masses.append(sums.masses())
        tables.append(masses[-1] @ np.eye(widths[place])[groups[place]])
    pairs = _pairs(beside, widths)
    far = distances(tables, pairs)
    parents = spanning(far, len(columns))
    close = fit(tables, {key: _told(pairs[key], support) for key in fitted(far, parents)}, parents)
    return tuple(
        Profile(parent, group, rounded(links, PARTS), _within(mass, group, table))
        for parent, group, links, mass, table in zip(
            parents, groups, close.links, masses, close.tables, strict=True
        )
    )


def _order(groups: IntArray, beside: IntArray, ordered: bool) -> IntArray:
    """Values (v,) that go together side by side: in their own order, else by what their groups go with."""
    if ordered:
        return np.arange(len(groups))
    ranks = np.argsort(direction(beside))
    return np.argsort(ranks[groups], kind="stable")


def _pairs(beside: Sequence[IntArray], widths: Sequence[int]) -> dict[tuple[int, int], IntArray]:
    """The counts of the groups of every two columns a > b, from how often they meet those of all columns."""
    ends = np.cumsum(widths)[:-1]
    parts = [np.split(counts, ends, axis=1) for counts in beside]
    return {(a, b): parts[a][b] for a in range(len(parts)) for b in range(a)}


def _told(pair: IntArray, support: int) -> FloatArray:
    """What is told of the counts of two columns' groups."""
    return told(pair, Nesting.flat(len(pair)), support, np.arange(pair.shape[1])).masses()


def _grouped(column: Vocabulary, codes: Codes, records: IntArray | None) -> IntArray:
    """The group of every value (v,): quantiles of an ordered column, else the most frequent values and all others."""
    if column.ordered:
        return coding(column, codes, QUANTILES, records)
    totals = tallied(codes, len(column), records)
    found = np.full(len(column), GROUPS - 1)
    found[np.argsort(-totals, kind="stable")[: GROUPS - 1]] = np.arange(min(len(column), GROUPS - 1))
    return found


def _within(masses: FloatArray, groups: IntArray, table: FloatArray) -> IntArray:
    """Weights (m, v) of values given their group."""
    found = np.zeros(masses.shape, np.int64)
    for group in range(table.shape[1]):
        inside, cells = np.flatnonzero(groups == group), np.flatnonzero(table[:, group] > 0)
        found[np.ix_(cells, inside)] = rounded(masses[np.ix_(cells, inside)], PARTS)
    return found


def distances(tables: Sequence[FloatArray], pairs: Mapping[Pair, IntArray]) -> dict[Pair, float]:
    """How far the pairs of a table whose columns are independent inside cells are from the true ones.

    `tables` are masses (m, groups) of each column's groups in cells; `pairs` the counts (groups, groups) of two columns
    a > b in the whole table.
    """
    sizes = tables[0].sum(axis=1)
    shares = [np.divide(table, sizes[:, None]) for table in tables]
    return {
        (a, b): float(np.abs(tables[a].T @ shares[b] - pair).sum()) / (2 * int(pair.sum()))
        for (a, b), pair in pairs.items()
    }


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
