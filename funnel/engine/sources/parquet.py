"""Parquet files, and folders of partitions such as year=2025/region=north/part-0.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from funnel.engine.sources.base import check_names
from funnel.engine.sources.files import Files, check_folders, read_of

ENDINGS = (".parquet", ".pq")
WITH_NAN = "can_have_nan = true"
"""Statistics of a file leave NaN out: without this DuckDB takes them for all values, and `isnan` for false."""


@dataclass(frozen=True)
class Parquet(Files):
    """Tables whose files know their columns and types."""

    def reading(self, texts: Sequence[str] = ()) -> str:
        """The SQL that reads the table."""
        return self._call("read_parquet", [WITH_NAN])

    def check_header(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raise SourceError where a file has two columns of one name, or one that a folder has, too."""
        names = dict[Path, list[str]]()
        for file in self.files:
            found = connection.execute("SELECT name, num_children FROM parquet_schema(?)", [str(file)]).fetchall()
            names[file] = _columns(found)
            check_names(names[file], file)
        check_folders(connection, names, partial(read_of, "read_parquet"))


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
