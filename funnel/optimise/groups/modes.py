"""Where else rows may be worth more: modes with a special group, looked at by climbs at the prices of rows.

At prices λ a row is worth λ·v + τ W at most if e^(κ-τ-1) + Σ_s D_s(κ) <= 0 for some κ, with D_s the largest worth of a
part of group s at prices λ + κ p: that is -W ln W = min over κ of e^(κ-1) - κ W. What climbs find of the D_s is no
proof, but where it exceeds that, there is something to be found.
"""

from __future__ import annotations

import math

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.groups.levels import Groups, Limits, climb
from funnel.optimise.groups.parts import Mode, random_labels

_RHOS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
"""Exponents of the ratio at which modes are looked at."""
_KAPPAS = (-0.02, 0.15, 0.3, 0.5, 0.75, 1.02)
"""Values of κ - 1 from which parts are looked for, as shares of 2 ln ratio: W lies between 1 and ratio²."""
_FINE = 61
"""Values of κ between the least and the largest of these at which what was found is priced."""
_CLIMBS, _KNOWN = 20, 24
"""Random starts of each group, and starts from labels that are in use."""
_SEED = 1
"""Random starts are the same in every run."""


def promising(
    groups: Groups, ratio: float, prices: FloatArray, used: list[list[IntArray]], aim: float
) -> list[Mode]:
    """For each special group the mode worth most beyond an aim (nats), where one is, at some values of ρ.

    `prices` λ (c, n) and labels in `used` (n,) are by group.
    """
    unit = 2 * math.log(ratio)
    kappas = 1 + unit * np.linspace(_KAPPAS[0], _KAPPAS[-1], _FINE)
    which, labels = _starts(groups, used)
    rhos = [ratio**exponent for exponent in _RHOS]
    worth = []
    for rho in rhos:
        plain, special = (
            _reached(
                groups,
                prices,
                kappas,
                Limits(which, np.full(len(which), low), np.full(len(which), high)),
                labels,
            )
            for low, high in ((rho, ratio), (1.0, ratio * rho))
        )
        totals = plain.sum(axis=0) - plain + special
        worth.append((np.exp(kappas - aim - 1) + totals).min(axis=1))
    best = np.array(worth).argmax(axis=0)
    return [Mode(s, rhos[at]) for s, at in enumerate(best.tolist()) if worth[at][s] > 0]


def _starts(groups: Groups, used: list[list[IntArray]]) -> tuple[IntArray, IntArray]:
    """Groups (k,) and labels (k, n) to climb from."""
    known = [(group, each) for group, labels in enumerate(used) for each in labels[:_KNOWN]]
    which = np.repeat(np.arange(groups.count), _CLIMBS)
    labels = random_labels(np.random.default_rng(_SEED), len(which), groups.place.shape[1])
    return (
        np.append(which, [group for group, _ in known]).astype(np.int64),
        np.vstack([labels, *(each for _, each in known)]).astype(np.int64),
    )


def _reached(
    groups: Groups, prices: FloatArray, kappas: FloatArray, limits: Limits, labels: IntArray
) -> FloatArray:
    """The D_s (c, K) that climbs from a few κ find, priced at many."""
    best = np.full((groups.count, len(kappas)), -np.inf)
    least, most = kappas[0], kappas[-1]
    for share in (np.array(_KAPPAS) - _KAPPAS[0]) / (_KAPPAS[-1] - _KAPPAS[0]):
        kappa = least + share * (most - least)
        prior = groups.prior[limits.which]
        parts, worth, _ = climb(groups, limits, prices[limits.which] + kappa * prior, labels)
        mass = (parts * prior).sum(axis=1)
        np.maximum.at(best, limits.which, (worth + kappa * mass)[:, None] - mass[:, None] * kappas)
    return best
