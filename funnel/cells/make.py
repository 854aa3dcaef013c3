"""From a table's public columns to cells: rare values, tree, profiles."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from funnel.cells.cells import Cells
from funnel.cells.columns import Codes, SourceColumn
from funnel.cells.counts import tallied
from funnel.cells.estimate import TellingSplits, profiles
from funnel.cells.profile import Profile, rounded
from funnel.cells.rare import Merged, Rule, merge
from funnel.cells.tree import grow
from funnel.data.joint import IntArray
from funnel.errors import PlanError

MOST = 4096
"""Cells at most: no mechanism works on larger alphabets."""


@dataclass(frozen=True, eq=False)
class Made:
    """Cells, and of the table they were made from: the cell of every row (n,) and its columns as released.

    Rows stand for so many `records` (n,); None: for one each.
    """

    cells: Cells
    labels: IntArray
    merged: tuple[Merged, ...]
    records: IntArray | None = None

    @property
    def codes(self) -> tuple[Codes, ...]:
        """The released codes (n,) of every column."""
        return tuple(one.codes for one in self.merged)


def make(
    name: str,
    sources: Sequence[SourceColumn],
    *,
    most: int,
    minimum: int,
    support: int,
    rare: Mapping[str, Rule] | None = None,
    seed: bytes | None = None,
) -> Made:
    """At most `most` cells of at least `minimum` records, every published value shared by `support` records.

    `rare` names the rule of columns that do not follow the default, `seed` is drawn by the operating system where it
    is not given. Raises PlanError where the table is too small, or a column cannot be released.
    """
    _check(name, sources, most, minimum, support)
    merged = tuple(merge(source, support, (rare or {}).get(source.name, "other")) for source in sources)
    columns, codes = tuple(one.column for one in merged), [one.codes for one in merged]
    records = sources[0].records
    tree = grow(codes, [len(one) for one in columns], [one.ordered for one in columns], most, minimum, records)
    told: tuple[Profile, ...] | None = None
    while told is None:
        labels = tree.assign(codes)
        try:
            told = profiles(columns, codes, labels, tree, support, records)
        except TellingSplits as found:
            tree = tree.without(found.column)
    shares = rounded(tallied(labels, len(tree), records).astype(float))
    cells = Cells(name, columns, tree, told, shares, os.urandom(32) if seed is None else seed)
    return Made(cells, labels, merged, records)


def _check(name: str, sources: Sequence[SourceColumn], most: int, minimum: int, support: int) -> None:
    rows = int(sources[0].counts.sum())
    if not 1 <= most <= MOST:
        raise PlanError(
            "cells-most",
            f"block {name!r} asks for {most:,} cells; a protocol can have 1 to {MOST:,}",
            advice="200 cells are a good beginning.",
        )
    if minimum < support:
        raise PlanError(
            "cells-support",
            f"block {name!r} has cells of {minimum} records, but no value of fewer than {support} may be told",
            advice="Let `cells.minimum` be at least `estimate.minimum`.",
        )
    if rows < minimum:
        raise PlanError(
            "cells-support",
            f"block {name!r} asks for cells of {minimum:,} records; the table has {rows:,}",
            advice="Lower `cells.minimum`, or publish a larger table.",
        )
