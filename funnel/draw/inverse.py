"""The inverse distribution function of a protocol, as an integer lookup."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.data import Protocol
from funnel.data.joint import IntArray

Codes = npt.NDArray[np.integer]
Words = npt.NDArray[np.uint64]

_SMALL = 1 << 18
_LARGE = 1 << 23
"""Buckets of a guide table: as many as stay near the processor, or four an output up to the larger figure."""


class InverseTable:
    """Draws y = the first output whose cumulative weight exceeds u, for u uniform on [0, 2^bits).

    [CA] A guide table (Chen and Asau 1974) cuts [0, 2^bits) into 2^g buckets per input. An entry y >= 0 says
    that the whole bucket draws y; an entry ~y < 0 that y is only the first output that it can draw, and the
    next entry bounds the last, so that bisection of the thresholds between them settles the row exactly.
    """

    def __init__(self, protocol: Protocol) -> None:
        thresholds = protocol.thresholds()
        self.inputs, self.outputs = thresholds.shape
        self.code_type = np.min_scalar_type(max(self.outputs - 1, 0))
        guide_bits = _guide_bits(self.inputs, self.outputs, protocol.bits)
        self._bucket_shift = np.uint64(64 - guide_bits)
        self._shift = np.uint64(64 - protocol.bits)
        self._stride = (1 << guide_bits) + 1
        self._thresholds = thresholds.astype(np.uint64).ravel()
        self._guide = _guide_table(thresholds, protocol.bits, guide_bits).ravel()

    def draw(self, inputs: IntArray, words: Words) -> Codes:
        """Output codes (n,) for input codes (n,) and words (n,) whose top `bits` bits are u."""
        entry = (words >> self._bucket_shift).astype(np.int64)
        entry += inputs * self._stride
        found = self._guide[entry]
        open_rows = np.flatnonzero(found < 0)
        if len(open_rows):
            uniform = words[open_rows] >> self._shift
            found[open_rows] = self._settle(inputs[open_rows], uniform, ~found[open_rows], entry[open_rows])
        return found.astype(self.code_type, copy=False)

    def from_blocks(self, inputs: IntArray, blocks: Words) -> Codes:
        """The same for one block (n, 2) of words per record, of which the first decides."""
        return self.draw(inputs, blocks[:, 0])

    def _settle(self, inputs: IntArray, uniform: Words, first: Codes, entry: IntArray) -> IntArray:
        """Bisect the thresholds of each row's input between the first and the last output of its bucket."""
        after = self._guide[entry + 1]
        start = inputs * self.outputs
        low, high = start + first, start + np.where(after < 0, ~after, after)
        for _ in range(int((high - low).max()).bit_length()):
            middle = (low + high) >> 1
            above = self._thresholds[middle] <= uniform
            low, high = np.where(above, middle + 1, low), np.where(above, high, middle)
        settled: IntArray = low - start
        return settled


def _guide_bits(inputs: int, outputs: int, bits: int) -> int:
    """g: log2 of the buckets per input."""
    near = (_SMALL // inputs).bit_length() - 1
    wanted = min((4 * outputs - 1).bit_length(), (_LARGE // inputs).bit_length() - 1)
    return min(bits, max(near, wanted, 0))


def _guide_table(thresholds: IntArray, bits: int, guide_bits: int) -> npt.NDArray[np.signedinteger]:
    """Entries (inputs, 2^g + 1); the last of a row is the output of the largest u, the end of all buckets."""
    inputs, outputs = thresholds.shape
    width = 1 << (bits - guide_bits)
    starts = np.arange(1 << guide_bits, dtype=np.int64) * width
    guide = np.empty((inputs, len(starts) + 1), np.min_scalar_type(-outputs))
    for row, cumulative in zip(guide, thresholds, strict=True):
        first = np.searchsorted(cumulative, starts, side="right")
        last = np.searchsorted(cumulative, starts + (width - 1), side="right")
        row[:-1] = np.where(first == last, first, ~first)
        row[-1] = last[-1]
    return guide
