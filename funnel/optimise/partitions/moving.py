"""Single values moved between the clusters of a partition, while that keeps I(S;Y) and raises I(X;Y)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.partitions.clusters import Clusters, confusion

_GAIN = 1e-12
"""Nats of I(X;Y) that a move must be worth, more than floats can be wrong about."""
_SWEEPS = 20
"""Times that every value is tried; most of the gain comes with the first two."""


def refined(tables: Sequence[npt.ArrayLike], owner: IntArray, bound: float) -> tuple[IntArray, float]:
    """A partition (a,) of no less I(X;Y) than `owner` (a,), and its I(X;Y), with I(S;Y) at most `bound` in each table.

    Each value in turn goes to the cluster, or to one of its own, where I(X;Y) is largest within the bound. `owner`
    must itself be within; the result is numbered in the order of the smallest members.
    """
    moving = _Moving(tables, owner, bound)
    for _ in range(_SWEEPS):
        if not sum(moving.move(x) for x in range(len(owner))):
            break
    _, first, code = np.unique(moving.owner, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[code].astype(np.int64), moving.public


class _Moving:
    """A partition whose clusters change; there is always an empty one at the end."""

    def __init__(self, tables: Sequence[npt.ArrayLike], owner: IntArray, bound: float) -> None:
        self.owner, self._bound = owner.copy(), bound
        state = self._state = Clusters(tables, owner)
        self.public, self._secret = state.public, state.secret
        self._prior = state.values.sum(axis=0)
        self._grow()

    def move(self, x: int) -> bool:
        """Move x where that gains most within the bound; whether it moved."""
        state, source, value = self._state, int(self.owner[x]), self._state.values[:, x]
        members = np.flatnonzero(self.owner == source)
        rest = state.values[:, members[members != x]].sum(axis=1)
        gain = confusion(self._prior[x], rest.sum()) - confusion(self._prior[x], state.mass)
        gain[source] = 0.0
        targets = np.flatnonzero(gain > _GAIN)
        there = state.tells(state.cells[:, targets] + value[:, None])
        left = state.tells(rest[:, None])
        change = there - state.told[:, targets] + left - state.told[:, [source]]
        secret = self._secret[:, None] + change / state.weights[:, None]
        allowed = np.flatnonzero((secret <= self._bound).all(axis=0))
        if not len(allowed):
            return False
        chosen = allowed[gain[targets[allowed]].argmax()]
        target = int(targets[chosen])
        self.public, self._secret = self.public + float(gain[target]), secret[:, chosen]
        self._put(source, rest, left[:, 0])
        self._put(target, state.cells[:, target] + value, there[:, chosen])
        self.owner[x] = target
        if target == len(state.mass) - 1:
            self._grow()
        return True

    def _put(self, cluster: int, cells: FloatArray, told: FloatArray) -> None:
        """Replace a cluster."""
        state = self._state
        state.cells[:, cluster], state.told[:, cluster], state.mass[cluster] = cells, told, cells.sum()

    def _grow(self) -> None:
        """Another empty cluster at the end."""
        state = self._state
        state.cells, state.told = (np.pad(part, ((0, 0), (0, 1))) for part in (state.cells, state.told))
        state.mass = np.pad(state.mass, (0, 1))
