"""What was drawn, in counts: the evidence that the check and the auditor read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.model import Protocol
from funnel.model.joint import IntArray
from funnel.release.draw import CHUNK, input_codes

Codes = npt.NDArray[np.integer]

_DENSE = 1 << 22
"""Most combinations of released values that are counted in one flat array."""


class Tally:
    """Counts per block M_j[input, output] and of released combinations (y_1, …, y_k), batch by batch."""

    def __init__(self, protocols: Sequence[Protocol]) -> None:
        shapes = [protocol.thresholds().shape for protocol in protocols]
        self._protocols = tuple(protocols)
        self.tables: list[IntArray] = [np.zeros(shape, np.int64) for shape in shapes]
        self._released = _counter(tuple(outputs for _, outputs in shapes))

    def add(self, batch: pa.RecordBatch, drawn: pa.RecordBatch) -> None:
        """Count one batch as it went into `Drawer.draw` and as it came out."""
        for start in range(0, batch.num_rows, CHUNK):
            part, out = batch.slice(start, CHUNK), drawn.slice(start, CHUNK)
            inputs = [input_codes(protocol, part, block) for block, protocol in enumerate(self._protocols)]
            self.count(inputs, [column.to_numpy() for column in out.columns])

    def count(self, inputs: Sequence[Codes], outputs: Sequence[Codes]) -> None:
        """Count input codes and output codes of every block, (rows,) each."""
        for table, x, y in zip(self.tables, inputs, outputs, strict=True):
            cell = x * np.int64(table.shape[1])
            cell += y
            np.add.at(table.reshape(-1), cell, 1)
        if len(self.tables) > 1:
            self._released.add(np.stack([y.astype(np.int64) for y in outputs]))

    @property
    def released(self) -> tuple[IntArray, IntArray]:
        """Output codes (m, k) of the combinations that occur, in ascending order, and their counts (m,)."""
        if len(self.tables) > 1:
            return self._released.result()
        counts = self.tables[0].sum(axis=0)
        occurring = np.flatnonzero(counts)
        return occurring[:, None], counts[occurring]


class _DenseCounter:
    """Counts of combinations in one array over the mixed radix of the alphabets."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._counts = np.zeros(math.prod(sizes), np.int64)

    def add(self, codes: IntArray) -> None:
        """Count the columns of codes (k, rows)."""
        np.add.at(self._counts, np.ravel_multi_index(tuple(codes), self._sizes), 1)

    def result(self) -> tuple[IntArray, IntArray]:
        """Combinations (m, k) and counts (m,)."""
        occurring = np.flatnonzero(self._counts)
        return np.stack(np.unravel_index(occurring, self._sizes), axis=1), self._counts[occurring]


class _SparseCounter:
    """Counts of combinations as a sorted list, for alphabets whose product is too large for an array."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._codes = np.empty((0, len(sizes)), np.int64)
        self._counts = np.empty(0, np.int64)

    def add(self, codes: IntArray) -> None:
        """Merge the columns of codes (k, rows) into the list."""
        rows = np.concatenate([self._codes, codes.T])
        weights = np.concatenate([self._counts, np.ones(codes.shape[1], np.int64)])
        order = np.lexsort(rows.T[::-1])
        rows, weights = rows[order], weights[order]
        first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)])
        self._codes, self._counts = rows[first], np.add.reduceat(weights, first) if len(first) else weights

    def result(self) -> tuple[IntArray, IntArray]:
        """Combinations (m, k) and counts (m,)."""
        return self._codes, self._counts


def _counter(sizes: tuple[int, ...]) -> _DenseCounter | _SparseCounter:
    return (_DenseCounter if math.prod(sizes) <= _DENSE else _SparseCounter)(sizes)
