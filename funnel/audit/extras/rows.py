"""The rows of a table whose rows have names, read back: their keys, and the codes of what stands behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.verdict import Broken
from funnel.format.manifest import Key
from funnel.release.named import Order, key_types

if TYPE_CHECKING:
    import pyarrow as pa


def named(
    opened: Release, batches: Iterable[pa.RecordBatch], labels: Sequence[pa.Array]
) -> Iterator[pa.RecordBatch]:
    """Batches of key columns and of the output codes y0, y1, … of each block; of the table's columns, keys first.

    `labels` are, for each other column, its values by distinct released row. Raises Broken: a row without a key, a key
    twice or out of order, an answer that was not released, and, when all are read, not as often as it was.
    """
    import pyarrow as pa

    file, keys, answers = opened.manifest.data, opened.manifest.identify, opened.rows
    order, seen, places = Order(), np.zeros(len(answers), np.int64), None
    kinds = _kinds(keys)
    for batch in batches:
        own = [_read(file, *one) for one in zip(keys, kinds, batch.columns, strict=False)]
        if not order.holds(own):
            raise Broken(file, "rows are not sorted by key, each key once", "ascending keys, none missing", "others")
        shown = batch.columns[len(keys) :]
        places = places or _Places(labels, [column.type for column in shown])
        found = places.of(shown)
        if (found < 0).any():
            raise Broken(file, "a row holds values that were not released", "those released", "others")
        np.add.at(seen, found, 1)
        codes = {f"y{block}": pa.array(answers[found, block]) for block in range(answers.shape[1] - 1)}
        yield pa.record_batch({f"k{i}": column for i, column in enumerate(own)} | codes)
    if (seen != answers[:, -1]).any():
        raise Broken(file, "rows are not answered as often as was released", "the released totals", "others")


def key_columns(opened: Release, batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.Array]]:
    """The key columns of a table's batches, in their types. Raises Broken."""
    file, keys = opened.manifest.data, opened.manifest.identify
    kinds = _kinds(keys)
    for batch in batches:
        yield [_read(file, *one) for one in zip(keys, kinds, batch.columns, strict=False)]


def _kinds(keys: Sequence[Key]) -> list[pa.DataType]:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        return key_types(connection, keys)


def _read(file: str, key: Key, kind: pa.DataType, column: pa.Array) -> pa.Array:
    """A key column in its type; in a text file it is still text. Raises Broken."""
    import pyarrow as pa

    try:
        if column.type != kind and not pa.types.is_string(column.type):
            raise Broken(file, f"{key.name} has another type", kind, column.type)
        return column.cast(kind)
    except pa.ArrowException:
        raise Broken(file, f"{key.name} holds a value of another type", kind, "others") from None


class _Places:
    """Which of the distinct released rows a row shows, by the texts of its columns in the types that the file has."""

    def __init__(self, labels: Sequence[pa.Array], kinds: Sequence[pa.DataType]) -> None:
        import pyarrow.compute as pc

        self._known: list[tuple[pa.Array, IntArray]] = []
        place = np.zeros(len(labels[0]), np.int64)
        for texts, kind in zip(labels, kinds, strict=True):
            told = texts.cast(kind)
            values = told.unique()
            own = pc.index_in(told, values).to_numpy()
            known, place = np.unique(place * len(values) + own, return_inverse=True)
            self._known.append((values, known))
        self._row = np.empty(len(place), np.int64)
        self._row[place] = np.arange(len(place))

    def of(self, columns: Sequence[pa.Array]) -> IntArray:
        """The number of a released row for each row of these columns, -1 where there is none."""
        import pyarrow.compute as pc

        place = np.zeros(len(columns[0]), np.int64)
        for (values, known), column in zip(self._known, columns, strict=True):
            own = pc.fill_null(pc.index_in(column, values), -1).to_numpy()
            flat = place * len(values) + own
            near = np.minimum(np.searchsorted(known, flat), len(known) - 1)
            place = np.where((place >= 0) & (own >= 0) & (known[near] == flat), near, -1)
        return np.asarray(np.where(place >= 0, self._row[place], -1), np.int64)
