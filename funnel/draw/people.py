"""Words of people: a keyed function of the entity, the same in every release of a private folder, that tells nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from funnel.data import Alphabet
from funnel.data.joint import IntArray
from funnel.draw.draw import CHUNK
from funnel.draw.entity import read_entities
from funnel.draw.keys import Key
from funnel.draw.prf import Buffer, PermanentUniforms
from funnel.measure.composition import identity

BITS = 63
"""Of a word: what a signed whole number of 64 bits holds."""
_NOBODY = identity(Alphabet(("people.json",), (("word",),)))
"""What words are drawn for: nothing that a policy can name under the key of a private folder."""


class Words:
    """The word of every entity under a key: the pseudo-random function of draws, under a key that draws nothing."""

    def __init__(self, key: Key) -> None:
        self._function, self._buffer = PermanentUniforms(key, _NOBODY), Buffer(CHUNK)

    def of(self, column: pa.Array) -> IntArray:
        """Words (n,) from 0 to 2^63 - 1 of entities as integers or texts: 42 and "42" are one person."""
        parts = [self._part(column.slice(start, CHUNK)) for start in range(0, len(column), CHUNK)]
        return np.concatenate([*parts, np.zeros(0, np.int64)])

    def _part(self, column: pa.Array) -> IntArray:
        entities = read_entities(column)
        words = self._function.words(entities, np.zeros(len(column), np.int64), self._buffer)
        return (words >> np.uint64(64 - BITS)).astype(np.int64)

    def sampled(self, columns: Iterable[pa.Array], bits: int) -> Iterator[str]:
        """The entities as texts whose words begin with so many zeros."""
        for column in columns:
            chosen = self.of(column) >> (BITS - bits) == 0
            yield from map(str, column.filter(pa.array(chosen)).to_pylist())
