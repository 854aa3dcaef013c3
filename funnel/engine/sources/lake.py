"""Tables of lakehouses: a folder with the log of a Delta table, or with the metadata of an Iceberg table.

The version that is found is the one that is read, whatever is written meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from funnel.engine.library import library
from funnel.engine.sources.base import refused
from funnel.engine.sources.pulled import Pulled
from funnel.errors import SourceError
from funnel.text import listed

if TYPE_CHECKING:
    import pyarrow as pa


_LOG, _HUDI, _METADATA = "_delta_log", ".hoodie", ".metadata.json"
"""What tells tables of Delta, Hudi and Iceberg."""
_MAPPING = "delta.columnMapping.mode"


@dataclass(frozen=True)
class Delta(Pulled):
    """A version of a Delta table."""

    name: str
    number: int

    @property
    def version(self) -> str:
        """The version's number."""
        return f"Delta version {self.number}"

    def rows(self, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        """The rows of these columns; None: all columns and no rows. Raises SourceError."""
        module = library("deltalake", "delta", self.name)
        try:
            table = module.DeltaTable(self.name, version=self.number)
            dataset = table.to_pyarrow_dataset()
        except module.exceptions.DeltaError as error:
            raise _damaged("Delta", self.name, error) from None
        return dataset.scanner(**_asked(dataset.schema.names, columns)).to_reader()


@dataclass(frozen=True)
class Iceberg(Pulled):
    """A snapshot of an Iceberg table, without a catalogue's service: its metadata file says all."""

    name: str
    metadata: str
    snapshot: int | None

    @property
    def version(self) -> str:
        """The snapshot's number."""
        return f"Iceberg snapshot {self.snapshot}"

    def rows(self, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        """The rows of these columns; None: all columns and no rows. Raises SourceError."""
        table = library("pyiceberg.table", "iceberg", self.name).StaticTable.from_metadata(self.metadata)
        names = [field.name for field in table.schema().fields]
        chosen = names if columns is None else [name for name in names if name in columns]
        limit = 0 if columns is None else None
        # The current snapshot, that of the file: were it named, columns would be called what they were called then.
        try:
            return table.scan(selected_fields=tuple(chosen or names[:1]), limit=limit).to_arrow_batch_reader()
        except ValueError as error:
            if "not yet support" not in str(error):
                raise
            said = f"the source table cannot be read: {error}"
            raise refused(said, self.name, "Compact the table: its files are then written without such rows.") from None


def delta(folder: Path) -> Delta:
    """The newest version of a Delta table. Raises SourceError."""
    module = library("deltalake", "delta", str(folder))
    try:
        table = module.DeltaTable(str(folder))
    except module.exceptions.DeltaError as error:
        raise _damaged("Delta", str(folder), error) from None
    # Its files call columns otherwise than the table does; the library reads them by the names in the files.
    if table.metadata().configuration.get(_MAPPING, "none") != "none":
        said = f"the Delta table calls its columns otherwise than its files do (`{_MAPPING}`), which cannot be read"
        raise refused(said, folder, "Write it anew without that, or export its rows.")
    return Delta(str(folder), table.version())


def iceberg(folder: Path) -> Iceberg:
    """The current snapshot of an Iceberg table. Raises SourceError."""
    module, newest = library("pyiceberg.table", "iceberg", str(folder)), str(_newest(folder))
    try:
        snapshot = module.StaticTable.from_metadata(newest).current_snapshot()
    except (ValueError, OSError, library("pyiceberg.exceptions", "iceberg", "").ValidationError) as error:
        raise _damaged("Iceberg", str(folder), error) from None
    return Iceberg(str(folder), newest, None if snapshot is None else snapshot.snapshot_id)


def _newest(folder: Path) -> Path:
    """The metadata file of the highest version, with which its name begins: dates change when a table is copied.

    Raises SourceError where that could be several.
    """
    versions = {file: re.match(r"v?(\d+)[-.]", file.name) for file in _metadata(folder)}
    numbers = {file: int(found[1]) for file, found in versions.items() if found}
    highest = max(numbers.values(), default=None)
    newest = [file for file in versions if numbers.get(file, highest) == highest]
    if len(newest) > 1:
        raise refused(
            f"which is the table's current version, its names do not say: {listed(sorted(f.name for f in newest))}",
            folder,
            "Leave that one in `metadata` which the table's catalogue names, and move the others away.",
        )
    return newest[0]


def is_delta(folder: Path) -> bool:
    """Whether a folder is a Delta table."""
    return (folder / _LOG).is_dir()


def is_iceberg(folder: Path) -> bool:
    """Whether a folder is an Iceberg table."""
    return any(_metadata(folder))


def _metadata(folder: Path) -> Iterator[Path]:
    return (folder / "metadata").glob(f"*{_METADATA}")


def lake_of(folder: Path) -> str | None:
    """What kind of lake's table a folder is, of which not every file is a part any more."""
    kinds = {"Delta": is_delta(folder), "Iceberg": is_iceberg(folder), "Hudi": (folder / _HUDI).is_dir()}
    return next((kind for kind, is_one in kinds.items() if is_one), None)


def lake_among(paths: Iterable[PurePath]) -> str | None:
    """The same, told by what lies somewhere below one or several such folders."""
    return next(filter(None, map(_told_by, paths)), None)


def _told_by(path: PurePath) -> str | None:
    if path.parent.name == "metadata" and path.name.endswith(_METADATA):
        return "Iceberg"
    return next((kind for name, kind in ((_LOG, "Delta"), (_HUDI, "Hudi")) if name in path.parts), None)


def no_lake(kind: str | None, where: object, advice: str = "Name the folder of that table itself.") -> None:
    """Refuse to read the files of a lake as if all were a part of it. Raises SourceError."""
    if kind is not None:
        said = f"{'an' if kind == 'Iceberg' else 'a'} {kind} table is there, and not every file of it is a part of it"
        raise refused(said, where, "No such table is read: export its rows." if kind == "Hudi" else advice)


def _asked(names: Sequence[str], columns: Sequence[str] | None) -> dict[str, Any]:
    """What a scanner is asked for: some columns, or no rows."""
    import pyarrow.compute as pc

    if columns is None:
        return {"filter": pc.scalar(False)}
    return {"columns": [name for name in names if name in columns] or list(names[:1])}


def _damaged(kind: str, where: str, error: Exception) -> SourceError:
    return refused(
        f"the {kind} table cannot be read ({type(error).__name__})", where, "Check its log and its files."
    )
