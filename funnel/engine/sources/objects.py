"""Parquet in object stores, through Arrow's file systems: s3://bucket/people/, gs://…, abfs://…

Credentials come from the environment, as the store's own tools read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funnel.engine.sources.base import changed, missing, refused
from funnel.engine.sources.pulled import Pulled
from funnel.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

Listed = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Objects(Pulled):
    """The Parquet objects under an address; `listed` are their paths, sizes and times as they were found."""

    name: str
    listed: Listed

    def rows(self, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        """The rows of these columns; None: all columns and no rows. Raises SourceError."""
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        system, root = _system(self.name)
        try:
            paths = [path for path, _, _ in self.listed]
            found = ds.dataset(
                paths, filesystem=system, format="parquet", partitioning="hive", partition_base_dir=root
            )
            names = found.schema.names
            chosen = None if columns is None else [name for name in names if name in columns] or names[:1]
            nothing = {"filter": pc.scalar(False)} if columns is None else {}
            return found.scanner(columns=chosen, **nothing).to_reader()
        except (OSError, ValueError) as error:
            raise unreachable(self.name, error) from None

    def check_unchanged(self) -> None:
        """Raise SourceError when an object has gone, come or been rewritten since the source was found."""
        if _listed(self.name) != self.listed:
            raise changed(self.name)


def objects(address: str) -> Objects:
    """The Parquet objects under an address. Raises SourceError."""
    found = _listed(address)
    if not found:
        raise missing(address)
    return Objects(address, found)


def _listed(address: str) -> Listed:
    """Paths, sizes in bytes, and times in nanoseconds. Raises SourceError."""
    from pyarrow import fs

    try:
        system, root = _system(address)
        info = system.get_file_info(root)
        below = fs.FileSelector(root, recursive=True, allow_not_found=True)
        every = [info] if info.is_file else system.get_file_info(below)
    except OSError as error:
        raise unreachable(address, error) from None
    whole = [one for one in every if one.is_file and one.path.lower().endswith((".parquet", ".pq"))]
    return tuple(sorted((one.path, one.size, one.mtime_ns or 0) for one in whole))


def _system(address: str) -> tuple[Any, str]:
    """Arrow's file system for an address, and the path in it. Raises SourceError."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(address)
    except (pa.ArrowException, OSError) as error:
        said = "the address is not one of a store that this machine can reach"
        raise refused(said, address, f"Check the address ({type(error).__name__}).") from None
    return system, path


def unreachable(address: str, error: Exception) -> SourceError:
    """The error of a store that does not answer."""
    return SourceError(
        "source-unreachable",
        f"the object store does not give the table out ({type(error).__name__})",
        where=address,
        advice="Nothing was published. Check credentials and network, and run again.",
    )
