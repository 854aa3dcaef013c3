"""The released table, as counts of its distinct rows in the order in which they stand."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.audit.fields import Label
from funnel.audit.findings import broken
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Blocks
from funnel.audit.unary import UnaryBlock, released_columns
from funnel.errors import AuditFailure

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_TUPLES = 4_000_000
_LONGEST_HEADER = 1 << 20
_MEMORY = "4GB"
_CSV = (
    "header=true, auto_detect=false, delim=',', quote='\"', escape='\"', nullstr='', "
    "allow_quoted_nulls=false, strict_mode=true, parallel=false, hive_partitioning=false"
)
_SCALAR = re.compile(
    r"VARCHAR|BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|DATE|TIME.*|UUID|INTERVAL"
)
"""Types whose text is all that a value says."""


@dataclass(frozen=True)
class Run:
    """One distinct row: its values by column, how often it occurs, and the places of its first and last."""

    row: Label
    count: int
    first: int
    last: int


@dataclass(frozen=True)
class Table:
    """The released table: number of rows, and distinct rows ordered by first occurrence."""

    file: str
    rows: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """A data file, a database that reads it, the columns that it should have, and those that a CSV file quotes."""

    path: Path
    connection: DuckDBPyConnection
    columns: list[str]
    quoted: list[str]

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query over the file. Raises AuditFailure when the file is not what its name says."""
        import duckdb

        try:
            return self.connection.execute(query).fetchall()
        except (duckdb.Error, UnicodeError) as error:
            raise _unreadable(self.path, error) from error

    def copy(self, target: Path, columns: list[str]) -> None:
        """Write the texts of these columns as CSV, row by row in order. Raises AuditFailure."""
        always = f", FORCE_QUOTE ({', '.join(map(_quoted, self.quoted))})" if self.quoted else ""
        named = ", ".join(f"c{index} AS {_quoted(name)}" for index, name in enumerate(columns))
        self.ask(
            f"COPY (SELECT {named} FROM ({_scan(self, columns)})) TO {_text(str(target))} (FORMAT csv, HEADER{always})"  # noqa: S608
        )

    @property
    def is_parquet(self) -> bool:
        """Parquet, else CSV."""
        return self.path.suffix == ".parquet"


def read_columns(path: Path, manifest: Manifest, blocks: Blocks | None = None) -> tuple[Source, str]:
    """The table, once its columns are exactly those released, of plain values. Raises AuditFailure."""
    names = manifest.columns if blocks is None else released_columns(blocks)
    lists = [
        block.released for block in blocks or () if isinstance(block, UnaryBlock) and block.form == "set"
    ]
    source = Source(path, _connection(), names, [name for own in lists for name in own])
    found, hidden = _parquet_columns(source) if source.is_parquet else (_csv_columns(path), [])
    if [name for name, _ in found] != names:
        raise broken(path.name, "the columns are not the public ones", expected=names, found=found)
    if odd := [(name, kind) for name, kind in found if not _SCALAR.fullmatch(kind)]:
        raise broken(
            path.name, "a column holds more than plain values", expected="text or numbers", found=odd
        )
    if hidden:
        raise broken(path.name, "the file carries more than its table", expected="no metadata", found=hidden)
    return source, ", ".join(repr(name) for name in names)


def read_rows(source: Source, manifest: Manifest) -> tuple[Table, str]:
    """The table's distinct rows; as many rows as the manifest states. Raises AuditFailure."""
    names = ", ".join(f"c{index}" for index in range(len(source.columns)))
    found = source.ask(
        f"SELECT {names}, count(*), min(place) AS first, max(place) "  # noqa: S608  names and paths are quoted
        f"FROM ({_scan(source, source.columns)}) GROUP BY {names} ORDER BY first LIMIT {MOST_TUPLES + 1}"
    )
    if len(found) > MOST_TUPLES:
        raise broken(source.path.name, "too many distinct rows", expected=MOST_TUPLES, found=len(found))
    runs = tuple(Run(tuple(parts[:-3]), *parts[-3:]) for parts in found)
    rows = sum(run.count for run in runs)
    lines = rows if source.is_parquet else _records(source.path) - 1
    if not rows == lines == manifest.rows:
        raise broken(
            source.path.name,
            "the table has another number of rows",
            expected=manifest.rows,
            found=f"{rows} rows in {lines} lines",
        )
    return Table(source.path.name, rows, runs), f"{rows} rows, {len(runs)} of them distinct"


def encode(table: Table, blocks: Blocks) -> tuple[dict[tuple[int, ...], int], str]:
    """Count of every released tuple of output codes (y_1, …, y_k).

    Raises AuditFailure when a value is no output of its block, or one that no input can produce.
    """
    codes = [
        block.coder() if isinstance(block, UnaryBlock) else _coder(block.outputs, block.possible)
        for block in blocks
    ]
    counts = {}
    for run in table.runs:
        code = tuple(find(part) for find, part in zip(codes, _parts(run.row, blocks), strict=True))
        if -1 in code:
            raise broken(
                table.file,
                f"row {run.first + 1} holds a value that the protocol cannot produce",
                expected="an output with a positive weight",
                found=run.row,
            )
        counts[code] = run.count
    return counts, f"{len(counts)} distinct combinations, all of them outputs"


