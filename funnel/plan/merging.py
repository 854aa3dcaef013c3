"""What becomes of the rare values of a column, found from all its values' counts before the table is counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.cells.columns import SourceColumn, nearest, order, unordered
from funnel.cells.rare import merge_counted
from funnel.data import Alphabet
from funnel.data.alphabet import OTHER
from funnel.data.joint import IntArray
from funnel.engine import Engine
from funnel.engine.sql import identifier
from funnel.errors import PlanError
from funnel.plan.stages import Rare

Text = str | None

MOST_VALUES = 500_000
"""Different values of a column whose rare ones are merged: all of them are in memory at once."""


def merge(engine: Engine, rare: Rare, minimum: int) -> tuple[int, int]:
    """Give the engine the table of what each value becomes; how many became another one, and of how many records.

    Raises PlanError where there are too many values, SourceError.
    """
    _check_number(engine, rare)
    rows = engine.rows(rare.statement)
    values, counts = [row[0] for row in rows], np.array([row[1] for row in rows], np.int64)
    if rare.known is not None:
        known = [row[0] for row in engine.rows(f"SELECT v0 FROM {identifier(rare.known)}")]
        become = of_lock(rare, values, known)
    elif rare.rule == "other":
        become = _others(rare, values, counts, minimum)
    else:
        become = _binned(rare, values, counts, minimum)
    engine.provide(rare.name, Alphabet(("value", "label"), tuple(zip(values, become, strict=True))))
    moved = np.array([old != new for old, new in zip(values, become, strict=True)], bool)
    return int(moved.sum()), int(counts[moved].sum())


def _check_number(engine: Engine, rare: Rare) -> None:
    """All values of a merged column are held at once; the engine counts them before. Raises PlanError."""
    (values,) = engine.row(f"SELECT count(*) FROM ({rare.statement})")
    if values > MOST_VALUES:
        raise PlanError(
            "alphabet-too-large",
            f"{rare.column} takes {values:,} values; rare ones can be merged among {MOST_VALUES:,} at most",
            advice="Shrink it with `bins` or `round` (numbers), `groups` or `top` (most frequent values), or leave it "
            "out.",
        )


def of_lock(rare: Rare, values: Sequence[Text], known: Sequence[Text]) -> list[Text]:
    """The lock's own values stay; what others become is settled by these. A missing value is one of them, or rare."""
    if rare.rule == "bin":
        there = [one for one in known if one is not None]
        kept = [there[place] for place in order(there, rare.kind)]
        try:
            return _at(values, kept, nearest(values, kept, rare.kind))
        except ValueError as error:
            raise unordered(rare.column, str(error)) from None
    return [one if one in known else OTHER for one in values]


def _others(rare: Rare, values: Sequence[Text], counts: IntArray, minimum: int) -> list[Text]:
    """Rare values become one, with the next rarest until it has as many records."""
    if counts.sum() < minimum:
        return list(values)
    source = SourceColumn(rare.column, "VARCHAR", ordered=False, values=tuple(values), codes=_NONE)
    merged = merge_counted(source, counts, minimum, "other")
    return [merged.column.values[code] for code in merged.table]


def _binned(rare: Rare, values: Sequence[Text], counts: IntArray, minimum: int) -> list[Text]:
    """The nearest of values that stand for `minimum` records each: on later nights of a lock, these say it all."""
    there = np.array([one is not None for one in values], bool)
    if counts[there].sum() < minimum:
        return list(values)
    own = tuple(one for one in values if one is not None)
    source = SourceColumn(rare.column, rare.kind, ordered=True, values=own, codes=_NONE)
    merged = merge_counted(source, counts[there], minimum, "bin")
    kept = [one for one in merged.column.values if one is not None]
    while True:
        places = nearest(values, kept, rare.kind)
        records = np.bincount(places, weights=np.where(there, counts, 0), minlength=len(kept))
        if records.min() >= minimum:
            return _at(values, kept, places)
        del kept[int(np.argmin(records))]


def _at(values: Sequence[Text], kept: Sequence[str], places: IntArray) -> list[Text]:
    """The values kept at these places (v,); the missing value stays."""
    return [None if one is None else kept[place] for one, place in zip(values, places, strict=True)]


_NONE = np.zeros(0, np.int32)
