"""Finding and describing a source table on disk."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import duckdb

from funnel.engine.sql import listed, literal
from funnel.errors import SourceError

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_OF_VALUES = (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException)
"""Complaints that name the values they are about."""


@dataclass(frozen=True)
class Source:
    """The files of a table; `stamp` tells whether they have changed since they were found."""

    pattern: str
    files: tuple[Path, ...]
    stamp: tuple[tuple[int, ...], ...]

    @property
    def is_text(self) -> bool:
        """Whether the table is CSV, whose types are a guess."""
        return self.pattern.lower().endswith(_TEXT)

    @property
    def reader(self) -> str:
        """The SQL that reads the table."""
        return self.reading(())

    def reading(self, texts: Sequence[str]) -> str:
        """The SQL that reads the table, with the columns `texts` of a CSV as the text that stands there."""
        many = ", union_by_name = true" if glob.has_magic(self.pattern) else ""
        if not self.is_text:
            return f"read_parquet({literal(self.pattern)}{many})"
        # The whole file decides the types: a sample would let the first odd value break a nightly run. Only
        # numbers are guessed; dates and booleans would be rewritten into another spelling.
        options = "header = true, sample_size = -1, auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR']"
        if texts:
            kept = listed(f"{literal(name)}: 'VARCHAR'" for name in texts)
            options += f", types = {{{kept}}}"
        return f"read_csv({literal(self.pattern)}, {options}{many})"

    @property
    def as_texts(self) -> str:
        """The SQL that reads a CSV in one pass: every column as the text that stands there."""
        many = ", union_by_name = true" if glob.has_magic(self.pattern) else ""
        return f"read_csv({literal(self.pattern)}, header = true, all_varchar = true{many})"

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
    if re.search(r"[\ud800-\udfff]", str(path.absolute())):
        said = "the path of the table holds bytes that are no text, and the engine takes none"
        raise _refused(said, pattern, "Rename the folder or the file that is not named in UTF-8.")
    files = _matches(pattern)
    if not files:
        raise SourceError(
            "source-missing",
            "the source table does not exist",
            where=pattern,
            advice="`source.table` is relative to the policy file; globs such as part-*.parquet are allowed.",
        )
    if not pattern.lower().endswith(_PARQUET + _TEXT):
        endings = ", ".join(_PARQUET + _TEXT)
        said = "the source is neither Parquet nor CSV"
        raise _refused(said, pattern, f"Its name must end in one of {endings}.")
    return Source(pattern, files, _stamp(files))


def _refused(said: str, where: object, advice: str) -> SourceError:
    """The error of a table that is there and cannot be read."""
    return SourceError("source-unreadable", said, where=str(where), advice=advice)


def describe(connection: duckdb.DuckDBPyConnection, source: Source, *, texts: bool = False) -> dict[str, str]:
    """Column names and DuckDB types; with `texts` a CSV is not read as a whole to find them, and all are texts.

    Raises SourceError when the table cannot be read or its header is unusable.
    """
    reader = source.as_texts if texts else source.reader
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:
        raise unreadable(source, error) from None
    for file in source.files:
        _check_names(_header(connection, file) if source.is_text else _parquet_names(file), file)
    if source.is_text and len(rows) == 1:
        _check_fields(source)
    return {str(row[0]): str(row[1]) for row in rows}


def unreadable(source: Source, error: Exception) -> SourceError:
    """DuckDB's complaint in one line. An interrupt that DuckDB wrapped is raised again as what it was."""
    if isinstance(error, duckdb.InterruptException) or "interrupt" in str(error).lower():
        raise KeyboardInterrupt
    try:
        source.check_unchanged()
    except SourceError as moved:
        return moved
    told = str(error).lower()
    if isinstance(error, duckdb.OutOfMemoryException):
        said = "the table does not fit in the memory allowed"
        advice = "Raise `--memory`, or free disk space for spilling next to `release.private`."
    elif isinstance(error, UnicodeDecodeError) or "utf-8" in told or "unicode" in told:
        said = "the source table is not UTF-8 text"
        advice = "Convert it, for example with `iconv -f latin1 -t utf-8`."
    elif isinstance(error, _OF_VALUES):
        said = f"the source table holds what cannot be read ({type(error).__name__})"
        advice = "Check the types of its columns, and what the filter makes of them."
        values = str(error).splitlines()[0]
        return SourceError("source-unreadable", said, where=source.pattern, values=values, advice=advice)
    else:
        said = f"the source table cannot be read: {str(error).splitlines()[0]}"
        advice = "Check the file's format, encoding and permissions."
    return _refused(said, source.pattern, advice)


def _matches(pattern: str) -> tuple[Path, ...]:
    """The files that DuckDB will read for a pattern, which are not all that Python would find."""
    if not glob.has_magic(pattern):
        return (Path(pattern),) if Path(pattern).is_file() else ()
    found = duckdb.execute("SELECT file FROM glob($1)", [pattern]).fetchall()
    files = tuple(sorted(Path(row[0]) for row in found))
    hidden = next((file for file in files if file.name.startswith(".")), None)
    if hidden is not None:
        said = f"the pattern also matches the hidden file {hidden.name}, such as copying tools leave behind"
        raise _refused(said, pattern, "Remove it, or narrow the pattern: its rows would count as people.")
    return files


def _stamp(files: tuple[Path, ...]) -> tuple[tuple[int, ...], ...]:
    """Identity, size, and times of change of every file; the time of the inode cannot be set back."""
    try:
        stats = [file.stat() for file in files]
    except OSError:
        return ()
    return tuple(
        (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for stat in stats
    )


def _header(connection: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
    """The names in a CSV's first line, as they stand there."""
    row = connection.execute(f"SELECT Delimiter, Quote FROM sniff_csv({literal(str(file))})").fetchone()
    delimiter, quote = row if row else (",", '"')
    with _open(file) as handle:
        line = handle.readline(1 << 20)
    quote = quote if len(quote or "") == 1 and quote.isprintable() else '"'
    return next(csv.reader(io.StringIO(line), delimiter=delimiter or ",", quotechar=quote), [])


def _parquet_names(file: Path) -> list[str]:
    """The names of a Parquet file's columns."""
    import pyarrow.parquet as pq

    names: list[str] = pq.read_schema(file).names
    return names


def _check_names(names: list[str], file: Path) -> None:
    """DuckDB renames equal headers in silence; a policy must not pick one of them by luck."""
    repeated = [name for name, times in Counter(name.strip().lower() for name in names).items() if times > 1]
    if repeated or any(not name.strip() for name in names):
        what = f"the column name {repeated[0]!r} appears twice" if repeated else "a column has no name"
        raise SourceError(
            "source-header",
            f"{what} in the header (upper and lower case are the same)",
            where=str(file),
            advice="Give every column a name of its own.",
        )


def _check_fields(source: Source) -> None:
    """A CSV that reads as one column while its header holds several: say which line breaks the table."""
    for file in source.files:
        with _open(file) as handle:
            header = handle.readline(1 << 20)
            delimiter = max(",;\t|", key=header.count)
            width = header.count(delimiter) + 1
            rows = csv.reader(handle, delimiter=delimiter)
            for row in rows if width > 1 else ():
                if row and len(row) != width:
                    said = f"line {rows.line_num + 1} has {len(row)} fields, the header has {width}"
                    advice = "Give every line the same number of fields, and quote values that hold a delimiter."
                    raise _refused(said, file, advice)


def _open(file: Path) -> IO[str]:
    """A CSV file as text."""
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open("rt", encoding="utf-8-sig", newline="")
