"""PRIVATE/locks: the counts that a lock was made from, and the keys of their rows, for its owner only."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.data import Joint
from funnel.data.convert import alphabet_record, cells_of, grid, joint_of
from funnel.data.domain import Domain
from funnel.draw.keys import Key
from funnel.engine.scratch import SORT_MEMORY
from funnel.engine.sql import listed, literal
from funnel.errors import LockError
from funnel.files import replace_file, writing
from funnel.format import schema
from funnel.format.drift import DriftFile
from funnel.format.locked import FOLDER, LockedFile
from funnel.ledger.estimates import Kept, path_of, read
from funnel.lock.lock import Lock

if TYPE_CHECKING:
    import pyarrow as pa

SPENDS = "A new lock (`funnel lock --force`) spends `estimate.epsilon` again, unless an estimate stands."


def counts_hash(joint: Joint, key: Key) -> str:
    """An HMAC of the counts: without the key nobody can try out counts until one fits."""
    return hmac.digest(key.derive("lock counts"), schema.write(_record("", joint)), "sha256").hex()


def keep_counts(private: Path, checksum: str, joint: Joint) -> None:
    """PRIVATE/locks/CHECKSUM.json: the counts that a lock was made from. Raises ReleaseError."""
    with writing(private):
        _make_folder(private)
        replace_file(_path(private, checksum), schema.write(_record(checksum, joint)))


def kept_counts(private: Path, lock: Lock) -> Joint | None:
    """The counts that a lock was made from; None where they are not kept here. Raises LockError."""
    try:
        kept = _read(private, lock)
        joint = joint_of(kept.secret, kept.blocks, kept.cells)
        if joint.blocks != tuple(one.inputs for one in lock.protocols):
            raise ValueError("they are those of another lock")
        return joint
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LockError(
            "lock-damaged",
            f"the counts that the lock was made from cannot be read: {error}",
            where=str(_path(private, lock.checksum)),
            advice="Restore the file from a backup of the private folder, or remove it: then the drift since the "
            "lock is not known, and nothing else changes.",
        ) from None


def kept_estimate(private: Path, lock: Lock, domain: Domain) -> Kept:
    """The estimate that a lock names, over the cells of a domain.

    Raises LockError where it is not kept here: without it nothing can be measured.
    """
    name = lock.estimated or ""
    try:
        kept = read(private, name)
        if kept.true.shape != (len(domain.cells),):
            raise ValueError("they are those of another lock")
        return kept
    except (OSError, ValueError) as error:
        raise LockError(
            "lock-damaged",
            f"the noisy counts that the lock was made from cannot be read: {error}",
            where=str(path_of(private, name)),
            advice=f"Restore the private folder from a backup. {SPENDS}",
        ) from None


def _record(checksum: str, joint: Joint) -> LockedFile:
    secret, *blocks = map(alphabet_record, (joint.secret, *joint.blocks))
    return LockedFile("funnel-locked-counts/1", checksum, secret, tuple(blocks), grid(cells_of(joint)))


def _read(private: Path, lock: Lock) -> LockedFile:
    """Raises OSError, ValueError."""
    path = _path(private, lock.checksum)
    kept = schema.read(LockedFile, path.name, path.read_bytes())
    if kept.lock != lock.checksum:
        raise ValueError("they are those of another lock")
    return kept


def _path(private: Path, checksum: str) -> Path:
    return private / FOLDER / f"{checksum}.json"


def keep_names(private: Path, checksum: str, batches: Iterable[pa.RecordBatch]) -> None:
    """Keep the keys k0, k1, … of all rows, beside the counts of the lock. Raises ReleaseError."""
    import pyarrow.parquet as pq

    path, writer = _names_path(private, checksum), None
    with writing(private):
        for batch in batches:
            if writer is None:
                _make_folder(private)
                path.touch(mode=0o600)
                writer = pq.ParquetWriter(path, batch.schema, compression="zstd")
            writer.write_batch(batch)
        if writer is not None:
            writer.close()


def with_names(moved: DriftFile, private: Path, rows: Sequence[Path], keys: int) -> DriftFile:
    """The drift with the numbers of rows whose keys came and went: of the rows in Parquet files, by so many keys.

    As it is where the keys of the lock are not kept here. Raises LockError where they cannot be read.
    """
    kept = _names_path(private, moved.lock)
    if not kept.is_file():
        return moved
    names = listed(f"k{index}" for index in range(keys))
    both = (listed(literal(str(path)) for path in paths) for paths in ([kept], rows))
    then, now = (f"SELECT {names} FROM read_parquet([{paths}])" for paths in both)
    alike = f"({now} UNION ALL ({then} LIMIT 0))", f"({then} UNION ALL ({now} LIMIT 0))"  # of the same types
    common = " NATURAL SEMI JOIN ".join(alike)
    here, gone, same = _numbers(kept, rows[0].parent, [now, then, f"FROM {common}"])
    return replace(moved, new_keys=here - same, gone_keys=gone - same)  # no key is there twice


def _numbers(kept: Path, scratch: Path, queries: Iterable[str]) -> list[int]:
    """How many rows each query has; what does not fit into memory goes to `scratch`."""
    import duckdb

    try:
        limits: dict[str, Any] = {"temp_directory": str(scratch), "memory_limit": SORT_MEMORY}
        with duckdb.connect(":memory:", config=limits) as connection:
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


def _make_folder(private: Path) -> None:
    """The folder of what locks were made from, for its owner only."""
    for one in (private, private / FOLDER):
        if not one.is_dir():
            one.mkdir(mode=0o700, parents=True)


def _names_path(private: Path, checksum: str) -> Path:
    return private / FOLDER / f"{checksum}.parquet"
