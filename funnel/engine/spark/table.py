"""Tables in parts: files of this machine, or of a file system that all machines share.

Texts are read by Spark, which knows where a row ends. Parquet is read by the process of each part: Spark would decode
it, turn it into its own rows and these into Arrow, which takes longer than all that is done with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from funnel.engine.sources import Dialect, find
from funnel.engine.sources.base import Source, refused
from funnel.engine.sources.files import Files
from funnel.engine.sources.lines import Lines
from funnel.engine.sources.parquet import WITH_NAN, Parquet
from funnel.engine.sources.text import Text
from funnel.engine.spark.stored import SCHEMES, Stored
from funnel.engine.sql import identifier, listed, literal
from funnel.errors import InternalError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = "arrived"
"""The name under which statements know the table."""
_KEEPS_COLUMNS = "SET disabled_optimizers = 'statistics_propagation,empty_result_pullup,filter_pushdown'"
"""Here the table has no rows; plans are to name the columns that a part would read all the same."""


@dataclass(frozen=True)
class Parted(Source):
    """A table of files that Spark divides; `settings` are Spark's, as the policy has them.

    Columns and types are those that DuckDB finds, so that a policy means the same whichever engine runs.
    """

    name: str
    inner: Files | Stored
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold it."""
        return self.inner.files

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where these lie, for DuckDB to find the types."""
        return self.inner.folders

    @property
    def is_parted(self) -> bool:
        """Spark divides it."""
        return True

    @property
    def is_text(self) -> bool:
        """Whether its columns have no types but guessed ones."""
        return self.inner.is_text

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """The driver's DuckDB knows its columns, and has no rows of it. Raises duckdb.Error."""
        connection.execute(_KEEPS_COLUMNS)
        kinds = listed(f"{identifier(name)} {kind}" for name, kind in self.arriving.items())
        connection.execute(f"CREATE TABLE {ROWS} ({kinds})")

    def reading(self, texts: Sequence[str] = ()) -> str:
        """The SQL that reads the table from what arrives; columns `texts` are the texts that stand there."""
        typed = [
            f"{self._number(name, kind)} AS {identifier(name)}"
            for name, kind in self._guessed.items()
            if kind != "VARCHAR" and name not in texts
        ]
        return f"(SELECT * REPLACE ({listed(typed)}) FROM {ROWS})" if typed else ROWS

    @property
    def as_texts(self) -> str:
        """Every column as a text where types are guessed."""
        return ROWS

    def check_header(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raise SourceError where the names of its columns cannot be used."""
        self.inner.check_header(connection)

    def check_unchanged(self) -> None:
        """Raise SourceError when a file has gone, come or been rewritten since the source was found."""
        self.inner.check_unchanged()

    def _number(self, name: str, kind: str) -> str:
        column = identifier(name)
        if isinstance(self.inner, Text) and self.inner.dialect.decimal == ",":
            column = f"replace({column}, ',', '.')"
        return f"CAST({column} AS {kind})"

    @cached_property
    def _guessed(self) -> dict[str, str]:
        """Columns and types where all that arrives are texts; none where types arrive."""
        return {} if isinstance(self.inner, Parquet | Stored) else self._described

    @cached_property
    def _described(self) -> dict[str, str]:
        """Columns and types, as DuckDB finds them. Raises duckdb.Error, SourceError."""
        if isinstance(self.inner, Stored):
            return self.inner.types
        rows = duckdb.execute(f"DESCRIBE SELECT * FROM {self.inner.reading()}").fetchall()
        return {str(row[0]): str(row[1]) for row in rows}

    @cached_property
    def arriving(self) -> dict[str, str]:
        """Columns and types of what arrives. Raises duckdb.Error."""
        return self._described | dict.fromkeys(self._guessed, "VARCHAR")

    def pieces(self, session: SparkSession) -> tuple[str, ...] | None:
        """For each part of Parquet files the SQL that reads it, in its own process; None of what Spark reads itself.

        Parts are as large as Spark's own settings ask for. Raises duckdb.Error.
        """
        if not isinstance(self.inner, Parquet):
            return None
        told = "SELECT num_rows FROM parquet_file_metadata($1)"
        rows = [int(duckdb.execute(told, [_plain(file)]).fetchall()[0][0]) for file in self.files]
        sizes = [file.stat().st_size for file in self.files]
        most, cost = (_bytes(session, f"spark.sql.files.{name}") for name in ("maxPartitionBytes", "openCostInBytes"))
        even = (sum(sizes) + cost * len(sizes)) // session.sparkContext.defaultParallelism
        return _pieces(list(zip(self.files, sizes, rows, strict=True)), min(most, max(cost, even)), cost)

    def frame(self, session: SparkSession, parts: int | None) -> DataFrame:
        """The table in Spark, before a row of it is read; or the numbers of so many `parts`, one in each."""
        if parts is not None:
            return session.range(0, parts, 1, max(parts, 1))
        if isinstance(self.inner, Stored):
            return self.inner.frame(session)
        reader = session.read
        schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in self.arriving)
        reader = reader.schema(schema).option("mode", "FAILFAST")
        if isinstance(self.inner, Text):
            return reader.options(**_written(self.inner)).csv(self._paths())
        return reader.option("primitivesAsString", "true").json(self._paths())

    def _paths(self) -> list[str]:
        """The files as Hadoop names them, in which no character stands for others."""
        return [_named(file) for file in self.files]


def _pieces(files: Sequence[tuple[Path, int, int]], most: int, cost: int) -> tuple[str, ...]:
    """Parts of at most so many bytes, of files with their bytes and rows, each of which costs as much as `cost` bytes.

    A large file is cut by its rows; small ones are read together.
    """
    parts, room = list[list[str]](), 0
    for file, size, rows in files:
        cuts = max(1, -(-size // most))
        for cut in range(cuts):
            first, last = rows * cut // cuts, rows * (cut + 1) // cuts - 1
            if not parts or room < size // cuts:
                parts.append([])
                room = most
            room -= size // cuts + cost
            options = listed(["file_row_number = true", "hive_types_autocast = false", WITH_NAN])
            read = f"read_parquet({literal(_plain(file))}, {options})"
            parts[-1].append(f"SELECT * FROM {read} WHERE file_row_number BETWEEN {first} AND {last}")
    return tuple(" UNION ALL BY NAME ".join(part) for part in parts)


def _plain(path: Path) -> str:
    """A path in which no character stands for others."""
    return re.sub(r"([*?[])", r"[\1]", str(path.resolve()))


def _bytes(session: SparkSession, setting: str) -> int:
    """A size as Spark's settings are written, 128m."""
    told, machine = session.conf.get(setting), session.sparkContext._jvm
    if machine is None:
        raise InternalError("a session that has begun has no Java")
    return int(machine.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(told))


def _named(path: Path) -> str:
    return "file://" + re.sub(r"([][{}*?\\])", r"\\\1", str(path.resolve()))


def _written(source: Text) -> dict[str, Any]:
    """How a CSV is written, as Spark is told; DuckDB finds out what the policy does not say."""
    told = source.dialect
    asked = f", delim = {literal(told.delimiter)}" if told.delimiter else ""
    first = literal(str(source.files[0]))
    found = duckdb.execute(f"SELECT Delimiter, Quote FROM sniff_csv({first}{asked})").fetchall()
    delimiter, quote = found[0]
    quote = quote if len(quote or "") == 1 and quote.isprintable() else '"'
    return {
        "header": str(told.has_header).lower(),
        "sep": told.delimiter or delimiter,
        "quote": quote,
        "escape": quote,
        "nullValue": "",
        "emptyValue": "",
        "multiLine": "true",
        "encoding": "UTF-8",
        "enforceSchema": "true",
    }


def parted(table: str, directory: Path, dialect: Dialect, settings: Mapping[str, str]) -> Parted:
    """The table that a policy in `directory` names, for Spark; nobody is asked for what would not be read.

    Raises SourceError where it is of a kind that Spark is not asked to read here.
    """
    scheme, address, _ = table.partition("://")
    if address and scheme not in SCHEMES:
        raise _unread(table)
    if address:
        return Parted(table, Stored(table, dict(settings)), dict(settings))
    source = find(table, directory, dialect)
    packed = isinstance(source, Text | Lines) and any(file.suffix.lower() == ".zst" for file in source.files)
    if not isinstance(source, Parquet | Text | Lines) or packed:
        raise _unread(source.name)
    return Parted(source.name, source, dict(settings))


def _unread(where: str) -> SourceError:
    said = "with `engine: spark` tables are Parquet, CSV or JSON lines in files, plain or as .gz, or Parquet in stores"
    advice = "Write the table as Parquet where all machines can read it, or leave `engine` out."
    return refused(said, where, advice)
