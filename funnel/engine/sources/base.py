"""What a source is to everybody else: a name, files or none, SQL that reads it, and a word on whether it has moved."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from funnel.engine.sql import listed
from funnel.errors import SourceError

if TYPE_CHECKING:
    from funnel.engine.sources.seen import Columns

TROUBLE = (duckdb.Error, RuntimeError, UnicodeDecodeError, OSError)
"""What reading a source through DuckDB can raise."""
_OF_VALUES = (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException)
"""Complaints that name the values they are about."""
_OF_FILES = ("parquet file", "magic bytes")
"""What complaints of the same kind say where they are about a file as a whole."""


class Source:
    """A table as the policy names it; found once, and read twice. What is here holds where a kind says nothing else.

    `name` is what people call it, never with a password.
    """

    name: str

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold it; none where no file of this machine does that anybody else may ask for."""
        return ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where they lie that the engine has to reach after its doors are shut."""
        return ()

    @property
    def is_text(self) -> bool:
        """Whether its columns have no types but guessed ones."""
        return False

    def is_headed(self) -> bool:
        """Whether the first line of a CSV seems to hold names. Raises SourceError where the table is none."""
        raise refused("only a CSV can be given other names for its columns", self.name, "Leave `--names` out.")

    @property
    def is_parted(self) -> bool:
        """Whether its rows are never all in one process."""
        return False

    @property
    def version(self) -> str | None:
        """Which state of the table it is, where tables have states with names."""
        return None

    def counting(self, seen: Columns) -> Source | None:
        """The same table as one that counts distinct rows of columns by itself; None where rows have to come.

        What it then gives are rows with the same counts, each column no finer than it is `seen`.
        """
        return None

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make its columns known to a connection that may reach everything still. Raises SourceError, duckdb.Error."""

    def fetch(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> None:
        """Bring in the rows of these columns, where they are not read in place. Raises SourceError, duckdb.Error."""

    def reading(self, texts: Sequence[str] = ()) -> str:
        """The SQL that reads the table; columns `texts` are the texts that stand there where types are guessed."""
        raise NotImplementedError

    @property
    def as_texts(self) -> str:
        """The SQL that reads it in one pass, every column as a text where types are guessed."""
        return self.reading()

    def check_header(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raise SourceError where the names of its columns cannot be used."""

    def check_unchanged(self) -> None:
        """Raise SourceError (source-changed) when it has moved since it was found."""


def changed(name: str) -> SourceError:
    """The error of a source that moved under a run."""
    return SourceError(
        "source-changed",
        "the source table changed or vanished while it was being read",
        where=name,
        advice="Nothing was published. Run again when the table is at rest, or point the policy at a snapshot.",
    )


def missing(name: str) -> SourceError:
    """The error of a source that is not there."""
    return SourceError(
        "source-missing",
        "the source table does not exist",
        where=name,
        advice="`source.table` is relative to the policy file; globs such as part-*.parquet and folders are allowed.",
    )


def refused(said: str, where: object, advice: str) -> SourceError:
    """The error of a table that is there and cannot be read."""
    return SourceError("source-unreadable", said, where=str(where), advice=advice)


def empty(where: object) -> SourceError:
    """The error of a file without a first record, nor names."""
    return SourceError("source-empty", "the file is empty", where=str(where), advice="Check what writes it.")


def is_empty(file: Path) -> bool:
    """Whether nothing stands in a file, packed or not, but for a mark of its encoding."""
    import pyarrow as pa

    with suppress(OSError, pa.ArrowException), pa.input_stream(str(file), compression="detect") as stream:
        return stream.read(4) in (b"", codecs.BOM_UTF8)
    return False


def unreadable(source: Source, error: Exception) -> SourceError:
    """DuckDB's complaint in one line. An interrupt that DuckDB wrapped is raised again as what it was."""
    if isinstance(error, duckdb.InterruptException) or "interrupt" in str(error).lower():
        raise KeyboardInterrupt
    try:
        source.check_unchanged()
    except SourceError as moved:
        return moved
    told = str(error).lower()
    if source.files and all(map(is_empty, source.files)):
        return empty(source.name)
    if isinstance(error, duckdb.OutOfMemoryException):
        said = "the table does not fit in the memory allowed"
        advice = "Raise `--memory`, or free disk space for spilling next to `release.private`."
    elif "error when sniffing" in told:  # before UTF-8, which this complaint names among all that it tried
        said = "the lines of the table do not fit together"
        advice = "Give every line as many fields and the same kind of end, and quote values that hold a delimiter."
    elif isinstance(error, UnicodeDecodeError) or "utf-8" in told or "unicode" in told:
        said = "the source table is not UTF-8 text"
        advice = "Convert it, for example with `iconv -f latin1 -t utf-8`; from Excel, `-f utf-16` may be right."
    elif isinstance(error, _OF_VALUES) and not any(word in told for word in _OF_FILES):
        said = f"the source table holds what cannot be read ({type(error).__name__})"
        advice = (
            "Check the types of its columns, what the filter makes of them, and whether a number is too large for "
            "`round`."
        )
        values = str(error).splitlines()[0]
        return SourceError("source-unreadable", said, where=source.name, values=values, advice=advice)
    else:
        said = f"the source table cannot be read: {str(error).splitlines()[0]}"
        advice = "Check the file's format, encoding and permissions."
    return refused(said, source.name, advice)


_NAME = "Give every column a name of its own, there."
HEADED = (
    "Give every column a name of its own, there, with `--names` of `funnel init`, or in the policy: "
    "`csv: {header: true, names: [...]}` under `source`."
)
"""What helps a CSV, whose columns can be given other names."""


def check_names(names: Sequence[str], where: object, advice: str = _NAME) -> None:
    """DuckDB renames equal columns in silence; a policy must not pick one of them by luck. Raises SourceError."""
    repeated = [name for name, times in Counter(name.strip().lower() for name in names).items() if times > 1]
    blank = [str(place) for place, name in enumerate(names, start=1) if not name.strip()]
    if blank:
        what = f"column {blank[0]} has" if len(blank) == 1 else f"columns {listed(blank)} have"
        raise SourceError("source-header", f"{what} no name in the header", where=str(where), advice=advice)
    if repeated:
        raise SourceError(
            "source-header",
            f"the column name {repeated[0]!r} is there twice (upper and lower case are the same, and so are blanks "
            "around a name and none)",
            where=str(where),
            advice=advice,
        )
