"""Values merged pair by pair into a partition that tells little, or much, of S ([PF] Algorithms 1 and 2).

It takes weights N[s, x] (c, a) of any kind, and does not ask what they stand for. Several tables over the same x are
merged as one, by the mean of I(S;Y) over them. Information is in nats and in floats: whoever keeps a bound measures
the result again. Among pairs of equal merit the one of smallest indices is merged.

Then single values move between the clusters of the partition, while that keeps I(S;Y) and raises I(X;Y).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.partitions.clusters import Clusters, confusion

Merit = Callable[[FloatArray, FloatArray], FloatArray]
"""How much pairs lower I(S;Y) and I(X;Y), to the merit of merging them; the largest is merged first."""

POWERS = (0.75, 0.0, 0.5, 1.0)
"""Orders of merging that `finest` tries, the best one on census tables first."""
_SLACK = 1e-12
"""Nats by which floats may be wrong about a sum of many terms."""
_NEVER = -np.inf
_GAIN = 1e-12
"""Nats of I(X;Y) that a move must be worth, more than floats can be wrong about."""
_SWEEPS = 20
"""Times that every value is tried; most of the gain comes with the first two."""


@dataclass(frozen=True, eq=False)
class Path:
    """Merges from Y = X on: after step t there are a - t clusters.

    `pairs` (m, 2) names the clusters merged by their smallest members, the kept one first. `public` (m+1,) is I(X;Y)
    before the first merge and after each, `secret` (m+1, k) I(S;Y) in each table.
    """

    size: int
    pairs: IntArray
    public: FloatArray
    secret: FloatArray

    def partition(self, step: int) -> IntArray:
        """The cluster of each x (a,) after a step, numbered in the order of their smallest members."""
        owner = np.arange(self.size)
        for kept, gone in self.pairs[:step]:
            owner[owner == gone] = kept
        return np.unique(owner, return_inverse=True)[1].astype(np.int64)

    def first_within(self, bound: float) -> int | None:
        """The first step after which I(S;Y) is at most `bound` nats in every table, None if there is none."""
        steps = np.flatnonzero((self.secret <= bound).all(axis=1))
        return int(steps[0]) if len(steps) else None


def funnel(tables: Sequence[npt.ArrayLike], *, power: float = POWERS[0], public_floor: float = 0.0) -> Path:
    """Little I(S;Y) for much I(X;Y): merge the pair that lowers I(S;Y) most, I(X;Y) staying at `public_floor` or above.

    Power 0 is [PF] Algorithm 1. The default weighs the price: the largest drop of I(S;Y) per (drop of I(X;Y))^power,
    which on census tables keeps more I(X;Y) at nearly every I(S;Y) than either 0 or the plain ratio at 1.
    """
    return merge(tables, lambda secret, public: np.asarray(secret / public**power), public_floor=public_floor)


def bottleneck(tables: Sequence[npt.ArrayLike], *, printed: bool = False, secret_floor: float = 0.0) -> Path:
    """Much I(S;Y) for little I(X;Y), I(S;Y) staying at `secret_floor` or above: the careless end of [PF] Figure 1.

    As printed, [PF] Algorithm 2 merges the pair that lowers I(X;Y) most; its path is for that one floor. The default,
    the pair that loses least I(S;Y) per nat of I(X;Y), gives the whole upper curve in one path.
    """
    if printed:
        return merge(tables, lambda secret, public: public, secret_floor=secret_floor)
    return merge(tables, lambda secret, public: np.asarray(-secret / public), secret_floor=secret_floor)


def finest(tables: Sequence[npt.ArrayLike], bound: float, *, powers: Sequence[float] = POWERS) -> IntArray:
    """A partition (a,) with I(S;Y) at most `bound` nats in every table and as much I(X;Y) as is found.

    Never less I(X;Y) than [PF] Algorithm 1 keeps when it stops at the bound, while 0 is among the powers: each gives
    a path, single values of its first partition within the bound are moved while that helps, and the best is taken.
    One cluster, which tells nothing, is the last resort.
    """
    limit = bound - _SLACK
    best, most = np.zeros(np.shape(tables[0])[1], np.int64), 0.0
    for power in powers:
        path = funnel(tables, power=power)
        step = path.first_within(limit)
        if step is None:
            continue
        owner, public = refined(tables, path.partition(step), limit)
        if public > most:
            best, most = owner, public
    return best


def merge(
    tables: Sequence[npt.ArrayLike], merit: Merit, *, public_floor: float = 0.0, secret_floor: float = 0.0
) -> Path:
    """Merge the pair of highest merit while there is one that keeps I(X;Y) and the mean I(S;Y) at their floors.

    Raises ValueError where a value or a table has no records.
    """
    clusters = Clusters(tables)
    pairs = _Pairs(clusters, merit)
    merged: list[tuple[int, int]] = []
    public, secret = [clusters.public], [clusters.secret]
    while (pair := pairs.best(public_floor, secret_floor)) is not None:
        clusters.join(*pair)
        pairs.update(*pair)
        merged.append(pair)
        public.append(clusters.public)
        secret.append(clusters.secret)
    size = len(public) - 1
    if size == len(pairs.merits) - 1:
        # One cluster tells nothing, whatever rounding left behind.
        public[-1], secret[-1] = 0.0, np.zeros(len(secret[-1]))
    return Path(
        len(pairs.merits), np.array(merged, np.int64).reshape(-1, 2), np.array(public), np.array(secret)
    )


class _Pairs:
    """Merits of all pairs i < j (a, a), and the best of each row; a merge renews one row and one column."""

    def __init__(self, clusters: Clusters, merit: Merit) -> None:
        self._clusters, self._merit = clusters, merit
        size = len(clusters.mass)
        self.merits = np.full((size, size), _NEVER)
        self._secret, self._public = np.zeros((size, size)), np.zeros((size, size))
        for one in range(size - 1):
            self._price(one, np.arange(one + 1, size))
        self._choose(np.arange(size))

    def best(self, public_floor: float, secret_floor: float) -> tuple[int, int] | None:
        """The pair of highest merit that keeps to the floors. What breaks one now breaks it ever after."""
        state = self._clusters
        public_room = state.public - public_floor + _SLACK
        secret_room = float(state.weights @ state.secret) - secret_floor + _SLACK
        i, j = self._top()
        if self._public[i, j] > public_room or self._secret[i, j] > secret_room:
            self.merits[(self._public > public_room) | (self._secret > secret_room)] = _NEVER
            self._choose(np.arange(len(self.merits)))
            i, j = self._top()
        return None if self.merits[i, j] == _NEVER else (i, j)

    def update(self, kept: int, gone: int) -> None:
        """The pairs after `gone` was put into `kept`."""
        self.merits[gone, :] = self.merits[:, gone] = _NEVER
        mass = self._clusters.mass
        others = np.flatnonzero(mass > 0)
        self._price(kept, others[others != kept])
        stale = (self._column == kept) | (self._column == gone)
        stale[[kept, gone]] = True
        self._choose(np.flatnonzero(stale))
        rows = np.arange(kept)
        renewed, known = self.merits[:kept, kept], self._value[:kept]
        rows = rows[(renewed > known) | ((renewed == known) & (self._column[:kept] > kept))]
        self._column[rows], self._value[rows] = kept, self.merits[rows, kept]

    def _price(self, one: int, others: IntArray) -> None:
        """What merging `one` with each of `others` would do."""
        secret, public = self._clusters.drops(one, others)
        place = np.minimum(one, others), np.maximum(one, others)
        self._secret[place], self._public[place] = secret.sum(axis=0), public
        self.merits[place] = self._merit(self._secret[place], public)

    def _choose(self, rows: IntArray) -> None:
        """Find the best pair of some rows; all of them on the first call."""
        column = self.merits[rows].argmax(axis=1)
        value = self.merits[rows, column]
        if len(rows) == len(self.merits):
            self._column, self._value = column, value
        else:
            self._column[rows], self._value[rows] = column, value

    def _top(self) -> tuple[int, int]:
        """The pair of highest merit."""
        row = int(self._value.argmax())
        return row, int(self._column[row])


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
