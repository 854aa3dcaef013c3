"""Conditions and numbers over true values: worked out by DuckDB on a table of all the values that there can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.alphabet import Label, folded
from funnel.data.joint import FloatArray
from funnel.engine.expressions import Expression, ExpressionError, Use, check_compared, kind_of, parse, uses
from funnel.engine.sql import identifier, listed
from funnel.errors import ReleaseError
from funnel.text import printable, some

if TYPE_CHECKING:
    import duckdb

MOST = 5_000_000
"""Rows of such a table."""
_INTERVAL = re.compile(r"\[(\S+), (\S+)\)")
_EQUAL = ("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_IN", "COMPARE_NOT_IN")
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "FLOAT", "DOUBLE", "UBIGINT")
_WRITTEN: tuple[tuple[str, re.Pattern[str], Callable[[str], Hashable]], ...] = (
    ("BIGINT", re.compile(r"0|-?[1-9][0-9]*"), int),
    ("DOUBLE", re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[-+][0-9]+)?"), float),
    ("DATE", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), date.fromisoformat),
)
"""How whole numbers, numbers and dates are told."""
_FINER = re.compile(r"[.,][0-9]{7}")
_SHOWN = 8
_LARGE = 1e60
"""Numbers beyond this, and beyond one over it, have no square that times a count is a float."""
_Point = float | datetime
_OPEN = float("inf")
_POINTS = {float: ("numbers", "DOUBLE"), datetime: ("dates", "TIMESTAMP")}


@dataclass(frozen=True)
class Factor:
    """Values (z) that some columns take together, and the SQL type of each column, None where nothing says it."""

    columns: tuple[str, ...]
    values: tuple[Label, ...]
    types: tuple[str | None, ...]


@dataclass(frozen=True)
class _Operand:
    """A column of a part: its place, its type as compared, its distinct texts; of intervals, points in each."""

    part: int
    place: int
    name: str
    kind: str
    texts: tuple[str, ...]
    points: Mapping[str, tuple[_Point, ...]] | None = None


def columns_in(texts: Iterable[str], known: Sequence[str]) -> list[str]:
    """The known columns that expressions read. Raises ReleaseError for what is no expression, or reads another one."""
    found = []
    for text in texts:
        found += [named(column, known, text) for column in _expression(text).columns]
    return list(dict.fromkeys(found))


def named(column: str, known: Sequence[str], where: str) -> str:
    """The known column of a name in any case. Raises ReleaseError (question)."""
    for one in known:
        if folded(one) == folded(column):
            return one
    close = _close(column, known)
    near = f"Did you mean {close}? " if close else ""
    raise _refused(where, f"the release has no column {column!r}", f"{near}It has {some(known, 20)}.")


class Domain:
    """All combinations of the values of some parts, (z_1, …, z_r), on which expressions are worked out."""

    def __init__(self, parts: Sequence[Factor]) -> None:
        self.parts = parts
        self.shape = tuple(len(part.values) for part in parts)
        if prod(self.shape) > MOST:
            sizes = listed(f"{'+'.join(p.columns)} ({len(p.values):,})" for p in parts)
            raise _refused(sizes, "these columns take too many values together", "Ask for fewer columns at once.")

    def condition(self, text: str) -> FloatArray:
        """Where a condition holds: 1, 0, or NaN where a missing value leaves that open. Raises ReleaseError."""
        return self._worked_out(text, condition=True)

    def numbers(self, text: str) -> FloatArray:
        """What a number is, NaN where it is missing. Raises ReleaseError (question)."""
        return self._worked_out(text, condition=False)

    def _worked_out(self, text: str, *, condition: bool) -> FloatArray:
        expression = _expression(text)
        columns = [self._column(name, text) for name in expression.columns]
        schema = {one.name: one.kind for one in columns}
        try:
            kind = _kind(text, tuple(schema.items()))
            if not kind.startswith(("BOOLEAN",) if condition else _NUMBERS):
                raise ExpressionError(f"it is a {kind}, not a {'condition' if condition else 'number'}")
        except ExpressionError as error:
            raise _refused(text, str(error), f"Columns: {_typed(schema)}.") from None
        parts = sorted({one.part for one in columns})
        found = self._values(expression, parts, columns, text)
        shape = [size if part in parts else 1 for part, size in enumerate(self.shape)]
        return np.broadcast_to(found.reshape(shape), self.shape)

    def _values(
        self, expression: Expression, parts: Sequence[int], columns: Sequence[_Operand], text: str
    ) -> FloatArray:
        """The expression for all combinations of these parts' values. Raises ReleaseError (question)."""
        import duckdb

        with duckdb.connect(":memory:") as connection:
            try:
                for part in parts:
                    self._create(connection, part, [one for one in columns if one.part == part])
                source = " CROSS JOIN ".join(f"part{part}" for part in parts) or "(SELECT 1)"
                own, every = [identifier(_place(part)) for part in parts], identifier(_place(-1))
                inner = f"SELECT {listed([*own, f'0 AS {every}'])}, CAST({expression.sql} AS DOUBLE) AS v FROM {source}"
                places = listed([*own, every])
                query = f"SELECT {places}, min(v), max(v), count(v), count(*) FROM ({inner}) GROUP BY {places}"
                told = connection.execute(query).fetchnumpy()
            except duckdb.Error as error:
                raise _refused(text, str(error).splitlines()[0], "Compare columns with values of their type.") from None
        *index, _, low, high, some_, all_ = told.values()
        low, high = (np.ma.filled(one, np.nan).astype(float) for one in (low, high))
        if ((some_ > 0) & np.isnan(high)).any():
            advice = "Leave that out, as in CASE WHEN hours > 0 THEN ln(hours) END."
            raise _refused(text, "it is no number for some value", advice)
        if ((some_ > 0) & ((low != high) | (some_ < all_))).any():
            raise _cut(text, columns)
        if np.isinf(low).any():
            advice = "Leave that out, as in CASE WHEN hours <> 0 THEN 1 / hours END."
            raise _refused(text, "it is infinite for some value", advice)
        sizes = np.abs(low[np.isfinite(low) & (low != 0)])
        if ((sizes > _LARGE) | (sizes < 1 / _LARGE)).any():
            said = f"it is beyond {_LARGE:g} for some value, or nearer to zero than {1 / _LARGE:g}"
            raise _refused(text, said, "Multiply it by a number, and divide what is estimated by that.")
        found = np.full([self.shape[part] for part in parts], np.nan)
        found[tuple(np.asarray(one, np.int64) for one in index)] = low if index else low[0]  # of no column: one number
        return found

    def _create(self, connection: duckdb.DuckDBPyConnection, part: int, columns: Sequence[_Operand]) -> None:
        """The table of one part; a row for each of its values, or for each point of the intervals there."""
        import pyarrow as pa

        rows = []
        for z, value in enumerate(self.parts[part].values):
            for own in product(*(_shown(one, value[one.place]) for one in columns)):
                rows.append((str(z), *own))
        texts = list(zip(*rows, strict=True))
        table = pa.table({f"v{i}": pa.array(column, pa.string()) for i, column in enumerate(texts)})
        read = [f"CAST(v0 AS INTEGER) AS {identifier(_place(part))}"]
        read += [f"CAST(v{i} AS {one.kind}) AS {identifier(one.name)}" for i, one in enumerate(columns, 1)]
        connection.register("texts", table)
        connection.execute(f"CREATE TABLE part{part} AS SELECT {listed(read)} FROM texts")

    def _column(self, name: str, text: str) -> _Operand:
        """A column as this expression reads it. Raises ReleaseError (question)."""
        known = [column for part in self.parts for column in part.columns]
        name = named(name, known, text)
        part = next(i for i, one in enumerate(self.parts) if name in one.columns)
        own = self.parts[part]
        place = own.columns.index(name)
        texts = tuple(dict.fromkeys(t for value in own.values if (t := value[place]) is not None))
        read = [one for one in _uses(text) if folded(one.column) == folded(name)]
        kind = own.types[place] or _guessed(texts)
        if own.types[place] is None and kind in ("BIGINT", "DOUBLE") and _of_texts(name, read, text):
            kind = "VARCHAR"
        column = _Operand(part, place, name, kind, texts)
        if kind != "VARCHAR":
            return column
        compared = [one for use in read for one in use.constants or () if one is not None]
        edges = _intervals(texts)
        if edges and not (all(use.constants is not None for use in read) and set(compared) <= set(texts)):
            return _pointed(column, edges, read, text)
        _check_named(column, read, text)
        return column


