"""JSON lines: one object a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from funnel.data.alphabet import folded
from funnel.engine.sources.base import check_names, empty
from funnel.engine.sources.files import Files, check_folders, read_of
from funnel.engine.sql import listed, literal

ENDINGS = tuple(f"{name}{packed}" for name in (".jsonl", ".ndjson") for packed in ("", ".gz", ".zst"))
_NUMBERED = re.compile(r"(.+)_[0-9]+", re.DOTALL)
"""What DuckDB calls a key that another one differs from in case alone: by its own name, and a number."""
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
        """Raise SourceError where two keys differ in upper and lower case alone, or a folder has the name of one.

        DuckDB gives the second one another name, as if it had that: the keys are looked at where it may have.
        """
        reading = self.reading()
        found = connection.execute(f"DESCRIBE SELECT * FROM {reading}").fetchall()
        if len(found) == 1 and connection.execute(f"SELECT count(*) FROM {reading}").fetchone() == (0,):
            raise empty(self.name)  # the one column is a name that stands for none
        names = [str(name) for name, *_ in found]
        if _renamed(names) or any("=" in str(file.parent) for file in self.files):
            names = self._keys(connection)
        check_names(names, self.name)
        check_folders(connection, dict.fromkeys(self.files, names), partial(_texts_of, names))

    def _keys(self, connection: duckdb.DuckDBPyConnection) -> list[str]:
        """Every key that some object has."""
        objects = f"read_json_objects({literal(self.pattern)}, format = 'newline_delimited')"
        found = connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}").fetchall()
        return [str(key) for (key,) in found]


def _renamed(names: Sequence[str]) -> bool:
    """Whether some column may have been given its name by DuckDB."""
    known, numbered = set(map(folded, names)), map(_NUMBERED.fullmatch, names)
    return any(one is not None and folded(one[1]) in known for one in numbered)


def _texts_of(names: Sequence[str], file: Path, option: str) -> str:
    """The SQL that reads these keys of one file as texts."""
    columns = listed(f"{literal(name)}: 'VARCHAR'" for name in names)
    return read_of("read_json", file, "format = 'newline_delimited'", f"columns = {{{columns}}}", option)
