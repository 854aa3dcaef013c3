"""How much a row made of parts can be worth at most, at given prices: every group by itself, every mode in turn.

At prices λ a row is worth λ·v + τ W at most if e^(κ-τ-1) + Σ_s D_s(κ) <= 0 for some κ, with D_s the largest worth of a
part of group s at prices λ + κ p: that is -W ln W = min over κ of e^(κ-1) - κ W. Modes come in intervals of ρ, on
which targets for the D_s move linearly from end to end.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, field

import numpy as np

from funnel.geometry.groups.bound import Top, top
from funnel.geometry.groups.cells import End
from funnel.geometry.groups.levels import Groups, Limits, climb
from funnel.geometry.groups.master import Mode
from funnel.model.joint import FloatArray, IntArray

_EDGES = (0.0, 0.012, 0.024, 0.04, 0.1, 0.2, 0.5, 1.0)
"""Ends of the first intervals of ρ, as exponents of the ratio."""
_SCAN = (0.01, 0.02, 0.04, 0.06, 0.09, 0.14, 0.2, 0.3, 0.5, 0.75, 1.0)
"""Exponents of the ratio at which modes are looked at before anything is proved."""
_NARROWEST = 1e-4
"""Width of an interval, in ln ρ, that is not cut any more."""
_ROUNDING = 1e-9
"""Nats by which a proof may miss its aim."""
_BETWEEN = (0.25, 0.5, 0.75)
"""Shares of an interval at which targets are lifted to what is reached there."""
_GIVEN = 0.5
"""Share of the slack that targets get."""
_CLIMBS = 20
"""Random starts of the searches that set targets."""
_KAPPAS = (-0.02, 0.1, 0.22, 0.34, 0.46, 0.6, 0.75, 0.9, 1.02)
"""Values of κ - 1 from which parts are looked for, as shares of 2 ln ratio: W lies between 1 and ratio²."""
_FINE = 61
"""Values of κ between the least and the largest of these at which what was found is priced."""
_CELLS = 1_000_000
"""Cells that one group's search may look at with a single mode, and on an interval."""
_CELLS_BETWEEN = 150_000
_SEED = 1
"""Random starts are the same in every run."""


@dataclass(eq=False)
class Proof:
    """What came of a proof: the largest τ, modes or parts (mode, group, labels) that exceed the aim, cells."""

    peak: float = -math.inf
    nodes: int = 0
    modes: list[Mode] = field(default_factory=list)
    parts: list[tuple[int, IntArray]] = field(default_factory=list)


