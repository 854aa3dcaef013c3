"""How a public attribute reads its source column: the raw key that rows are grouped by, and its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise

from funnel.data.alphabet import OTHER
from funnel.engine.checks import BELOW, NO_DATE
from funnel.engine.sql import BLANKS, identifier, listed, literal
from funnel.policy.blocks import Block
from funnel.policy.columns import Attribute, Calendar, edge_text

NARROW = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
"""Whole numbers that 64 bits with a sign hold."""
FLOATS = ("FLOAT", "DOUBLE", "REAL")
NUMBERS = (*NARROW, *FLOATS, "HUGEINT", "UBIGINT", "UHUGEINT", "DECIMAL")
"""Types of numbers, decimals by how they begin."""
BINNED = (*NUMBERS, "DATE")
"""Types whose rare values can become the nearest one that is not."""
_IN_ORDER = (*NARROW, "HUGEINT", "UBIGINT", "UHUGEINT", *FLOATS, "DATE", "TIME", "TIMESTAMP")
"""Types whose values are compared with thresholds, beside decimals."""
DATES = ("DATE", "TIMESTAMP", "VARCHAR")
"""Types that hold dates; texts are read as ISO 8601 writes them."""
_KEPT = ("BOOLEAN", *NARROW, "UBIGINT", "DATE", "DECIMAL")
"""Types that are released as they are; any other is released as text."""
_UNTOUCHED = (*NARROW, "UBIGINT", "DATE", "DECIMAL")
"""Types that keys are published in; any other key is published as text."""


@dataclass(frozen=True)
class ColumnKey:
    """`raw` computes a row's key from the source; of `name`, the key's own column, `text` is the value as text
    and `label` what may be released of it."""

    name: str
    raw: str
    text: str
    label: str
    released_type: str


def secret_key(index: int, column: str, kind: str) -> ColumnKey:
    """The key of a sensitive column: its value."""
    return _plain(f"s{index}", present(column, kind), kind)


def own_key(name: str, attribute: Attribute, kind: str) -> ColumnKey:
    """The key of a column's own values, for what somebody may know of it."""
    return _plain(name, present(attribute.name, kind, trim=attribute.trim), kind)


def above(text: str, attribute: Attribute) -> list[str]:
    """The names of groups of groups, lowest first, from that of the group which is released."""
    found = [text]
    for level in (attribute.groups or ())[1:]:
        found.append(_grouped(found[-1], level))
    return found[1:]


def public_key(name: str, attribute: Attribute, kind: str) -> ColumnKey:
    """The key of a public attribute, under this name: its value, bin, group, or value among the most frequent."""
    value = present(attribute.name, kind, trim=attribute.trim)
    if attribute.bins is not None:
        bins = _binned(value, attribute.bins, kind)
        return ColumnKey(name, bins, identifier(name), identifier(name), "VARCHAR")
    if isinstance(attribute.round, float):
        return _rounded(name, value, attribute.round, attribute.clip, kind)
    if attribute.round is not None:
        return _dated(name, value, attribute.round, kind)
    key = _plain(name, value, kind)
    if attribute.groups is not None:
        return ColumnKey(name, key.raw, key.text, _grouped(key.text, attribute.groups[0]), "VARCHAR")
    if attribute.top is None:
        return key
    kept = f"SELECT value FROM {identifier('top_' + name)}"
    stays = f"{key.text} IN ({kept}) OR {identifier(name)} IS NULL"
    label = f"CASE WHEN {stays} THEN {key.text} ELSE {literal(OTHER)} END"
    return ColumnKey(name, key.raw, key.text, label, "VARCHAR")


def merged_key(key: ColumnKey, attribute: Attribute) -> ColumnKey:
    """The key with rare values merged: `text` is the label that it had, a table of the run says what becomes of that.

    A subquery for each of the two kinds of label: it is a join then.
    """
    table, label = identifier(f"rare_{key.name}"), key.label
    label = f"CAST({label} AS VARCHAR)"
    texts = f"(SELECT v1 FROM {table} WHERE v0 = {label})"
    missing = f"(SELECT v1 FROM {table} WHERE v0 IS NULL)"
    merged = f"CASE WHEN {label} IS NULL THEN {missing} ELSE {texts} END"
    kind = key.released_type if attribute.rare == "bin" else "VARCHAR"
    return ColumnKey(key.name, key.raw, label, merged, kind)


def cell_key(name: str, macro: str, columns: Sequence[str]) -> ColumnKey:
    """The key of a wide block: the number of the cell that its columns lie in."""
    text = f"CAST({identifier(name)} AS VARCHAR)"
    return ColumnKey(name, f"{macro}({listed(map(identifier, columns))})", text, text, "VARCHAR")


@dataclass(frozen=True)
class Inner:
    """A column of a wide block: its key, what is read of that as `value`, its type, and whether it is `ordered`."""

    key: ColumnKey
    value: str
    type: str
    ordered: bool


