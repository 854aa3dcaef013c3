"""The optimum over rows made of parts, one per group, where rows are told apart by their total W only.

The worth of a row is Σ_s Σ p z_s ln z_s - W ln W with W = Σ p z: groups meet in W alone. Parts of each group, with
the multipliers ξ that they are used with, and the total multiplier Λ and mass Ω of all rows decide everything if W
is the same in all rows: then the worth is Σ ξ Σ p z ln z - Ω ln(Ω/Λ), and by convexity it is never more. So the
linear program over parts bounds the optimum from above, and its duals are prices for rows.

A mode (special, ρ) says how low parts may be: m(z) >= ρ and M(z) <= ratio in all groups but the special one, for
which m(z) >= 1 and M(z) <= ratio · ρ. Every row, scaled to least m = 1, is in some mode.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.groups.levels import Groups, Limits, climb, xlogx
from funnel.optimise.linear.highs import Answer, Program

_ENTRY = 1e-8
"""A part enters where its price is above this (nats)."""
_ALIKE = 9
"""Digits to which two parts are the same."""
_TOTALS = 15
"""Totals W that are there from the start."""
_FEW, _MANY = 6, 100
"""Random starts per group and mode, in each round and where a round finds nothing."""
_IDLE = 3
"""Rounds of many starts that find nothing, after which there is nothing more to find."""
_SEED = 0
"""Random starts are the same in every run."""


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
class Prices:
    """λ by groups (c, n); multipliers of Λ by mode and group (m, c), and of Ω by mode (m,)."""

    rows: FloatArray
    length: FloatArray
    mass: FloatArray


@dataclass(frozen=True, eq=False)
class _Part:
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
        self.parts: list[_Part] = []
        self.known: set[tuple[int, int, bytes]] = set()
        self.low, self.high = (
            np.array(ends) for ends in zip(*(m.limits(groups.count, ratio) for m in modes), strict=True)
        )
        size = groups.dimension + len(modes) * (groups.count + 1)
        self.size, total = size, np.append(np.ones(groups.dimension), np.zeros(size - groups.dimension))
        self.program = Program(np.zeros((size, 0)), total, total, np.zeros(0), np.zeros(0))
        for mode in range(len(modes)):
            self.begin(mode)

    def extended(self, modes: list[Mode]) -> Parts:
        """The same program with more modes."""
        larger = Parts(self.groups, self.ratio, [*self.modes, *modes])
        for part in self.parts:
            larger.add(part.mode, part.group, part.z, part.labels)
        return larger

    def labels(self) -> list[list[IntArray]]:
        """The labels (n,) of all parts by group."""
        known: list[dict[bytes, IntArray]] = [{} for _ in range(self.groups.count)]
        for part in self.parts:
            if part.group >= 0:
                known[part.group][part.labels.tobytes()] = part.labels
        return [list(each.values()) for each in known]

    def begin(self, mode: int) -> None:
        """Constant parts, and totals on a grid."""
        for group in range(self.groups.count):
            for level in {self.low[mode, group], self.high[mode, group]}:
                self.add(
                    mode, group, np.where(self.groups.real[group], level, 0.0), self.groups.real[group] * 1
                )
        for total in np.exp(np.linspace(0.0, 2 * math.log(self.ratio), _TOTALS)):
            self.add(mode, -1, np.array([total]), np.zeros(0, np.int64))

    def add(self, mode: int, group: int, z: FloatArray, labels: IntArray) -> bool:
        """Let a part take part that does not yet; whether it does not."""
        key = mode, group, (np.round(z, _ALIKE) + 0.0).tobytes()
        if key in self.known:
            return False
        self.known.add(key)
        column, base = np.zeros(self.size), self.groups.dimension + mode * (self.groups.count + 1)
        if group < 0:
            column[base : base + self.groups.count], column[base + self.groups.count] = -1.0, -z[0]
            worth = -float(z[0] * np.log(z[0]))
        else:
            real, prior = self.groups.real[group], self.groups.prior[group]
            column[self.groups.place[group][real]] = z[real]
            column[base + group], column[base + self.groups.count] = 1.0, prior @ z
            worth = float(prior @ xlogx(z))
        self.program.add(worth, column)
        self.parts.append(_Part(mode, group, z, labels))
        return True

    def run(self, deadline: float, tolerance: float) -> Answer:
        """Add parts until none is found that is worth more than `tolerance` (nats) together, or the time is over."""
        idle = 0
        while True:
            answer = self.program.solve(deadline - time.monotonic())
            if not answer.optimal or time.monotonic() >= deadline or idle >= _IDLE:
                return answer
            missed = self.price(answer, _FEW)
            if missed <= tolerance:
                missed = self.price(answer, _MANY)
            idle = idle + 1 if missed <= tolerance else 0

    def prices(self, answer: Answer) -> Prices:
        """The duals of the program."""
        a = self.groups.dimension
        rest = answer.multipliers[a:].reshape(len(self.modes), self.groups.count + 1)
        return Prices(self.groups.split(answer.multipliers[:a]), rest[:, :-1], rest[:, -1])

    def price(self, answer: Answer, starts: int) -> float:
        """Add the best parts near those in use and near random ones; what was missing (nats)."""
        prices, groups = self.prices(answer), self.groups
        mode, group, labels = self.starts(answer, starts)
        limits = Limits(group, self.low[mode, group], self.high[mode, group])
        eta = prices.rows[group] + prices.mass[mode][:, None] * groups.prior[group]
        parts, worth, labels = climb(groups, limits, eta, labels)
        worth = worth - prices.length[mode, group]
        best = np.zeros((len(self.modes), groups.count))
        np.maximum.at(best, (mode, group), worth)
        for index in np.flatnonzero(worth > _ENTRY):
            self.add(int(mode[index]), int(group[index]), parts[index], labels[index])
        return float(best.sum()) + sum(self.total(prices, each) for each in range(len(self.modes)))

    def total(self, prices: Prices, mode: int) -> float:
        """Add the best total W of a mode; what was missing (nats)."""
        total = float(np.clip(np.exp(prices.mass[mode] - 1), 1.0, self.ratio**2))
        missed = float(prices.length[mode].sum() + prices.mass[mode] * total - total * np.log(total))
        if missed > _ENTRY:
            self.add(mode, -1, np.array([total]), np.zeros(0, np.int64))
        return max(missed, 0.0)

    def starts(self, answer: Answer, number: int) -> tuple[IntArray, IntArray, IntArray]:
        """Modes (k,), groups (k,) and labels (k, n) to climb from.

        Half of the random ones are even mixtures of labels, half the same label but for a few coordinates.
        """
        used = [self.parts[j] for j in np.flatnonzero(answer.point > 0) if self.parts[j].group >= 0]
        shape = len(self.modes), self.groups.count, number
        mode, group, _ = (part.ravel() for part in np.indices(shape))
        count, width = len(mode), self.groups.place.shape[1]
        even = (
            self.random.random((count, width, 1))
            > np.cumsum(self.random.dirichlet(np.ones(3), count), axis=1)[:, None, :2]
        )
        odd = self.random.random((count, width)) < self.random.random((count, 1)) * 4 / width
        few = np.where(
            odd, self.random.integers(0, 3, (count, width)), self.random.integers(1, 3, (count, 1))
        )
        labels = np.where((np.arange(count) % 2 == 0)[:, None], even.sum(axis=-1), few)
        return (
            np.append([part.mode for part in used], mode).astype(np.int64),
            np.append([part.group for part in used], group).astype(np.int64),
            np.vstack([*(part.labels for part in used), labels]).astype(np.int64),
        )
