"""The released table read back: from one file, or from folders that hold a column in their names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken
from funnel.engine.sql import identifier
from funnel.format.manifest import Key, Manifest, Partition
from funnel.release.folders import in_order, value_of
from funnel.release.named import in_order_of, key_types

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


def read_table(opened: Release) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The table's columns, and its rows: in order of their keys where they have some. Raises Broken."""
    manifest = opened.manifest
    if manifest.partition is None:
        return _read(opened.release / manifest.data, manifest.format_of_data)
    names, batches = _parted(opened, manifest.partition)
    if not manifest.identify:
        return names, batches
    return names, _by_key(manifest, names, batches)


def _by_key(manifest: Manifest, names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in order of their keys. Raises Broken."""
    import duckdb

    try:
        order = [f"CAST({identifier(key.name)} AS {key.type})" for key in manifest.identify]
        yield from in_order_of(batches, names, order)
    except duckdb.Error as error:
        raise Broken(manifest.data, "the rows cannot be sorted by their keys", order, str(error)) from None


def _parted(opened: Release, partition: Partition) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The rows of all folders, with the column that is in their names where it stands among the others."""
    files, form, released = in_order(opened.manifest.tables), opened.manifest.format_of_data, opened.released
    import duckdb

    if partition.column not in released.columns:
        raise Broken("release.json", "the folders are those of no released column", released.columns, partition.column)
    place = released.columns.index(partition.column)
    kind, behind = _kind(Key(partition.column, released.types[place])), place + len(opened.manifest.identify)
    read = partial(_read, form=form, connection=None if form == "parquet" else duckdb.connect(":memory:"))
    own, first = read(opened.release / files[0])

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            found, rows = (own, first) if file == files[0] else read(opened.release / file)
            if found != own:
                raise Broken(file, "these are not the columns of the other files", own, found)
            value = _value(file, partition.column, kind)
            for batch in rows:
                yield batch.add_column(behind, partition.column, value.take(np.zeros(batch.num_rows, np.int64)))

    return [*own[:behind], partition.column, *own[behind:]], batches()


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


def _read(
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

