"""A table or view in a DuckDB file: people.duckdb#table, or #schema.table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from funnel.engine.sources.base import Source, changed
from funnel.engine.sources.files import Stamp, stamp_of
from funnel.engine.sources.pulled import TABLE
from funnel.engine.sql import identifier, listed, literal

ENDINGS = (".duckdb", ".ddb")


@dataclass(frozen=True)
class Database(Source):
    """A DuckDB file, opened for reading alone, and a table in it."""

    name: str
    file: Path
    table: str
    stamp: Stamp

    @property
    def files(self) -> tuple[Path, ...]:
        """The file of the database."""
        return (self.file,)

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Open the file, for reading, and see texts as they are, whatever it takes for equal. Raises duckdb.Error."""
        connection.execute(f"ATTACH {literal(str(self.file))} AS stored (READ_ONLY)")
        parts = self.table.split(".") if "." in self.table else ("main", self.table)
        table = ".".join(map(identifier, ("stored", *parts)))
        kinds = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
        texts = (identifier(name) for name, kind, *_ in kinds if kind == "VARCHAR")
        plain = listed(f'{text} COLLATE "binary" AS {text}' for text in texts)
        rows = f"* REPLACE ({plain})" if plain else "*"
        connection.execute(f"CREATE TEMP VIEW {self.reading()} AS SELECT {rows} FROM {table}")

    def fetch(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> None:
        """The rows of a view, which need not be the same when it is read again. Raises duckdb.Error."""
        asked = "SELECT 1 FROM duckdb_views() WHERE database_name = 'stored' AND lower(view_name) = lower(?)"
        if connection.execute(asked, [self.table.rpartition(".")[2]]).fetchone() is None:
            return
        chosen = listed(map(identifier, columns))
        connection.execute(f"CREATE TEMP TABLE {TABLE} AS SELECT {chosen} FROM {self.reading()}")
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {self.reading()} AS SELECT * FROM {TABLE}")

    def reading(self, texts: Sequence[str] = ()) -> str:
        """The rows of the table in the file."""
        return identifier(f"stored {self.table}")

    def check_unchanged(self) -> None:
        """Raise SourceError when the file was written to since it was found."""
        if stamp_of(self.files) != self.stamp:
            raise changed(self.name)
