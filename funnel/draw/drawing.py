"""Draws for the rows of one part of a table, wherever it lies: what an engine carries to the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from funnel.data import AnyProtocol
from funnel.draw.draw import Drawer
from funnel.draw.keys import Key
from funnel.draw.tally import Tally

_ROWS = 40
"""Bits of the number of a row in its part."""

Recode = Callable[[pa.RecordBatch], pa.RecordBatch]


def as_it_is(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Codes that are those of the protocols."""
    return batch


class Drawing:
    """Answers every row of a part: by a tally of what was drawn; where rows have `keys`, by rows with their answers.

    The tally is the one that is given, or comes as its batch where this was carried to another process. Permanent
    answers follow from key, entity and value. Fresh ones follow from the place of the row, under a nonce that is thrown
    away with this object: a part that is done again has the same answers, and another release has others. `recode`
    makes codes of the protocols of what was read; `told` hears how many rows of a part are answered, if it is here.
    It can be pickled, with the key in it, for an engine's own processes alone.
    """

    def __init__(
        self,
        protocols: Sequence[AnyProtocol],
        key: Key,
        tally: Tally | None = None,
        *,
        permanent: bool,
        keys: Sequence[str] = (),
        recode: Recode = as_it_is,
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._protocols, self._key, self._permanent = tuple(protocols), key, permanent
        self._keys, self._recode, self._told, self._tally = tuple(keys), recode, told, tally
        self._nonce = os.urandom(16)

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is drawn for the rows of a part."""
        drawer = Drawer(
            self._protocols, self._key, permanent=self._permanent, nonce=self._nonce, first=part << _ROWS
        )
        tally, done = self._tally or Tally(self._protocols), 0
        for read in batches:
            batch = self._recode(read)
            answers = drawer.draw(batch)
            if self._keys:
                yield beside(batch, answers)
            else:
                tally.add(batch, answers)
            done += read.num_rows
            self._told(done)
        if not self._keys and self._tally is None:
            yield tally.batch()

    def __reduce__(self) -> tuple[Any, ...]:
        own = (self._protocols, self._key.carried(), self._permanent, self._keys, self._recode, self._nonce)
        return _arrived, own


def _arrived(
    protocols: Sequence[AnyProtocol],
    secret: bytes,
    permanent: bool,
    keys: Sequence[str],
    recode: Recode,
    nonce: bytes,
) -> Drawing:
    """A drawing in the process that it was carried to."""
    found = Drawing(protocols, Key(secret), permanent=permanent, keys=keys, recode=recode)
    found._nonce = nonce
    return found


def beside(batch: pa.RecordBatch, answers: pa.RecordBatch) -> pa.RecordBatch:
    """The keys and codes of rows and their answers; whom they are about is told no further."""
    kept = [name for name in batch.schema.names if name not in ("entity", "content")]
    columns = [batch.column(name) for name in kept] + answers.columns
    return pa.RecordBatch.from_arrays(columns, names=[*kept, *answers.schema.names])


def answers_in(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The answers y0, y1, … of rows that have them beside."""
    names = [name for name in batch.schema.names if name.startswith("y")]
    return batch.select(sorted(names, key=lambda name: int(name[1:])))
