"""The robust optimum itself, closed in on by the worst distributions of the uncertainty set."""

from __future__ import annotations

import math
import time

import numpy as np

from funnel.geometry.cone import Cone
from funnel.geometry.solve import Solution, maximise
from funnel.geometry.utility import worth
from funnel.mechanisms.base import Solved
from funnel.mechanisms.naming import round_named
from funnel.model import Joint
from funnel.model.joint import FloatArray
from funnel.model.robust import Worst, worst_cases
from funnel.notions import Ldp, RobustDemand

_INSIDE = 0.4
"""Share of the time for a protocol that is robust by way of boxes, which is there whatever comes of the cuts."""
_NEAR = 1e-7
"""Relative excess over e^ε up to which no cut is made."""
_CUTS = 20
"""Cuts at a time: the worst cases of one protocol."""
_HALVINGS = 20
"""Steps of the search for the least mixture with noise that is robust."""
_ROOM = 1e-5
"""Relative room under e^ε in which weights are rounded."""
_SHORT = 0.5
"""Seconds below which another round is not begun."""


def exactly_robust(joint: Joint, demand: RobustDemand, time_limit: float, gap: float) -> Solved:
    """The most informative robust protocol found, and a certified bound of all there are (mathematics, section 5).

    The exact constraint on a row is R1·v_s <= e^ε R2·v_s' for all (R1, R2) that occur together in F: a convex cone.
    Each pair is a linear cut that every robust row keeps, so the optimum over any number of cuts bounds the robust
    optimum from above, and the worst pairs of that optimum are the next cuts. Boxes give a robust protocol from
    below. It ends when the two meet within `gap` of H(X), or with the time. Raises SolverError.
    """
    prior = joint.table().sum(axis=0) / joint.rows
    enough = gap * float(-(prior @ np.log(prior)))
    end, bound = time.monotonic() + time_limit, demand.ceiling()
    inner = maximise(demand.cone(), prior, time_limit=_INSIDE * time_limit, gap=gap, ceiling=bound)
    best, shape, value = inner.protocol, demand.cone(), inner.value
    rows, rounds = [_at_the_estimate(joint, demand)], 0
    while bound - value > enough and (left := end - time.monotonic()) > _SHORT:
        outer_cone = Cone(np.vstack(rows))
        outer = maximise(outer_cone, prior, time_limit=left, gap=gap, ceiling=bound)
        bound, rounds = min(bound, outer.bound), rounds + 1
        repaired = _repaired(outer, demand, prior)
        if worth(repaired, prior) > value:
            best, shape, value = repaired, outer_cone, worth(repaired, prior)
        worst = _worst(outer.protocol, demand, 1 + _NEAR)
        if not worst:
            break
        rows += [_cut(one, demand) for one in worst[:_CUTS]]
    protocol = round_named(best, shape, joint, demand)
    cuts = sum(map(len, rows)) - len(rows[0])
    return Solved(
        protocol, bound, f"boxes by {inner.rung}, then {cuts:,} worst-case cuts in {rounds:,} rounds"
    )


def _at_the_estimate(joint: Joint, demand: RobustDemand) -> FloatArray:
    """The rows of LDP at the estimate, which lies in F."""
    plain = Ldp(notion="ldp", epsilon=demand.notion.epsilon)
    return plain.demand(joint, {}, 0).cone().rows


def _worst(protocol: FloatArray, demand: RobustDemand, slack: float) -> list[Worst]:
    """The pairs of conditionals at which a real protocol (b, a) exceeds the bound, the worst first."""
    radius, order = demand.notion.exact()
    above = math.exp(demand.notion.epsilon) * slack
    return worst_cases(demand.table, protocol[:, None, :], demand.possible, radius, order, above)


def _cut(worst: Worst, demand: RobustDemand) -> FloatArray:
    """R1·v - e^ε R2·v <= 0 as a row of coefficients (1, a)."""
    return np.asarray(worst.distribution - math.exp(demand.notion.epsilon) * worst.other_distribution)[None]


def _repaired(outer: Solution, demand: RobustDemand, prior: FloatArray) -> FloatArray:
    """The protocol mixed with noise, by one share for all rows, as little as makes it robust, with room to round."""
    noise = np.outer(outer.protocol @ prior, np.ones(len(prior)))
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mixed = (1 - middle) * outer.protocol + middle * noise
        low, high = (middle, high) if _worst(mixed, demand, 1 - _ROOM) else (low, middle)
    return np.asarray((1 - high) * outer.protocol + high * noise)
