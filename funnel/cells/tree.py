"""A partition of the domain of several columns by conditions on single columns: grown best first, never on the secret.

A split gains Σ_j [H(X_j | cell) - H(X_j | parts)], in records times nats. Counts inside a cell are of columns coded
anew by at most `CODES` codes: quantiles where a column is ordered, the most frequent values where it is not.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from funnel.cells.columns import Codes
from funnel.cells.counts import direction, met, tallied
from funnel.data.joint import FloatArray, IntArray

CODES = 32
"""Codes of a column inside a cell at most, while a split is looked for."""
SAMPLE = 1 << 14
"""Records of a cell that are looked at, while a split is looked for, at least; and fewer than twice as many.

They are evenly spaced among its rows in their order, so that rows are best sorted by their values."""
MOST_DEPTH = 100
"""Conditions on the way to a cell at most: SQL is nested as deep."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Nesting:
    """Sets of cells, one inside another: the set around each (-1 for all cells, the first set), and each cell's own."""

    parents: IntArray
    leaves: IntArray

    @cached_property
    def depths(self) -> IntArray:
        """How many sets are around each."""
        found = np.zeros(len(self.parents), np.int64)
        for place in range(1, len(self.parents)):
            found[place] = found[self.parents[place]] + 1
        return found

    @classmethod
    def flat(cls, cells: int) -> Nesting:
        """All cells, and each alone."""
        return cls(np.append(-1, np.zeros(cells, np.int64)), np.arange(1, cells + 1))