def inner_column(key: ColumnKey, attribute: Attribute, kind: str) -> Inner:
    """Numbers, dates and times stay what they are, and so does what is rounded; all else is read as its label."""
    if attribute.keeps_kind:
        read = key.released_type if attribute.round is not None else kind
        if read in _IN_ORDER or read.startswith("DECIMAL") or read == "BOOLEAN":
            return Inner(key, f"CAST({identifier(key.name)} AS {read})", read, read != "BOOLEAN")
    return Inner(key, key.label, "VARCHAR", ordered=False)


def inner_columns(
    name: str, block: Block, columns: Sequence[str], schema: Mapping[str, str]
) -> tuple[Inner, ...]:
    """The columns of a wide block, as the source spells them; their keys are `name`_0, `name`_1 and so on."""
    spelt = [one.model_copy(update={"name": own}) for one, own in zip(block.attributes, columns, strict=True)]
    return tuple(
        inner_column(public_key(f"{name}_{i}", one, schema[one.name]), one, schema[one.name])
        for i, one in enumerate(spelt)
    )


def untouched(index: int, column: str, kind: str) -> tuple[str, str]:
    """SQL of a column that is published as it is, named k0, k1, …, and the type that it has in the table."""
    released = kind if kind.startswith(_UNTOUCHED) else "VARCHAR"
    return f"CAST({identifier(column)} AS {released}) AS {identifier(f'k{index}')}", released


def present(column: str, kind: str, *, trim: bool = False) -> str:
    """The column, NaN read as missing and -0.0 as 0.0; where it is trimmed, a text of blanks alone as missing, too."""
    quoted = identifier(column)
    if trim:
        return f"nullif(trim({quoted}, {literal(BLANKS)}), '')"
    return f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} + 0 END" if kind in FLOATS else quoted


def there(column: str, kind: str, *, trim: bool = False) -> str:
    """The condition that a column is not missing, in functions that a policy's filter may use as well."""
    quoted = identifier(column)
    if trim:
        return f"trim({quoted}, {literal(BLANKS)}) <> ''"
    return f"{quoted} IS NOT NULL" + (f" AND NOT isnan({quoted})" if kind in FLOATS else "")


def refused_labels(attribute: Attribute) -> list[str]:
    """The labels that keys of a column may have and no release can hold."""
    return [BELOW] * (attribute.bins is not None) + [NO_DATE] * attribute.is_date


def beyond(value: str) -> str:
    """The condition that a floating-point number is so large that not all whole numbers there are told apart."""
    return f"isfinite({value}) AND abs({value}) >= {1 << 53}"


def bin_labels(edges: tuple[float | date, ...]) -> list[str]:
    """`[low, high)` per bin; the last one is open."""
    texts = [*map(edge_text, edges), "∞"]
    return [f"[{low}, {high})" for low, high in pairwise(texts)]


def _plain(name: str, value: str, kind: str) -> ColumnKey:
    released = kind if kind.startswith(_KEPT) else "VARCHAR"
    text = _text(identifier(name), kind)
    return ColumnKey(name, value, text, text, released)


def _grouped(text: str, level: Mapping[str, str]) -> str:
    """The name of a value's group, or its own. A subquery is a join however many names there are."""
    pairs = listed(f"({literal(value)}, {literal(group)})" for value, group in level.items())
    found = f"SELECT g.name FROM (VALUES {pairs}) g(value, name) WHERE g.value = {text}"
    return f"coalesce(({found}), {text})" if level else text


_DATE = r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}"


def _dated(name: str, value: str, part: Calendar, kind: str) -> ColumnKey:
    """Dates as far as they are to be told: of a day or a week (its Monday) a date, of a year a number."""
    day, (form, released) = _day(value, kind), _PRECISION[part]
    text = form.format(f"date_trunc({literal(part)}, {day})")
    quoted = identifier(name)
    return ColumnKey(name, _checked(value, day, f"CAST({text} AS VARCHAR)"), quoted, quoted, released)


_PRECISION: dict[Calendar, tuple[str, str]] = {
    "day": ("CAST({} AS DATE)", "DATE"),
    "week": ("CAST({} AS DATE)", "DATE"),
    "month": ("strftime({}, '%Y-%m')", "VARCHAR"),
    "quarter": ("concat(strftime({0}, '%Y'), '-Q', quarter({0}))", "VARCHAR"),
    "year": ("year({})", "BIGINT"),
}
"""How a date is written, and the type under which it is released."""


def _day(value: str, kind: str) -> str:
    """The date in a value; NULL where a text begins with none. Times with a zone are those of UTC."""
    if kind == "VARCHAR":
        # To the engine 26-1-31 is a day of the year 26, and `epoch` one, too.
        return f"CASE WHEN regexp_matches({value}, {literal(_DATE)}) THEN TRY_CAST(trim({value}) AS DATE) END"
    return f"CAST({value}{' AT TIME ZONE ' + literal('UTC') if kind.endswith('ZONE') else ''} AS DATE)"


