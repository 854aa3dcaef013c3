"""The protocol that keeps most of X among all that keep the notion's bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from funnel.geometry.cone import intersection
from funnel.geometry.integers import round_inward
from funnel.geometry.solve import forecast, maximise
from funnel.mechanisms.base import LOSS, Mechanism, Solved
from funnel.model import Alphabet, Joint, Protocol
from funnel.model.channel import ExactArray, sent
from funnel.model.joint import FloatArray, IntArray
from funnel.notions import Notion


class Optimal(Mechanism):
    """[RLDP] Theorem 3: an optimal protocol uses extreme rays of the notion's cone, found by one LP."""

    kind: Literal["optimal"]
    time_limit: float = Field(
        60.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds that solving one block may take before the run is refused",
    )

    def solve(self, joint: Joint, notion: Notion, conditions: Sequence[ExactArray]) -> Solved:
        """Maximise I(X;Y) over the cone of all conditions, then round inward to integers.

        `bound` certifies the optimum over real protocols. Raises SolverError.
        """
        prior = joint.table().sum(axis=0) / joint.rows
        cone = intersection([notion.cone(table) for table in conditions])
        solution = maximise(cone, prior, time_limit=self.time_limit)

        def holds(weights: IntArray) -> bool:
            return all(notion.holds(sent(table, weights[:, None, :])) for table in conditions)

        rounded = round_inward(solution.protocol, cone, prior, holds, loss=LOSS)
        protocol = named(joint.blocks[0], prior, rounded.weights, rounded.bits)
        return Solved(protocol, solution.bound, f"{solution.rung}, {solution.rays:,} extreme rays")

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """The rung of the ladder that serves: constraints of all notions here have rank at most c."""
        rung = forecast(min(secret, public))
        return (
            "rays in closed form"
            if rung == "planar"
            else f"rays by enumeration, within {self.time_limit:g} s"
        )


def named(inputs: Alphabet, prior: FloatArray, weights: IntArray, bits: int) -> Protocol:
    """Name each output after one value of X, so that as many records as possible keep their value.

    An optimal protocol has at most a outputs, so the names are distinct; rows come in the order of the names.
    """
    from scipy.optimize import linear_sum_assignment

    rows, values = linear_sum_assignment(weights * prior, maximize=True)
    order = np.argsort(values)
    outputs = Alphabet(inputs.columns, tuple(inputs.values[x] for x in values[order]))
    return Protocol(inputs, outputs, bits, weights[rows[order]][:, None, :])
