"""Small groups beside a large one: all their vertices listed, and the large group's taken one by one.

At prices λ a row is worth λ·v + τ W at most where some κ has e^(κ-τ-1) + Σ_s D_s(κ) <= 0, D_s the largest worth of a
part of group s at prices λ + κ p (`modes`). Where one group s* has most of the mass, a row's total W is nearly that of
its part of s*. With that part at a given vertex the others meet in W alone, which hardly moves: nearly tight is that
    for every vertex z of s* some κ has f(z) - κ W(z) + Σ_{s≠s*} D_s(κ) + e^(κ-τ-1) <= 0.
In an interval of ρ a vertex's levels are linear in ρ and its worth convex, so both ends of where it exists decide.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.columns.chords import xlogx
from funnel.optimise.groups.levels import HIGH, LOW, Groups, Means

_SIZE = 6
"""Coordinates of a group up to which its vertices are listed: there are 3^n labels."""
_INTERVALS, _KAPPAS = 8, 64
"""Intervals of ln ρ, and values of κ."""
_BEYOND = 0.02
"""Share of 2 ln ratio by which the values of κ - 1 reach beyond it."""
_RELAXED = 1e-9
"""Share by which M may be larger than it may, against rounding errors."""
_ALIKE = 0.999
"""Share of a vertex's largest entry from which an entry is at the upper level."""


def listable(groups: Groups) -> bool:
    """Whether all groups are small."""
    return bool(groups.real.sum(axis=1).max() <= _SIZE)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Vertices (k,) of all groups where they begin to exist between two ends, or where they end.

    `at` (k,) is the share of the way; `z` (k, n) the vertex, `mass` its p·z and `worth` its Σ p z ln z, (k,).
    """

    at: FloatArray
    z: FloatArray
    mass: FloatArray
    worth: FloatArray


class Vertices:
    """Vertices (k,) by group, `own`, of {low <= m(z), M(z) <= high} while the limits move between two ends (2,)."""

    def __init__(self, groups: Groups, lows: FloatArray, highs: FloatArray) -> None:
        labels = np.array(list(itertools.product(range(3), repeat=groups.place.shape[1])), np.int64)
        found = [_of_group(groups, s, labels, lows, highs) for s in range(groups.count)]
        self.own = np.repeat(np.arange(groups.count), [len(one[0][0]) for one in found])
        self.ends = []
        for side in range(2):
            at, z = (np.concatenate([one[side][part] for one in found]) for part in range(2))
            prior = groups.prior[self.own]
            worth = (prior * xlogx(z)).sum(axis=1)
            self.ends.append(_Ends(at, z, (prior * z).sum(axis=1), worth))
        self.first = np.searchsorted(self.own, np.arange(groups.count))
        self.there = [np.flatnonzero(end.at == side) for side, end in enumerate(self.ends)]

    def __len__(self) -> int:
        return len(self.own)

    def prices(self, rows: FloatArray, kappas: FloatArray) -> list[FloatArray]:
        """What vertices are worth at prices λ (c, n) and each κ, where they begin and where they end, (k, K)."""
        return [
            (end.worth - (rows[self.own] * end.z).sum(axis=1))[:, None] - end.mass[:, None] * kappas
            for end in self.ends
        ]

    def lines(self, prices: list[FloatArray]) -> FloatArray:
        """Linear functions over all vertices of each group, by their values at both ends, (2, c, K)."""
        lines = np.array(
            [
                np.maximum.reduceat(
                    price[there], np.searchsorted(self.own[there], np.arange(len(self.first)))
                )
                for price, there in zip(prices, self.there, strict=True)
            ]
        )
        for price, end in zip(prices, self.ends, strict=True):
            at = end.at[:, None]
            beyond = price - (1 - at) * lines[0][self.own] - at * lines[1][self.own]
            lines += np.maximum(np.maximum.reduceat(beyond, self.first), 0.0)
        return lines


def _of_group(
    groups: Groups, group: int, labels: IntArray, lows: FloatArray, highs: FloatArray
) -> list[tuple[FloatArray, FloatArray]]:
    """Where one group's vertices begin to exist, and where they end: shares of the way (k,), vertices (k, n)."""
    fits = (labels[:, ~groups.real[group]] == 0).all(axis=1) & (labels == HIGH).any(axis=1)
    high, low = ((labels[fits] == label) * 1.0 for label in (HIGH, LOW))
    sizes = np.stack([groups.lower[group], groups.spread[group]])
    means = Means.of(sizes @ high.T, sizes @ low.T, sizes[1].sum(), groups.room[group])
    two, (lows, highs) = low.any(axis=1), (np.outer(one, np.ones(len(high))) for one in (lows, highs))
    with np.errstate(all="ignore"):
        x, y = means.levels(lows, highs)
        y = np.where(two, y, 0.0)
        most, least = highs / means.most_x, lows / means.least_x
        begin, end = where_all(np.where(two, x - y, most - least), np.where(two, y, 1.0))
        kinds = ((np.where(two, x, most), begin <= end), (least, (begin <= end) & ~two))
        kept = [np.flatnonzero(ok & np.isfinite(level + y).all(axis=0)) for level, ok in kinds]
    sides = []
    for at in (begin, end):
        pairs = [
            (level[0, k] + at[k] * (level[1, k] - level[0, k]), y[0, k] + at[k] * (y[1, k] - y[0, k]))
            for (level, _), k in zip(kinds, kept, strict=True)
        ]
        z = [
            upper[:, None] * high[k] + np.maximum(lower, 0.0)[:, None] * low[k]
            for (upper, lower), k in zip(pairs, kept, strict=True)
        ]
        sides.append((np.concatenate([at[k] for k in kept]), np.vstack(z)))
    return sides


