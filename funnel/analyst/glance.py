"""What a policy's author wants to know of every column of a table, from one reading of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from funnel.engine import Engine, Source
from funnel.engine.checks import is_identifier
from funnel.engine.sql import identifier, listed

_FIRST = 10_000
"""Rows that are looked at first: which columns may be keys, and what texts may be numbers or dates."""
_TYPES = ("BIGINT", "DOUBLE", "DATE")
"""Types that the texts of a CSV may be of, the narrowest first."""
_NEARLY = 0.8
"""How much fewer values may be counted than there are."""


@dataclass(frozen=True)
class Column:
    """A column with its type (of texts that are all numbers or dates, that), values (nearly), and missing values.

    `blanks` are texts that begin or end with one.
    """

    name: str
    kind: str
    is_text: bool
    distinct: int
    missing: int
    blanks: int
    unique: bool

    def tells_who(self, rows: int) -> bool:
        """Whether nearly all of the rows have a value of their own, of a text most."""
        counts = self.kind in ("VARCHAR", "BIGINT", "INTEGER", "UUID")
        text = self.kind == "VARCHAR"
        return self.unique or (counts and is_identifier(self.distinct, rows, text=text, margin=_NEARLY))


@dataclass(frozen=True)
class Glance:
    """A table: its rows, and its columns in order."""

    rows: int
    columns: tuple[Column, ...]


def glance(engine: Engine, source: Source) -> Glance:
    """Read a table once; the texts of a CSV as they stand, for to find its types is another reading.

    Raises SourceError.
    """
    reader = source.as_texts if source.is_text else source.reading()
    schema = engine.schema(texts=source.is_text)
    found = _likely(engine, reader, schema, guess=source.is_text)
    counts = [
        _counts(identifier(name), *likely, text=schema[name] == "VARCHAR", texts=source.is_text)
        for name, likely in found.items()
    ]
    rows, *parts = engine.row(f"SELECT {listed(['count(*)', *counts])} FROM {reader}")
    return Glance(rows, tuple(_columns(schema, rows, parts, found)))


def records(engine: Engine, source: Source, name: str) -> list[int]:
    """Records of each value of a column, fewest first. Raises SourceError."""
    column = identifier(name)
    asked = f"SELECT count(*) AS n FROM {source.reading()} GROUP BY {column} ORDER BY n"
    return [int(row[0]) for row in engine.rows(asked)]


def _likely(
    engine: Engine, reader: str, schema: Mapping[str, str], *, guess: bool
) -> dict[str, tuple[str, bool]]:
    """By the first rows: of what type each column may be, and whether it may be a key."""
    columns = {name: identifier(name) for name in schema}
    types = [f"count({_cast(one, kind, texts=guess)})" for one in columns.values() for kind in _TYPES]
    counts = [f"count({one}), count(DISTINCT {one})" for one in columns.values()]
    asked = listed(["count(*)", *counts, *(types if guess else [])])
    rows, *found = engine.row(f"SELECT {asked} FROM (SELECT * FROM {reader} LIMIT {_FIRST})")
    likely = {}
    for place, (name, kind) in enumerate(schema.items()):
        present, distinct = found[2 * place : 2 * place + 2]
        casts = found[2 * len(schema) + len(_TYPES) * place :][: len(_TYPES)]
        fits = [one for one, count in zip(_TYPES, casts, strict=False) if present and count == present]
        likely[name] = ([*fits, kind][0], distinct == rows)
    return likely


def _counts(column: str, kind: str, key: bool, *, text: bool, texts: bool) -> str:
    """SQL: present values, distinct values (exactly only of what may be a key), those of the likely type, blanks."""
    distinct = f"count(DISTINCT {column})" if key else f"approx_count_distinct({column})"
    blanks = f"count(*) FILTER ({column} LIKE ' %' OR {column} LIKE '% ')" if text else "0"
    return f"count({column}), {distinct}, count({_cast(column, kind, texts=texts)}), {blanks}"


def _cast(column: str, kind: str, *, texts: bool) -> str:
    """SQL: a value as of a type, NULL where it is none; to a whole number DuckDB would round a fraction."""
    whole = texts and kind == "BIGINT"
    value = f"CASE WHEN contains({column}, '.') THEN NULL ELSE {column} END" if whole else column
    return f"TRY_CAST({value} AS {kind})"


def _columns(
    schema: Mapping[str, str], rows: int, parts: Sequence[int], likely: Mapping[str, tuple[str, bool]]
) -> Iterator[Column]:
    for place, (name, kind) in enumerate(schema.items()):
        present, distinct, fitting, blanks = parts[4 * place : 4 * place + 4]
        guessed, key = likely[name]
        found = guessed if fitting == present else kind
        yield Column(name, found, kind == "VARCHAR", distinct, rows - present, blanks, key and distinct == rows)
