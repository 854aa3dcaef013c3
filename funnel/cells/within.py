"""How values of some columns go together within each cell: what the weights of the profiles say, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from funnel.cells.profile import BITS, Profile
from funnel.data.joint import FloatArray


def within(profiles: Sequence[Profile], wanted: Sequence[int]) -> FloatArray:
    """The chances (m, v_1, …, v_k) of the values of the wanted columns together, in each of m cells.

    Columns form trees and depend on the group of their parent's value: what is not wanted is summed out leaf by leaf.
    """
    cells = len(profiles[0].values)
    found, order = np.ones((cells, 1, 1)), list[int]()
    for column, one in enumerate(profiles):
        if one.parent < 0:
            part, below = _below(profiles, column, frozenset(wanted))
            found, order = _beside(found, part), order + below
    sizes = [len(profiles[column].groups) for column in order]
    table = found[:, 0, :].reshape(cells, *sizes)
    return np.asarray(table.transpose(0, *(1 + order.index(column) for column in wanted)))


def size(profiles: Sequence[Profile], wanted: Sequence[int]) -> int:
    """How many numbers that table has."""
    return math.prod([len(profiles[0].values), *(len(profiles[column].groups) for column in wanted)])


def _below(
    profiles: Sequence[Profile], column: int, wanted: frozenset[int]
) -> tuple[FloatArray, list[int]]:
    """Chances (m, groups of the parent, combinations) of what is wanted of a column and those below, and of which."""
    own = profiles[column]
    links = own.links / (1 << BITS)
    rest, order = np.ones((len(links), links.shape[2], 1)), list[int]()
    for child, one in enumerate(profiles):
        if one.parent == column:
            part, below = _below(profiles, child, wanted)
            rest, order = _beside(rest, part), order + below
    if column not in wanted:
        return links @ rest, order
    values = links[:, :, own.groups] * (own.values / (1 << BITS))[:, None, :]
    table = values[:, :, :, None] * rest[:, own.groups, :][:, None, :, :]
    return table.reshape(*links.shape[:2], -1), [column, *order]


def _beside(first: FloatArray, second: FloatArray) -> FloatArray:
    """Combinations of what is independent given cell and group."""
    table = first[:, :, :, None] * second[:, :, None, :]
    return table.reshape(*first.shape[:2], -1)
