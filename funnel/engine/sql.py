"""SQL text from names and values: everything quoted, nothing pasted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def identifier(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A quoted text."""
    return "'" + value.replace("'", "''") + "'"


BLANKS = " \t\r\n\u00a0"
"""What `trim` leaves out around texts."""


def listed(parts: Iterable[str]) -> str:
    """Parts joined by commas."""
    return ", ".join(parts)


def every(conditions: Iterable[str]) -> str:
    """Conditions that must all hold."""
    return " AND ".join(conditions)


def selection(columns: Sequence[str], types: Sequence[str]) -> str:
    """Distinct rows v0, v1, … of `released` under the names and types that they are released with."""
    pairs = enumerate(zip(columns, types, strict=True))
    return f"SELECT {listed(f'CAST(v{i} AS {kind}) AS {identifier(name)}' for i, (name, kind) in pairs)} FROM released"


IN_UTC = "SET TimeZone = 'UTC'"
"""Times with a zone have one text and one date, in every filter and every draw, wherever a run is."""
PART = "part"
"""The column that says to which part of a table that is to be written a row belongs."""


def part_of(keys: Sequence[str], parts: str) -> str:
    """SQL: to which of so many `parts` (SQL) a row with such keys (SQL) belongs, alike in every process."""
    text = f"concat_ws(chr(31), {listed(f'CAST({key} AS VARCHAR)' for key in keys)})"
    return f"CAST(CAST('0x' || left(sha256({text}), 8) AS UBIGINT) % CAST({parts} AS UBIGINT) AS INTEGER)"