def _checked(value: str, day: str, text: str) -> str:
    """A date's text; that of no date is one that the count refuses."""
    good = f"WHEN isfinite({day}) THEN {text}"
    return f"CASE WHEN {value} IS NULL THEN NULL {good} ELSE {literal(NO_DATE)} END"


def _rounded(name: str, value: str, step: float, clip: tuple[float, float] | None, kind: str) -> ColumnKey:
    """The nearest multiple of a step as an exact decimal number, halves upwards; the ends are rounded too."""
    exact = Decimal(repr(step)).normalize()
    decimals = max(-int(exact.as_tuple().exponent), 0)
    released = "BIGINT" if decimals == 0 else f"DECIMAL(18,{decimals})"
    count = _exact_steps if kind.startswith("DECIMAL") else _whole_steps if kind in _LONG else _steps
    steps = f"CAST({count(value, step, clip, kind)} AS BIGINT)"
    times = f"CAST({steps} * CAST({literal(format(exact, 'f'))} AS DECIMAL(18,{decimals})) AS {released})"
    raw = f"CASE WHEN {value} IS NULL THEN NULL ELSE {times} END"
    text = f"CAST({identifier(name)} AS VARCHAR)"
    return ColumnKey(name, raw, text, text, released)


def _steps(value: str, step: float, clip: tuple[float, float] | None, kind: str) -> str:
    """How many steps are nearest to a number."""
    low, high = (_number(end) for end in clip) if clip else ("", "")
    kept = f"greatest({low}, least({high}, {value}))" if clip else value
    return f"floor({kept} / {_number(step)} + 0.5)"


_LONG = ("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT")
"""Whole numbers of which not all are floats."""


def _whole_steps(value: str, step: float, clip: tuple[float, float] | None, kind: str) -> str:
    """The same of a whole number, in whole numbers where it is too long for floats, which are the faster."""
    short = f"{value} BETWEEN -{1 << 31} AND {1 << 31} THEN CAST({_steps(value, step, clip, kind)} AS BIGINT)"
    return f"CASE WHEN {short} ELSE CAST({_exact_steps(value, step, clip, kind)} AS BIGINT) END"


def _exact_steps(value: str, step: float, clip: tuple[float, float] | None, kind: str) -> str:
    """The same of a decimal number in whole numbers: as floats 0.15 / 0.1 is less than one and a half."""
    given = [Decimal(repr(one)) for one in (step, *(clip or ()))]
    own = int(kind.rstrip(")").split(",")[1]) if kind.startswith("DECIMAL") else 0
    places = max(own, *(-int(one.as_tuple().exponent) for one in given), 0)
    unit, *ends = (f"{int(one.scaleb(places))}::HUGEINT" for one in given)
    whole = f"CAST(CAST({value} AS DECIMAL(38,{places})) * {10**places}::HUGEINT AS HUGEINT)"
    kept = f"greatest({ends[0]}, least({ends[1]}, {whole}))" if ends else whole
    double, halves = f"(2 * {unit})", f"(2 * {kept} + {unit})"
    below = f"((({halves} % {double}) + {double}) % {double})"
    return f"(({halves} - {below}) // {double})"


def _number(value: float) -> str:
    """A number as SQL reads it."""
    return f"CAST({literal(repr(float(value)))} AS DOUBLE)"


def _text(key: str, kind: str) -> str:
    """One spelling per number, whatever its type: permanent draws go by the label, and 1.0 is the 1 of last night."""
    text = f"CAST({key} AS VARCHAR)"
    if kind.startswith("DECIMAL"):
        return f"CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"
    if kind in FLOATS:
        whole = f"{key} = trunc({key}) AND abs({key}) < 1e15"
        return f"CASE WHEN {whole} THEN CAST(CAST({key} AS BIGINT) AS VARCHAR) ELSE {text} END"
    return text


def _binned(value: str, edges: tuple[float | date, ...], kind: str) -> str:
    """A CASE over half-open intervals; what lies below the first edge gets a label that the count refuses."""
    if isinstance(edges[0], date):
        day = _day(value, kind)
        return _checked(value, day, _bins(day, edges))
    # To an engine an edge beside a number of single precision is one, too: 16777217 is 16777216 then. And the number is
    # what it is told as: the 0.7 of single precision is below that of double.
    single = kind in ("FLOAT", "REAL")
    return _bins(f"CAST(CAST({value} AS VARCHAR) AS DOUBLE)" if single else value, edges)


def _bins(value: str, edges: tuple[float | date, ...]) -> str:
    below = zip(edges, [BELOW, *bin_labels(edges)], strict=False)
    arms = " ".join(f"WHEN {value} < {_in_sql(edge)} THEN {literal(label)}" for edge, label in below)
    return f"CASE WHEN {value} IS NULL THEN NULL {arms} ELSE {literal(bin_labels(edges)[-1])} END"


def _in_sql(edge: float | date) -> str:
    return f"DATE {literal(edge_text(edge))}" if isinstance(edge, date) else edge_text(edge)
