"""Tables that no file of this machine holds: their rows come once, in one snapshot, and wait in the engine's memory.

Both readings of a run read what came; beyond the memory allowed it spills into the run's private folder, as all that
DuckDB keeps.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from funnel.engine.sources.base import refused

if TYPE_CHECKING:
    import pyarrow as pa

_TABLE = "pulled"


class Pulled:
    """What such tables share; each says how its rows are read."""

    name: str

    @property
    def files(self) -> tuple[Path, ...]:
        """None on this machine that anybody else may ask for."""
        return ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """None: rows come through this process, not through the engine."""
        return ()

    @property
    def is_text(self) -> bool:
        """Types come with the rows."""
        return False

    @property
    def version(self) -> str | None:
        """Which state of the table it is, where tables have states with names."""
        return None

    def rows(self, columns: Sequence[str] | None) -> AbstractContextManager[pa.RecordBatchReader]:
        """The rows of these columns, as long as it is open; None: all columns and no rows. Raises SourceError."""
        raise NotImplementedError

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """A table of its columns without rows. Raises SourceError, duckdb.Error."""
        self._bring(connection, None)

    def fetch(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> None:
        """The rows. Raises SourceError, duckdb.Error."""
        self._bring(connection, columns)

    def _bring(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> None:
        import pyarrow as pa

        trouble: list[Exception] = []
        with self.rows(columns) as reader:
            connection.register(
                "incoming", pa.RecordBatchReader.from_batches(reader.schema, _kept(reader, trouble))
            )
            try:
                connection.execute(f"CREATE OR REPLACE TEMP TABLE {_TABLE} AS SELECT * FROM incoming")
            except duckdb.Error:
                if trouble:  # DuckDB tells of it in words of its own
                    raise trouble[0] from None
                raise
            connection.unregister("incoming")

    def reading(self, texts: Sequence[str] = ()) -> str:
        """What came."""
        return _TABLE

    @property
    def as_texts(self) -> str:
        """There is nothing to guess."""
        return _TABLE

    def check_header(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Columns have names, each its own."""

    def check_unchanged(self) -> None:
        """What came does not move."""


def _kept(reader: pa.RecordBatchReader, trouble: list[Exception]) -> Iterator[pa.RecordBatch]:
    """The batches; what goes wrong with them is kept as it was."""
    try:
        yield from reader
    except Exception as error:
        trouble.append(error)
        raise


def library(module: str, extra: str, where: str) -> Any:
    """A library that not every machine has. Raises SourceError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        said = f"tables of this kind need a library that is not installed ({module.partition('.')[0]})"
        raise refused(said, where, f"Install it: `pip install 'funnel-sanitiser[{extra}]'`.") from None
