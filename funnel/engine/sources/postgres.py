"""A table or view in PostgreSQL: postgresql://user@host/database#schema.table, read through ADBC.

One statement in a read-only transaction, so that what comes is one snapshot. Passwords come from PGPASSWORD or a pgpass
file, by the server's own client library; a policy never holds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funnel.engine.sources.base import refused
from funnel.engine.sources.pulled import Pulled, library
from funnel.engine.sql import identifier, listed
from funnel.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

SCHEME = "postgresql"
_PLAIN = {
    "boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "character varying", "date",
    "timestamp without time zone",
}  # fmt: skip
_COLUMNS = (
    "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute "
    "WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
_REFUSALS = {
    "28": ("the database refuses the role or its password", "Give the password in PGPASSWORD or ~/.pgpass."),
    "3D": ("the database does not exist", "Check the last part of the path."),
    "3F": ("the schema does not exist", "Name the table after #, as schema.table."),
    "42P01": ("the table does not exist", "Name the table after #, as schema.table."),
    "42501": (
        "the role may not read the table",
        "Grant it SELECT on the table or view, and USAGE on its schema.",
    ),
}
"""What states of SQL say, by their first letters, and what to do."""


@dataclass(frozen=True)
class Postgres(Pulled):
    """A table by the address of its database, which is what messages say, and its name in it."""

    name: str
    address: str
    table: str

    @contextmanager
    def rows(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatchReader]:
        """The rows of these columns, as long as it is open; None: all columns and no rows. Raises SourceError."""
        with self._connected() as connection, closing(connection.cursor()) as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            target = ".".join(map(identifier, self.table.split(".")))
            cursor.execute(_COLUMNS, (target,))
            kinds = dict(cursor.fetchall())
            wanted = [name for name in kinds if columns is None or name in columns]
            # A row of no columns is still a row.
            chosen = listed(_typed(name, kinds[name]) for name in wanted) or "1 AS present"
            cursor.execute(f"SELECT {chosen} FROM {target}{' LIMIT 0' if columns is None else ''}")
            yield cursor.fetch_record_batch()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection; what goes wrong with it is said in this program's words, without the server's details."""
        import pyarrow as pa

        driver = library("adbc_driver_postgresql.dbapi", "postgres", self.name)
        try:
            with closing(driver.connect(self.address)) as connection:
                yield connection
        except driver.Error as error:
            raise self._error(str(error.sqlstate or ""), str(error)) from None
        except (OSError, pa.ArrowException) as error:  # in the middle of its rows
            raise self._error("", str(error)) from None

    def _error(self, state: str, told: str) -> SourceError:
        """The error for a state of SQL; a connection that fails has none."""
        if "password" in told and not state:
            state = "28"
        for start, (said, advice) in _REFUSALS.items():
            if state.startswith(start):
                return refused(said, self.name, advice)
        if not state or state.startswith(("08", "57", "53")):
            said = "the database cannot be reached, or ended the connection"
            advice = "Nothing was published. Check host and port, and run again."
            return SourceError("source-unreachable", said, where=self.name, advice=advice)
        return refused(
            f"the database refuses to read the table (SQL state {state})", self.name, "See its log."
        )


def _typed(name: str, kind: str) -> str:
    """A column as something that has the same meaning here: exact numbers as floating ones, all that is odd as text."""
    column = identifier(name)
    if kind in _PLAIN:
        return column
    return f"CAST({column} AS {'double precision' if kind == 'numeric' else 'text'}) AS {column}"
