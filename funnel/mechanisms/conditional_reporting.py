"""Conditional reporting: randomise the secret, and report x only if the secret came through unchanged."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from funnel.data import Joint, Protocol
from funnel.data.joint import IntArray
from funnel.mechanisms.base import Mechanism, Solved, calibrate
from funnel.notions import Demand, Notion


class ConditionalReporting(Mechanism):
    """CR^α ([DS] Algorithm 1): draw s~ by randomised response on s; release x if s~ = s, else draw from p_{X|s~}.

    α is as large as the measured leakage of its channel allows. To someone who knows x the answer tells whether s~
    was s, so it keeps no promise against side knowledge.
    """

    reads_secret: ClassVar[bool] = True
    releases_secret: ClassVar[bool] = False
    shows_shares: ClassVar[bool] = True

    kind: Literal["conditional-reporting"]

    @classmethod
    def fits(cls, notion: type[Notion]) -> bool:
        """Notions that a draw may keep which reads the secret."""
        return notion.secret_may_be_read

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Calibrate on integers; above what X itself gives away, X is released as it is. Raises SolverError."""
        inputs, others = joint.blocks[0], _others(joint)
        c, a = len(joint.secret), len(inputs)

        def build(strength: int, bits: int) -> Protocol:
            # keep + (c-1)·change = 2^bits, where strength is keep - change
            change = ((1 << bits) - strength) // c
            noise = np.stack([_apportion(row, change * (c - 1)) for row in others], axis=1)
            weights = np.repeat(noise[:, :, None], a, axis=2)
            weights[np.arange(a), :, np.arange(a)] += (1 << bits) - change * (c - 1)
            return Protocol(inputs, inputs, bits, weights, joint.secret)

        return Solved(calibrate(build, joint, demand), None, "calibrated on the measured leakage")


def _others(joint: Joint) -> IntArray:
    """Row s: the mean of p_{X|s'} over s' ≠ s, in parts of about 2^30, shape (c, a)."""
    counts = joint.table().astype(float)
    given = counts / counts.sum(axis=1, keepdims=True)
    mean = (given.sum(axis=0) - given) / (len(given) - 1)
    return np.asarray(np.rint(np.clip(mean, 0, None) * (1 << 30)), np.int64)


def _apportion(parts: IntArray, total: int) -> IntArray:
    """Integers proportional to `parts` (a,) that sum to `total`, by largest remainders."""
    exact, whole = parts.astype(object) * total, int(parts.sum())
    shares, remainders = exact // whole, exact % whole
    missing = total - int(shares.sum())
    shares[np.argsort(-remainders.astype(np.int64), kind="stable")[:missing]] += 1
    return np.asarray(shares, np.int64)
