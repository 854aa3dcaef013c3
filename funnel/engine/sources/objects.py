"""Parquet in object stores, through Arrow's file systems: s3://bucket/people/, gs://…, abfs://…

Credentials come from the environment, as the store's own tools read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from funnel.data.alphabet import folded
from funnel.engine.sources.base import changed, refused
from funnel.engine.sources.folders import is_aside, is_parquet
from funnel.engine.sources.lake import lake_among, no_lake
from funnel.engine.sources.parquet import ENDINGS
from funnel.engine.sources.pulled import Pulled
from funnel.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as pads

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""What writers call a folder whose column is missing."""
_AT_ONCE = 16
"""Objects that are asked for their columns at the same time: each takes a while to answer."""
Listed = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Objects(Pulled):
    """The Parquet objects under an address; `listed` are their paths, sizes and times as they were found."""

    name: str
    listed: Listed

    def rows(self, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        """The rows of these columns; None: all columns and no rows. Raises SourceError, pyarrow.ArrowException."""
        import pyarrow.compute as pc

        try:
            found = self._dataset
            names = found.schema.names
            chosen = None if columns is None else [name for name in names if name in columns] or names[:1]
            nothing = {"filter": pc.scalar(False)} if columns is None else {}
            return found.scanner(columns=chosen, **nothing).to_reader()
        except OSError as error:
            raise unreachable(self.name, error) from None

    @cached_property
    def _dataset(self) -> pads.Dataset:
        """All objects with the columns of any: those of one name have one type. Raises SourceError, ArrowException."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        system, root = _system(self.name)
        paths = [path for path, _, _ in self.listed]
        with ThreadPoolExecutor(_AT_ONCE) as several:
            parts = ds.dataset(paths, format="parquet", filesystem=system).get_fragments()
            columns = pa.unify_schemas(list(several.map(lambda one: one.physical_schema, parts)))
        keys = _keys(part for path in paths for part in _below(path, root).parent.parts)
        if twice := {folded(key.name) for key in keys} & {*map(folded, columns.names)}:
            said = f"the column {min(twice)!r} is there twice: in the objects, and as folders of that name (key=value)"
            advice = "Which of the two is meant nobody can tell: leave one of them out, or give it another name."
            raise SourceError("source-header", said, where=self.name, advice=advice)
        named = ds.partitioning(pa.schema(keys), flavor="hive")
        return ds.dataset(paths, pa.schema([*columns, *keys]), "parquet", system, named, root)

    def check_unchanged(self) -> None:
        """Raise SourceError when an object has gone, come or been rewritten since the source was found."""
        if _listed(self.name) != self.listed:
            raise changed(self.name)


def objects(address: str) -> Objects:
    """The Parquet objects under an address. Raises SourceError."""
    found = _listed(address)
    if not found:
        said = "no Parquet object is there"
        raise SourceError("source-missing", said, where=address, advice="Name a folder of the bucket, or one object.")
    return Objects(address, found)


def _listed(address: str) -> Listed:
    """Paths, sizes in bytes, and times in nanoseconds. Raises SourceError."""
    from pyarrow import fs

    try:
        system, root = _system(address)
        info = system.get_file_info(root)
        below = fs.FileSelector(root, recursive=True, allow_not_found=True)
        every = [info] if info.is_file else system.get_file_info(below)
        files = [one for one in every if one.is_file]
        odd = next((one for one in files if not one.path.lower().endswith(ENDINGS) and _is_parquet(system, one)), None)
    except OSError as error:
        raise unreachable(address, error) from None
    if odd is not None:
        said = f"{odd.path} is a Parquet object, and objects are read whose names end in .parquet"
        raise refused(said, address, "Rename it, or name a folder without it.")
    _check_plain(address, [_below(one.path, root) for one in files])
    whole = [one for one in files if one.path.lower().endswith(ENDINGS)]
    return tuple(sorted((one.path, one.size, one.mtime_ns or 0) for one in whole))


def _is_parquet(system: Any, one: Any) -> bool:
    """Whether an object without an ending is a part of a table, as some engines call them."""
    if is_aside([one.base_name]) or not one.size:
        return False
    with system.open_input_file(one.path) as opened:
        return is_parquet(opened.read(4))


def _below(path: str, root: str) -> PurePosixPath:
    """Where an object lies under the table's address."""
    return PurePosixPath(path).relative_to(root)


def _check_plain(address: str, paths: Sequence[PurePosixPath]) -> None:
    """No object says which of the others are the table, and none is a writer's own. Raises SourceError."""
    no_lake(lake_among(paths), address, "Of object stores only Parquet is read: export its rows, or copy it here.")
    left = (one for one in paths if one.name.lower().endswith(ENDINGS))
    if (odd := next((one for one in left if is_aside(one.parts)), None)) is not None:
        said = f"there is {odd}, such as writers leave while they are at work"
        raise refused(said, address, "Run again when it is done, or name a folder without it.")


def _keys(parts: Iterable[str]) -> list[pa.Field]:
    """The columns that folders named key=value are: whole numbers where all are spelt as such, else texts."""
    import pyarrow as pa

    values = dict[str, set[str]]()
    for key, equal, value in (part.partition("=") for part in parts):
        if equal:
            values.setdefault(unquote(key), set()).add(unquote(value))
    return [pa.field(key, pa.int64() if all(map(_is_whole, found)) else pa.string()) for key, found in values.items()]


def _is_whole(value: str) -> bool:
    """Whether a folder's value is a whole number that is spelt in no other way, or missing."""
    return value == MISSING or re.fullmatch(r"0|-?[1-9]\d{0,17}", value) is not None


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
