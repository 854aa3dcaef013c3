"""Finding and describing a source table on disk."""

from __future__ import annotations

import csv
import glob
import gzip
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import duckdb

from funnel.engines.sql import literal
from funnel.errors import SourceError

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


@dataclass(frozen=True)
class Source:
    """The files of a table and the SQL that reads them; `stamp` tells whether they have changed since."""

    pattern: str
    files: tuple[Path, ...]
    reader: str
    stamp: tuple[tuple[int, int, int], ...]

    @property
    def folder(self) -> Path:
        """The deepest folder without a wildcard: all of the table lies below it."""
        parts = Path(self.pattern).parts
        plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
        return Path(*parts[:plain])

    def check_unchanged(self) -> None:
        """Raise SourceError when a file has gone, come or been rewritten since the source was found."""
        if _stamp(_matches(self.pattern)) != self.stamp:
            raise changed(self.pattern)


def changed(pattern: str) -> SourceError:
    """The error of a source that moved under a run."""
    return SourceError(
        "source-changed",
        "the source table changed or vanished while it was being read",
        where=pattern,
        advice="Nothing was published. Run again when the table is at rest, or point the policy at a snapshot.",
    )


def find(path: Path) -> Source:
    """The source at a path or glob. Raises SourceError when it does not exist or is of an unknown kind."""
    pattern = str(path)
    files = _matches(pattern)
    if not files:
        raise SourceError(
            "source-missing",
            "the source table does not exist",
            where=pattern,
            advice="`source.table` is relative to the policy file; globs such as part-*.parquet are allowed.",
        )
    many = ", union_by_name = true" if glob.has_magic(pattern) else ""
    if pattern.lower().endswith(_PARQUET):
        reader = f"read_parquet({literal(pattern)}{many})"
    elif pattern.lower().endswith(_TEXT):
        # The whole file decides the types: a sample would let the first odd value break a nightly run.
        reader = f"read_csv({literal(pattern)}, header = true, sample_size = -1{many})"
    else:
        raise SourceError(
            "source-unreadable",
            "the source is neither Parquet nor CSV",
            where=pattern,
            advice=f"Its name must end in one of {', '.join(_PARQUET + _TEXT)}.",
        )
    return Source(pattern, files, reader, _stamp(files))


def describe(connection: duckdb.DuckDBPyConnection, source: Source) -> dict[str, str]:
    """Column names and DuckDB types. Raises SourceError when the table cannot be read or its header is unusable."""
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {source.reader}").fetchall()
    except (duckdb.Error, UnicodeDecodeError) as error:
        raise unreadable(source, error) from None
    if source.pattern.lower().endswith(_TEXT):
        for file in source.files:
            _check_header(connection, file)
    return {str(row[0]): str(row[1]) for row in rows}


def unreadable(source: Source, error: Exception) -> SourceError:
    """DuckDB's complaint in one line. An interrupt that DuckDB wrapped is raised again as what it was."""
    if isinstance(error, duckdb.InterruptException) or "interrupt" in str(error).lower():
        raise KeyboardInterrupt
    try:
        source.check_unchanged()
    except SourceError as moved:
        return moved
    if isinstance(error, duckdb.OutOfMemoryException):
        return SourceError(
            "source-unreadable",
            "the table does not fit in the memory allowed",
            where=source.pattern,
            advice="Raise `--memory`, or free disk space for spilling next to `release.private`.",
        )
    return SourceError(
        "source-unreadable",
        f"the source table cannot be read: {str(error).splitlines()[0]}",
        where=source.pattern,
        advice="Check the file's format, encoding and permissions.",
    )


def _matches(pattern: str) -> tuple[Path, ...]:
    names = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207
    return tuple(path for path in map(Path, names) if path.is_file())


def _stamp(files: tuple[Path, ...]) -> tuple[tuple[int, int, int], ...]:
    """Identity, size and time of change of every file."""
    try:
        stats = [file.stat() for file in files]
    except OSError:
        return ()
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def _check_header(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """DuckDB renames equal headers in silence; a policy must not pick one of them by luck."""
    row = connection.execute(f"SELECT Delimiter, Quote FROM sniff_csv({literal(str(file))})").fetchone()
    delimiter, quote = row if row else (",", '"')
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8-sig", newline="") as handle:
        line = handle.readline(1 << 20)
    quote = quote if len(quote or "") == 1 and quote.isprintable() else '"'
    names = next(csv.reader(io.StringIO(line), delimiter=delimiter or ",", quotechar=quote), [])
    repeated = [name for name, times in Counter(name.strip().lower() for name in names).items() if times > 1]
    if repeated or any(not name.strip() for name in names):
        what = f"the column name {repeated[0]!r} appears twice" if repeated else "a column has no name"
        raise SourceError(
            "source-header",
            f"{what} in the header",
            where=str(file),
            advice="Give every column a name of its own.",
        )
