"""Generalised randomised response: keep x, or say any other value with equal chance."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from funnel.data import Joint, Protocol
from funnel.mechanisms.base import Mechanism, Solved, calibrate
from funnel.notions import Demand


class RandomisedResponse(Mechanism):
    """GRR^α ([DS] section VII), α as large as the measured leakage of its channel allows."""

    of_beliefs: ClassVar[bool] = True

    kind: Literal["randomised-response"]

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Calibrate on integers; above what X itself gives away, X is released as it is. Raises SolverError."""
        inputs = joint.blocks[0]

        def build(strength: int, bits: int) -> Protocol:
            others = ((1 << bits) - strength) // len(inputs)
            weights = np.full((len(inputs), len(inputs)), others, np.int64)
            np.fill_diagonal(weights, (1 << bits) - (len(inputs) - 1) * others)
            return Protocol(inputs, inputs, bits, weights[:, None, :])

        protocol = calibrate(build, joint, demand)
        return Solved(protocol, None, "calibrated on the measured leakage")
