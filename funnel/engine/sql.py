"""SQL text from names and values: everything quoted, nothing pasted."""

from __future__ import annotations

from collections.abc import Iterable


def identifier(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A quoted text."""
    return "'" + value.replace("'", "''") + "'"


def listed(parts: Iterable[str]) -> str:
    """Parts joined by commas."""
    return ", ".join(parts)


def every(conditions: Iterable[str]) -> str:
    """Conditions that must all hold."""
    return " AND ".join(conditions)
