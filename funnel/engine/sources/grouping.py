"""How PostgreSQL groups a column's values so that no statement of a plan can tell two of a group apart.

A group may be smaller than it need be, never larger: each expression here is one whose meaning is the same in both, and
values for which that is not sure are groups of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from funnel.engine.sources.seen import Between, Compared, Nearest, Seen, Within
from funnel.engine.sql import literal

_WHOLE = ("smallint", "integer", "bigint")
_DOUBLE = ("double precision", "numeric")
"""Types that arrive as double-precision numbers; those of single precision are always seen whole."""
_DATES = ("date", "timestamp without time zone")
_STEPS = (1e-6, 1e9)
"""Steps for which a quotient within the limits below neither overflows nor underflows, which PostgreSQL refuses."""
_LEAST, _MOST = "1e-100", "1e15"
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "DOUBLE")
"""Types of constants; what is of single precision has other digits than its text."""
_DIGITS = 15
"""Of a decimal number that both sides make the same double-precision one of."""
_MOMENT = r"(?!0000|9999)\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?"


@dataclass(frozen=True)
class Groups:
    """What a grouped column is `shown` as, a value of it under its own name; and the `keys` that it is grouped by."""

    shown: str
    keys: tuple[str, ...]


def groups(column: str, kind: str, seen: Seen | None) -> Groups:
    """How a column of a type of PostgreSQL is grouped, where it is looked at no closer than `seen`."""
    told = None if seen is None else _coarse(column, kind, seen)
    if told is None:
        return _whole(column, kind)
    sure, expression = told
    # Values that are not surely the same there and here, and missing ones, are told apart as they are.
    keys = (f"CASE WHEN {sure} THEN {expression} END", f"CASE WHEN {sure} THEN NULL ELSE {column} END")
    return Groups(f"min({column}) AS {column}", keys)


def _whole(column: str, kind: str) -> Groups:
    """Every value by itself: texts by their bytes, whatever the collation calls equal; -0.0 is not 0.0."""
    if kind in ("real", *_DOUBLE):
        return Groups(column, (column, f"float8send({column})"))
    if kind in ("boolean", *_WHOLE, *_DATES):
        return Groups(column, (column,))
    return Groups(f'{column} COLLATE "C" AS {column}', (f'{column} COLLATE "C"',))


def _coarse(column: str, kind: str, seen: Seen) -> tuple[str, str] | None:
    """Of which values it is sure that they can be grouped, and by what; None where it is of none."""
    if isinstance(seen, Between):
        dates = isinstance(seen.edges[0], date)
        if kind not in (_DATES if dates else (*_WHOLE, *_DOUBLE)):
            return None
        edges = [f"DATE '{edge}'" if isinstance(edge, date) else _number(edge) for edge in seen.edges]
        arms = " ".join(f"WHEN {column} < {edge} THEN {place}" for place, edge in enumerate(edges))
        return _common(column) if dates else _finite(column), f"CASE {arms} ELSE {len(edges)} END"
    if isinstance(seen, Compared):
        return _compared(column, kind, seen)
    if isinstance(seen, Within):
        return (_common(column), _start(column, seen)) if kind in _DATES else None
    return (
        _nearest(column, seen)
        if kind in (*_WHOLE, *_DOUBLE) and _STEPS[0] <= seen.step <= _STEPS[1]
        else None
    )


def _nearest(column: str, seen: Nearest) -> tuple[str, str]:
    step, size = _number(seen.step), f"abs({_double(column)})"
    sure = f"{column} = 0 OR ({size} > {_LEAST} AND {size} < {_MOST} * {step})"
    return sure, f"floor({_double(column)} / {step} + 0.5)"


def _compared(column: str, kind: str, seen: Compared) -> tuple[str, str] | None:
    """Values between the same two of the constants, or equal to one: comparisons see no more of them.

    Constants of another type than the column are cast, here one way and there another: none of these.
    """
    if kind in ("text", "character varying") and not seen.order:
        if any(kind != "VARCHAR" or "\\" in text for text, kind in seen.constants):
            return None
        same = [f'{column} COLLATE "C" = {literal(text)}' for text, _ in seen.constants]
        return f"{column} IS NOT NULL", _case([f"WHEN {one} THEN {place}" for place, one in enumerate(same)])
    if kind in (*_WHOLE, *_DOUBLE) and all(_exact(*one) for one in seen.constants):
        numbers = sorted({float(text) for text, _ in seen.constants})
        return f"abs({_double(column)}) < {_MOST}", _among(_double(column), list(map(_number, numbers)))
    if kind in _DATES and all(_moment(*one) for one in seen.constants):
        moments = sorted({text for text, _ in seen.constants})
        return _common(column), _among(column, [f"TIMESTAMP '{one}'" for one in moments])
    return None


def _among(value: str, edges: Sequence[str]) -> str:
    """Where a value lies among constants in order."""
    return _case(
        [
            f"WHEN {value} < {one} THEN {2 * i} WHEN {value} = {one} THEN {2 * i + 1}"
            for i, one in enumerate(edges)
        ]
    )


def _case(arms: Sequence[str]) -> str:
    return f"CASE {' '.join(arms)} ELSE -1 END" if arms else "0"


def _exact(text: str, kind: str) -> bool:
    """Whether a number is the same in double precision wherever it is made that."""
    if not kind.startswith(_NUMBERS) or abs(float(text)) >= float(_MOST):
        return False
    return kind == "DOUBLE" or sum(map(str.isdigit, text)) <= _DIGITS


def _moment(text: str, kind: str) -> bool:
    """Whether a date or a time is one that both write so; such texts are in their own order."""
    return kind in ("DATE", "TIMESTAMP", "VARCHAR" if ":" not in text else "DATE") and bool(
        re.fullmatch(_MOMENT, text)
    )


def _start(column: str, seen: Within) -> str:
    return f"date_trunc('{seen.part}', CAST({column} AS timestamp))"


def _common(column: str) -> str:
    """Dates that both sides know: neither infinite nor before the first year or after the last of four digits."""
    return f"{column} >= DATE '0001-01-01' AND {column} < DATE '9999-01-01'"


def _finite(column: str) -> str:
    """Numbers proper: PostgreSQL has NaN above all others."""
    return f"{_double(column)} < CAST('Infinity' AS double precision)"


def _double(column: str) -> str:
    return f"CAST({column} AS double precision)"


def _number(value: float) -> str:
    return f"CAST('{float(value)!r}' AS double precision)"