def _place(part: int) -> str:
    """The column that says which value of a part a row is; no name of a column that people give."""
    return f"\x1f{part}"


def _close(word: str, known: Sequence[str]) -> str | None:
    """The known word that this one is nearest to, in any case."""
    found = get_close_matches(word.lower(), [one.lower() for one in known], 1, 0.6)
    return next(one for one in known if one.lower() == found[0]) if found else None


@lru_cache(128)
def _expression(text: str) -> Expression:
    try:
        return parse(text)
    except ExpressionError as error:
        raise _refused(text, f"this is no plain expression over columns: {error}", "Such as: age >= 37") from None


@lru_cache(128)
def _uses(text: str) -> tuple[Use, ...]:
    try:
        return uses(text)
    except ExpressionError as error:
        raise _refused(text, str(error), "Compare columns with values.") from None


@lru_cache(128)
def _kind(text: str, schema: tuple[tuple[str, str], ...]) -> str:
    check_compared(text, dict(schema))
    return kind_of(parse(text), dict(schema))


def _refused(where: str, said: str, advice: str) -> ReleaseError:
    return ReleaseError("question", said, where=printable(where), advice=advice)


def _typed(schema: Mapping[str, str]) -> str:
    return some([f"{name} ({kind})" for name, kind in schema.items()], _SHOWN) or "none"


