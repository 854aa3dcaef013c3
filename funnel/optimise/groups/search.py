"""The optimum over rows whose averages over several groups stay close, where there are too many coordinates to search.

With groups s of coordinates and sets D_s of weights, a row v is allowed when R·v_s <= ratio · R'·v_s' for all R in
D_s, R' in D_s', s ≠ s' (`worst_case`). Branch and bound over all coordinates is hopeless at hundreds of them; but the
groups of a row meet in two numbers only, its least average and its total, so parts of groups are looked for one by one.

Rows may be worth more in modes with a special group: climbs at the prices of rows look there. At prices λ a row is
worth λ·v + τ W at most if e^(κ-τ-1) + Σ_s D_s(κ) <= 0 for some κ, with D_s the largest worth of a part of group s at
prices λ + κ p: that is -W ln W = min over κ of e^(κ-1) - κ W. What climbs find of the D_s is no proof, but where it
exceeds that, there is something to be found.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.errors import SolverError
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Certificate
from funnel.optimise.groups.descent import descend
from funnel.optimise.groups.levels import Groups, PartLimits, climb
from funnel.optimise.groups.listed import Listed, listable
from funnel.optimise.groups.parts import Mode, Part, Parts, coupled, random_labels
from funnel.optimise.linear.highs import Answer
from funnel.optimise.master import master
from funnel.optimise.solve import Solution
from funnel.optimise.worst_case import UncertaintySets

_GAP = 0.008
"""Share of the value by which the optimum may be higher."""
_LARGE = 0.3
"""Share of the mass from which a group may be special from the start."""
_RHOS = 6
"""Values of ρ that such a group starts with."""
_SEARCH, _FINISH = 0.4, 0.95
"""Shares of the time that the first parts, and lists, may take, and everything but the last linear program."""
_LAST = 30.0
"""Seconds at least for the last linear program."""
_MISSED = 1e-6
"""Worth (nats) of parts that are not looked for any more."""
_ADDED = 0.1
"""Share of the gap by which a mode must be worth more than is known, to take part."""
_ROUNDING = 1e-9
"""Nats by which a bound from lists is raised against rounding errors."""
_ROUNDS = 12
"""Times that modes are added."""
_TRIED = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
"""Exponents of the ratio at which modes are looked at."""
_KAPPAS = (-0.02, 0.15, 0.3, 0.5, 0.75, 1.02)
"""Values of κ - 1 from which parts are looked for, as shares of 2 ln ratio: W lies between 1 and ratio²."""
_FINE = 61
"""Values of κ between the least and the largest of these at which what was found is priced."""
_CLIMBS, _KNOWN = 20, 24
"""Random starts of each group, and starts from labels that are in use."""
_SEED = 1
"""Random starts are the same in every run."""


def serves(sets: UncertaintySets) -> bool:
    """Whether the groups are two or more, and share no coordinate."""
    members = np.concatenate(sets.members)
    return len(sets.members) > 1 and len(members) == sets.dimension == len(np.unique(members))


def maximise_groups(
    sets: UncertaintySets,
    ratio: float,
    prior: FloatArray,
    *,
    budget: Budget | float,
    gap: float = _GAP,
    ceiling: float = math.inf,
) -> Solution:
    """The most informative protocol found, b <= a, whose rows keep the groups close, and a bound.

    Groups share no coordinate (`serves`). Where all are small the bound is certified, by lists of their vertices, and
    the search ends when it is within the share `gap` of the value; else it is the `ceiling` (nats). `budget` is in
    seconds, or with nodes: starts of climbs. SolverError (time, failed) where not even a first protocol is found.
    """
    return _GroupSearch(Groups.of(sets, prior), ratio, prior, gap, ceiling).run(Budget.of(budget))


class _GroupSearch:
    """Parts, the protocols made of them, and the bound."""

    def __init__(self, groups: Groups, ratio: float, prior: FloatArray, gap: float, ceiling: float) -> None:
        self.groups, self.ratio, self.prior, self.gap, self.ceiling = groups, ratio, prior, gap, ceiling
        modes = [Mode(-1, 1.0)]
        for s in np.flatnonzero(groups.prior.sum(axis=1) > _LARGE):
            modes += [Mode(int(s), float(rho)) for rho in np.exp(np.linspace(0, math.log(ratio), _RHOS))]
        self.parts, self.nodes = Parts(groups, ratio, modes), 0

    def run(self, budget: Budget) -> Solution:
        """Find parts, make rows of them, bound what others are worth; and again with modes that are worth more."""
        whole, first = budget.part(_FINISH), budget.part(_SEARCH)
        answer = self.parts.run(first, _MISSED)
        if not answer.optimal:
            raise SolverError(
                "solver-time",
                "no parts of rows were found in time",
                status="time",
                advice="Raise mechanism.time_limit, or shrink the public alphabet with `bins` or `groups`.",
            )
        best = self.listed(self.protocol(answer), first)
        for _ in range(_ROUNDS):
            if best.gap <= self.gap * best.value or whole.over or not self.extended(answer, best.value):
                break
            answer = self.parts.run(whole, _MISSED)
            found = self.protocol(answer) if answer.optimal else best
            if found.value > best.value:
                best = replace(best, protocol=found.protocol, value=found.value)
            if not answer.optimal:
                break
        return replace(best, bound=max(best.bound, best.value), nodes=self.nodes, rays=len(self.parts.parts))

    def listed(self, found: Solution, budget: Budget) -> Solution:
        """A bound by listing all vertices, where that can be done; better rows, too."""
        if not listable(self.groups):
            return found
        vertices, enough = Listed(self.groups, self.ratio), (1 + self.gap) * found.value
        best = descend(vertices.price, self.prior, found.protocol, enough=enough, budget=budget)
        if not math.isfinite(best.peak):
            return found
        self.nodes, peak = vertices.size, best.peak + _ROUNDING
        aim = self.gap * found.value
        certificate = Certificate(best.duals, peak, aim, vertices.size)
        if best.bound > enough:
            found = max(found, self.mixed(best.rows), key=lambda one: one.value)
        return replace(found, bound=certificate.bound, certificate=certificate)

    def extended(self, answer: Answer, value: float) -> bool:
        """Let modes take part that climbs find to be worth more; whether there are any."""
        used: list[list[IntArray]] = [[] for _ in range(self.groups.count)]
        for part, _ in self.parts.used(answer):
            used[part.group].append(part.labels)
        prices = self.parts.prices(answer).rows
        found = promising(self.groups, self.ratio, prices, used, _ADDED * self.gap * value)
        fresh = [mode for mode in found if mode not in self.parts.modes]
        if fresh:
            self.parts = self.parts.extended(fresh)
        return bool(fresh)

    def protocol(self, answer: Answer) -> Solution:
        """Whole rows of the parts in use, and the best protocol of them."""

        def place(one: tuple[Part, float]) -> tuple[int, int]:
            return one[0].mode, one[0].group

        rows = [np.ones((1, self.groups.dimension))]
        used = sorted(self.parts.used(answer), key=place)
        for _, of_mode in groupby(used, key=lambda one: one[0].mode):
            laid = [
                (np.array([part.z for part, _ in pair]), np.array([share for _, share in pair]))
                for pair in ([*each] for _, each in groupby(of_mode, key=place))
            ]
            if len(laid) == self.groups.count:
                rows.append(coupled(self.groups, laid))
        return self.mixed(np.vstack(rows))

    def mixed(self, rays: FloatArray) -> Solution:
        """The best protocol of some rows (k, a)."""
        best = master(rays / (rays @ self.prior)[:, None], self.prior, budget=_LAST)
        return Solution(best.protocol, best.value, self.ceiling, "columns", len(rays), self.nodes)


def promising(
    groups: Groups, ratio: float, prices: FloatArray, used: list[list[IntArray]], aim: float
) -> list[Mode]:
    """For each special group the mode worth most beyond an aim (nats), where one is, at some values of ρ.

    `prices` λ (c, n) and labels in `used` (n,) are by group.
    """
    unit = 2 * math.log(ratio)
    kappas = 1 + unit * np.linspace(_KAPPAS[0], _KAPPAS[-1], _FINE)
    which, labels = _starts(groups, used)
    rhos = [ratio**exponent for exponent in _TRIED]
    worth = []
    for rho in rhos:
        plain, special = (
            _reached(
                groups,
                prices,
                kappas,
                PartLimits(which, np.full(len(which), low), np.full(len(which), high)),
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
    groups: Groups, prices: FloatArray, kappas: FloatArray, limits: PartLimits, labels: IntArray
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
