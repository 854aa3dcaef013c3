"""Cones of rows whose averages over several groups stay close, whatever averages within given sets are taken.

A group s has coordinates x in `members[s]` and a set D_s of weights over them. A row v is allowed when
R·v <= ratio · R'·v for all R in D_s and R' in D_s', for every two groups s and s'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.cone import Cone

_LISTED = 100
"""Inequalities up to which a simplex is written out corner by corner, without auxiliary variables."""


@dataclass(frozen=True, eq=False)
class UncertaintySets:
    """D_s = {R : lower <= R <= upper, ΣR = 1}, one per group; `members` are coordinates of a row of length a."""

    members: Sequence[IntArray]
    lower: Sequence[FloatArray]
    upper: Sequence[FloatArray]
    dimension: int

    def pairs(self, *, within: bool = False) -> list[tuple[int, int]]:
        """Every group against every other, and `within` also against itself."""
        groups = range(len(self.members))
        return [(s, t) for s in groups for t in groups if s != t] + [(s, s) for s in groups if within]

    def simplices(self) -> UncertaintySets:
        """The sets without upper ends but those that follow from the lower ones."""
        return replace(self, upper=[lower + self.room(group) for group, lower in enumerate(self.lower)])

    def floor(self, group: int) -> FloatArray:
        """Σ_u L_u v_u as a row of coefficients (a,)."""
        row = np.zeros(self.dimension)
        row[self.members[group]] = self.lower[group]
        return row

    def room(self, group: int) -> float:
        """What is left to give away above the lower ends: 1 - ΣL."""
        return max(1.0 - float(self.lower[group].sum()), 0.0)


def simplex_cone(sets: UncertaintySets, ratio: float, *, within: bool = False) -> Cone:
    """The cone for the simplices {R >= L, ΣR = 1} ([RLDP] Definition 3): upper ends play no part.

    `within` also compares each group with itself, as the definition is printed; that only costs utility.
    Corner by corner while these are few, else as boxes of which no upper end binds.
    """
    pairs = sets.pairs(within=within)
    corners = sum(len(sets.members[s]) * len(sets.members[t]) for s, t in pairs)
    return (
        _corners(sets, ratio, pairs)
        if corners <= _LISTED
        else box_cone(sets.simplices(), ratio, within=within)
    )


def _corners(sets: UncertaintySets, ratio: float, pairs: Sequence[tuple[int, int]]) -> Cone:
    """A row for every corner of the one simplex against every corner of the other."""
    corners = []
    for group, members in enumerate(sets.members):
        corner = np.repeat(sets.floor(group)[None], len(members), axis=0)
        corner[np.arange(len(members)), members] += sets.room(group)
        corners.append(corner)
    blocks = [(corners[s][:, None] - ratio * corners[t][None]).reshape(-1, sets.dimension) for s, t in pairs]
    rows = np.vstack([*blocks, np.zeros((0, sets.dimension))])
    # A corner against itself within one group says v >= ratio · v or nothing; it binds no row.
    return Cone(rows[(rows > 0).any(axis=1)])


def box_cone(sets: UncertaintySets, ratio: float, *, within: bool = False) -> Cone:
    """The cone for the boxes cut by ΣR = 1, by duality of the two inner linear programs.

    max R·v = min over l, z >= v - l, z >= 0 of Σ L v + (1-ΣL) l + Σ (U-L) z, and the minimum likewise from
    below with m and z' >= m - v. Auxiliary variables l, m per group, z, z' per coordinate of each group.
    """
    groups, sizes = len(sets.members), [len(members) for members in sets.members]
    total, start = sum(sizes), np.cumsum([0, *sizes])
    width, eye = 2 * groups + 2 * total, np.eye(sets.dimension)
    rows, lift = [], []
    for s, t in sets.pairs(within=within):
        auxiliary = np.zeros((1, width))
        auxiliary[0, s] = sets.room(s)
        auxiliary[0, groups + t] = -ratio * sets.room(t)
        high = 2 * groups + start[s]
        low = 2 * groups + total + start[t]
        auxiliary[0, high : high + sizes[s]] = sets.upper[s] - sets.lower[s]
        auxiliary[0, low : low + sizes[t]] = ratio * (sets.upper[t] - sets.lower[t])
        rows.append((sets.floor(s) - ratio * sets.floor(t))[None])
        lift.append(auxiliary)
    for s, members in enumerate(sets.members):
        place = np.arange(sizes[s])
        above, below = np.zeros((2, sizes[s], width))
        above[:, s], above[place, 2 * groups + start[s] + place] = -1.0, -1.0
        below[:, groups + s], below[place, 2 * groups + total + start[s] + place] = 1.0, -1.0
        rows += [eye[members], -eye[members]]
        lift += [above, below]
    signs = np.hstack([np.zeros((2 * total, 2 * groups)), -np.eye(2 * total)])
    return Cone(np.vstack([*rows, np.zeros((2 * total, sets.dimension))]), lift=np.vstack([*lift, signs]))
