"""From a real protocol that keeps totals to integer weights that keep the cone exactly and the totals nearly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.data.protocol import MAX_BITS
from funnel.optimise.rounding.integers import Holds, too_fine
from funnel.optimise.rounding.lattice import kernel, round_exactly
from funnel.optimise.rounding.rows import nearest_weights
from funnel.optimise.transport import TransportPlan

LOSS = 1e-4
"""Expected cost that integers may add: so many records in one are changed for their sake."""
NEAR = 0.1
"""Records by which an expected total may be off."""
_LEAST_BITS = 4
_UNITS = (1.0, 4.0, 16.0)
"""Units of weight, times the length of an inequality, that rows stay inside, tried in turn: rounding moves an entry by
half a unit, so that a row as a whole seldom goes further than one such length."""


@dataclass(frozen=True, eq=False)
class Nearly:
    """Integer weights (a, a), every column of which sums to 2^bits, and how far their totals are off in records."""

    weights: IntArray
    bits: int
    deviation: float


@dataclass(frozen=True, eq=False)
class Near:
    """What to be near to: cost (a, a) and records N_x (a,) of a table, and the cost of the optimum.

    `holds` has the last word on weights; totals count only where they are `kept`.
    """

    cost: FloatArray
    counts: IntArray
    optimum: float
    holds: Holds
    kept: bool

    def accepted(self, weights: IntArray | None, bits: int) -> Nearly | None:
        """The weights, where they keep the bound and cost, and are off, little enough."""
        if weights is None:
            return None
        off = self.deviation(weights, bits)
        cost = float((self.cost * weights).sum(axis=0) @ self.counts) / (2.0**bits * float(self.counts.sum()))
        if (self.kept and off > NEAR) or cost > self.optimum + LOSS or not self.holds(weights):
            return None
        shared = int(np.bitwise_or.reduce(weights, axis=None))
        spare = min((shared & -shared).bit_length() - 1, bits)
        return Nearly(weights >> spare, bits - spare, off)

    def deviation(self, weights: IntArray, bits: int) -> float:
        """The largest |E[M_y] - N_y|, in records."""
        counts = self.counts.astype(object)
        off = weights.astype(object) @ counts - counts * (1 << bits)
        return float(max(map(abs, off)) / (1 << bits))


def round_kept(near: Near, best: TransportPlan, solve: Callable[[float], TransportPlan]) -> Nearly:
    """The coarsest weights that serve: rows stay so far inside the cone as rounding may move them.

    `solve(room)` gives the optimum with more room. Where totals are kept there always is a protocol, if only one by the
    totals alone. Raises SolverError (precision, and as `solve` does).
    """
    least = max(_LEAST_BITS, math.ceil(math.log2(max(best.prices.of_room() / LOSS, 1.0))))
    for bits in range(least, MAX_BITS + 1):
        for units in _UNITS:
            plan = solve(units * 2.0**-bits)
            if plan.cost > near.optimum + LOSS:
                break
            if found := near.accepted(nearest_weights(plan.protocol, bits), bits):
                return found
    return _by_totals_alone(near)


def round_equal(near: Near, best: TransportPlan, equalities: Sequence[Sequence[int]]) -> Nearly:
    """The same where rows lie on exact equations: they go to vectors of integers that do. Raises SolverError."""
    basis = kernel(equalities, len(near.counts))
    for bits in range(_LEAST_BITS, MAX_BITS + 1):
        if found := near.accepted(round_exactly(best.protocol, basis, bits), bits):
            return found
    return _by_totals_alone(near)


def _by_totals_alone(near: Near) -> Nearly:
    """Every x answered alike, y with chance p_y: it keeps every bound, and tells nothing. Raises SolverError."""
    alike = np.repeat(near.counts[:, None] / near.counts.sum(), len(near.counts), axis=1)
    for bits in range(_LEAST_BITS, MAX_BITS + 1):
        if near.kept and (found := replace(near, optimum=math.inf).accepted(nearest_weights(alike, bits), bits)):
            return found
    raise too_fine()
