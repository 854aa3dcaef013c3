"""What parts of groups are known to be worth, by climbs from many labels: where targets of a proof come from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.groups.levels import Groups, Limits, climb

_CLIMBS = 20
"""Random starts of the searches that set targets."""
_KAPPAS = (-0.02, 0.1, 0.22, 0.34, 0.46, 0.6, 0.75, 0.9, 1.02)
"""Values of κ - 1 from which parts are looked for, as shares of 2 ln ratio: W lies between 1 and ratio²."""
_FINE = 61
"""Values of κ between the least and the largest of these at which what was found is priced."""
_SEED = 1
"""Random starts are the same in every run."""


@dataclass(frozen=True, eq=False)
class Climbs:
    """Climbs from labels known to be good, by group, and from random ones, at prices (c, n)."""

    groups: Groups
    ratio: float
    prices: FloatArray
    kappa: float
    pool: list[list[IntArray]]

    def reached(self, rho: float) -> Reached:
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
        return Reached(kappas, *both)

    def starts(self) -> tuple[IntArray, IntArray]:
        """Groups (k,) and labels (k, n) to climb from; the random ones are always the same."""
        count, width = self.groups.place.shape
        random = np.random.default_rng(_SEED)
        which = np.repeat(np.arange(count), _CLIMBS)
        labels = random.integers(1, 3, (len(which), 1)) * np.ones((1, width), np.int64)
        odd = random.random(labels.shape) < random.random((len(which), 1)) * 6 / width
        labels = np.where(odd, random.integers(0, 3, labels.shape), labels)
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


@dataclass(frozen=True, eq=False)
class Reached:
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
