"""The optimum over a cone whose extreme rays are too many to list: price rows against duals, prove the end.

Column generation for the linear program of "Mechanisms for Robust Local Differential Privacy" [RLDP], Theorem 3: the
master chooses among the rows found so far, its duals price all others, local climbs find better rows, until branch
and bound proves that none is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.climbing import climb
from funnel.optimise.columns.pool import RowPool
from funnel.optimise.columns.pricing import Slice, price
from funnel.optimise.cone import Cone
from funnel.optimise.generation import Oracle, generate
from funnel.optimise.linear.highs import Answer

_ENTRY = 1e-9
"""A row enters where its price is above this (nats)."""
_RISE = 1e-10
"""What a hop must promise (nats)."""
_BOXES = 10_000_000
"""Better rows that end a proof where there is no time for another one: none."""
_CLIMBING = 0.5
"""Share of the budget after which rows come from the proof only, which then has all the rest."""
_ENOUGH = 8
"""Better rows that end a proof, as long as there is time for another one."""
_MIXED = 3
"""Rows that are climbed from, per value, before a proof is tried for the first time."""
_SPREAD, _PEAKED = 0.3, 0.1
"""Dirichlet parameters of random rows, and of what rows in use are mixed with."""
_AIM = 0.95
"""Share of the gap allowed that a proof aims for; the rest is for rounding errors."""
_ALIKE = 9
"""Digits to which two rows are the same row."""
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
    budget: Budget,
    tolerance: float,
    ceiling: float,
    start: FloatArray | None = None,
) -> Columns:
    """Rows whose best protocol is within `tolerance` (nats) of the certified bound, or what the budget allowed.

    The all-ones row is always there, and H(X) bounds everything, so the budget may be spent before it begins. `start`
    (k, a) are rows of the cone with prior·v = 1 that take part from the beginning; `ceiling` (nats) is a bound known.
    """
    search = _PolyhedralSearch(cone, RowPool(prior, tolerance, ceiling, digits=_ALIKE), tolerance, budget)
    if start is not None:
        search.rows.add(start * prior)
    return search.run()


class _PolyhedralSearch:
    """The oracles that look for rows of a polyhedral cone: climbs near the rows in use, and proofs."""

    def __init__(self, cone: Cone, rows: RowPool, tolerance: float, budget: Budget) -> None:
        self.rows, self.prior, self.tolerance = rows, rows.prior, tolerance
        self.budget, self.climbing = budget, budget.part(_CLIMBING)
        self.room = Slice(cone, rows.prior)
        self.random = np.random.default_rng(_SEED)
        self.proven = False

    def run(self) -> Columns:
        """Add rows until the gap is closed, or nothing helps, or the budget is spent."""
        self.rows.add(self.climbs(np.eye(len(self.prior)), np.zeros(len(self.prior)), self.climbing))
        # Many starts at once cost little; where they are climbed from one by one, one kind comes after the other.
        near: list[Oracle] = (
            [self.near_both] if self.room.programs.batched else [self.near_used, self.near_mixed]
        )
        generate(self.rows.master, [*near, self.prove], budget=self.budget, settled=self.closed)
        return Columns(self.rows.rays, self.rows.best, self.rows.nodes)

    def closed(self, value: float) -> bool:
        """Whether what is left is small enough."""
        return self.rows.gap(value) <= self.tolerance

    def near_both(self, answer: Answer) -> bool:
        """Climb from random rows, rows in use, and half ways between, until a proof has been tried."""
        if self.proven:
            return False
        used = self.rows.used(answer)
        return self.climb(np.vstack([self.starts(used), self.mixed(used)]), answer)

    def near_used(self, answer: Answer) -> bool:
        """Climb from random rows and rows in use."""
        return self.climb(self.starts(self.rows.used(answer)), answer)

    def near_mixed(self, answer: Answer) -> bool:
        """Climb from half ways between, until a proof has been tried."""
        return not self.proven and self.climb(self.mixed(self.rows.used(answer)), answer)

    def climb(self, starts: FloatArray, answer: Answer) -> bool:
        """Add the rows of positive price near the starts; whether there are any."""
        return self.rows.add(self.climbs(starts, answer.multipliers / self.prior, self.climbing))

    def climbs(self, starts: FloatArray, eta: FloatArray, budget: Budget) -> FloatArray:
        """Rows of positive price near the starts."""
        rows = climb(self.room, starts, eta, _RISE, budget)
        return np.asarray(rows[price(rows, self.prior, eta) > _ENTRY])

    def starts(self, used: FloatArray) -> FloatArray:
        """Where to climb from: random rows, and the rows in use."""
        size = len(self.prior)
        return np.vstack([self.random.dirichlet(np.full(size, _SPREAD), size=size), used])

    def mixed(self, used: FloatArray) -> FloatArray:
        """Half ways from rows in use to others, close to single values: more places to climb from."""
        size = len(self.prior)
        chosen = used[self.random.integers(0, len(used), size=_MIXED * size)]
        return np.asarray((chosen + self.random.dirichlet(np.full(size, _PEAKED), size=len(chosen))) / 2)

    def prove(self, answer: Answer) -> bool:
        """Bound what any row can add; whether the search found rows instead, or closed the gap."""
        duals, value, self.proven = answer.multipliers, answer.optimum, True
        eta, enough = duals / self.prior, _BOXES if self.climbing.over else _ENOUGH
        aim = _AIM * (value + self.tolerance - float(duals.sum()))
        found = self.room.peak(eta, tolerance=aim, budget=self.budget, enough=enough)
        self.rows.bounded(duals, aim, found)
        better = [*self.climbs(found.points, eta, self.budget), *found.points]
        return self.rows.add(better) or self.closed(value)
