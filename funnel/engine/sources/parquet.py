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
        import pyarrow.parquet as pq

        for file in self.files:
            check_names(pq.read_schema(file).names, file)
