"""Profiles: what a row of a cell looks like. One column by its weights in the cell, the others by their parent's value.

Columns form a tree: `parents`. Values of a parent come in groups; given the cell and the group of its parent's value,
a column is drawn by integer weights of sum 2^bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.cells.columns import Codes
from funnel.cells.pooling import pool, spread
from funnel.cells.tree import Tree
from funnel.data.joint import FloatArray, IntArray

BITS = 16
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Profile:
    """How a column is drawn in each cell.

    `parent` is the column that it depends on (-1: none) and `groups` (v of the parent,) the group of each of its
    values, counted from 0 (a single 0 without a parent); `weights` (m, groups, v) add up to 2^BITS along v.
    """

    parent: int
    groups: IntArray
    weights: IntArray


def profiles(
    codes: Sequence[Codes], sizes: Sequence[int], cells: IntArray, tree: Tree, support: int
) -> tuple[Profile, ...]:
    """A profile of every column, in order, from the codes (n,) of its rows and their cells (n,)."""
    return tuple(
        _alone(counted(column, size, cells, len(tree)), tree, support)
        for column, size in zip(codes, sizes, strict=True)
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


def counted(column: Codes, size: int, cells: IntArray, number: int) -> IntArray:
    """How often every value occurs in every cell (m, v)."""
    return np.bincount(cells * size + column, minlength=number * size).reshape(number, size)


def rounded(masses: FloatArray) -> IntArray:
    """Weights of sum 2^BITS along the last axis, each within one of its share, and none where there is no mass.

    Differences of rounded sums; the point from which they are rounded moves from row to row, so that a small share is
    rounded up as often as it is large.
    """
    rows = masses.reshape(-1, masses.shape[-1])
    sums = np.cumsum(rows, axis=1)
    offset = (np.arange(len(rows)) * _GOLDEN) % 1
    ends = np.floor(sums / sums[:, -1:] * (1 << BITS) + offset[:, None])
    ends[rows.cumsum(axis=1) == sums[:, -1:]] = 1 << BITS
    return np.diff(ends, prepend=0, axis=1).astype(np.int64).reshape(masses.shape)


def _alone(counts: IntArray, tree: Tree, support: int) -> Profile:
    """A column that depends on its cell only."""
    masses = spread(pool(counts, tree, support), tree)
    return Profile(-1, np.zeros(1, np.int64), rounded(masses)[:, None, :])
