"""The optimum over a cone whose extreme rays are too many to list: price rows against duals, prove the end.

Column generation for the linear program of [RLDP] Theorem 3: the master chooses among the rows found so far,
its duals price all others, local climbs find better rows, until branch and bound proves that none is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.branching import peak
from funnel.optimise.columns.climbing import climbs
from funnel.optimise.columns.pricing import Slice, divergence, key
from funnel.optimise.cone import Cone
from funnel.optimise.linear.highs import Answer, Program

_ENTRY = 1e-9
"""A row enters where its price is above this (nats)."""
_BOXES = 10_000_000
"""Boxes that one search may look at; time ends it first."""
_CLIMBING = 0.5
"""Share of the time after which rows come from the proof only, which then has all the rest."""
_ENOUGH = 8
"""Better rows that end a proof, as long as there is time for another one."""
_MIXED = 3
"""Rows that are climbed from, per value, before a proof is tried for the first time."""
_SPREAD, _PEAKED = 0.3, 0.1
"""Dirichlet parameters of random rows, and of what rows in use are mixed with."""
_AIM = 0.95
"""Share of the gap allowed that a proof aims for; the rest is for rounding errors."""
_CLOSELY, _LESS_CLOSELY = 1e-10, (1e-9, 1e-8, 1e-6)
"""Feasibility asked of the master; the finest may be finer than floats allow."""
_SEED = 0
"""Random starts are the same in every run."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows v (k, a) with prior·v = 1 that a protocol can be made of, and the best certificate found.

    `nodes` counts the boxes of all searches.
    """

    rays: FloatArray
    certificate: Certificate
    nodes: int


def columns(
    cone: Cone,
    prior: FloatArray,
    *,
    deadline: float,
    tolerance: float,
    ceiling: float,
    start: FloatArray | None = None,
) -> Columns:
    """Rows whose best protocol is within `tolerance` (nats) of the certified bound, or what there was time for.

    The all-ones row is always there, and H(X) bounds everything, so the time may be over before it begins. `start`
    (k, a) are rows of the cone with prior·v = 1 that take part from the beginning.
    """
    search = _Generation(cone, prior, tolerance, ceiling)
    if start is not None:
        search.add(start * prior)
    return search.run(deadline)


class _Generation:
    """Rows, the master over them, and the lowest bound so far."""

    def __init__(self, cone: Cone, prior: FloatArray, tolerance: float, ceiling: float) -> None:
        self.prior, self.tolerance, self.ceiling = prior, tolerance, ceiling
        self.room = Slice(cone, prior)
        self.mass: list[FloatArray] = []
        self.known: set[bytes] = set()
        self.random = np.random.default_rng(_SEED)
        size = len(prior)
        self.master = Program(
            np.zeros((size, 0)), np.ones(size), np.ones(size), np.zeros(0), np.zeros(0), tolerance=_CLOSELY
        )
        self.nodes = 0
        self.best = Certificate(-np.log(prior) * prior, 0.0, tolerance, 0)
        self.add([prior])

    def run(self, deadline: float) -> Columns:
        """Add rows until the gap is closed, or nothing helps, or the time is over."""
        late = time.monotonic() + _CLIMBING * (deadline - time.monotonic())
        single, proven = np.eye(len(self.prior)), False
        self.add(self.climbs(single, np.zeros(len(self.prior)), late))
        while time.monotonic() < deadline:
            answer = self.choose(deadline)
            if not answer.optimal or self.closed(answer.optimum):
                break
            eta = answer.multipliers / self.prior
            used = np.array(self.mass)[answer.point > 0]
            if self.climbed(used, eta, late, proven=proven):
                continue
            enough, proven = _ENOUGH if time.monotonic() < late else _BOXES, True
            if not self.prove(answer.multipliers, answer.optimum, enough, deadline):
                break
        return Columns(np.array(self.mass) / self.prior, self.best, self.nodes)

    def climbed(self, used: FloatArray, eta: FloatArray, late: float, *, proven: bool) -> bool:
        """Whether climbs found better rows: many starts at once cost little; else one kind after the other."""
        if self.room.programs is not None:
            starts = np.vstack([self.starts(used), self.mixed(used)])
            return not proven and self.add(self.climbs(starts, eta, late))
        if self.add(self.climbs(self.starts(used), eta, late)):
            return True
        return not proven and self.add(self.climbs(self.mixed(used), eta, late))

    def choose(self, deadline: float) -> Answer:
        """The best protocol of the rows so far: there is one, whatever the solver says, so less closely if need be."""
        answer = self.master.solve(deadline - time.monotonic())
        for tolerance in _LESS_CLOSELY:
            if answer.status in {"optimal", "time"}:
                break
            self.master.afresh()
            self.master.within(tolerance)
            answer = self.master.solve(deadline - time.monotonic())
        self.master.within(_CLOSELY)
        return answer

    def closed(self, value: float) -> bool:
        """Whether what is left is small enough."""
        return min(self.best.bound, self.ceiling) - value <= self.tolerance

    def starts(self, used: FloatArray) -> FloatArray:
        """Where to climb from: random rows, and the rows in use."""
        size = len(self.prior)
        return np.vstack([self.random.dirichlet(np.full(size, _SPREAD), size=size), used])

    def mixed(self, used: FloatArray) -> FloatArray:
        """Half ways from rows in use to others, close to single values: more places to climb from."""
        size = len(self.prior)
        chosen = used[self.random.integers(0, len(used), size=_MIXED * size)]
        return np.asarray((chosen + self.random.dirichlet(np.full(size, _PEAKED), size=len(chosen))) / 2)

    def climbs(self, starts: FloatArray, eta: FloatArray, deadline: float) -> Iterable[FloatArray]:
        """Rows of positive price near the starts."""
        return (row for row, worth in climbs(self.room, starts, eta, deadline) if worth > _ENTRY)

    def prove(self, duals: FloatArray, value: float, enough: int, deadline: float) -> bool:
        """Bound what any row can add; whether the search found rows instead, or closed the gap."""
        eta = duals / self.prior
        aim = _AIM * (value + self.tolerance - float(duals.sum()))
        found = peak(self.room, eta, tolerance=aim, deadline=deadline, most=_BOXES, enough=enough)
        self.nodes += found.nodes
        certificate = Certificate(duals, found.bound, aim, found.nodes, found.proof)
        if certificate.bound < self.best.bound:
            self.best = certificate
        better = [*self.climbs(found.points, eta, deadline), *found.points]
        return self.add(better) or self.closed(value)

    def add(self, rows: Iterable[FloatArray]) -> bool:
        """Let rows take part that do not yet; whether there are any."""
        new = False
        for row in rows:
            if key(row) not in self.known:
                self.known.add(key(row))
                self.mass.append(row)
                self.master.add(float(divergence(row, self.prior)), row / self.prior)
                new = True
        return new
