"""Unary encoding drawn: one keyed coin for each possible value of each record."""

from __future__ import annotations

import json

import numpy as np

from funnel.data import UnaryProtocol
from funnel.data.joint import IntArray
from funnel.draw.keys import Key
from funnel.draw.prf import BlockCipher, Buffer, Words, input_tags


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
