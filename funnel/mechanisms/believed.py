"""The optimum for all tables whose beliefs round alike, closed in on by the worst of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from funnel.data import Joint
from funnel.mechanisms.base import Solved
from funnel.mechanisms.exactly_robust import FEW, within
from funnel.mechanisms.naming import round_named
from funnel.notions import Demand

if TYPE_CHECKING:
    from funnel.optimise.convex.cone import SeparationOracle

_GAP = 1e-3
"""Share of the value at which the search ends, at least: it stands beside what the steps cost."""
_NODES = 50
"""Boxes and climbs for each value after which it ends too, so that the same steps give the same protocol, whatever the
machine. Where the clock ends the search before that, it was made from nothing but the steps too, but may be another."""


def best_against(
    oracle: SeparationOracle, joint: Joint, demand: Demand, time_limit: float, gap: float
) -> Solved:
    """The most informative protocol found whose rows an oracle has no objection to, on integers that keep the demand.

    It claims no bound: the optimum for rounded beliefs is none for the true ones. Raises SolverError.
    """
    from funnel.optimise.budget import Budget
    from funnel.optimise.convex.search import close_in

    prior = joint.table().sum(axis=0) / joint.rows
    entropy = float(-(prior @ np.log(prior)))
    closed = close_in(
        oracle,
        prior,
        budget=Budget(time_limit, _NODES * len(prior)),
        tolerance=max(gap, _GAP) * 1e-2 * entropy,
        share=max(gap, _GAP),
        ceiling=entropy,
    )
    protocol, shape = within(closed.protocol, oracle, prior, lambda _: False)
    how = f"rows priced against {closed.inequalities:,} worst cases and {closed.nodes:,} boxes"
    return Solved(round_named(protocol, shape, joint, demand, choose=len(prior) <= FEW), None, how)
