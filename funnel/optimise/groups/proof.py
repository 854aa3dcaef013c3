"""How much a row made of parts can be worth at most, at given prices: every group by itself, every mode in turn.

At prices λ a row is worth λ·v + τ W at most if e^(κ-τ-1) + Σ_s D_s(κ) <= 0 for some κ, with D_s the largest worth of a
part of group s at prices λ + κ p: that is -W ln W = min over κ of e^(κ-1) - κ W. Modes come in intervals of ρ, on
which targets for the D_s move linearly from end to end.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.groups.argument import Piece
from funnel.optimise.groups.bound import Top, top
from funnel.optimise.groups.cells import End
from funnel.optimise.groups.levels import Groups, Limits, of_labels
from funnel.optimise.groups.master import Mode
from funnel.optimise.groups.reaching import Climbs, Reached
from funnel.optimise.workers import Workers

_EDGES = (0.0, 0.004, 0.008, 0.014, 0.022, 0.04, 0.1, 0.25)
"""Ends of the first intervals of ln ρ; the last one ends at the ratio."""
_SCAN = (0.01, 0.02, 0.04, 0.06, 0.09, 0.14, 0.2, 0.3, 0.5, 0.75, 1.0)
"""Exponents of the ratio at which modes are looked at before anything is proved."""
_NARROWEST = 1e-4
"""Width of an interval, in ln ρ, that is not cut any more."""
_ROUNDING = 1e-9
"""Nats by which a proof may miss its aim."""
_GIVEN = 0.5
"""Share of the slack that targets get."""
_ADDED = 0.5
"""Share of the aim from which a mode takes part: where little slack is left, a proof takes long."""
_SPARE, _WIDE = 0.4, 0.005
"""Share of the slack that a wide interval has at its ends, or it is cut first; width, as exponent of the ratio."""
_CELLS = 2_000_000
"""Cells that one group's search may look at with a single mode, and on an interval."""
_CELLS_BETWEEN = 1_000_000
_POOL = 24
"""Labels of each group that climbs begin from."""