def ordered(table: Table, blocks: Blocks) -> str:
    """The order of the rows is a function of the values alone. Raises AuditFailure.

    Equal rows standing together would not be enough: which group comes first could still tell whose row was
    first in the source. So the groups must follow one of the fixed orders: that of the protocol's outputs, or
    that of the texts, column by column, missing values last or first.
    """
    place = 0
    for run in table.runs:
        if run.first != place or run.last - run.first + 1 != run.count:
            raise broken(
                table.file,
                "equal rows do not stand together",
                expected=f"{run.row} only in one place",
                found=f"rows {run.first + 1} to {run.last + 1}, {run.count} of them",
            )
        place = run.last + 1
    orders = {
        "in the order of the protocol's outputs": _by_output(blocks),
        "by text, missing values last": _by_text(missing_last=True),
        "by text, missing values first": _by_text(missing_last=False),
    }
    for name, key in orders.items():
        if _rises(key(run.row) for run in table.runs):
            return name
    raise broken(
        table.file,
        "the rows are not sorted by released value",
        expected=" | ".join(orders),
        found="another order",
    )


def _rises(keys: Iterator[Any]) -> bool:
    before = next(keys, None)
    for key in keys:
        if not before < key:
            return False
        before = key
    return True


def _by_output(blocks: Blocks) -> Callable[[Label], Any]:
    codes = [
        block.coder() if isinstance(block, UnaryBlock) else _coder(block.outputs, block.outputs)
        for block in blocks
    ]
    return lambda row: tuple(find(part) for find, part in zip(codes, _parts(row, blocks), strict=True))


def _by_text(*, missing_last: bool) -> Callable[[Label], Any]:
    return lambda row: tuple(((part is None) == missing_last, part or "") for part in row)


def _coder(outputs: tuple[Label, ...], wanted: tuple[Label, ...]) -> Callable[[Label], int]:
    """From a value to its code, -1 where it is not wanted."""
    among = set(wanted)
    known = {label: code for code, label in enumerate(outputs) if label in among}
    return lambda label: known.get(label, -1)


def _parts(row: Label, blocks: Blocks) -> Iterator[Label]:
    """A row cut into its blocks' values."""
    start = 0
    for block in blocks:
        width = len(block.released if isinstance(block, UnaryBlock) else block.columns)
        yield row[start : start + width]
        start += width


def _scan(source: Source, columns: list[str]) -> str:
    """SQL: the columns as texts c0, c1, … and the row's place in the file, from 0."""
    named = ", ".join(f"CAST({_quoted(name)} AS VARCHAR) AS c{index}" for index, name in enumerate(columns))
    if source.is_parquet:
        file = f"read_parquet({_literal(source.path)}, hive_partitioning=false)"
    else:
        types = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in columns)
        file = f"read_csv({_literal(source.path)}, columns={{{types}}}, {_CSV})"
    return f"SELECT {named}, row_number() OVER () - 1 AS place FROM {file}"  # noqa: S608  quoted above


def _parquet_columns(source: Source) -> tuple[list[tuple[str, str]], list[str]]:
    """Names and types, and the keys of any metadata beside the table."""
    path = _literal(source.path)
    described = source.ask(f"DESCRIBE SELECT * FROM read_parquet({path}, hive_partitioning=false)")  # noqa: S608
    keys = source.ask(f"SELECT key FROM parquet_kv_metadata({path})")  # noqa: S608
    return [(name, kind) for name, kind, *_ in described], [str(key) for (key,) in keys]


def _csv_columns(path: Path) -> list[tuple[str, str]]:
    """The header's names; a CSV file holds nothing but text."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            head = io.StringIO(file.read(_LONGEST_HEADER), newline="")
        header = next(csv.reader(head, strict=True), [])
    except (OSError, ValueError, csv.Error) as error:
        raise _unreadable(path, error) from error
    return [(name, "VARCHAR") for name in header]


def _records(path: Path) -> int:
    """Lines of a CSV file that end outside quotes: what a reader skips without a word must not hide there."""
    quotes = ends = 0
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            for piece in chunk.split(b'"'):
                ends += piece.count(b"\n") if quotes % 2 == 0 else 0
                quotes += 1
            quotes -= 1
            last = chunk[-1:]
    if quotes % 2 or last != b"\n":
        raise broken(
            path.name, "the last line is not whole", expected="a line end outside quotes", found=last
        )
    return ends


def _connection() -> DuckDBPyConnection:
    """A database of its own: no temporary files, no extension fetched, bounded memory."""
    import duckdb

    return duckdb.connect(":memory:", config={
        "temp_directory": "", "memory_limit": _MEMORY, "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    })  # fmt: skip


def _unreadable(path: Path, error: Exception) -> AuditFailure:
    return broken(
        path.name, "the table cannot be read", expected=f"a {path.suffix[1:]} file", found=str(error)
    )


def _literal(path: Path) -> str:
    """A path as an SQL text that matches this one file, whatever wildcards its folders' names hold."""
    return _text("".join(f"[{ch}]" if ch in "*?[" else ch for ch in str(path)))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
