"""What a policy's author wants to know of every column of a table, from one reading of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from funnel.engine import Engine, Source
from funnel.engine.checks import is_identifier
from funnel.engine.sql import BLANKS, identifier, listed, literal
from funnel.plan.columns import FLOATS

_FIRST = 10_000
"""Rows that are looked at first: which columns may be keys, and what texts may be numbers or dates."""
_TYPES = ("BIGINT", "DOUBLE", "DATE")
"""Types that the texts of a CSV may be of, the narrowest first."""
_NEARLY = 0.8
"""How much fewer values may be counted than there are."""
_COMMA = (r"[-+]?\d+(,\d+)?", r"[-+]?\d+,(\d{1,2}|\d{4,})")
"""Patterns of numbers with a decimal comma: what all texts are, and one is at least (1,234 may be over a thousand)."""
_WHOLE = r"\s*(-?[0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+)\s*"
"""The pattern of whole numbers."""
_CODES = r"^\s*(\+|0[0-9])|_"
"""What texts have that a cast takes for numbers, and a policy for what they are: 007, +5, 7_0."""
_DAY = r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*"
"""The pattern of a date as a policy reads one."""
_DAY_FIRST = r"\d{1,2}[./]\d{1,2}[./]\d{4}"
"""The same of dates that begin with the day, or the month: nobody can tell, and DuckDB reads neither."""
_AT_ONCE = 32
"""Columns of which the values are counted together: each takes memory of its own, however few rows there are."""


@dataclass(frozen=True)
class ColumnProfile:
    """A column with its type (of texts that are all numbers or dates, that), values (nearly), and missing values.

    NaN is missing. `blanks` are texts that begin or end with one; `comma`, whether all are numbers with a decimal
    comma, `day_first`, whether all are dates as 31.12.1987.
    """

    name: str
    kind: str
    is_text: bool
    distinct: int
    missing: int
    blanks: int
    unique: bool
    comma: bool = False
    day_first: bool = False

    @property
    def told(self) -> int:
        """Values where being missing is one, too."""
        return self.distinct + (self.missing > 0)

    def tells_who(self, rows: int) -> bool:
        """Whether nearly all of the rows have a value of their own, of a text most."""
        counts = self.kind in ("VARCHAR", "BIGINT", "INTEGER", "UUID")
        text = self.kind == "VARCHAR"
        return self.unique or (counts and is_identifier(self.distinct, rows, text=text, margin=_NEARLY))


@dataclass(frozen=True)
class Glance:
    """A table: its rows, and its columns in order."""

    rows: int
    columns: tuple[ColumnProfile, ...]

    def read_as(self, types: Mapping[str, str]) -> Glance:
        """The same with other types, but for texts that are dates."""
        columns = [one if one.kind == "DATE" else replace(one, kind=types[one.name]) for one in self.columns]
        return replace(self, columns=tuple(replace(one, comma=one.comma and one.kind != "VARCHAR") for one in columns))


@dataclass(frozen=True)
class _First:
    """What the first rows tell of a column: its type, whether it may be a key, and how its texts are written."""

    kind: str
    key: bool
    comma: bool
    day_first: bool


def glance(engine: Engine, source: Source) -> Glance:
    """Read a table once; the texts of a CSV as they stand, for to find its types is another reading.

    Raises SourceError.
    """
    reader = source.as_texts if source.is_text else source.reading()
    schema = engine.schema(texts=source.is_text)
    found = _likely(engine, reader, schema, guess=source.is_text)
    counts = [
        _counts(identifier(name), likely, text=schema[name] == "VARCHAR", texts=source.is_text)
        for name, likely in found.items()
    ]
    keys = sum(one.key for one in found.values())
    rows, *parts = _asked(engine, counts, reader, len(counts) if keys <= _AT_ONCE else _AT_ONCE)
    return Glance(rows, tuple(_columns(schema, rows, parts, found)))


def _asked(engine: Engine, figures: Sequence[str], reader: str, at_once: int) -> list[int]:
    """The number of rows, and figures of them in order, so many in one statement."""
    found: list[int] = []
    for first in range(0, len(figures), at_once):
        asked = listed(["count(*)", *figures[first : first + at_once]])
        rows, *part = engine.row(f"SELECT {asked} FROM {reader}")
        found += part if found else [rows, *part]
    return found


def records(engine: Engine, source: Source, name: str) -> list[int]:
    """Records of each value of a column, fewest first. Raises SourceError."""
    column = identifier(name)
    asked = f"SELECT count(*) AS n FROM {source.reading()} GROUP BY {column} ORDER BY n"
    return [int(row[0]) for row in engine.rows(asked)]


def _likely(engine: Engine, reader: str, schema: Mapping[str, str], *, guess: bool) -> dict[str, _First]:
    """What the first rows tell of each column; of what type its texts are only where that is a guess."""
    figures = [listed(_looks(identifier(name), guess=guess)) for name in schema]
    rows, *found = _asked(engine, figures, f"(SELECT * FROM {reader} LIMIT {_FIRST})", _AT_ONCE)
    width = len(found) // len(schema)
    return {
        name: _first(kind, rows, found[width * place :][:width])
        for place, (name, kind) in enumerate(schema.items())
    }


def _looks(column: str, *, guess: bool) -> list[str]:
    """SQL: present and distinct values; those of each type, and those written in each way."""
    counts = [f"count({column})", f"count(DISTINCT {column})"]
    if not guess:
        return counts
    written = [
        f"count(*) FILTER (regexp_full_match({column}, {literal(pattern)}))" for pattern in (*_COMMA, _DAY_FIRST)
    ]
    return [*counts, *written, *(f"count({_cast(column, kind, texts=guess)})" for kind in _TYPES)]


def _first(kind: str, rows: int, found: Sequence[int]) -> _First:
    present, distinct, *told = found
    numbers, commas, days, *casts = told or [0] * 3
    fits = [one for one, count in zip(_TYPES, casts, strict=False) if present and count == present]
    comma = bool(present and numbers == present and commas)
    return _First([*fits, "DOUBLE" if comma else kind][0], distinct == rows, comma, bool(present and days == present))


def _counts(column: str, likely: _First, *, text: bool, texts: bool) -> str:
    """SQL: values, distinct ones (exactly only of what may be a key), of the likely type, with blanks, that are NaN."""
    distinct = f"count(DISTINCT {column})" if likely.key else f"approx_count_distinct({column})"
    blanks = f"count(*) FILTER ({_ends(column)})" if text else "0"
    fitting = _cast(f"replace({column}, ',', '.')" if likely.comma else column, likely.kind, texts=texts)
    none = f"count(*) FILTER (isnan({fitting}))" if likely.kind in FLOATS else "0"
    return f"count({column}), {distinct}, count({fitting}), {blanks}, {none}"


def _cast(column: str, kind: str, *, texts: bool) -> str:
    """SQL: a value as of a type, NULL where it is none to a policy: a cast rounds, and takes codes for numbers.

    Most numbers begin as none but numbers do, and are written as the engine writes them, so that no pattern is tried.
    """
    codes = f"regexp_matches({column}, {literal(_CODES)})"
    usual = f"{column} >= '1' AND {column} < ':' OR starts_with({column}, '0.') OR starts_with({column}, '-')"
    ends = " OR ".join(f"suffix({column}, {literal(blank)})" for blank in " \t")
    whole = f"CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) = {column}"
    cut = {
        "BIGINT": f"{whole} OR (regexp_full_match({column}, {literal(_WHOLE)}) AND NOT {codes})",
        "DOUBLE": f"NOT ({ends}) AND (NOT contains({column}, '_') AND ({usual}) OR NOT {codes})",
        "DATE": f"regexp_full_match({column}, {literal(_DAY)})",
    }.get(kind)
    value = f"CASE WHEN {cut} THEN {column} END" if texts and cut else column
    return f"TRY_CAST({value} AS {kind})"


def _ends(column: str) -> str:
    """SQL: whether a text begins or ends with a blank; to trim it takes much longer."""
    ends = (f"{end}({column}, {literal(blank)})" for blank in BLANKS for end in ("starts_with", "suffix"))
    return " OR ".join(ends)


def _columns(
    schema: Mapping[str, str], rows: int, parts: Sequence[int], likely: Mapping[str, _First]
) -> Iterator[ColumnProfile]:
    for place, (name, kind) in enumerate(schema.items()):
        present, distinct, fitting, blanks, none = parts[5 * place : 5 * place + 5]
        first, fits = likely[name], fitting == present
        if fits and none:
            present, distinct = present - none, distinct - 1
        found = first.kind if fits else kind
        unique, comma = first.key and distinct == rows, fits and first.comma
        missing = rows - present
        yield ColumnProfile(name, found, kind == "VARCHAR", distinct, missing, blanks, unique, comma, first.day_first)
