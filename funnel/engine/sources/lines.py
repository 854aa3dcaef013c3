"""JSON lines: one object a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from funnel.engine.sources.files import Files, check_names
from funnel.engine.sql import listed, literal

ENDINGS = tuple(f"{name}{packed}" for name in (".jsonl", ".ndjson") for packed in ("", ".gz", ".zst"))
_PLAIN = {"BIGINT", "UBIGINT", "HUGEINT", "DOUBLE", "BOOLEAN", "VARCHAR"}


@dataclass(frozen=True)
class Lines(Files):
    """Tables of objects. A text stays the text that stands there, whatever it looks like."""

    def reading(self, texts: Sequence[str] = ()) -> str:
        """The SQL that reads the table; raises duckdb.Error where it cannot be read."""
        every = ["format = 'newline_delimited'", "sample_size = -1", "maximum_sample_files = 1000000"]
        found = duckdb.execute(f"DESCRIBE SELECT * FROM {self._call('read_json', every)}").fetchall()
        # Texts that look like dates would be read as dates, and be written in another spelling.
        kinds = {str(name): str(kind) for name, kind, *_ in found}
        columns = listed(
            f"{literal(name)}: {literal(kind if kind in _PLAIN or kind.endswith(('[]', ')')) else 'VARCHAR')}"
            for name, kind in kinds.items()
        )
        return self._call("read_json", [every[0], f"columns = {{{columns}}}"])

    def check_header(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raise SourceError where two keys differ in upper and lower case alone."""
        found = connection.execute(f"DESCRIBE SELECT * FROM {self.reading()}").fetchall()
        check_names([str(name) for name, *_ in found], self.name)
