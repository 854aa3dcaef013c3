"""PRIVATE/locks/<checksum>.parquet: the keys of the rows that a lock was made from, and which came and went since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.engine.sql import listed, literal
from funnel.errors import LockError
from funnel.files import writing
from funnel.format.drift import DriftFile
from funnel.lock.pinned import FOLDER

if TYPE_CHECKING:
    import pyarrow as pa


def keep_names(private: Path, checksum: str, batches: Iterable[pa.RecordBatch]) -> None:
    """Keep the keys k0, k1, … of all rows, beside the counts of the lock. Raises ReleaseError."""
    import pyarrow.parquet as pq

    path, writer = _path(private, checksum), None
    with writing(private):
        for batch in batches:
            if writer is None:
                path.touch(mode=0o600)
                writer = pq.ParquetWriter(path, batch.schema, compression="zstd")
            writer.write_batch(batch)
        if writer is not None:
            writer.close()


def with_names(moved: DriftFile, private: Path, rows: Path, keys: int) -> DriftFile:
    """The drift with the numbers of rows whose keys came and went: of the rows in a Parquet file, by so many keys.

    As it is where the keys of the lock are not kept here. Raises LockError where they cannot be read.
    """
    kept = _path(private, moved.lock)
    if not kept.is_file():
        return moved
    names = listed(f"k{index}" for index in range(keys))
    then, now = (f"SELECT {names} FROM read_parquet({literal(str(path))})" for path in (kept, rows))
    came, went = _numbers(kept, rows.parent, [f"{now} EXCEPT {then}", f"{then} EXCEPT {now}"])
    return replace(moved, new_keys=came, gone_keys=went)


def _numbers(kept: Path, scratch: Path, queries: Iterable[str]) -> list[int]:
    """How many rows each query has; what does not fit into memory goes to `scratch`."""
    import duckdb

    try:
        with duckdb.connect(":memory:", config={"temp_directory": str(scratch)}) as connection:
            folders = listed(literal(str(folder)) for folder in (kept.parent, scratch))
            connection.execute(f"SET allowed_directories = [{folders}]")
            connection.execute("SET enable_external_access = false")
            return [connection.execute(f"SELECT count(*) FROM ({one})").fetchall()[0][0] for one in queries]
    except duckdb.Error as error:
        raise LockError(
            "lock-damaged",
            f"the keys of the rows that the lock was made from cannot be read: {str(error).splitlines()[0]}",
            where=str(kept),
            advice="Restore the file from a backup of the private folder, or remove it: then nobody is told how many "
            "keys came and went, and nothing else changes.",
        ) from None


def _path(private: Path, checksum: str) -> Path:
    return private / FOLDER / f"{checksum}.parquet"
