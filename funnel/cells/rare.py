"""Rare values: every value that can be released is shared by at least `support` records of the table.

Rarer texts become `other`, which takes in the next rarest text until it has support itself. Rarer numbers and dates
are joined with their neighbours in bins, each shown as the median of its records, so that the column stays a number.
A rare missing number is shown as the column's median, a rare value of another type as the commonest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from funnel.cells.columns import Codes, SourceColumn, Vocabulary, cuts_between, order, unordered
from funnel.data.alphabet import OTHER
from funnel.data.joint import IntArray
from funnel.errors import PlanError
from funnel.text import counted

Rule = Literal["other", "bin", "error"]
MOST_VALUES = 256
"""Values of an ordered column at most; where more than half as many have support, others of them are joined, too."""


@dataclass(frozen=True, eq=False)
class Merged:
    """A column with its codes (n,); `values` values of the source were merged, of `records` records.

    `table` (v,) is the code of each of the source's values.
    """

    column: Vocabulary
    codes: Codes
    table: Codes
    values: int
    records: int


def merge(source: SourceColumn, support: int, rule: Rule = "other") -> Merged:
    """The column as it can be released. Raises PlanError where that is not possible, or against the rule."""
    return merge_counted(source, source.counts, support, rule)


def merge_counted(source: SourceColumn, counts: IntArray, support: int, rule: Rule) -> Merged:
    """The same of a column of which only the records of each value (v,) are known."""
    if (records := int(counts.sum())) < support:
        raise PlanError(
            "cells-support",
            f"column {source.name!r} has {counted(records, 'record')}, fewer than the minimum of {support}",
            advice="Lower `estimate.minimum`, or publish a larger table.",
        )
    rare = int(((counts > 0) & (counts < support)).sum())
    if rare and rule == "error":
        raise PlanError(
            "rare-values",
            f"column {source.name!r} has {counted(rare, 'value')} that fewer than {counted(support, 'record')} share",
            advice="Group or round them, or leave `rare` out.",
        )
    if rare and rule == "bin" and not source.ordered:
        raise PlanError(
            "rare-values",
            f"column {source.name!r} has rare values and no order, so that they cannot be binned",
            advice="Write `rare: other`, or a mapping under `groups`.",
        )
    merged = _ordered(source, counts, support) if source.ordered else _nominal(source, counts, support)
    if rule == "error" and merged.values:
        raise PlanError(
            "rare-values",
            f"column {source.name!r} has {counted(int((counts > 0).sum()), 'value')}: of numbers and dates inside "
            f"cells more than {MOST_VALUES // 2} are joined with their neighbours, though none is rare",
            advice="Round them, give `bins`, or leave `rare` out.",
        )
    return merged


def _nominal(source: SourceColumn, counts: IntArray, support: int) -> Merged:
    """Values with support stand for themselves, in the order of their names; the others become one."""
    seen = [code for code in range(len(counts)) if counts[code]]
    merged = _merged(source, seen, counts, support)
    shown = _shown(source, merged, counts)
    kept = [source.values[code] for code in seen if code not in merged]
    texts = sorted({one for one in [*kept, *([shown] if merged else [])] if one is not None})
    values = (*texts, *([None] if None in kept or (merged and shown is None) else []))
    place = {value: code for code, value in enumerate(values)}
    table = np.zeros(len(counts), np.int32)
    for code in seen:
        table[code] = place[shown if code in merged else source.values[code]]
    column = Vocabulary(
        source.name,
        source.type,
        values,
        None,
        place[shown] if merged else None,
        int(table[source.values.index(None)]) if None in [source.values[code] for code in seen] else None,
    )
    return _of(source, column, table, counts, merged)


def _merged(source: SourceColumn, seen: Sequence[int], counts: IntArray, support: int) -> set[int]:
    """Codes of the values that become one: the rare, and the next rarest until they have support together.

    A value that is called `other` already has its records in that one.
    """
    if min(counts[code] for code in seen) >= support:
        return set()
    if not _textual(source.type):
        return {code for code in seen if counts[code] < support}
    own = [code for code in seen if source.values[code] == OTHER]
    rarest = sorted({*seen} - {*own}, key=lambda code: (counts[code], source.values[code] or ""))
    enough = int(np.argmax(counts[own].sum() + np.cumsum(counts[rarest]) >= support))
    rare = int((counts[rarest] < support).sum())
    return set(rarest[: max(enough + 1, rare)])


def _shown(source: SourceColumn, merged: set[int], counts: IntArray) -> str | None:
    """What merged values are released as: `other`, or the commonest value of a type that has no texts."""
    return OTHER if _textual(source.type) else source.values[int(np.argmax(counts))]


def _textual(kind: str) -> bool:
    return kind == "VARCHAR"


def _ordered(source: SourceColumn, counts: IntArray, support: int) -> Merged:
    """Neighbours joined until every value has support; each shown as the median of its records."""
    try:
        ranks = [code for code in order(source.values, source.type) if counts[code]]
    except ValueError as error:
        raise unordered(source.name, str(error)) from None
    missing = next((code for code in ranks if source.values[code] is None), None)
    numbers = [code for code in ranks if code != missing]
    own = missing is not None and (counts[missing] >= support or not numbers)
    parts = [[numbers[i] for i in part] for part in _parts(counts[numbers], support)]
    if own and counts[numbers].sum() < support:
        parts = []  # too few numbers to show any: they are missing like the others
    medians = [_median(part, counts) for part in parts]
    table = np.zeros(len(counts), np.int32)
    for place, part in enumerate(parts):
        table[part] = place
    if missing is not None:
        table[missing] = len(parts) if own else table[_median(numbers, counts)]
    column = Vocabulary(
        source.name,
        source.type,
        (*(source.values[code] for code in medians), *([None] if own else [])),
        cuts_between([(_text(source, part[0]), _text(source, part[-1])) for part in parts], source.type),
        None,
        int(table[missing]) if missing is not None else None,
    )
    shown = {*medians, *([missing] if own else [])}
    return _of(source, column, table, counts, set(ranks) - shown)


def _parts(counts: IntArray, support: int) -> list[range]:
    """Runs of neighbouring values with support: values that have it stand alone, the others are joined in bins.

    A run of rare values is cut into bins of at least `support` records, and of 1 / MOST_VALUES of the table; what is
    left of it over joins the bin before it, or the value behind it.
    """
    total = int(counts.sum())
    if total < support:
        return [range(len(counts))] if len(counts) else []
    large = max(support, -(-2 * total // MOST_VALUES))
    alone = counts >= (support if (counts >= support).sum() <= MOST_VALUES // 2 else large)
    parts, start, held = list[range](), 0, 0
    for place, count in enumerate(counts):
        if alone[place] and held >= support:
            parts.append(range(start, place))
            start, held = place, 0
        elif alone[place] and held and parts:
            parts[-1] = range(parts[-1].start, place)
            start, held = place, 0
        held += int(count)
        if held >= large or alone[place]:
            parts.append(range(start, place + 1))
            start, held = place + 1, 0
    if held >= support:
        parts.append(range(start, len(counts)))
    elif held:
        parts[-1] = range(parts[-1].start, len(counts))
    return parts


def _median(codes: Sequence[int], counts: IntArray) -> int:
    """The code of the lower median record."""
    total = np.cumsum(counts[list(codes)])
    return codes[int(np.searchsorted(total, (total[-1] + 1) // 2))]


def _text(source: SourceColumn, code: int) -> str:
    return source.values[code] or ""


def _of(source: SourceColumn, column: Vocabulary, table: Codes, counts: IntArray, merged: set[int]) -> Merged:
    return Merged(column, table[source.codes], table, len(merged), int(counts[list(merged)].sum()))