@dataclass(frozen=True, eq=False)
class Node:
    """A split of the codes of a column: those in `left` (v,) go to node `yes`, the others to node `no`.

    A leaf is cell `cell`, counted from 0, and has no column (-1).
    """

    column: int
    left: Mask
    yes: int
    no: int
    cell: int


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes in the order of a walk that takes the left part first; the first is the root."""

    nodes: tuple[Node, ...]

    def __len__(self) -> int:
        return sum(node.column < 0 for node in self.nodes)

    @cached_property
    def parents(self) -> IntArray:
        """The node above each node, -1 for the root."""
        found = np.full(len(self.nodes), -1, np.int64)
        for place, node in enumerate(self.nodes):
            if node.column >= 0:
                found[[node.yes, node.no]] = place
        return found

    @cached_property
    def leaves(self) -> IntArray:
        """The node of each cell (m,)."""
        return np.array([place for place, node in enumerate(self.nodes) if node.column < 0], np.int64)

    @property
    def nesting(self) -> Nesting:
        """The nodes as sets of cells, one inside another."""
        return Nesting(self.parents, self.leaves)

    def possible(self, column: int, size: int) -> Mask:
        """Which values (m, v) of a column the conditions of each cell leave."""
        found = np.ones((len(self.nodes), size), bool)
        for place, node in enumerate(self.nodes):
            if node.column >= 0:
                found[[node.yes, node.no]] = found[place]
            if node.column == column:
                found[node.yes] &= node.left
                found[node.no] &= ~node.left
        return found[self.leaves]

    def assign(self, codes: Sequence[Codes]) -> IntArray:
        """The cell of every row (n,), by the codes of its columns, each (n,)."""
        found = np.zeros(len(codes[0]), np.int64)
        open_ = [(0, np.arange(len(codes[0])))]
        while open_:
            place, rows = open_.pop()
            node = self.nodes[place]
            if node.column < 0:
                found[rows] = node.cell
                continue
            yes = node.left[codes[node.column][rows]]
            open_ += [(node.yes, rows[yes]), (node.no, rows[~yes])]
        return found

    def without(self, column: int) -> Tree:
        """One cell in place of all below a split of a column, the one of its splits with the fewest cells."""
        spans = self._spans()
        splits = [place for place, node in enumerate(self.nodes) if node.column == column]
        gone = min(splits, key=lambda place: spans[place][1] - spans[place][0])
        first, last = spans[gone]
        fewer = last - first - 1

        def moved(node: Node) -> Node:
            yes, no = (place - 2 * fewer * (place > gone) for place in (node.yes, node.no))
            return Node(node.column, node.left, yes, no, node.cell - fewer * (node.cell >= last))

        leaf = Node(-1, np.empty(0, bool), -1, -1, first)
        kept = (*self.nodes[:gone], leaf, *self.nodes[gone + 2 * fewer + 1 :])
        return Tree(tuple(map(moved, kept)))

    def distances(self) -> IntArray:
        """Cost matrix (m, m): how many splits up the first node is that holds both cells, the longer of both ways."""
        size = len(self)
        heights, spans = self._heights(), self._spans()
        found = np.zeros((size, size), np.int64)
        for place, node in enumerate(self.nodes):
            if node.column >= 0:
                yes, no = slice(*spans[node.yes]), slice(*spans[node.no])
                found[yes, no] = found[no, yes] = heights[place]
        return found

    def _heights(self) -> IntArray:
        """Splits on the longest way down from each node."""
        found = np.zeros(len(self.nodes), np.int64)
        for place in range(len(self.nodes) - 1, 0, -1):  # children stand behind their parents
            above = self.parents[place]
            found[above] = max(found[above], found[place] + 1)
        return found

    def _spans(self) -> list[tuple[int, int]]:
        """The cells below each node, from … to before …"""
        found = [(node.cell, node.cell + 1) for node in self.nodes]
        for place in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[place]
            if node.column >= 0:
                found[place] = (found[node.yes][0], found[node.no][1])
        return found


@dataclass(frozen=True, eq=False)
class _Split:
    """The best split of some rows: what it gains in records times nats, the column, and the codes that go left."""

    gain: float
    column: int
    left: Mask


@dataclass(frozen=True, eq=False)
class _Growing:
    """A node while the tree grows; rows of open ones only."""

    rows: IntArray
    depth: int
    split: _Split | None


def grow(
    codes: Sequence[Codes], sizes: Sequence[int], ordered: Sequence[bool], most: int, minimum: int,
    records: IntArray | None = None,
) -> Tree:  # fmt: skip
    """Split, the largest gain first, into at most `most` cells of at least `minimum` records each.

    `codes` (n,) of every column count from 0 to below its size; those of an ordered column are split at a threshold.
    Rows stand for so many `records` (n,); None: for one each.
    """
    logs = _logs(2 * SAMPLE)
    below = dict[int, tuple[int, int]]()

    def opened(rows: IntArray, depth: int) -> _Growing:
        found = _best(codes, sizes, ordered, rows, minimum, logs, records) if depth < MOST_DEPTH else None
        return _Growing(rows, depth, found)

    grown = [opened(np.arange(len(codes[0])), 0)]
    heap = [(-one.split.gain, 0) for one in grown if one.split]
    while heap and len(grown) < 2 * most - 1:
        _, place = heapq.heappop(heap)
        node = grown[place]
        assert node.split is not None  # noqa: S101  only such nodes are in the heap
        yes = node.split.left[codes[node.split.column][node.rows]]
        below[place] = (len(grown), len(grown) + 1)
        for rows in (node.rows[yes], node.rows[~yes]):
            grown.append(opened(rows, node.depth + 1))
            if (split := grown[-1].split) is not None:
                heapq.heappush(heap, (-split.gain, len(grown) - 1))
        grown[place] = _Growing(np.empty(0, np.int64), node.depth, node.split)
    return _walked([one.split for one in grown], below)


def _walked(splits: Sequence[_Split | None], below: dict[int, tuple[int, int]]) -> Tree:
    """The nodes in the order of a walk, left part first."""
    ranks = dict[int, int]()
    stack = [0]
    while stack:
        place = stack.pop()
        ranks[place] = len(ranks)
        if place in below:
            stack += [below[place][1], below[place][0]]
    nodes, cell = list[Node](), 0
    for place in ranks:
        split = splits[place]
        if place in below and split is not None:
            yes, no = below[place]
            nodes.append(Node(split.column, split.left, ranks[yes], ranks[no], -1))
        else:
            nodes.append(Node(-1, np.empty(0, bool), -1, -1, cell))
            cell += 1
    return Tree(tuple(nodes))


def _logs(rows: int) -> FloatArray:
    """c ln c for counts c = 0 … rows."""
    counts = np.arange(rows + 1, dtype=float)
    return np.asarray(counts * np.log(np.maximum(counts, 1)))


def _best(
    codes: Sequence[Codes],
    sizes: Sequence[int],
    ordered: Sequence[bool],
    rows: IntArray,
    minimum: int,
    logs: FloatArray,
    records: IntArray | None,
) -> _Split | None:
    """The split of some rows that gains most, None where none leaves the minimum on both sides, or gains.

    Of many rows an evenly spaced part is looked at; how many go where is counted for all.
    """
    own = None if records is None else records[rows]
    total = len(rows) if own is None else int(own.sum())
    if total < 2 * minimum:
        return None
    some, times = _some(rows, own, total)
    looked = len(some) if times is None else total
    counts = [tallied(column[rows], size, own) for column, size in zip(codes, sizes, strict=True)]
    maps = [_coarse(one, flag) for one, flag in zip(counts, ordered, strict=True)]
    widths = [int(table.max()) + 1 for table in maps]
    beside = met([table[column[some]] for table, column in zip(maps, codes, strict=True)], widths, times)
    best: _Split | None = None
    for column in (place for place, width in enumerate(widths) if width > 1):
        order = np.arange(widths[column]) if ordered[column] else direction(beside[column])
        held = np.cumsum(np.bincount(maps[column], weights=counts[column])[order])[:-1]
        enough = (held >= minimum) & (total - held >= minimum)
        gain, place = _scan(beside[column][order], enough, looked, len(codes), logs)
        gain *= total / looked
        if gain > (best.gain if best else 1e-9):
            goes = np.zeros(widths[column], bool)
            goes[order[: place + 1]] = True
            left = goes[maps[column]]
            # The part with the first value goes left, whichever sign a principal component has.
            best = _Split(gain, column, left if left[np.flatnonzero(counts[column])[0]] else ~left)
    return best


def _some(rows: IntArray, records: IntArray | None, total: int) -> tuple[IntArray, IntArray | None]:
    """Rows of an evenly spaced part of so many records, and how many each stands for; of few all of them."""
    step = max(total // SAMPLE, 1)
    if records is None or step == 1:
        return rows[::step], records
    return rows[np.searchsorted(np.cumsum(records), np.arange(0, total, step), side="right")], None


def _coarse(counts: IntArray, ordered: bool) -> IntArray:
    """Which of at most `CODES` codes every value (v,) gets inside a cell; values not seen there go with the last."""
    seen = np.flatnonzero(counts)
    if len(seen) <= CODES:
        found = np.full(len(counts), len(seen) - 1)
        if ordered:  # a value that is not seen goes with the next above it
            return np.minimum(np.searchsorted(seen, np.arange(len(counts))), len(seen) - 1)
        found[seen] = np.arange(len(seen))
        return found
    if ordered:
        middle = np.cumsum(counts) - counts / 2
        return np.unique(
            (middle * CODES / counts.sum()).astype(np.int64).clip(0, CODES - 1), return_inverse=True
        )[1]
    found = np.full(len(counts), CODES - 1)
    found[np.argsort(-counts, kind="stable")[: CODES - 1]] = np.arange(CODES - 1)
    return found


def _scan(joint: IntArray, enough: Mask, rows: int, columns: int, logs: FloatArray) -> tuple[float, int]:
    """The largest gain of a split behind one of the codes in order that leaves enough, and behind which."""
    left = np.cumsum(joint[:-1], axis=0)
    right = joint.sum(axis=0) - left
    size = left.sum(axis=1) // columns
    inside = logs[left].sum(axis=1) + logs[right].sum(axis=1) - logs[joint.sum(axis=0)].sum()
    gain = inside + columns * (logs[rows] - logs[size] - logs[rows - size])
    gain[~enough] = -np.inf
    place = int(np.argmax(gain))
    return float(gain[place]), place