def where_all(*linear: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The shares of the way from end to end between which all of several linear functions (2, k) are >= 0."""
    begin, end = np.zeros(linear[0].shape[1]), np.ones(linear[0].shape[1])
    for first, last in linear:
        root = first / (first - last)
        begin = np.where((first < 0) & (last >= 0), np.maximum(begin, root), begin)
        end = np.where((first >= 0) & (last < 0), np.minimum(end, root), end)
        never = ~(first >= 0) & ~(last >= 0)
        begin, end = np.where(never, 1.0, begin), np.where(never, 0.0, end)
    return begin, end


@dataclass(frozen=True, eq=False)
class Found:
    """The largest τ at some prices, and rows (k, a) that are worth much at them, best first."""

    peak: float
    rows: FloatArray


class Listed:
    """All modes, in intervals of ρ, and the vertices of all groups in each."""

    def __init__(self, groups: Groups, ratio: float) -> None:
        self.groups, self.large = groups, int(groups.prior.sum(axis=1).argmax())
        self.kappas = 1 + 2 * math.log(ratio) * np.linspace(-_BEYOND, 1 + _BEYOND, _KAPPAS)
        rhos = np.exp(np.linspace(0.0, math.log(ratio), _INTERVALS + 1))
        high = np.full(2, ratio * (1 + _RELAXED))
        self.intervals = [
            (Vertices(groups, ends, high), Vertices(groups, np.ones(2), high * ends))
            for ends in np.column_stack([rhos[:-1], rhos[1:]])
        ]
        self.size = sum(len(one) for pair in self.intervals for one in pair)

    def price(self, duals: FloatArray, most: int) -> Found:
        """Bound all rows at prices λ (a,), with `most` rows of the highest; one for each kind of vertex of s*."""
        rows, peak = self.groups.split(duals), -math.inf
        best: dict[bytes, tuple[float, FloatArray]] = {}
        for plain, special in self.intervals:
            prices = [one.prices(rows, self.kappas) for one in (plain, special)]
            lines = [one.lines(price) for one, price in zip((plain, special), prices, strict=True)]
            rest = lines[0].sum(axis=1) - lines[0][:, self.large]
            for s in range(self.groups.count):
                role = int(s == self.large)
                other = rest if role else rest - lines[0][:, s] + lines[1][:, s]
                tau = self.tau((plain, special)[role], prices[role], other)
                peak = max(peak, float(tau.min(axis=1).max()))
                self.note(best, (plain, special), prices, s, tau)
        chosen = sorted(best.values(), key=lambda one: -one[0])[:most]
        return Found(peak, np.array([row for _, row in chosen]).reshape(-1, self.groups.dimension))

    def tau(self, own: Vertices, prices: list[FloatArray], other: FloatArray) -> FloatArray:
        """The τ that each κ proves for each vertex of s*, (k, K); infinite for none."""
        mine = own.own == self.large
        total = np.full((int(mine.sum()), len(self.kappas)), -np.inf)
        for price, end in zip(prices, own.ends, strict=True):
            at = end.at[mine][:, None]
            np.maximum(total, price[mine] + (1 - at) * other[0] + at * other[1], out=total)
        below = np.where(total < 0, -total, 1.0)
        return np.asarray(np.where(total < 0, self.kappas - 1 - np.log(below), np.inf))

    def note(
        self,
        best: dict[bytes, tuple[float, FloatArray]],
        roles: tuple[Vertices, Vertices],
        prices: list[list[FloatArray]],
        special: int,
        tau: FloatArray,
    ) -> None:
        """Remember the row of the highest vertex of s* with this special group, of each kind."""
        own = roles[int(special == self.large)]
        mine, at = np.flatnonzero(own.own == self.large), tau.argmin(axis=1)
        highest = tau[np.arange(len(at)), at]
        for place in np.argsort(-highest, kind="stable")[: len(mine)]:
            if highest[place] <= 0:
                return
            for side in range(2):
                z = own.ends[side].z[mine[place]]
                key = bytes([special == self.large]) + (z > 0).tobytes() + (z > _ALIKE * z.max()).tobytes()
                worse = key not in best or best[key][0] < highest[place]
                if worse and own.ends[side].at[mine[place]] == side:
                    best[key] = float(highest[place]), self.row(roles, prices, special, side, z, at[place])

    def row(
        self,
        roles: tuple[Vertices, Vertices],
        prices: list[list[FloatArray]],
        special: int,
        side: int,
        z: FloatArray,
        kappa: int,
    ) -> FloatArray:
        """A whole row: z for s*, and the best vertex at this κ of every other group."""
        parts = np.zeros(self.groups.place.shape)
        for group in range(self.groups.count):
            role = int(group == special)
            there = roles[role].there[side]
            there = there[roles[role].own[there] == group]
            parts[group] = roles[role].ends[side].z[there[prices[role][side][there, kappa].argmax()]]
        parts[self.large] = z
        return self.groups.joined(parts)
