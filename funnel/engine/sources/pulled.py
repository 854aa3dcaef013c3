"""Tables that no file of this machine holds: their rows come once, in one snapshot, and wait in the engine's memory.

Both readings of a run read what came; beyond the memory allowed it spills into the run's private folder, as all that
DuckDB keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import duckdb

from funnel.engine.sources.base import Source, check_names, refused

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "pulled"


class Pulled(Source):
    """What such tables share; each says how its rows are read."""

    def rows(self, columns: Sequence[str] | None) -> AbstractContextManager[pa.RecordBatchReader]:
        """The rows of these columns, as long as it is open; None: all columns and no rows. Raises SourceError."""
        raise NotImplementedError

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """A table of its columns without rows. Raises SourceError, duckdb.Error."""
        with self._told(), self.rows(None) as reader:
            check_names(reader.schema.names, self.name)  # DuckDB gives another name to one that stands twice
            bring(connection, reader, TABLE)

    def fetch(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> None:
        """The rows. Raises SourceError, duckdb.Error."""
        with self._told(), self.rows(columns) as reader:
            bring(connection, reader, TABLE)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What is wrong with what the table is kept in is told as that. Raises SourceError."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, ValueError, EOFError) as error:
            said = f"the source table cannot be read ({type(error).__name__})"
            advice = "Check its files: each is to be whole, and all with the same types in their columns."
            raise refused(said, self.name, advice) from None

    def reading(self, texts: Sequence[str] = ()) -> str:
        """What came."""
        return TABLE


def bring(connection: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader, table: str) -> None:
    """Make a table of what a reader brings. Raises what the reader raises, duckdb.Error."""
    import pyarrow as pa

    trouble: list[Exception] = []
    connection.register("incoming", pa.RecordBatchReader.from_batches(reader.schema, _kept(reader, trouble)))
    try:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM incoming")
    except duckdb.Error:
        if trouble:  # DuckDB tells of it in words of its own
            raise trouble[0] from None
        raise
    connection.unregister("incoming")


def _kept(reader: pa.RecordBatchReader, trouble: list[Exception]) -> Iterator[pa.RecordBatch]:
    """The batches; what goes wrong with them is kept as it was."""
    try:
        yield from reader
    except Exception as error:
        trouble.append(error)
        raise
