"""What was drawn, in counts: the evidence that the auditor tests against the protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from funnel.data import AnyProtocol, Joint
from funnel.data.joint import IntArray
from funnel.data.protocol import Codes
from funnel.draw.draw import CHUNK, input_codes
from funnel.errors import PlanError, SourceError

_COMBINATIONS = -1
"""The place of combinations of released values among those of blocks."""
_DENSE = 1 << 22
"""Most combinations of released values that are counted in one flat array."""
_WAITING = 1 << 18
"""Rows that are counted apart before they are merged."""
MOST_DISTINCT = 4_000_000
"""Distinct rows that a release may have: an auditor holds them all at once."""


class Tally:
    """Counts per block M_j[input, output] and of released combinations (y_1, …, y_k), batch by batch.

    For a block of unary encoding M[x, x'] are the sets drawn for x that hold x', and M[x, a] are all of them.
    """

    def __init__(self, protocols: Sequence[AnyProtocol]) -> None:
        self._protocols = tuple(protocols)
        self.tables: list[IntArray] = [protocol.no_draws() for protocol in protocols]
        self._released = counter(tuple(protocol.size for protocol in protocols))
        self._one_table = len(protocols) == 1 and protocols[0].uniforms == "one"

    def add(self, batch: pa.RecordBatch, drawn: pa.RecordBatch) -> None:
        """Count one batch as it went into `Drawer.draw` and as it came out."""
        for start in range(0, batch.num_rows, CHUNK):
            part, out = batch.slice(start, CHUNK), drawn.slice(start, CHUNK)
            inputs = [input_codes(protocol, part, block) for block, protocol in enumerate(self._protocols)]
            self.count(inputs, [column.to_numpy() for column in out.columns])

    def batch(self) -> pa.RecordBatch:
        """What was counted so far, for a tally in another process: `merge` adds it there.

        Rows (place, codes, number): codes [input, output] of the block at a place, or a combination at place -1.
        """
        parts = [(place, np.argwhere(table), table[table > 0]) for place, table in enumerate(self.tables)]
        if not self._one_table:
            parts.append((_COMBINATIONS, *self._released.result()))
        places = np.concatenate([np.full(len(numbers), place) for place, _, numbers in parts])
        widths = np.concatenate([np.full(len(rows), rows.shape[1]) for _, rows, _ in parts])
        flat = np.concatenate([rows.ravel() for _, rows, _ in parts])
        codes = pa.LargeListArray.from_arrays(np.append(0, np.cumsum(widths)), pa.array(flat))
        numbers = np.concatenate([numbers for _, _, numbers in parts])
        return pa.record_batch(
            [pa.array(places), codes, pa.array(numbers)], names=["place", "codes", "number"]
        )

    def merge(self, batch: pa.RecordBatch) -> None:
        """Add what another tally of the same protocols counted, as its `batch`."""
        places, numbers = (batch.column(name).to_numpy() for name in ("place", "number"))
        codes = batch.column("codes")
        for place in np.unique(places).tolist():
            here = places == place
            rows = codes.filter(pa.array(here))
            grid = rows.flatten().to_numpy().reshape(int(here.sum()), -1)
            if place == _COMBINATIONS:
                self._released.add(grid.T, numbers[here])
            else:
                np.add.at(self.tables[place], tuple(grid.T), numbers[here])

    def count(self, inputs: Sequence[Codes], outputs: Sequence[Codes]) -> None:
        """Count input codes and output codes of every block, (rows,) each."""
        for protocol, table, x, y in zip(self._protocols, self.tables, inputs, outputs, strict=True):
            protocol.count_draws(table, x, y)
        if not self._one_table:
            self._released.add(np.stack([y.astype(np.int64) for y in outputs]))

    @property
    def released(self) -> tuple[IntArray, IntArray]:
        """Output codes (m, k) of the combinations that occur, in ascending order, and their counts (m,)."""
        if not self._one_table:
            return self._released.result()
        counts = self.tables[0].sum(axis=0)
        occurring = np.flatnonzero(counts)
        return occurring[:, None], counts[occurring]

    def check(self, joint: Joint) -> None:
        """The records drawn for are those that were counted; whether chance drew them is for the auditor to test.

        Raises SourceError source-changed, and PlanError where no auditor would read so many distinct rows.
        """
        for block, (protocol, table) in enumerate(zip(self._protocols, self.tables, strict=True)):
            _check_inputs(protocol, table, joint.table(block))
        check_distinct(len(self.released[1]))


def check_distinct(rows: int) -> None:
    """An auditor can hold so many different rows. Raises PlanError."""
    if rows > MOST_DISTINCT:
        raise PlanError(
            "alphabet-too-large",
            f"the release would have {rows:,} different rows; up to {MOST_DISTINCT:,} can be audited",
            advice="Make the public columns coarser with `groups` or `bins`.",
        )


def _check_inputs(protocol: AnyProtocol, table: IntArray, counted: IntArray) -> None:
    """Rows drawn for each input of a block against those counted (c, a). Raises SourceError."""
    drawn = protocol.drawn_for(table)
    moved = drawn - (counted.ravel() if protocol.reads_secret else counted.sum(axis=0))
    if moved.any():
        rows = max(int(moved[moved > 0].sum()), int(-moved[moved < 0].sum()))
        raise SourceError(
            "source-changed",
            f"the source changed between counting and drawing: {rows:,} rows came, went or moved to another value of "
            f"{' + '.join(protocol.inputs.columns)} ({int(counted.sum()):,} counted, {int(drawn.sum()):,} drawn)",
            advice="Nothing was published. Run again when the table is at rest, or read from a snapshot.",
        )


class _DenseCounter:
    """Counts of combinations in one array over the mixed radix of the alphabets."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._counts = np.zeros(math.prod(sizes), np.int64)

    def add(self, codes: IntArray, numbers: IntArray | int = 1) -> None:
        """Count the columns of codes (k, rows), each as often as its number says."""
        np.add.at(self._counts, np.ravel_multi_index(tuple(codes), self._sizes), numbers)

    def result(self) -> tuple[IntArray, IntArray]:
        """Combinations (m, k) and counts (m,)."""
        occurring = np.flatnonzero(self._counts)
        return np.stack(np.unravel_index(occurring, self._sizes), axis=1), self._counts[occurring]


class _SparseCounter:
    """Counts of combinations as a sorted list, for alphabets whose product is too large for an array.

    What is new waits until there is as much of it as of what is known, so that sorting stays near n log n and
    memory near twice that of the distinct combinations.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._codes = np.empty((0, len(sizes)), np.int64)
        self._counts = np.empty(0, np.int64)
        self._waiting: list[tuple[IntArray, IntArray]] = []
        self._rows = 0

    def add(self, codes: IntArray, numbers: IntArray | int = 1) -> None:
        """Count the columns of codes (k, rows), each as often as its number says."""
        self._waiting.append((codes.T, np.broadcast_to(np.int64(numbers), codes.shape[1])))
        self._rows += codes.shape[1]
        if self._rows >= max(_WAITING, len(self._counts)):
            self._merge()

    def _merge(self) -> None:
        rows = np.concatenate([self._codes, *(codes for codes, _ in self._waiting)])
        weights = np.concatenate([self._counts, *(numbers for _, numbers in self._waiting)])
        self._waiting, self._rows = [], 0
        order = np.lexsort(rows.T[::-1])
        rows, weights = rows[order], weights[order]
        first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)])
        self._codes, self._counts = rows[first], np.add.reduceat(weights, first) if len(first) else weights

    def result(self) -> tuple[IntArray, IntArray]:
        """Combinations (m, k) and counts (m,)."""
        self._merge()
        return self._codes, self._counts


def counter(sizes: tuple[int, ...]) -> _DenseCounter | _SparseCounter:
    """What counts combinations of codes below some sizes."""
    return (_DenseCounter if math.prod(sizes) <= _DENSE else _SparseCounter)(sizes)
