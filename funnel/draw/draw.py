"""The drawing kernel: batches of input codes in, batches of output codes out."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from funnel.data import AnyProtocol, Protocol
from funnel.data.joint import IntArray
from funnel.draw.coins import CoinTable
from funnel.draw.entity import read_entities
from funnel.draw.inverse import Codes, InverseTable
from funnel.draw.keys import Key
from funnel.draw.prf import Buffer, FreshUniforms, PermanentUniforms
from funnel.errors import InternalError

CHUNK = 1 << 14
"""Rows drawn at a time: the buffers of one chunk stay in the processor's cache."""


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
