"""The released table read back: from one file, or from folders that hold a column in their names; and its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.verdict import Broken
from funnel.engine.sql import identifier
from funnel.format.manifest import Key, Manifest
from funnel.release.folders import in_order, value_of
from funnel.release.named import Order, in_order_of, key_types, places

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


def read_table(opened: Release, *, by_file: bool = False) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The table's columns, and its rows: in order of their keys where they have some. Raises Broken.

    `by_file`: as they stand in its files, where these have no folders.
    """
    manifest = opened.manifest
    if manifest.partition is None:
        return read_file(opened.release / manifest.data, manifest.format_of_data)
    names, batches = _parted(opened) if manifest.folders is None else _in_folders(opened, manifest.folders)
    if not manifest.identify or (by_file and manifest.folders is None):
        return names, batches
    return names, _by_key(manifest, names, batches)


def _parted(opened: Release) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The rows of all files, of which each has all columns."""
    files, form = in_order(opened.manifest.tables), opened.manifest.format_of_data
    own, _ = read_file(opened.release / files[0], form)

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            found, rows = read_file(opened.release / file, form)
            if found != own:
                raise Broken(file, "these are not the columns of the other files", own, found)
            yield from rows

    return own, batches()


def _by_key(manifest: Manifest, names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in order of their keys. Raises Broken."""
    import duckdb

    try:
        order = [f"CAST({identifier(key.name)} AS {key.type})" for key in manifest.identify]
        yield from in_order_of(batches, names, order)
    except duckdb.Error as error:
        raise Broken(manifest.data, "the rows cannot be sorted by their keys", order, str(error)) from None


def _in_folders(opened: Release, column: str) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The rows of all folders, with the column that is in their names where it stands among the others."""
    files, form, released = in_order(opened.manifest.tables), opened.manifest.format_of_data, opened.released
    import duckdb

    if column not in released.columns:
        raise Broken("release.json", "the folders are those of no released column", released.columns, column)
    place = released.columns.index(column)
    kind, behind = _kind(Key(column, released.types[place])), place + len(opened.manifest.identify)
    read = partial(read_file, form=form, connection=None if form == "parquet" else duckdb.connect(":memory:"))
    own, first = read(opened.release / files[0])

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            found, rows = (own, first) if file == files[0] else read(opened.release / file)
            if found != own:
                raise Broken(file, "these are not the columns of the other files", own, found)
            value = _value(file, column, kind)
            for batch in rows:
                yield batch.add_column(behind, column, value.take(np.zeros(batch.num_rows, np.int64)))

    return [*own[:behind], column, *own[behind:]], batches()


def _kind(column: Key) -> pa.DataType:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        return key_types(connection, [column])[0]


def _value(file: str, column: str, kind: pa.DataType) -> pa.Array:
    """The value in a file's folder, in an array of its own. Raises Broken."""
    import pyarrow as pa

    try:
        return pa.array([value_of(file, column)], pa.string()).cast(kind)
    except (ValueError, pa.ArrowException) as error:
        raise Broken(file, "the folder has no value of the column", kind, str(error)) from None


def read_file(
    path: Path, form: str, connection: duckdb.DuckDBPyConnection | None = None
) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The columns of one file, and its rows in order. Raises Broken."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if form == "parquet":
            file = pq.ParquetFile(path)
            return list(file.schema_arrow.names), file.iter_batches(1 << 18)
        told = (connection or duckdb.connect(":memory:")).read_csv(
            str(path),
            header=True,
            hive_partitioning=False,
            all_varchar=True,
            delimiter=",",
            quotechar='"',
            escapechar='"',
            allow_quoted_nulls=False,  # an empty text stands in quotes, a missing value does not
        )
        return list(told.columns), iter(told.to_arrow_table().to_batches(1 << 18))
    except (pa.ArrowException, duckdb.Error, OSError) as error:
        raise Broken(path.name, "the table cannot be read", form, str(error)) from None


@dataclass(frozen=True, eq=False)
class Answers:
    """What rows with names may hold: the distinct `rows` (m, k + 1) released, and `labels`, how each column shows them.

    It can be sent to other processes, which read files of the table.
    """

    stated: Manifest
    rows: IntArray
    labels: Sequence[pa.Array]

    def read(
        self, batches: Iterable[pa.RecordBatch], seen: IntArray, part: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of key columns and of the output codes y0, y1, … of each block; of the table's columns, keys first.

        `seen` (m,) counts how often each row was given; `part` is the number of a file whose rows are in it by their
        keys. Raises Broken: a row without a key, a key twice, out of order or of another file, an answer that was not
        released.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        file, keys, parts, order, where = self.stated.data, self.stated.identify, parts_of(self.stated), Order(), None
        kinds = _kinds(keys)
        for batch in batches:
            own = [_columns_read(file, *one) for one in zip(keys, kinds, batch.columns, strict=False)]
            holds = order.holds(own)
            if part is not None and parts is not None:
                holds = holds and bool(pc.all(pc.equal(places(own, parts), part), min_count=0).as_py())
            if not holds:
                what = "rows are not sorted by key, each key once"
                raise Broken(file, what, "ascending keys, none missing", "others")
            shown = batch.columns[len(keys) :]
            where = where or _Places(self.labels, [column.type for column in shown])
            found = where.of(shown)
            if (found < 0).any():
                raise Broken(file, "a row holds values that were not released", "those released", "others")
            np.add.at(seen, found, 1)
            codes = {f"y{block}": pa.array(self.rows[found, block]) for block in range(self.rows.shape[1] - 1)}
            yield pa.record_batch({f"k{i}": column for i, column in enumerate(own)} | codes)

    def check_given(self, seen: IntArray) -> None:
        """Every row was given as often as was released. Raises Broken."""
        if (seen != self.rows[:, -1]).any():
            what = "rows are not answered as often as was released"
            raise Broken(self.stated.data, what, "the released totals", "others")


def parts_of(stated: Manifest) -> int | None:
    """How many files a table has whose rows are in them by their keys; None where its rows are in order of keys."""
    one = stated.partition
    return None if one is None or one.column is not None else one.parts(stated.rows)


def key_columns(opened: Release, batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.Array]]:
    """The key columns of a table's batches, in their types. Raises Broken."""
    file, keys = opened.manifest.data, opened.manifest.identify
    kinds = _kinds(keys)
    for batch in batches:
        yield [_columns_read(file, *one) for one in zip(keys, kinds, batch.columns, strict=False)]


def _kinds(keys: Sequence[Key]) -> list[pa.DataType]:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        return key_types(connection, keys)


def _columns_read(file: str, key: Key, kind: pa.DataType, column: pa.Array) -> pa.Array:
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
