"""Profiles: what a row of a cell looks like.

The values of every column come in groups (its own values, or quantiles). Groups of columns form a tree: given the cell
and the group of its parent's value, a column's group is drawn, and then its value, given cell and group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray

BITS = 16
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


def rounded(masses: FloatArray, parts: float = np.inf) -> IntArray:
    """Weights of sum 2^BITS along the last axis, near the shares of masses; none where there is no mass.

    In steps of 2^-k, the largest that is at most one part of `parts` of a record. A weight is within a step of its
    share; the point from which it is rounded moves from row to row, so that a small share is rounded up as often as
    it is large.
    """
    sums = np.cumsum(masses.reshape(-1, masses.shape[-1]), axis=1)
    some = sums[:, -1] > 0
    fine = np.clip(np.ceil(np.log2(np.maximum(sums[some, -1:], 1) * min(parts, 1 << BITS))), 0, BITS)
    offset = (np.arange(len(sums)) * _GOLDEN) % 1
    ends = np.zeros(sums.shape)
    ends[some] = np.floor(sums[some] / sums[some, -1:] * 2**fine + offset[some, None]) * 2 ** (BITS - fine)
    ends[(sums == sums[:, -1:]) & some[:, None]] = 1 << BITS
    return np.diff(ends, prepend=0, axis=1).astype(np.int64).reshape(masses.shape)
