"""Counting, drawing and digesting in one reading, where the values of a table are known before it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.data import AnyProtocol
from funnel.data.joint import IntArray
from funnel.draw.draw import CHUNK, Drawer
from funnel.draw.drawing import Recode, as_it_is, beside
from funnel.draw.entity import Entities, read_entities
from funnel.draw.keys import Key
from funnel.draw.people import Words, sample_bits
from funnel.draw.tally import Tally, counter

_MOST_FLAGS = 1 << 28
"""Whole numbers in the range that is looked at for repetitions, a byte each."""


class Reading:
    """Rows in batches of entity, content (a hash of the row) and codes s, x0, x1, …, each counted and drawn for.

    `sizes` are those of the alphabets of s, x0, x1, …; `recode` makes codes of the protocols of them. Where rows are
    `named` they have keys as well, and come back with their answers, for whoever puts them aside to add to the tally.
    `told` hears how many rows were taken. What is found is of use only where all were.
    """

    def __init__(
        self,
        protocols: Sequence[AnyProtocol],
        sizes: tuple[int, ...],
        key: Key,
        people: Key,
        *,
        recode: Recode = as_it_is,
        named: bool = False,
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.tally = Tally(protocols)
        self.rows, self.left_out, self.content, self.whole = 0, 0, 0, True
        self._drawer = Drawer(protocols, key, permanent=True)
        self._counts, self._words, self._flags = counter(sizes), Words(people), Flags()
        self._names = ["s", *(f"x{block}" for block in range(len(sizes) - 1))]
        self._recode, self._named, self._told = recode, named, told
        self._samples: list[IntArray] = []

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take all rows, or those before one that lacks its entity, a key or a code; named ones come with answers."""
        for batch in batches:
            self.whole = self.whole and not any(column.null_count for column in batch.columns)
            if not self.whole:
                return
            rows = self.add(batch)
            self._told(self.rows)
            if self._named:
                yield rows

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take the next rows; what comes back is these with their answers."""
        coded = self._recode(batch)
        answers = self._drawer.draw(coded)
        if not self._named:
            self.tally.add(coded, answers)
        hashes = batch.column("content").to_numpy()
        self.content += (int((hashes >> np.uint64(32)).sum()) << 32) + int((hashes & np.uint64(0xFFFFFFFF)).sum())
        self.rows += batch.num_rows
        bits = sample_bits(self.rows)
        for start in range(0, batch.num_rows, CHUNK):
            part = batch.slice(start, CHUNK)
            entities = read_entities(part.column("entity"))
            codes = np.stack([part.column(name).to_numpy().astype(np.int64) for name in self._names])
            self._counts.add(codes)
            self._flags.add(entities)
            chosen, words = self._words.sample(entities, bits)
            self._samples.append(np.column_stack([words, codes.T[chosen]]))
        return beside(coded, answers)

    def leave_out(self, entities: pa.Array) -> None:
        """Take rows for which nothing is drawn, by whom they are about."""
        self.left_out += len(entities)
        self.whole = self.whole and not entities.null_count
        if self.whole:
            self._flags.add(read_entities(entities))

    def cells(self) -> tuple[IntArray, IntArray]:
        """Codes [s, x_0, …] (m, 1+k) of the cells that have records, and how many (m,)."""
        return self._counts.result()

    def sample(self) -> IntArray:
        """Rows [word, s, x_0, …] of the people in the sample."""
        rows = np.concatenate(self._samples)
        return rows[Words.sampled(rows[:, 0], sample_bits(self.rows))]

    def repeated(self) -> int | None:
        """How many rows repeat an entity; None where entities are no whole numbers that lie close together."""
        found = self._flags.found()
        return None if found is None else self.rows + self.left_out - found


class Flags:
    """Which whole numbers of a narrow range have come, for as long as it is narrow."""

    def __init__(self) -> None:
        self._low, self._flags = 0, np.zeros(0, np.uint8)
        self._narrow = True

    def add(self, entities: Entities) -> None:
        """The next numbers, which need not be others."""
        numbers = entities.numbers
        self._narrow = self._narrow and entities.texts is None
        if not self._narrow or not len(numbers):
            return
        low, high = int(numbers.min()), int(numbers.max())
        if not len(self._flags):
            self._low = low
        if low < self._low or high >= self._low + len(self._flags):
            self._widen(min(low, self._low), max(high + 1, self._low + len(self._flags)))
        if self._narrow:
            self._flags[numbers - self._low] = 1

    def _widen(self, low: int, end: int) -> None:
        """A range that holds these numbers, and on the side that grew as many more, so that it seldom happens."""
        if end - low > _MOST_FLAGS:
            self._narrow, self._flags = False, np.zeros(0, np.uint8)
            return
        more = min(end - low, _MOST_FLAGS - (end - low))
        start = low - (more if low < self._low else 0)
        flags: npt.NDArray[np.uint8] = np.zeros(end - low + more, np.uint8)
        flags[self._low - start : self._low - start + len(self._flags)] = self._flags
        self._low, self._flags = start, flags

    def found(self) -> int | None:
        """How many different numbers came; None where their range is too wide, or some were none."""
        return int(self._flags.sum(dtype=np.int64)) if self._narrow else None