class Prover:
    """Prices λ (c, n) by groups, the aim τ, modes that the prices are for, good labels by group, and the time."""

    def __init__(
        self,
        groups: Groups,
        ratio: float,
        prices: FloatArray,
        kappa: float,
        *,
        aim: float,
        known: set[Mode],
        pool: list[list[IntArray]],
        deadline: float,
    ) -> None:
        self.groups, self.ratio, self.prices, self.kappa = groups, ratio, prices, kappa
        self.aim, self.known, self.deadline = aim, known, deadline
        self.pool = pool
        self.share = groups.prior.sum(axis=1)
        self.random = np.random.default_rng(_SEED)
        self.proof = Proof()

    def plain(self, reached: FloatArray) -> Proof:
        """The mode in which no group is special; `reached` (c,) are the D_s that parts are known to have."""
        slack = -float(reached.sum()) - math.exp(self.kappa - self.aim - 1)
        total = 0.0
        targets = reached + max(slack, 0.0) * self.share

        def search(group: int) -> Top:
            end = End(1.0, self.ratio, float(targets[group]))
            eta = self.eta(group, self.kappa)
            return top(self.groups, group, eta, (end,), deadline=self.deadline, most=_CELLS)

        for group, found in enumerate(map(search, range(self.groups.count))):
            self.proof.nodes += found.nodes
            self.proof.parts += [(group, labels) for labels in found.labels]
            total += float(targets[group]) + found.excess
        self.raise_to(self.kappa, total)
        return self.proof

    def between(self) -> Proof:
        """All modes with a special group."""
        edges = [math.log(self.ratio) * edge for edge in _EDGES]
        pending = list(itertools.pairwise(edges))
        while pending and time.monotonic() < self.deadline and not self.proof.modes:
            low, high = pending.pop(0)
            if not self.interval(math.exp(low), math.exp(high), final=high - low <= _NARROWEST):
                middle = (low + high) / 2 if low else high / 3
                pending = [(low, middle), (middle, high), *pending]
        if pending:
            self.proof.peak = math.inf
        return self.proof

    def interval(self, least: float, most: float, *, final: bool) -> bool:
        """Bound the modes with ρ between two values; whether that came out at the aim, or is `final`."""
        ends = [self.reached(rho) for rho in (least, most)]
        for rho, end in zip((least, most), ends, strict=True):
            fresh = {Mode(s, rho) for s in self.violated(end)} - self.known
            self.proof.modes += sorted(fresh, key=lambda mode: mode.special)
        if self.proof.modes:
            return False
        kappa, worth = self.best_kappa(ends)
        peak = math.inf if worth > 0 and not final else self.certified(least, most, ends, kappa, final=final)
        if peak <= self.aim + _ROUNDING or final:
            self.proof.peak = max(self.proof.peak, peak)
            return True
        return False

    def scan(self) -> list[Mode]:
        """For each special group the mode that is worth most beyond the aim, where one is, at some values of ρ."""
        rhos = [self.ratio**exponent for exponent in _SCAN]
        worth = np.array([self.reached(rho).least(self.aim) for rho in rhos])
        above = [Mode(int(s), rhos[int(worth[:, s].argmax())]) for s in np.flatnonzero(worth.max(axis=0) > 0)]
        return [mode for mode in above if mode not in self.known]

    def certified(
        self, least: float, most: float, ends: list[_Reached], kappa: float, *, final: bool
    ) -> float:
        """The τ that a search of every group proves, with targets that share out a part of the slack.

        The rest is for groups that exceed their targets between the ends. Infinity where they do so by more, unless
        the interval is `final`.
        """
        index = ends[0].kappas.index(kappa)
        plain = np.array([end.plain[:, index] for end in ends])
        special = np.array([end.special[:, index] for end in ends])
        for share in _BETWEEN:
            middle = self.reached(least + share * (most - least))
            for line, value in ((plain, middle.plain), (special, middle.special)):
                line[:] += np.maximum(value[:, index] - (1 - share) * line[0] - share * line[1], 0.0)
        spare = -math.exp(kappa - self.aim - 1) - (plain.sum(axis=1, keepdims=True) - plain + special)
        left = float(spare.min())
        if left < 0 and not final:
            return math.inf
        spare = _GIVEN * np.maximum(spare, 0.0)
        common = spare.min(axis=1)
        plain += common[:, None] * self.share
        special += spare - common[:, None] * (1 - self.share)
        roles = (
            (plain, (least, most), (self.ratio,) * 2),
            (special, (1.0, 1.0), (self.ratio * least, self.ratio * most)),
        )

        def search(each: int) -> Top:
            group, role = divmod(each, 2)
            targets, lows, highs = roles[role]
            pair = tuple(End(*end) for end in zip(lows, highs, targets[:, group].tolist(), strict=True))
            return top(
                self.groups,
                group,
                self.eta(group, kappa),
                pair,
                deadline=self.deadline,
                most=_CELLS_BETWEEN,
            )

        for each, found in enumerate(map(search, range(2 * self.groups.count))):
            self.proof.nodes += found.nodes
            self.pool[each // 2] += list(found.labels)
            left -= found.excess
            if left < 0 and not final:
                return math.inf
            roles[each % 2][0][:, each // 2] += found.excess
        total = float((plain.sum(axis=1, keepdims=True) - plain + special).max())
        return kappa - 1 - math.log(-total) if total < 0 else math.inf

    def reached(self, rho: float) -> _Reached:
        """What climbs find at one ρ: the parts from a few κ, priced at many."""
        unit = 2 * math.log(self.ratio)
        kappas = [1 + unit * step for step in np.linspace(_KAPPAS[0], _KAPPAS[-1], _FINE)]
        kappas[int(np.abs(np.array(kappas) - self.kappa).argmin())] = self.kappa
        which, labels = self.starts()
        both = []
        for low, high in ((rho, self.ratio), (1.0, self.ratio * rho)):
            best = np.full((self.groups.count, len(kappas)), -np.inf)
            for step in _KAPPAS:
                worth, mass = self.climbed(which, labels, low, high, 1 + unit * step)
                np.maximum.at(best, which, worth[:, None] - mass[:, None] * np.array(kappas))
            both.append(best)
        return _Reached(kappas, *both)

    def starts(self) -> tuple[IntArray, IntArray]:
        """Groups (k,) and labels (k, n) to climb from: those known to be good, and random ones."""
        count, width = self.groups.place.shape
        which = np.repeat(np.arange(count), _CLIMBS)
        labels = self.random.integers(1, 3, (len(which), 1)) * np.ones((1, width), np.int64)
        odd = self.random.random(labels.shape) < self.random.random((len(which), 1)) * 6 / width
        labels = np.where(odd, self.random.integers(0, 3, labels.shape), labels)
        owner = [group for group, known in enumerate(self.pool) for _ in known]
        known = [each for known in self.pool for each in known]
        return np.append(which, owner).astype(np.int64), np.vstack([labels, *known]).astype(np.int64)

    def climbed(
        self, which: IntArray, labels: IntArray, low: float, high: float, kappa: float
    ) -> tuple[FloatArray, FloatArray]:
        """Good parts: what they are worth at the prices of rows alone, and their mass, (k,)."""
        limits = Limits(which, np.full(len(which), low), np.full(len(which), high))
        eta = self.prices[which] + kappa * self.groups.prior[which]
        parts, worth, _ = climb(self.groups, limits, eta, labels)
        mass = (parts * self.groups.prior[which]).sum(axis=1)
        return worth + kappa * mass, mass

    def best_kappa(self, ends: list[_Reached]) -> tuple[float, float]:
        """The κ at which the worst mode of both ends is worth least beyond the aim, and what that is."""
        worst = np.max(
            [np.exp(np.array(end.kappas) - self.aim - 1) + end.totals().max(axis=0) for end in ends], axis=0
        )
        best = int(worst.argmin())
        return ends[0].kappas[best], float(worst[best])

    def violated(self, end: _Reached) -> list[int]:
        """Special groups whose mode is worth more than the aim at one end, whatever κ; the worst first."""
        worth = end.least(self.aim)
        return [int(s) for s in np.argsort(-worth) if worth[s] > 0]

    def eta(self, group: int, kappa: float) -> FloatArray:
        """Prices of one group's parts."""
        return np.asarray(self.prices[group] + kappa * self.groups.prior[group])

    def raise_to(self, kappa: float, total: float) -> None:
        """The τ that a sum of D_s proves."""
        self.proof.peak = max(self.proof.peak, kappa - 1 - math.log(-total) if total < 0 else math.inf)


@dataclass(frozen=True, eq=False)
class _Reached:
    """D_s found for each κ with s plain, and special, (c, k)."""

    kappas: list[float]
    plain: FloatArray
    special: FloatArray

    def totals(self) -> FloatArray:
        """Σ D_s with each group in turn special, (c, k)."""
        return np.asarray(self.plain.sum(axis=0) - self.plain + self.special)

    def least(self, aim: float) -> FloatArray:
        """What each special group's mode is worth beyond the aim, at its best κ, (c,)."""
        return np.asarray((np.exp(np.array(self.kappas) - aim - 1) + self.totals()).min(axis=1))
