"""Tables that are files: one, those of a pattern, or all of a kind in a folder of partitions."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from funnel.data.alphabet import folded
from funnel.engine.sources.base import Source, changed, refused
from funnel.engine.sources.folders import check_apart, check_reached
from funnel.engine.sql import identifier, listed, literal
from funnel.errors import SourceError

Stamp = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Files(Source):
    """The files of a table; `stamp` tells whether they have changed since they were found.

    `pattern` is the path or the glob that DuckDB reads, `name` as the policy has it.
    """

    name: str
    pattern: str
    found: tuple[Path, ...]
    stamp: Stamp

    @property
    def files(self) -> tuple[Path, ...]:
        """Those that were found."""
        return self.found

    @property
    def folders(self) -> tuple[Path, ...]:
        """The deepest folder without a wildcard: all of the table lies below it, but for what links lead to."""
        parts = Path(self.pattern).parts
        plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
        folder = Path(*parts[:plain])
        below = {one.resolve().parent for one in self.files}
        return (folder, *sorted(one for one in below if not one.is_relative_to(folder.resolve())))

    @property
    def many(self) -> list[str]:
        """What DuckDB is told of several files: columns go by name, and folders named key=value are columns."""
        return ["union_by_name = true"] if glob.has_magic(self.pattern) else []

    def check_unchanged(self) -> None:
        """Raise SourceError when a file has gone, come or been rewritten since the source was found."""
        if stamp_of(matches(self.pattern)) != self.stamp:
            raise changed(self.name)

    def _call(self, function: str, options: Sequence[str]) -> str:
        return f"{function}({listed([literal(self.pattern), *options, *self.many])})"


def matches(pattern: str) -> tuple[Path, ...]:
    """The files that DuckDB will read for a pattern, which are not all that Python would find. Raises SourceError."""
    if not glob.has_magic(pattern):
        return (Path(pattern),) if Path(pattern).is_file() else ()
    check_reached(pattern)
    try:
        found = duckdb.execute("SELECT file FROM glob($1)", [pattern]).fetchall()
    except duckdb.Error as error:
        said = f"what the pattern finds cannot be read ({type(error).__name__})"
        raise refused(said, pattern, "Rename folders and files that are not named in UTF-8.") from None
    files = tuple(sorted(Path(row[0]) for row in found))
    check_apart(pattern, files)
    return files


def stamp_of(files: tuple[Path, ...]) -> Stamp:
    """Identity, size, and times of change of every file; the time of the inode cannot be set back."""
    try:
        stats = [file.stat() for file in files]
    except OSError:
        return ()
    return tuple(
        (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for stat in stats
    )


def read_of(function: str, file: Path, *options: str) -> str:
    """The SQL that reads one file by itself."""
    return f"{function}({listed([literal(str(file)), *options])})"


def check_folders(
    connection: duckdb.DuckDBPyConnection, names: Mapping[Path, Sequence[str]], read: Callable[[Path, str], str]
) -> None:
    """Folders named key=value are columns where all files are in some, and DuckDB has them in place of a file's own.

    `names` are those in each file, `read` gives the SQL that reads one with one more option. Raises SourceError where a
    file has a column of that name with other values, duckdb.Error.
    """
    folders = ([part.partition("=") for part in file.parent.parts] for file in names)
    keys = [{folded(key) for key, equal, _ in parts if equal} for parts in folders]
    columns = set.intersection(*keys) if keys else set[str]()
    for file, name in [(one, name) for one, known in names.items() for name in known if folded(name) in columns]:
        text = f"CAST({identifier(name)} AS VARCHAR)"
        own, folder = (
            set(connection.execute(f"SELECT DISTINCT {text} FROM {read(file, one)}").fetchall())
            for one in ("hive_partitioning = false", "hive_partitioning = true, hive_types_autocast = false")
        )
        if own != folder:
            raise SourceError(
                "source-header",
                f"the column {name!r} has other values than the folder of that name (key=value), which is a column "
                "too (upper and lower case are the same)",
                where=str(file),
                advice="Which of the two is meant nobody can tell: leave one of them out, or give it another name.",
            )
