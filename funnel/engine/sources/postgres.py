"""A table or view in PostgreSQL: postgresql://user@host/database#schema.table, read through ADBC.

One statement in a read-only transaction, so that what comes is one snapshot. Where statements do not ask whose a row
is, the database counts its distinct rows, and nothing else leaves it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from funnel.engine.postgres import COLUMNS, Address, Refusal, connected
from funnel.engine.sources.base import refused
from funnel.engine.sources.grouping import groups
from funnel.engine.sources.pulled import TABLE, Pulled, bring
from funnel.engine.sources.seen import Columns
from funnel.engine.sql import identifier, listed
from funnel.errors import SourceError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_PLAIN = {
    "boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "character varying", "date",
    "timestamp without time zone",
}  # fmt: skip
_OWN = {
    "42501": (
        "the role may not read the table",
        "Grant it SELECT on the table or view, and USAGE on its schema.",
    )
}
_SPELT = (
    "TimeZone = 'UTC'", "DateStyle = 'ISO'", "IntervalStyle = 'postgres'", "bytea_output = 'hex'",
    "extra_float_digits = 1", "lc_monetary = 'C'",
)  # fmt: skip
"""How values are told as texts, whatever a session, a role or a database says of them."""
_PIECE = 1 << 16
"""Most rows that one count stands for here: the engine makes lists of them."""
_YEARS = 30 * 365 + 7
"""Days from the first day of the engine's calendar to that of PostgreSQL's."""


@dataclass(frozen=True)
class Postgres(Pulled):
    """A table by its address, which is what messages say as well.

    `seen` says how coarsely its columns are looked at where only counts of its rows are asked for; None: its rows are.
    """

    name: str
    address: Address
    seen: Columns | None = None

    @classmethod
    def at(cls, text: str) -> Postgres:
        """The table at an address."""
        return cls(text, Address.of(text))

    def counting(self, seen: Columns) -> Postgres:
        """The same table, counted where it is."""
        return replace(self, seen=seen)

    def fetch(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> None:
        """The rows, or what makes them again: distinct ones, and how often each is there. Raises SourceError."""
        if self.seen is None:
            super().fetch(connection, columns)
            return
        wanted = list[str]()
        with self._read(lambda kinds: self._counted(kinds, columns, wanted)) as reader:
            bring(connection, reader, "counted")
        names = listed(f"c{i}" for i in range(len(wanted)))
        shown = listed(f"c{i} AS {identifier(name)}" for i, name in enumerate(wanted)) or "1 AS present"
        connection.execute(
            f"CREATE TEMP TABLE pieces AS SELECT {listed([names] * bool(wanted) + [f'least(n - i, {_PIECE}) AS n'])} "
            f"FROM (SELECT *, unnest(range(0, n, {_PIECE})) AS i FROM counted)"
        )
        connection.execute(f"DROP TABLE {TABLE}")
        connection.execute(
            f"CREATE TEMP VIEW {TABLE} AS SELECT {shown} FROM (SELECT *, unnest(range(n)) AS i FROM pieces)"
        )

    @contextmanager
    def rows(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatchReader]:
        """The rows of these columns, as long as it is open; None: all columns and no rows. Raises SourceError."""

        def statement(kinds: Mapping[str, str]) -> str:
            wanted = [name for name in kinds if columns is None or name in columns]
            # A row of no columns is still a row.
            chosen = (
                listed(f"{_typed(name, kinds[name])} AS {identifier(name)}" for name in wanted)
                or "1 AS present"
            )
            return f"SELECT {chosen} FROM {self.address.quoted}{' LIMIT 0' if columns is None else ''}"

        with self._read(statement) as reader:
            yield reader

    @contextmanager
    def _read(self, statement: Callable[[Mapping[str, str]], str]) -> Iterator[pa.RecordBatchReader]:
        """What a statement, made from the columns' types there, brings from one snapshot. Raises SourceError."""
        with (
            connected(self.address.server, self.name, self._error, _OWN) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for setting in _SPELT:  # else times and texts were another session's, or role's
                cursor.execute(f"SET LOCAL {setting}")
            cursor.execute(COLUMNS, (self.address.quoted,))
            kinds = {name: re.sub(r"\(.*?\)", "", kind) for name, kind in cursor.fetchall()}
            cursor.execute(statement(kinds))
            yield _endless(cursor.fetch_record_batch())

    def _counted(self, kinds: Mapping[str, str], columns: Sequence[str], wanted: list[str]) -> str:
        """Distinct rows c0, c1, … of the `wanted` columns, whose names it leaves there, and their number n."""
        wanted += [name for name in kinds if name in columns]
        seen = self.seen or {}
        grouped = [groups(f"c{i}", kinds[name], seen.get(name)) for i, name in enumerate(wanted)]
        chosen = [one.shown for one in grouped] + ["count(*) AS n"]
        inside = (
            listed(f"{_typed(name, kinds[name])} AS c{i}" for i, name in enumerate(wanted)) or "1 AS present"
        )
        keys = listed(key for one in grouped for key in one.keys) or "present"
        return f"SELECT {listed(chosen)} FROM (SELECT {inside} FROM {self.address.quoted}) AS told GROUP BY {keys}"

    def _error(self, refusal: Refusal) -> SourceError:
        if refusal.away:
            advice = f"Nothing was published. {refusal.advice}"
            return SourceError("source-unreachable", refusal.said, where=self.name, advice=advice)
        return refused(refusal.said, self.name, refusal.advice)


def _typed(name: str, kind: str) -> str:
    """A column as something that has the same meaning here: exact numbers as floating ones, all that is odd as text."""
    if kind in _PLAIN:
        return identifier(name)
    return f"CAST({identifier(name)} AS {'double precision' if kind == 'numeric' else 'text'})"


def _endless(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows with infinite dates and times as the engine has them.

    PostgreSQL has the largest and the smallest number for these. The driver moves them to another first day with all
    others, so that they pass the end and come as days long before any that PostgreSQL has.
    """
    import pyarrow as pa

    def told(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [_with_ends(one) for one in batch.columns]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    return pa.RecordBatchReader.from_batches(reader.schema, map(told, reader))


def _with_ends(column: pa.Array) -> pa.Array:
    """A column whose infinite dates or times passed the end, if it is of these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_date32(column.type):
        number, moved = pa.int32(), _YEARS
    elif pa.types.is_timestamp(column.type):
        number, moved = pa.int64(), _YEARS * 86_400_000_000
    else:
        return column
    most, told = (1 << number.bit_width - 1) - 1, column.view(number)
    for here, there in ((most, moved - most - 2), (-most, moved - most - 1)):
        told = pc.if_else(pc.equal(told, pa.scalar(there, number)), pa.scalar(here, number), told)
    return told.view(column.type)
