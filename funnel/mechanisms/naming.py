"""A real protocol on integers, its outputs named after values of X."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.joint import FloatArray, IntArray
from funnel.mechanisms.base import LOSS
from funnel.notions import Demand

if TYPE_CHECKING:
    from funnel.optimise.cone import RoundingCone


def round_named(
    protocol: FloatArray, cone: RoundingCone, joint: Joint, demand: Demand, *, choose: bool = True
) -> Protocol:
    """A real protocol (b, a) with b <= a, on integers that keep the demand, its outputs named.

    Without `choose` the search for few bits is short. Raises SolverError.
    """
    from funnel.optimise.rounding.integers import round_inward

    prior = joint.table().sum(axis=0) / joint.rows

    def holds(weights: IntArray) -> bool:
        return demand.keeps(weights[:, None, :])

    rounded = round_inward(protocol, cone, prior, holds, loss=LOSS, choose=choose)
    return named(joint.blocks[0], prior, rounded.weights, rounded.bits)


def named(inputs: Alphabet, prior: FloatArray, weights: IntArray, bits: int) -> Protocol:
    """Name each output after one value of X, so that as many records as possible keep their value.

    An optimal protocol has at most a outputs, so the names are distinct; rows come in the order of the names.
    """
    from scipy.optimize import linear_sum_assignment

    # It finds shortest paths, in so many steps whatever is rounded. What `scipy.sparse.csgraph` has bids until no price
    # moves, which floating-point numbers may never come to.
    rows, values = linear_sum_assignment(weights * prior, maximize=True)
    order = np.argsort(values)
    outputs = Alphabet(inputs.columns, tuple(inputs.values[x] for x in values[order]))
    return Protocol(inputs, outputs, bits, weights[rows[order]][:, None, :])