def _guessed(texts: Sequence[str]) -> str:
    """The type of values of which nothing says it: whole numbers, numbers, dates, else texts.

    Different texts stay different values: of `07` and `7`, or `8` and `8.0`, nobody could tell one from the other.
    """
    for kind, pattern, read in _WRITTEN:
        try:
            if texts and all(map(pattern.fullmatch, texts)) and len({*map(read, texts)}) == len(texts):
                return kind
        except ValueError:
            continue
    return "VARCHAR"


def _of_texts(name: str, read: Sequence[Use], text: str) -> bool:
    """Whether a column of what may be numbers is compared with texts; that is the same where it is for equality."""
    quoted = [use for use in read if "VARCHAR" in use.types]
    if quoted and (len(quoted) < len(read) or any(use.operator not in _EQUAL for use in quoted)):
        said = f"nothing says whether {name} holds numbers or texts, of which others are smaller"
        raise _refused(text, said, "Write numbers without quotes.")
    return bool(quoted)


def _check_named(column: _Operand, read: Sequence[Use], text: str) -> None:
    """A text that a column is said to be equal to is one of its values: a merged one would count as nobody."""
    for use in read:
        for one in use.constants or () if use.operator in _EQUAL else ():
            if one is not None and one not in column.texts:
                close = _close(one, column.texts)
                near = f"Did you mean {close!r}? " if close else ""
                values = some([repr(printable(value)) for value in column.texts], _SHOWN)
                raise _refused(text, f"{column.name} is never {one!r} in this release", f"{near}It is one of {values}.")


def _intervals(texts: Sequence[str]) -> dict[str, tuple[_Point, _Point]]:
    """The ends of values that are intervals, all of numbers or all of dates; nothing where some value is another."""
    found = {}
    for text in texts:
        ends = _INTERVAL.fullmatch(text)
        low, high = (None, None) if ends is None else map(_end, ends.groups())
        if low is None or high is None:
            return {}
        found[text] = (low, high)
    return found if len({type(low) for low, _ in found.values()}) == 1 else {}


def _end(text: str) -> _Point | None:
    """An edge: a number, or a date as the moment at which it begins, for nothing says that a column has no times."""
    if text == "∞":
        return _OPEN
    for read in (_number, _moment):
        try:
            point = read(text)
        except ValueError:
            continue
        return point if isinstance(point, float) or point.tzinfo is None else None
    return None


def _number(text: str) -> float:
    """A number; ValueError also where it is finer than floats, in which intervals are compared."""
    number = float(text)
    if Decimal(text) != Decimal(repr(number)):
        raise ValueError(text)
    return number


def _moment(text: str) -> datetime:
    """A date, or a moment; ValueError also where it is finer than microseconds."""
    if _FINER.search(text):
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _edges(column: _Operand) -> str:
    return some([ends.group(1) for text in column.texts if (ends := _INTERVAL.fullmatch(text))], 20)


def _pointed(
    column: _Operand, edges: Mapping[str, tuple[_Point, _Point]], read: Sequence[Use], text: str
) -> _Operand:
    """Intervals as points among which every comparison with a constant differs, if it does so anywhere inside."""
    advice = f"Compare it by >= and < with an edge ({_edges(column)}), or say {column.name} = '{column.texts[0]}'."
    constants = []
    for use in read:
        if use.constants is None:
            raise _refused(text, f"{column.name} is released in intervals, of which only comparisons are known", advice)
        constants += [_end(one) if one is not None else None for one in use.constants]
    kind = type(next(iter(edges.values()))[0])
    if not all(isinstance(one, kind) for one in constants):
        raise _refused(text, f"{column.name} is released in intervals of {_POINTS[kind][0]}", advice)
    cuts = sorted({one for one in constants if one is not None})
    points = {label: tuple(_between(low, high, cuts)) for label, (low, high) in edges.items()}
    return _Operand(column.part, column.place, column.name, _POINTS[kind][1], column.texts, points)


def _between(low: _Point, high: _Point, cuts: Sequence[_Point]) -> Iterator[_Point]:
    """The lower end, each cut inside, and something between neighbours; infinity above the last cut of what is open."""
    inside = [low, *(cut for cut in cuts if low < cut and (high == _OPEN or cut < high))]  # type: ignore[operator]
    yield from inside
    for one, after in zip(inside, [*inside[1:], high], strict=True):
        yield after if after == _OPEN else one + (after - one) / 2  # type: ignore[operator]


def _shown(column: _Operand, text: str | None) -> list[str | None]:
    """What stands for a value: itself, or the points of its interval."""
    if column.points is None or text is None:
        return [text]
    return ["infinity" if point == _OPEN else str(point) for point in column.points[text]]


def _cut(text: str, columns: Sequence[_Operand]) -> ReleaseError:
    """What is said of a condition that holds in a part of an interval only."""
    whose = [one for one in columns if one.points is not None]
    names = " and ".join(one.name for one in whose)
    edges = "; ".join(f"those of {one.name} are {_edges(one)}" for one in whose)
    said = f"this cuts an interval in which {names} is released: the release knows the interval, and no more"
    return _refused(text, said, f"Compare by >= and < with edges: {edges}.")
