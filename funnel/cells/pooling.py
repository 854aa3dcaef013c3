"""Counts of values in cells, told as sums of at least `support` records; what is between them is worked out.

An entry (how many records of a cell have a value) that has support is told. The others of a cell are hidden in
*parts*: entries next to each other in the order of the values, told together, and together they have support. The
hidden entries of a value are told once more in *pools*: those of the cells below one node of the tree, the lowest at
which they have support. So neighbours in the tree lend each other what they know, and a value has in all cells
together the records that it has in the table.

The masses are those that repeat all these sums, and otherwise say as little as they can (iterative proportional
fitting: W. E. Deming, F. F. Stephan, Annals of Mathematical Statistics 11, 1940). They are a function of the sums
alone. No hidden entry follows from them: parts and pools are the two sides of a graph whose edges are the hidden
entries, an entry is determined by the sums exactly if it is a bridge (D. Gusfield, SIAM Journal on Computing 17,
1988), and there is none. But where the conditions of cells leave some of them only one value, as many are told, and
then another cell may be the only one left: a tree with a small count that follows so is not used (`gives_away`).

Which entries of a table follow from sums of others: the bridges of a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.cells.tree import Mask, Nesting
from funnel.data.joint import FloatArray, IntArray

_SWEEPS = 100
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class ToldSums:
    """Which sums of counts (m, v) are told: entries whose `parts` is -1 alone, the others by part and by pool (m, v).

    Numbers of parts and of pools are distinct from cell to cell, and from value to value.
    """

    counts: IntArray
    parts: IntArray
    pools: IntArray
    support: int

    @property
    def hidden(self) -> Mask:
        """The entries (m, v) that are told in sums only."""
        return self.parts >= 0

    def gives_away(self, support: int) -> bool:
        """Whether a count of fewer than `support` follows from the sums; then conditions left some cells no choice."""
        small = (self.counts > 0) & (self.counts < support)
        return bool((bridges(self.parts, self.pools) & small).any())

    def sums(self) -> tuple[IntArray, IntArray]:
        """The records of every part and of every pool, by their numbers."""
        counts = self.counts[self.hidden]
        return (
            np.bincount(self.parts[self.hidden], weights=counts).astype(np.int64),
            np.bincount(self.pools[self.hidden], weights=counts).astype(np.int64),
        )

    def masses(self) -> FloatArray:
        """The masses (m, v) of all entries."""
        hidden = self.hidden
        counts = self.counts
        found = counts.astype(float)
        parts, pools = self.parts[hidden], self.pools[hidden]
        of_part, of_pool = self.sums()
        entries: FloatArray = np.where(
            counts[hidden] < self.support, self.support / 3, of_part[parts].astype(float)
        )
        for _ in range(_SWEEPS):
            entries = entries * ratio(of_pool, np.bincount(pools, entries, len(of_pool)))[pools]
            entries = entries * ratio(of_part, np.bincount(parts, entries, len(of_part)))[parts]
        found[hidden] = entries
        return found


def told(
    counts: IntArray, nesting: Nesting, support: int, order: IntArray, possible: Mask | None = None
) -> ToldSums:
    """What is told of counts (m, v) of values in cells, where `order` (v,) puts values that go together side by side.

    An entry that is not `possible` (m, v) is known to be zero by the cell's condition, and hides nothing.
    Every value of the table must have support, and every cell. More is hidden until no hidden entry is determined.
    """
    possible = np.ones(counts.shape, bool) if possible is None else possible
    hidden: Mask = (counts < support) & possible
    small = counts * hidden
    hidden &= np.logical_and.outer(
        small.any(axis=1), small.any(axis=0)
    )  # that nobody there has such a value, is told
    whole, joined = np.zeros(counts.shape[1], bool), np.zeros(len(counts), bool)
    for _ in range(_ROUNDS):
        _take_in(counts, hidden, possible, support)
        pools, short = _pools(counts, hidden, whole, nesting, support)
        if short.any():
            _hide_more(counts, hidden, possible, np.flatnonzero(short))
            continue
        parts = _parts(counts, hidden, joined, support, order)
        cells, values = np.nonzero(bridges(parts, pools))
        if not len(cells):
            return ToldSums(counts, parts, pools, support)
        stubborn = whole[values] & joined[cells]
        _hide_more(counts, hidden, possible, values[stubborn])
        _hide_more(counts.T, hidden.T, possible.T, cells[stubborn])
        whole[values[joined[cells]]] = True
        joined[cells] = True
    return _nothing_told(counts, possible)


def _nothing_told(counts: IntArray, possible: Mask) -> ToldSums:
    """Only how large cells are, and how frequent values: less cannot be told."""
    cells, values = counts.shape
    parts = np.where(possible, np.arange(cells)[:, None], -1)
    return ToldSums(counts, parts, np.tile(np.arange(values), (cells, 1)), int(counts.max()) + 1)


def _take_in(counts: IntArray, hidden: Mask, possible: Mask, support: int) -> None:
    """Hide more in cells whose hidden entries do not hide one another."""
    free = (_room(counts, support) * hidden).sum(axis=1)
    held, entries = (counts * hidden).sum(axis=1), hidden.sum(axis=1)
    few = (entries > 0) & ((entries < 2) | (held < support) | (free < support))
    _hide_more(counts.T, hidden.T, possible.T, np.flatnonzero(few))


def _hide_more(counts: IntArray, hidden: Mask, possible: Mask, columns: IntArray) -> None:
    """Hide one more entry in each of these columns: the smallest that is told; a zero, of the largest row, at last."""
    totals = counts.sum(axis=1)
    for column in np.unique(columns):
        told = np.flatnonzero(~hidden[:, column] & possible[:, column])
        number = counts[told, column]
        if len(told):
            hidden[told[np.lexsort((-totals[told], number, number == 0))[0]], column] = True


def _parts(counts: IntArray, hidden: Mask, joined: Mask, support: int, order: IntArray) -> IntArray:
    """The part of every entry (m, v) that is hidden, -1 for the others; a cell that is `joined` has one part."""
    number = counts.shape[1]
    rows = [_parts_of(row, order[hide[order]], support) for row, hide in zip(counts, hidden, strict=True)]
    parts = np.stack(rows)
    parts[joined] = np.minimum(parts[joined], 0)
    return np.where(parts >= 0, parts + number * np.arange(len(parts))[:, None], -1)


def _parts_of(row: IntArray, places: IntArray, support: int) -> IntArray:
    """The parts (v,) of the entries of a cell that are hidden, in their order: two or more that hide one another."""
    found = np.full(len(row), -1, np.int64)
    part, held, free, number = 0, 0, 0, 0
    rooms = _room(row[places], support).tolist()
    for value, count, room in zip(places.tolist(), row[places].tolist(), rooms, strict=True):
        found[value] = part
        held, free, number = held + count, free + room, number + 1
        if held >= support and free >= support and number > 1:
            part, held, free, number = part + 1, 0, 0, 0
    if number and part:
        found[found == part] = part - 1
    return found


def _room(counts: IntArray, support: int) -> IntArray:
    """How many records more an entry could have, for all that is known: it is told if it has support, or taken in.

    Entries that nearly fill all room that they have would say how large each of them is.
    """
    return np.where(counts < support, support - counts, support)


def _pools(
    counts: IntArray, hidden: Mask, whole: Mask, nesting: Nesting, support: int
) -> tuple[IntArray, Mask]:
    """The pool of every entry (m, v), and which values (v,) have hidden entries, but no pool.

    From the cells up, a node makes a pool of the entries below it that are in none, once they are two that hide one
    another. What is left over at the root joins the pool that was made nearest to it. A value that is `whole` has one.
    """
    nodes, number = len(nesting.parents), counts.shape[1]
    sums = np.zeros((nodes, 3, number), np.int64)  # entries, their records, and their room
    sums[nesting.leaves] = np.stack([hidden, counts * hidden, _room(counts, support) * hidden], axis=1)
    least = np.array([2, support, support])[:, None]
    made = np.zeros((nodes, number), bool)
    nearest, depth = np.zeros(number, np.int64), np.full(number, nodes)
    for place in range(nodes - 1, -1, -1):  # children stand behind their parents
        made[place] = (sums[place] >= least).all(axis=0) & (~whole if place else True)
        closer = made[place] & (nesting.depths[place] <= depth)
        nearest[closer], depth[closer] = place, nesting.depths[place]
        if place:
            sums[nesting.parents[place]] += sums[place] * ~made[place]
    pool = np.zeros((nodes, number), np.int64)
    pool[0] = nearest
    for place in range(1, nodes):
        pool[place] = np.where(made[place], place, pool[nesting.parents[place]])
    short = hidden.any(axis=0) & (depth == nodes)
    return pool[nesting.leaves] * number + np.arange(number), short


def ratio(wanted: npt.NDArray[Any], found: npt.NDArray[Any]) -> FloatArray:
    """By what to multiply to get from what was found to what is wanted; 0 where there is nothing."""
    shape = np.broadcast_shapes(wanted.shape, found.shape)
    return np.asarray(np.divide(wanted, found, out=np.zeros(shape), where=found > 0))


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
