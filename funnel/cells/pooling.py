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
1988), and there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.cells.bridges import bridges
from funnel.cells.tree import Mask, Nesting
from funnel.data.joint import FloatArray, IntArray

_SWEEPS = 100
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Told:
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


def told(counts: IntArray, nesting: Nesting, support: int, order: IntArray) -> Told:
    """What is told of counts (m, v) of values in cells, where `order` (v,) puts values that go together side by side.

    Every value of the table must have support, and every cell. More is hidden until no hidden entry is determined.
    """
    hidden = counts < support
    whole, joined = np.zeros(counts.shape[1], bool), np.zeros(len(counts), bool)
    for _ in range(_ROUNDS):
        hidden &= (counts * hidden).sum(axis=0) > 0  # that nobody in these cells has a value, is told
        parts = _parts(counts, hidden, joined, support, order)
        hidden = parts >= 0
        pools, short = _pools(counts, hidden, whole, nesting, support)
        determined = np.zeros(counts.shape, bool) if short.any() else bridges(parts, pools)
        if not short.any() and not determined.any():
            return Told(counts, parts, pools, support)
        cells, values = np.nonzero(determined)
        stubborn = whole[values] & joined[cells]
        _hide_more(counts, hidden, np.append(np.flatnonzero(short), values[stubborn]))
        _hide_more(counts.T, hidden.T, cells[stubborn])
        whole[values[joined[cells]]] = True
        joined[cells] = True
    return _nothing_told(counts)


def _nothing_told(counts: IntArray) -> Told:
    """Only how large cells are, and how frequent values: without bridges, since every cell is tied to every value."""
    cells, values = counts.shape
    parts = np.repeat(np.arange(cells)[:, None], values, axis=1)
    return Told(counts, parts, np.repeat(np.arange(values)[None, :], cells, axis=0), 1)


def _hide_more(counts: IntArray, hidden: Mask, columns: IntArray) -> None:
    """Hide one more entry in each of these columns: the smallest that is told and not zero."""
    for column in np.unique(columns):
        told = np.flatnonzero(~hidden[:, column] & (counts[:, column] > 0))
        if len(told):
            hidden[told[np.argmin(counts[told, column])], column] = True


def _parts(counts: IntArray, hidden: Mask, joined: Mask, support: int, order: IntArray) -> IntArray:
    """The part of every entry (m, v) that is hidden, -1 for the others; a cell that is `joined` has one part."""
    number = counts.shape[1]
    rows = [_parts_of(row, hide, support, order) for row, hide in zip(counts, hidden, strict=True)]
    parts = np.stack(rows)
    parts[joined] = np.minimum(parts[joined], 0)
    return np.where(parts >= 0, parts + number * np.arange(len(parts))[:, None], -1)


def _parts_of(row: IntArray, hidden: Mask, support: int, order: IntArray) -> IntArray:
    """The parts (v,) of one cell: of two entries or more, and with support; the rarest told entry helps where needed.

    None where all hidden entries are zero: then they are told.
    """
    found = np.full(len(row), -1, np.int64)
    places = order[hidden[order]]
    total = int(row[places].sum())
    if not total:
        return found
    others = np.flatnonzero(~hidden & (row > 0))
    if (total < support or len(places) < 2) and len(others):
        hidden = hidden.copy()
        hidden[others[np.argmin(row[others])]] = True
        places = order[hidden[order]]
    part, held, number = 0, 0, 0
    for value, count in zip(places.tolist(), row[places].tolist(), strict=True):
        found[value] = part
        held, number = held + count, number + 1
        if held >= support and number > 1:
            part, held, number = part + 1, 0, 0
    if number and part:
        found[found == part] = part - 1
    return found


def _pools(
    counts: IntArray, hidden: Mask, whole: Mask, nesting: Nesting, support: int
) -> tuple[IntArray, Mask]:
    """The pool of every entry (m, v), and which values (v,) have hidden entries, but no pool with support.

    From the cells up, a node makes a pool of the entries below it that are in none, once they are two and have
    support. What is left over at the root joins the pool that was made nearest to it. A value that is `whole` has one
    pool.
    """
    nodes, number = len(nesting.parents), counts.shape[1]
    held, entries = np.zeros((2, nodes, number), np.int64)
    held[nesting.leaves], entries[nesting.leaves] = counts * hidden, hidden
    made = np.zeros((nodes, number), bool)
    depths = nesting.depths
    nearest, depth = np.zeros(number, np.int64), np.full(number, nodes)
    for place in range(nodes - 1, -1, -1):  # children stand behind their parents
        made[place] = (held[place] >= support) & (entries[place] > 1) & (~whole if place else True)
        closer = made[place] & (depths[place] <= depth)
        nearest[closer], depth[closer] = place, depths[place]
        if place:
            left = ~made[place]
            held[nesting.parents[place]] += held[place] * left
            entries[nesting.parents[place]] += entries[place] * left
    pool = np.zeros((nodes, number), np.int64)
    pool[0] = nearest
    for place in range(1, nodes):
        pool[place] = np.where(made[place], place, pool[nesting.parents[place]])
    short = hidden.any(axis=0) & (depth == nodes)
    return pool[nesting.leaves] * number + np.arange(number), short


def ratio(wanted: npt.NDArray[Any], found: npt.NDArray[Any]) -> FloatArray:
    """By what to multiply to get from what was found to what is wanted; 0 where there is nothing."""
    return np.asarray(np.divide(wanted, found, out=np.zeros(found.shape), where=found > 0))
