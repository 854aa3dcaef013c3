"""Profiles: what a row of a cell looks like.

The values of every column come in groups (its own values, or quantiles). Groups of columns form a tree: given the cell
and the group of its parent, a column's group is drawn, and then its value, given cell and group. What is known of a
group, its parent and the cell is their three tables of two, each told as `pooling.py` does; the table of three is the
one that repeats them and says as little as it can beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.cells.columns import Codes
from funnel.cells.counts import counted, direction, met
from funnel.cells.dependence import spanning
from funnel.cells.pooling import ratio, told
from funnel.cells.tree import Nesting, Tree
from funnel.data.joint import FloatArray, IntArray

BITS = 16
GROUPS = 20
_SWEEPS = 12
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Profile:
    """How a column is drawn in each of m cells.

    `parent` is the column that it depends on, -1 for none; `groups` (v,) the group of each of its values. `links` (m,
    groups of the parent, groups): chances of its groups given the parent's group; where there is no parent, that is
    one. `values` (m, v): chances of its values given their group. All add up to 2^BITS; a group that is impossible in
    a cell has values of weight 0.
    """

    parent: int
    groups: IntArray
    links: IntArray
    values: IntArray


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
    coarse = [group[column] for group, column in zip(groups, codes, strict=True)]
    widths = [int(group.max()) + 1 for group in groups]
    masses, tables = list[FloatArray](), list[FloatArray]()
    for column, (size, flag) in enumerate(zip(sizes, ordered, strict=True)):
        order = np.arange(size) if flag else direction(met(codes[column], size, coarse, widths))
        masses.append(
            told(counted(codes[column], size, cells, len(tree)), tree.nesting, support, order).masses()
        )
        tables.append(masses[-1] @ np.eye(groups[column].max() + 1)[groups[column]])
    pairs = {
        (a, b): counted(coarse[b], tables[b].shape[1], coarse[a], tables[a].shape[1])
        for a in range(len(codes))
        for b in range(a)
    }
    parents = spanning(tables, pairs)
    return tuple(
        Profile(
            parent,
            groups[column],
            rounded(_links(tables, pairs, parent, column, support)),
            _within(masses[column], groups[column], tables[column]),
        )
        for column, parent in enumerate(parents)
    )


def drawing_order(profiles: Sequence[Profile]) -> list[int]:
    """The columns, every parent before its children."""
    found = list[int]()
    while len(found) < len(profiles):
        found += [
            place
            for place, one in enumerate(profiles)
            if place not in found and (one.parent < 0 or one.parent in found)
        ]
    return found


def rounded(masses: FloatArray) -> IntArray:
    """Weights of sum 2^BITS along the last axis, each within one of its share, and none where there is no mass.

    Differences of rounded sums; the point from which they are rounded moves from row to row, so that a small share is
    rounded up as often as it is large.
    """
    sums = np.cumsum(masses.reshape(-1, masses.shape[-1]), axis=1)
    offset = (np.arange(len(sums)) * _GOLDEN) % 1
    ends = np.floor(sums / sums[:, -1:] * (1 << BITS) + offset[:, None])
    ends[sums == sums[:, -1:]] = 1 << BITS
    return np.diff(ends, prepend=0, axis=1).astype(np.int64).reshape(masses.shape)


def _grouped(totals: IntArray, ordered: bool) -> IntArray:
    """The group of every value (v,): quantiles of an ordered column, else the most frequent values and all others."""
    if ordered:
        before = np.cumsum(totals) - totals
        return np.unique(before * GROUPS // totals.sum(), return_inverse=True)[1]
    found = np.full(len(totals), GROUPS - 1)
    found[np.argsort(-totals, kind="stable")[: GROUPS - 1]] = np.arange(min(len(totals), GROUPS - 1))
    return found


def _links(
    tables: Sequence[FloatArray],
    pairs: dict[tuple[int, int], IntArray],
    parent: int,
    column: int,
    support: int,
) -> FloatArray:
    """Masses (m, groups of the parent, groups) of a column's groups; as in its cell for a group of no records."""
    own = tables[column]
    if parent < 0:
        return own[:, None, :]
    pair = pairs[parent, column] if parent > column else pairs[column, parent].T
    joint = told(pair, Nesting.flat(len(pair)), support, np.arange(pair.shape[1])).masses()
    found = tables[parent][:, :, None] * own[:, None, :] / own.sum(axis=1)[:, None, None]
    for _ in range(_SWEEPS):
        found *= ratio(joint, found.sum(axis=0))[None]
        found *= ratio(tables[parent], found.sum(axis=2))[:, :, None]
        found *= ratio(own, found.sum(axis=1))[:, None, :]
    empty = found.sum(axis=2) < 1e-9
    found[empty] = np.repeat(own[:, None, :], found.shape[1], axis=1)[empty]
    return np.asarray(found)


def _within(masses: FloatArray, groups: IntArray, table: FloatArray) -> IntArray:
    """Weights (m, v) of values given their group."""
    found = np.zeros(masses.shape, np.int64)
    for group in range(table.shape[1]):
        inside, cells = np.flatnonzero(groups == group), np.flatnonzero(table[:, group] > 0)
        found[np.ix_(cells, inside)] = rounded(masses[np.ix_(cells, inside)])
    return found
