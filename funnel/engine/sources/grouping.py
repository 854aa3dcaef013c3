"""How PostgreSQL groups a column's values so that no statement of a plan can tell two of a group apart.

A group may be smaller than it need be, never larger: each expression here is one whose meaning is the same in both, and
values for which that is not sure are groups of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from funnel.engine.sources.seen import Between, Nearest, Seen, Within

_WHOLE = ("smallint", "integer", "bigint")
_DOUBLE = ("double precision", "numeric")
"""Types that arrive as double-precision numbers; those of single precision are always seen whole."""
_DATES = ("date", "timestamp without time zone")
_STEPS = (1e-6, 1e9)
"""Steps for which a quotient within the limits below neither overflows nor underflows, which PostgreSQL refuses."""
_LEAST, _MOST = "1e-100", "1e15"


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
