"""The optimum over rows made of parts, one per group, where rows are told apart by their total W only.

The worth of a row is Σ_s Σ p z_s ln z_s - W ln W with W = Σ p z: groups meet in W alone. Parts of each group, with
the multipliers ξ that they are used with, and the total multiplier Λ and mass Ω of all rows decide everything if W
is the same in all rows: then the worth is Σ ξ Σ p z ln z - Ω ln(Ω/Λ), and by convexity it is never more. So the
linear program over parts bounds the optimum from above, and its duals are prices for rows.

A mode (special, ρ) says how low parts may be: m(z) >= ρ and M(z) <= ratio in all groups but the special one, for
which m(z) >= 1 and M(z) <= ratio · ρ. Every row, scaled to least m = 1, is in some mode.

Whole rows are made of parts: those of all groups side by side, so that every row has about the same total.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.budget import Budget
from funnel.optimise.columns.chords import xlogx
from funnel.optimise.generation import RestrictedMaster, generate
from funnel.optimise.groups.levels import Groups, PartLimits, climb
from funnel.optimise.linear.highs import Answer

_ENTRY = 1e-8
"""A part enters where its price is above this (nats)."""
_ALIKE = 9
"""Digits to which two parts are the same."""
_TOTALS = 15
"""Totals W that are there from the start."""
_FEW, _MANY = 6, 100
"""Random starts per group and mode, at first and where these find nothing."""
_TIMES = 3
"""Times that many starts find nothing, after which there is nothing more to find."""
_SEED = 0
"""Random starts are the same in every run."""
_SWEEPS = 12
"""Times that every group is put in order again."""
_LEAST = 1e-12
"""Share of the length under which a piece is a rounding error."""


@dataclass(frozen=True)
class Mode:
    """The group that may be lower than the others, -1 for none, and by which factor ρ."""

    special: int
    rho: float

    def limits(self, count: int, ratio: float) -> tuple[FloatArray, FloatArray]:
        """Least m and largest M of each group, (c,)."""
        low, high = np.full(count, self.rho), np.full(count, ratio)
        if self.special >= 0:
            low[self.special], high[self.special] = 1.0, ratio * self.rho
        return low, high


@dataclass(frozen=True, eq=False)
class PartPrices:
    """λ by groups (c, n); multipliers of Λ by mode and group (m, c), and of Ω by mode (m,)."""

    rows: FloatArray
    length: FloatArray
    mass: FloatArray


@dataclass(frozen=True, eq=False)
class Part:
    """A column: a part z (n,) of a group with the labels it came from, or, for group -1, a total W."""

    mode: int
    group: int
    z: FloatArray
    labels: IntArray


class Parts:
    """The linear program over parts, and the search for more of them."""

    def __init__(self, groups: Groups, ratio: float, modes: list[Mode]) -> None:
        self.groups, self.ratio, self.modes = groups, ratio, modes
        self.random = np.random.default_rng(_SEED)
        self.parts: list[Part] = []
        self.low, self.high = (
            np.array(ends) for ends in zip(*(m.limits(groups.count, ratio) for m in modes), strict=True)
        )
        size = groups.dimension + len(modes) * (groups.count + 1)
        self.size, total = size, np.append(np.ones(groups.dimension), np.zeros(size - groups.dimension))
        self.master = RestrictedMaster(total)
        for mode in range(len(modes)):
            self._begin(mode)

    def extended(self, modes: list[Mode]) -> Parts:
        """The same program with more modes."""
        larger = Parts(self.groups, self.ratio, [*self.modes, *modes])
        for part in self.parts:
            larger.add(part)
        return larger

    def run(self, budget: Budget, tolerance: float) -> Answer:
        """Add parts until none is found that is worth more than `tolerance` (nats) together, or the budget is spent."""

        def near(answer: Answer) -> bool:
            return self._price(answer, _FEW, budget) > tolerance

        def anywhere(answer: Answer) -> bool:
            return any(
                self._price(answer, _MANY, budget) > tolerance for _ in range(_TIMES) if not budget.over
            )

        return generate(self.master, [near, anywhere], budget=budget)

    def prices(self, answer: Answer) -> PartPrices:
        """The duals of the program."""
        a = self.groups.dimension
        rest = answer.multipliers[a:].reshape(len(self.modes), self.groups.count + 1)
        return PartPrices(self.groups.split(answer.multipliers[:a]), rest[:, :-1], rest[:, -1])

    def used(self, answer: Answer) -> list[tuple[Part, float]]:
        """The parts in use, no totals, and their multipliers."""
        shares = [(self.parts[j], float(answer.point[j])) for j in np.flatnonzero(answer.point > 0)]
        return [(part, share) for part, share in shares if part.group >= 0]

    def add(self, part: Part) -> None:
        """Let a part take part, unless it does."""
        groups, z = self.groups, part.z
        column, base = np.zeros(self.size), groups.dimension + part.mode * (groups.count + 1)
        if part.group < 0:
            column[base : base + groups.count], column[base + groups.count] = -1.0, -z[0]
            worth = -float(z[0] * np.log(z[0]))
        else:
            real, prior = groups.real[part.group], groups.prior[part.group]
            column[groups.place[part.group][real]] = z[real]
            column[base + part.group], column[base + groups.count] = 1.0, prior @ z
            worth = float(prior @ xlogx(z))
        if self.master.add(worth, column, (part.mode, part.group, (np.round(z, _ALIKE) + 0.0).tobytes())):
            self.parts.append(part)

    def _begin(self, mode: int) -> None:
        """Constant parts, and totals on a grid."""
        for group, real in enumerate(self.groups.real):
            for level in {self.low[mode, group], self.high[mode, group]}:
                self.add(Part(mode, group, real * level, real * 1))
        for total in np.exp(np.linspace(0.0, 2 * math.log(self.ratio), _TOTALS)):
            self._add_total(mode, total)

    def _add_total(self, mode: int, total: float) -> None:
        self.add(Part(mode, -1, np.array([total]), np.zeros(0, np.int64)))

    def _price(self, answer: Answer, starts: int, budget: Budget) -> float:
        """Add the best parts near those in use and near random ones; what was missing (nats)."""
        prices, groups = self.prices(answer), self.groups
        mode, group, labels = self._starts(answer, starts)
        budget.spend(len(mode))
        limits = PartLimits(group, self.low[mode, group], self.high[mode, group])
        eta = prices.rows[group] + prices.mass[mode][:, None] * groups.prior[group]
        parts, worth, labels = climb(groups, limits, eta, labels)
        worth = worth - prices.length[mode, group]
        best = np.zeros((len(self.modes), groups.count))
        np.maximum.at(best, (mode, group), worth)
        for index in np.flatnonzero(worth > _ENTRY):
            self.add(Part(int(mode[index]), int(group[index]), parts[index], labels[index]))
        return float(best.sum()) + sum(self._total(prices, each) for each in range(len(self.modes)))

    def _total(self, prices: PartPrices, mode: int) -> float:
        """Add the best total W of a mode; what was missing (nats)."""
        total = float(np.clip(np.exp(prices.mass[mode] - 1), 1.0, self.ratio**2))
        missed = float(prices.length[mode].sum() + prices.mass[mode] * total - total * np.log(total))
        if missed > _ENTRY:
            self._add_total(mode, total)
        return max(missed, 0.0)

    def _starts(self, answer: Answer, number: int) -> tuple[IntArray, IntArray, IntArray]:
        """Modes (k,), groups (k,) and labels (k, n) to climb from: those in use, and random ones."""
        used = [part for part, _ in self.used(answer)]
        shape = len(self.modes), self.groups.count, number
        mode, group, _ = (part.ravel() for part in np.indices(shape))
        labels = random_labels(self.random, len(mode), self.groups.place.shape[1])
        return (
            np.append([part.mode for part in used], mode).astype(np.int64),
            np.append([part.group for part in used], group).astype(np.int64),
            np.vstack([*(part.labels for part in used), labels]).astype(np.int64),
        )


def random_labels(random: np.random.Generator, count: int, width: int) -> IntArray:
    """Labels (count, width): half are even mixtures, half the same label but for a few coordinates."""
    shares = np.cumsum(random.dirichlet(np.ones(3), count), axis=1)[:, None, :2]
    even = (random.random((count, width, 1)) > shares).sum(axis=-1)
    odd = random.random((count, width)) < random.random((count, 1)) * 4 / width
    few = np.where(odd, random.integers(0, 3, (count, width)), random.integers(1, 3, (count, 1)))
    return np.asarray(np.where((np.arange(count) % 2 == 0)[:, None], even, few), np.int64)


def coupled(groups: Groups, parts: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Rows (k, a) that use every part as much as given: per group, parts (j, n) and multipliers (j,) of equal sum.

    Each group's parts are laid along one length in the order opposite to the total of all other groups, one group
    after the other, several times over: the rearrangement that makes totals as equal as they come. Rows are
    where no group changes its part, so there are about as many as parts.
    """
    length = float(np.mean([used.sum() for _, used in parts]))
    mass = [part @ groups.prior[s] for s, (part, _) in enumerate(parts)]
    used = [each * (length / each.sum()) for _, each in parts]
    labels, pieces = np.zeros((1, groups.count), np.int64), np.array([length])
    done: set[int] = set()
    order = np.argsort([-float(np.ptp(each)) for each in mass])
    for _ in range(_SWEEPS):
        for s in order:
            done.discard(int(s))
            labels[:, s] = 0
            labels, pieces = _merged(labels, pieces)
            rest = np.sum([mass[t][labels[:, t]] for t in done], axis=0) + np.zeros(len(labels))
            labels, pieces = _laid(labels, pieces, rest, int(s), mass[s], used[s])
            done.add(int(s))
    return groups.joined(np.stack([part[labels[:, s]] for s, (part, _) in enumerate(parts)], axis=1))


def _merged(labels: IntArray, pieces: FloatArray) -> tuple[IntArray, FloatArray]:
    """Pieces that are alike as one."""
    distinct, which = np.unique(labels, axis=0, return_inverse=True)
    return distinct, np.asarray(np.bincount(which.ravel(), pieces, len(distinct)), float)


def _laid(
    labels: IntArray, pieces: FloatArray, rest: FloatArray, group: int, mass: FloatArray, used: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The heaviest part of a group where the rest is lightest, and so on."""
    order, own = np.argsort(rest, kind="stable"), np.argsort(-mass, kind="stable")
    ends, own_ends = np.cumsum(pieces[order]), np.cumsum(used[own])
    length = own_ends[-1]
    ends[-1] = length
    cuts = np.unique(np.concatenate([ends, own_ends]))
    cuts = cuts[np.append(np.diff(cuts) > _LEAST * length, True)]
    middles = cuts - np.diff(cuts, prepend=0.0) / 2
    labels = labels[order][np.minimum(np.searchsorted(ends, middles), len(ends) - 1)]
    labels[:, group] = own[np.minimum(np.searchsorted(own_ends, middles), len(own) - 1)]
    return labels, np.diff(cuts, prepend=0.0)
