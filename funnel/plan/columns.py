"""How a public attribute reads its source column: the raw key that rows are grouped by, and its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from funnel.engine.counting import BELOW
from funnel.engine.sql import identifier, listed, literal
from funnel.policy.blocks import Block
from funnel.policy.columns import Attribute

OTHER = "other"
NARROW = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
"""Whole numbers that 64 bits with a sign hold."""
FLOATS = ("FLOAT", "DOUBLE", "REAL")
_IN_ORDER = (*NARROW, "HUGEINT", "UBIGINT", "UHUGEINT", *FLOATS, "DATE", "TIME", "TIMESTAMP")
"""Types whose values are compared with thresholds, beside decimals."""
_KEPT = ("BOOLEAN", *NARROW, "UBIGINT", "DATE")
"""Types that are released as they are; any other is released as text."""
_UNTOUCHED = (*NARROW, "UBIGINT", "DATE", "DECIMAL")
"""Types that keys are published in; any other key is published as text."""


@dataclass(frozen=True)
class Key:
    """`raw` computes a row's key from the source; of `name`, the key's own column, `text` is the value as text
    and `label` what may be released of it."""

    name: str
    raw: str
    text: str
    label: str
    released_type: str


def secret_key(index: int, column: str, kind: str) -> Key:
    """The key of a sensitive column: its value."""
    return _plain(f"s{index}", column, kind)


def own_key(name: str, column: str, kind: str) -> Key:
    """The key of a column's own values, for what somebody may know of it."""
    return _plain(name, column, kind)


def public_key(name: str, attribute: Attribute, kind: str) -> Key:
    """The key of a public attribute, under this name: its value, its bin, or its value among the most frequent."""
    if attribute.bins is not None:
        bins = _bins(present(attribute.name, kind), attribute.bins)
        return Key(name, bins, identifier(name), identifier(name), "VARCHAR")
    if attribute.round is not None:
        return _rounded(name, present(attribute.name, kind), attribute.round, attribute.clip)
    key = _plain(name, attribute.name, kind)
    if attribute.top is None:
        return key
    kept = f"SELECT value FROM {identifier('top_' + name)}"
    stays = f"{key.text} IN ({kept}) OR {identifier(name)} IS NULL"
    label = f"CASE WHEN {stays} THEN {key.text} ELSE {literal(OTHER)} END"
    return Key(name, key.raw, key.text, label, "VARCHAR")


def cell_key(name: str, macro: str, columns: Sequence[str]) -> Key:
    """The key of a wide block: the number of the cell that its columns lie in."""
    text = f"CAST({identifier(name)} AS VARCHAR)"
    return Key(name, f"{macro}({listed(map(identifier, columns))})", text, text, "VARCHAR")


@dataclass(frozen=True)
class Inner:
    """A column of a wide block: its key, what is read of that as `value`, its type, and whether it is `ordered`."""

    key: Key
    value: str
    type: str
    ordered: bool


def inner_column(key: Key, attribute: Attribute, kind: str) -> Inner:
    """Numbers, dates and times stay what they are, and so does what is rounded; all else is read as its label."""
    if attribute.bins is None and attribute.top is None:
        read = key.released_type if attribute.round is not None else kind
        if read in _IN_ORDER or read.startswith("DECIMAL") or read == "BOOLEAN":
            return Inner(key, identifier(key.name), read, read != "BOOLEAN")
    return Inner(key, key.label, "VARCHAR", ordered=False)


def inner_columns(name: str, block: Block, columns: Sequence[str], schema: Mapping[str, str]) -> tuple[Inner, ...]:
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


def present(column: str, kind: str) -> str:
    """The column, with a floating-point NaN read as missing."""
    quoted = identifier(column)
    return f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END" if kind in FLOATS else quoted


def bin_labels(edges: tuple[float, ...]) -> list[str]:
    """`[low, high)` per bin; the last one is open."""
    texts = [*map(_edge, edges), "∞"]
    return [f"[{low}, {high})" for low, high in pairwise(texts)]


def _plain(name: str, column: str, kind: str) -> Key:
    released = kind if kind.startswith(_KEPT) else "VARCHAR"
    text = _text(identifier(name), kind)
    return Key(name, present(column, kind), text, text, released)


def _rounded(name: str, value: str, step: float, clip: tuple[float, float] | None) -> Key:
    """The nearest multiple of a step as an exact decimal number, halves upwards; the ends are rounded too."""
    low, high = (_number(end) for end in clip) if clip else ("", "")
    kept = f"greatest({low}, least({high}, {value}))" if clip else value
    exact = Decimal(repr(step)).normalize()
    decimals = max(-int(exact.as_tuple().exponent), 0)
    kind = "BIGINT" if decimals == 0 else f"DECIMAL(18,{decimals})"
    steps = f"CAST(floor({kept} / {_number(step)} + 0.5) AS BIGINT)"
    times = f"CAST({steps} * CAST({literal(format(exact, 'f'))} AS DECIMAL(18,{decimals})) AS {kind})"
    raw = f"CASE WHEN {value} IS NULL THEN NULL ELSE {times} END"
    text = f"CAST({identifier(name)} AS VARCHAR)"
    return Key(name, raw, text, text, kind)


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


def _bins(value: str, edges: tuple[float, ...]) -> str:
    """A CASE over half-open intervals; a value below the first edge gets a label that the count refuses."""
    below = zip(edges, [BELOW, *bin_labels(edges)], strict=False)
    arms = " ".join(f"WHEN {value} < {_edge(edge)} THEN {literal(label)}" for edge, label in below)
    return f"CASE WHEN {value} IS NULL THEN NULL {arms} ELSE {literal(bin_labels(edges)[-1])} END"


def _edge(edge: float) -> str:
    """The end of a bin, in labels and in SQL."""
    return format(edge, ".15g")
