"""From a table's columns and their cells to profiles: what is told of them, and what follows.

Told are, as `pooling.py` says, the counts of values in cells, and of groups of every two columns in the whole table.
Profiles are a function of these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.cells.columns import Codes
from funnel.cells.counts import counted, direction, met
from funnel.cells.dependence import spanning
from funnel.cells.fit import Pairs, fit
from funnel.cells.pooling import told
from funnel.cells.profile import Profile, rounded
from funnel.cells.tree import Nesting, Tree
from funnel.data.joint import FloatArray, IntArray

QUANTILES = 20
"""Groups of an ordered column at most."""
GROUPS = 48
"""Groups of another column at most."""


def profiles(
    codes: Sequence[Codes],
    sizes: Sequence[int],
    ordered: Sequence[bool],
    cells: IntArray,
    tree: Tree,
    support: int,
) -> tuple[Profile, ...]:
    """A profile of every column, in order, from the codes (n,) of its rows and their cells (n,)."""
    totals = [np.bincount(column, minlength=size) for column, size in zip(codes, sizes, strict=True)]
    groups = [_grouped(total, flag) for total, flag in zip(totals, ordered, strict=True)]
    coarse = [group[column].astype(np.int32) for group, column in zip(groups, codes, strict=True)]
    widths = [int(group.max()) + 1 for group in groups]
    masses, tables = list[FloatArray](), list[FloatArray]()
    for column, size in enumerate(sizes):
        met_by = met(codes[column], size, coarse, widths)
        order = np.arange(size) if ordered[column] else direction(met_by)
        counts = counted(codes[column], size, cells, len(tree))
        masses.append(told(counts, tree.nesting, support, order, tree.possible(column, size)).masses())
        tables.append(masses[-1] @ np.eye(widths[column])[groups[column]])
    pairs = _pairs(coarse, widths, support)
    parents = spanning(tables, pairs)
    fitted = fit(tables, pairs, parents)
    return tuple(
        Profile(parent, group, rounded(links), _within(mass, group, table))
        for parent, group, links, mass, table in zip(
            parents, groups, fitted.links, masses, fitted.tables, strict=True
        )
    )


def _pairs(coarse: Sequence[Codes], widths: Sequence[int], support: int) -> Pairs:
    """What is told of the groups of every two columns a > b."""
    found = dict[tuple[int, int], FloatArray]()
    for a in range(len(coarse)):
        for b in range(a):
            counts = counted(coarse[b], widths[b], coarse[a], widths[a])
            order = np.arange(widths[b])
            found[a, b] = told(counts, Nesting.flat(len(counts)), support, order).masses()
    return found


def _grouped(totals: IntArray, ordered: bool) -> IntArray:
    """The group of every value (v,): quantiles of an ordered column, else the most frequent values and all others."""
    if ordered:
        before = np.cumsum(totals) - totals
        return np.unique(before * QUANTILES // totals.sum(), return_inverse=True)[1]
    found = np.full(len(totals), GROUPS - 1)
    found[np.argsort(-totals, kind="stable")[: GROUPS - 1]] = np.arange(min(len(totals), GROUPS - 1))
    return found


def _within(masses: FloatArray, groups: IntArray, table: FloatArray) -> IntArray:
    """Weights (m, v) of values given their group."""
    found = np.zeros(masses.shape, np.int64)
    for group in range(table.shape[1]):
        inside, cells = np.flatnonzero(groups == group), np.flatnonzero(table[:, group] > 0)
        found[np.ix_(cells, inside)] = rounded(masses[np.ix_(cells, inside)])
    return found
