"""Is the table what the policy says? Checked before anything is counted."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.engine.base import Engine
from funnel.engine.sql import identifier, literal
from funnel.errors import SourceError
from funnel.text import counted

BELOW = "(below the first bin)"
"""The label that a plan gives to numbers and dates below the first edge; no release may hold it."""

NO_DATE = "(not a date)"
"""The label that a plan gives to texts in a column of dates; no release may hold it."""
LONG = "(a number of many digits)"
"""What a plan calls numbers that are read as floating-point ones, where other whole numbers may be the same."""
_ABSENT = "(as far as the promise allows for people who are absent)"
_REFUSED = {
    BELOW: (
        "below-bins",
        "have a {column} below the first edge of its bins",
        f"Add a lower edge to `bins`, or leave such rows out {_ABSENT} with `source.filter`.",
    ),
    LONG: (
        "column-type",
        "have a {column} beyond 2^53 among floating-point numbers, where several whole numbers are one",
        "Give the column as text, there or in a view of the table; a public one may be told by `bins` instead.",
    ),
    NO_DATE: (
        "not-a-date",
        "have a {column} that is not a date written as 2026-01-31 is",
        f"Repair the source, or leave such rows out {_ABSENT} with `source.filter`.",
    ),
}
"""What is wrong with rows of each label that no release may hold."""

_OWN, _NEARLY_ALL = 0.5, 0.9
"""Values a record from which on a text, or any column, tells who somebody is and not how people are."""
_SOME = 20
"""Records below which that cannot be told."""
_DENSE = 64
"""Bits of a bit set that one row may cost before the general check is cheaper."""


def check_present(counts: Sequence[int], columns: Sequence[str], missing: str, entity: str | None) -> None:
    """Refuse what `missing` does not allow, from [rows, present values per column].

    Raises SourceError: no rows, a column of nothing but missing values, missing values, rows without an entity.
    """
    rows, present = counts[0], dict(zip(columns, counts[1:], strict=True))
    if rows == 0:
        raise SourceError(
            "source-empty",
            "the source has no rows, or the filter lets none through",
            advice="Check `source.table` and `source.filter`.",
        )
    empty = [name for name, count in present.items() if count == 0]
    if empty:
        raise SourceError(
            "source-all-null",
            f"column {', '.join(empty)} holds nothing but missing values",
            advice="Leave it out of the policy, or repair the source.",
        )
    if entity is not None and present[entity] < rows:
        raise SourceError(
            "entity-null",
            f"{rows - present[entity]:,} of {rows:,} rows have no {entity}",
            advice=f"Every row needs its person: repair the source, or {_without([entity])}.",
        )
    holes = {name: rows - count for name, count in present.items() if count < rows}
    if holes and missing == "error":
        shown = ", ".join(f"{name} ({count:,})" for name, count in holes.items())
        raise SourceError(
            "source-nulls",
            f"missing values in {shown}, of {rows:,} rows",
            advice="Set `source.missing: category` to release missing as a value, or `drop` to leave such rows out "
            f"{_ABSENT}.",
        )


def _without(columns: Sequence[str]) -> str:
    """Advice to leave out rows that lack one of these, as YAML."""
    told = " AND ".join(f"{identifier(name)} IS NOT NULL" for name in columns)
    return f"leave such rows out {_ABSENT}: `filter: {literal(told)}`"


def is_identifier(distinct: int, rows: int, *, text: bool, margin: float = 1.0) -> bool:
    """Whether so many values tell who somebody is; with a margin below one, whether they come near to it."""
    return rows >= _SOME and distinct > (_OWN if text else _NEARLY_ALL) * rows * margin


def check_identifier(column: str, distinct: int, rows: int, *, text: bool = False) -> None:
    """Refuse a column in which nearly all records have a value of their own (of a text most). Raises SourceError."""
    if is_identifier(distinct, rows, text=text):
        raise SourceError(
            "identifier",
            f"{column} takes {distinct:,} values in {rows:,} records: it is an identifier or free text, and protects "
            "nobody whose value is known",
            advice="Leave it out. A key that is to be published as it is, so that rows have a name, belongs under "
            "`release.identify`; numbers and dates can be told more coarsely with `bins` or `round`, texts with "
            "`groups`.",
        )


def check_names(engine: Engine, statement: str, listing: str, columns: Sequence[str]) -> None:
    """Refuse keys that do not name every row, and each another; the statement counts [rows, rows without a key].

    Raises SourceError, which tells how many rows there are and no key: keys are people's names.
    """
    rows, absent = engine.row(statement)
    named = " + ".join(columns)
    if absent:
        raise SourceError(
            "identify-null",
            f"{absent:,} of {rows:,} rows have no {named}, by which rows are to be named",
            advice=f"Repair the source, or {_without(columns)}; a row without a name cannot be published beside others "
            "that have one.",
        )
    repeated = rows - engine.distinct(listing)
    if repeated:
        raise SourceError(
            "identify-repeated",
            f"{repeated:,} of {rows:,} rows repeat the {named} of another row",
            advice="Name further columns under `release.identify`, until no two rows have the same key; or repair the "
            "source.",
        )


def check_labels(counts: Sequence[int], refused: Sequence[tuple[str, str]]) -> None:
    """Refuse what lies below the first bin, numbers of many digits, and texts that are no dates. Raises SourceError.

    `counts` are rows for each column and label of `refused`.
    """
    for rows, (column, label) in zip(counts, refused, strict=True):
        if rows:
            code, said, advice = _REFUSED[label]
            raise SourceError(code, f"{rows:,} rows {said.format(column=column)}", advice=advice)


def check_entities(
    engine: Engine, column: str, rows: int, *, integer: bool, spread: str, dense: str, listing: str
) -> None:
    """Refuse a table in which a person has two of the rows: each row would be one more release about them.

    Integers in a narrow range are checked by a bit set, anything else by grouping. Raises SourceError.
    """
    dense_enough = integer and _narrow(engine, spread)
    refuse_repeated(column, engine.row(dense)[0] if dense_enough else rows - engine.distinct(listing))


def refuse_repeated(column: str, repeated: int) -> None:
    """Refuse so many rows of people who have another one. Raises SourceError."""
    if repeated:
        raise SourceError(
            "entity-repeated",
            f"{counted(repeated, 'row')} repeat{'s' if repeated == 1 else ''} the {column} of another row",
            advice="funnel protects one row per person: aggregate the source to one row each. "
            "Where a filter leaves one of several, no finite bound is known, for to be absent is an answer too.",
        )


def _narrow(engine: Engine, spread: str) -> bool:
    """Whether integers lie so close together that a bit set holds them; it is told their range."""
    count, low, high = engine.row(spread)
    engine.variables(low=low, high=high)
    return bool(high - low < _DENSE * count)
