"""Words of people: a keyed function of the entity, the same in every release of a private folder, that tells nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.data import Alphabet
from funnel.data.joint import IntArray
from funnel.draw.draw import CHUNK
from funnel.draw.entity import Entities, read_entities
from funnel.draw.keys import Key
from funnel.draw.prf import Buffer, PermanentUniforms
from funnel.draw.prf import Words as Drawn
from funnel.format.people import BITS, MOST
from funnel.measure.composition import identity

_NOBODY = identity(Alphabet(("people.json",), (("word",),)))
"""What words are drawn for: nothing that a policy can name under the key of a private folder."""

_ALIKE = np.zeros(CHUNK, np.int64)


class Words:
    """The word of every entity under a key: the pseudo-random function of draws, under a key that draws nothing."""

    def __init__(self, key: Key) -> None:
        self._function, self._buffer = PermanentUniforms(key, _NOBODY), Buffer(CHUNK)

    def of(self, column: pa.Array) -> IntArray:
        """Words (n,) from 0 to 2^63 - 1 of entities as integers or texts: 42 and "42" are one person."""
        parts = [self._part(column.slice(start, CHUNK)) for start in range(0, len(column), CHUNK)]
        return np.concatenate([*parts, np.zeros(0, np.int64)])

    def _part(self, column: pa.Array) -> IntArray:
        return (self._drawn(read_entities(column)) >> np.uint64(64 - BITS)).astype(np.int64)

    def _drawn(self, entities: Entities) -> Drawn:
        """What is drawn for up to CHUNK entities; may be a view of the buffer."""
        return self._function.words(entities, _ALIKE[: len(entities.numbers)], self._buffer)

    def sample(self, entities: Entities, bits: int) -> tuple[IntArray, IntArray]:
        """Places of those of up to CHUNK entities whose words begin with so many zeros, and these words."""
        drawn = self._drawn(entities)
        chosen = np.flatnonzero(drawn <= np.uint64((1 << (64 - bits)) - 1))
        return chosen, (drawn[chosen] >> np.uint64(64 - BITS)).astype(np.int64)

    @staticmethod
    def sampled(words: IntArray, bits: int) -> npt.NDArray[np.bool_]:
        """Which words (n,) begin with so many zeros."""
        return np.asarray(words >> (BITS - bits) == 0)


def sample_bits(rows: int) -> int:
    """With how many zeros the words of the people in a sample of so many begin."""
    return max(0, (max(rows, 1) - 1).bit_length() - (MOST.bit_length() - 1))


class Sampling:
    """Of the rows of each part those entities as texts whose words begin with so many zeros.

    It can be pickled, with the key in it, for an engine's own processes alone.
    """

    def __init__(self, key: Key, bits: int) -> None:
        self._key, self._bits = key, bits

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The entities of a part, which are the first column of its batches."""
        words = Words(self._key)
        for batch in batches:
            texts = list[str]()
            for start in range(0, batch.num_rows, CHUNK):
                entities = batch.column(0).slice(start, CHUNK)
                chosen, _ = words.sample(read_entities(entities), self._bits)
                texts += map(str, entities.take(pa.array(chosen)).to_pylist()) if len(chosen) else ()
            yield pa.record_batch([pa.array(texts, pa.string())], names=["entity"])

    def __reduce__(self) -> tuple[Any, ...]:
        return _carried, (self._key.carried(), self._bits)


def _carried(secret: bytes, bits: int) -> Sampling:
    """A sampling in the process that it was carried to."""
    return Sampling(Key(secret), bits)