@dataclass(eq=False)
class Proof:
    """What came of a proof: the largest τ, modes or parts (mode, group, labels) that exceed the aim, cells, pieces."""

    peak: float = -math.inf
    nodes: int = 0
    modes: list[Mode] = field(default_factory=list)
    parts: list[tuple[int, IntArray]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


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
        workers: Workers,
    ) -> None:
        self.groups, self.ratio, self.prices, self.kappa = groups, ratio, prices, kappa
        self.aim, self.known, self.deadline = aim, known, deadline
        self.workers = workers
        self.share = groups.prior.sum(axis=1)
        self.pool = [self.best(group, labels) for group, labels in enumerate(pool)]
        self.seen: dict[float, Reached] = {}
        self.pieces: list[Piece] = []
        self.cost = [0] * groups.count
        self.proof = Proof()

    def plain(self, reached: FloatArray) -> Proof:
        """The mode in which no group is special; `reached` (c,) are the D_s that parts are known to have."""
        slack = -float(reached.sum()) - math.exp(self.kappa - self.aim - 1)
        total = 0.0
        targets = reached + max(slack, 0.0) * self.share

        ends = [(End(1.0, self.ratio, target),) for target in targets.tolist()]
        for group, found in self.searched(self.kappa, list(enumerate(ends)), _CELLS):
            self.proof.parts += [(group, labels) for labels in found.labels]
            targets[group] += found.excess
            total += float(targets[group])
        self.raise_to(self.kappa, total)
        return self.proof

    def searched(
        self, kappa: float, wanted: list[tuple[int, tuple[End, ...]]], most: int
    ) -> Iterator[tuple[int, Top]]:
        """Searches of groups between ends, on all cores: (place, what came of it), as they end; long ones first."""
        order = sorted(range(len(wanted)), key=lambda place: -self.cost[wanted[place][0]])
        searches = [
            _Wanted(self.groups, group, self.eta(group, kappa), ends, self.deadline, most)
            for group, ends in (wanted[place] for place in order)
        ]
        for each, found in self.workers.map(_Wanted.search, searches):
            self.proof.nodes += found.nodes
            self.cost[searches[each].group] = found.nodes
            yield order[each], found

    def between(self) -> Proof:
        """All modes with a special group."""
        edges = [edge for edge in _EDGES if edge < math.log(self.ratio)] + [math.log(self.ratio)]
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
        ends = self.reached((least, most))
        for rho, end in zip((least, most), ends, strict=True):
            fresh = {Mode(s, rho) for s in self.violated(end)} - self.known
            self.proof.modes += sorted(fresh, key=lambda mode: mode.special)
        if self.proof.modes:
            return False
        kappa, worth = self.best_kappa(ends)
        slack = math.exp(kappa - 1) * -math.expm1(-self.aim)
        if worth > -_SPARE * slack and math.log(most / least) > _WIDE * math.log(self.ratio):
            return False
        peak = math.inf if worth > 0 and not final else self.certified(least, most, ends, kappa, final=final)
        if peak <= self.aim + _ROUNDING or final:
            self.proof.peak = max(self.proof.peak, peak)
            self.proof.pieces += self.pieces
            return True
        return False

    def scan(self) -> list[Mode]:
        """For each special group the mode worth most beyond a share of the aim, where one is, at some values of ρ."""
        rhos = [self.ratio**exponent for exponent in _SCAN]
        worth = np.array([end.least(_ADDED * self.aim) for end in self.reached(rhos)])
        above = [Mode(int(s), rhos[int(worth[:, s].argmax())]) for s in np.flatnonzero(worth.max(axis=0) > 0)]
        return [mode for mode in above if mode not in self.known]

    def certified(
        self, least: float, most: float, ends: list[Reached], kappa: float, *, final: bool
    ) -> float:
        """The τ that a search of every group proves, with targets that share out a part of the slack.

        The rest is for groups that exceed their targets between the ends. Infinity where they do so by more, unless
        the interval is `final`.
        """
        index = ends[0].kappas.index(kappa)
        plain = np.array([end.plain[:, index] for end in ends])
        special = np.array([end.special[:, index] for end in ends])
        (middle,) = self.reached(((least + most) / 2,))
        for line, value in ((plain, middle.plain), (special, middle.special)):
            line[:] += np.maximum(value[:, index] - line.mean(axis=0), 0.0)
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

        wanted = []
        for each in range(2 * self.groups.count):
            targets, lows, highs = roles[each % 2]
            own = targets[:, each // 2].tolist()
            wanted.append((each // 2, tuple(End(*end) for end in zip(lows, highs, own, strict=True))))
        for each, found in self.searched(kappa, wanted, _CELLS_BETWEEN):
            self.pool[each // 2] += list(found.labels)
            left -= found.excess
            if left < 0 and not final:
                return math.inf
            roles[each % 2][0][:, each // 2] += found.excess
        self.pieces = [Piece(least, most, kappa, plain, special)]
        total = float((plain.sum(axis=1, keepdims=True) - plain + special).max())
        return kappa - 1 - math.log(-total) if total < 0 else math.inf

    def reached(self, rhos: Sequence[float]) -> list[Reached]:
        """What climbs find at some ρ."""
        new = [rho for rho in rhos if rho not in self.seen]
        climbs = Climbs(self.groups, self.ratio, self.prices, self.kappa, self.pool)
        for place, found in self.workers.map(climbs.reached, new):
            self.seen[new[place]] = found
        return [self.seen[rho] for rho in rhos]

    def best(self, group: int, labels: list[IntArray]) -> list[IntArray]:
        """The labels that are worth most where no group is special."""
        if len(labels) <= _POOL:
            return list(labels)
        ones = np.ones(len(labels))
        limits = Limits(np.full(len(labels), group), ones, ones * self.ratio)
        eta = np.broadcast_to(self.eta(group, self.kappa), (len(labels), len(self.prices[group])))
        _, worth = of_labels(self.groups, limits, eta, np.array(labels))
        return [labels[place] for place in np.argsort(-worth, kind="stable")[:_POOL]]

    def best_kappa(self, ends: list[Reached]) -> tuple[float, float]:
        """The κ at which the worst mode of both ends is worth least beyond the aim, and what that is."""
        worst = np.max(
            [np.exp(np.array(end.kappas) - self.aim - 1) + end.totals().max(axis=0) for end in ends], axis=0
        )
        best = int(worst.argmin())
        return ends[0].kappas[best], float(worst[best])

    def violated(self, end: Reached) -> list[int]:
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
class _Wanted:
    """One group's search."""

    groups: Groups
    group: int
    eta: FloatArray
    ends: tuple[End, ...]
    deadline: float
    most: int

    def search(self) -> Top:
        """Bound the worth of the group's parts."""
        return top(self.groups, self.group, self.eta, self.ends, deadline=self.deadline, most=self.most)
