"""The drawing kernel: batches of input codes in, batches of output codes out.

A value is drawn by the inverse distribution function of a protocol, as an integer lookup; a set of values (unary
encoding) by one keyed coin for each possible value of each record.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.data import AnyProtocol, Protocol, UnaryProtocol
from funnel.data.joint import IntArray
from funnel.draw.entity import read_entities
from funnel.draw.keys import Key
from funnel.draw.prf import BlockCipher, Buffer, FreshUniforms, PermanentUniforms, Words, input_tags
from funnel.errors import InternalError

CHUNK = 1 << 14
"""Rows drawn at a time: the buffers of one chunk stay in the processor's cache."""
Codes = npt.NDArray[np.integer]

_SMALL = 1 << 18
_LARGE = 1 << 23
"""Buckets of a guide table: as many as stay near the processor, or four an output up to the larger figure."""


class Drawer:
    """Draws every block of every row from its protocol, exactly, with randomness from `key` alone.

    Permanent: the uniform of (entity, block, input label) is a pseudo-random function, whatever the batch,
    the order, the engine or the night. Fresh: every row of every Drawer has its own uniform;
    of Drawers that are given the same nonce, every row number, the first of which is `first`.
    Safe to share between threads (they take turns), not between processes.
    """

    def __init__(
        self,
        protocols: Sequence[AnyProtocol],
        key: Key,
        permanent: bool,
        nonce: bytes | None = None,
        first: int = 0,
    ) -> None:
        columns = [protocol.inputs.columns for protocol in protocols]
        if not columns or len(set(columns)) != len(columns):
            raise InternalError(f"the blocks to draw are not distinct: {columns}")
        self._protocols = tuple(protocols)
        self._tables = [
            InverseTable(one) if isinstance(one, Protocol) else CoinTable(one, key, CHUNK) for one in protocols
        ]
        self._answers = [PermanentUniforms(key, protocol) for protocol in protocols] if permanent else []
        self._noise = None if permanent else FreshUniforms(key, nonce or os.urandom(16))
        self._buffer = Buffer(CHUNK)
        self._rows = first
        self._process = os.getpid()
        self._lock = threading.Lock()

    def inputs(self, batch: pa.RecordBatch) -> list[IntArray]:
        """Input codes of each block, (rows,) int64: x, or s·a + x where the protocol reads the secret.

        Raises InternalError for a code outside the block's alphabet.
        """
        return [input_codes(protocol, batch, block) for block, protocol in enumerate(self._protocols)]

    def draw(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Record batch of output codes y0, y1, … for input codes x0, x1, … (and s, and entity where read)."""
        drawn = [np.empty(batch.num_rows, table.code_type) for table in self._tables]
        with self._lock:
            if os.getpid() != self._process:
                raise InternalError("a Drawer was carried into another process, where it would repeat itself")
            for start in range(0, batch.num_rows, CHUNK):
                for whole, part in zip(drawn, self._draw_chunk(batch.slice(start, CHUNK)), strict=True):
                    whole[start : start + CHUNK] = part
        return pa.record_batch({f"y{block}": pa.array(codes) for block, codes in enumerate(drawn)})

    def _draw_chunk(self, batch: pa.RecordBatch) -> list[Codes]:
        drawn = self._from_noise(self._noise, batch) if self._noise else self._from_answers(batch)
        self._rows += batch.num_rows
        return drawn

    def _from_noise(self, noise: FreshUniforms, batch: pa.RecordBatch) -> list[Codes]:
        return [
            table.from_blocks(codes, noise.blocks(self._rows, block, len(codes), self._buffer))
            for block, (table, codes) in enumerate(zip(self._tables, self.inputs(batch), strict=True))
        ]

    def _from_answers(self, batch: pa.RecordBatch) -> list[Codes]:
        entities = read_entities(_column(batch, "entity"))
        return [
            table.from_blocks(codes, answers.blocks(entities, codes, self._buffer))
            for table, answers, codes in zip(self._tables, self._answers, self.inputs(batch), strict=True)
        ]


def regrouped(batch: pa.RecordBatch, regroup: Callable[[Sequence[IntArray]], IntArray]) -> pa.RecordBatch:
    """The batch with the codes x0, x1, … of several blocks as the one code x0 of the block they form together."""
    blocks = [name for name in batch.schema.names if name.startswith("x")]
    code = regroup([batch.column(name).to_numpy() for name in sorted(blocks, key=lambda name: int(name[1:]))])
    rest = {name: batch.column(name) for name in batch.schema.names if name not in blocks}
    return pa.record_batch(rest | {"x0": pa.array(code)})


def input_codes(protocol: AnyProtocol, batch: pa.RecordBatch, block: int) -> IntArray:
    """Input codes (rows,) of one block of a batch with columns x0, x1, … and s."""
    codes = _codes(batch, f"x{block}", len(protocol.inputs))
    if protocol.secret is None:
        return codes
    return _codes(batch, "s", len(protocol.secret)) * len(protocol.inputs) + codes


def _codes(batch: pa.RecordBatch, name: str, size: int) -> IntArray:
    column = _column(batch, name)
    if column.null_count or not pa.types.is_integer(column.type):
        raise InternalError(f"column {name} of a batch to draw holds something else than codes")
    values = column.to_numpy(zero_copy_only=True)
    if len(values) and (values.max() >= size or values.min() < 0):
        raise InternalError(f"column {name} of a batch to draw holds a code outside its alphabet of {size}")
    return np.asarray(values, np.int64)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    place = batch.schema.get_field_index(name)
    if place < 0:
        raise InternalError(f"a batch to draw has no column {name}")
    return batch.column(place)


class CoinTable:
    """Draws bit x' = 1 where u < present (x' = x) or u < absent (else), for u uniform on [0, 2^bits) and bit by bit.

    u is the second link of a chain: a block of the record (see `PermanentUniforms` and `FreshUniforms`) is mixed with a
    tag of the label of x' and encrypted under a key of its own. Messages have two links each, so the chain is a
    pseudo-random function of record and label (CBC-MAC, see `PermanentUniforms`): every bit has a uniform of its own,
    and a new category leaves the others' as they were.
    """

    code_type = np.dtype(np.int64)

    def __init__(self, protocol: UnaryProtocol, key: Key, rows: int) -> None:
        block = json.dumps(protocol.inputs.columns, ensure_ascii=True)
        self._cipher = BlockCipher(key, f"draw/coin {block}")
        self._tags = input_tags(key.derive(f"draw/coin tag {block}"), protocol)
        self._buffer = Buffer(rows)
        self._shift = np.uint64(64 - protocol.bits)
        self._present, self._absent = np.uint64(protocol.present), np.uint64(protocol.absent)

    def from_blocks(self, inputs: IntArray, records: Words) -> IntArray:
        """Codes of sets (n,) for input codes (n,) and one block (n, 2) of words per record."""
        rows, plain = len(inputs), self._buffer.plain
        plain[:rows, 0] = records[:, 0]
        drawn = np.zeros(rows, np.int64)
        for x, tag in enumerate(self._tags):
            np.bitwise_xor(records[:, 1], tag, out=plain[:rows, 1])
            uniform = self._buffer.encrypt(self._cipher, rows)[:, 0] >> self._shift
            hit = uniform < self._absent
            own = np.flatnonzero(inputs == x)
            hit[own] = uniform[own] < self._present
            drawn <<= 1
            drawn |= hit
        return drawn


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
