"""Parquet files, and folders of partitions such as year=2025/region=north/part-0.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from funnel.engine.sources.files import Files, check_names

ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True)
class Parquet(Files):
    """Tables whose files know their columns and types."""

    def reading(self, texts: Sequence[str] = ()) -> str:
        """The SQL that reads the table."""
        return self._call("read_parquet", [])

    def check_header(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raise SourceError where a file has two columns of one name."""
        for file in self.files:
            found = connection.execute("SELECT name, num_children FROM parquet_schema(?)", [str(file)]).fetchall()
            check_names(_columns(found), file)


def _columns(nodes: Sequence[tuple[str, int | None]]) -> list[str]:
    """The names of a table's own columns, of the nodes of its schema, each before its children; the first is the table.

    DuckDB's own list of columns would not do: it gives another name to one that stands twice.
    """
    names, inside = list[str](), 0
    for name, children in nodes[1:]:
        if not inside:
            names.append(name)
        inside += (children or 0) - (inside > 0)
    return names
