"""The inequalities of a slice as solvers like them: so that their tolerance is small against the room there is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.linear.highs import Program

_DEEP = 1e-4
"""Slack at the centre to which inequalities are scaled, where that leaves coefficients below its inverse."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """Inequalities on w and auxiliaries z (m, a + k), scaled so that a solver's tolerance is small against the room.

    `centre` (a + k,) is w = prior with the z that keeps it farthest from every inequality. Equations are left as they
    are.
    """

    rows: FloatArray
    centre: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, lift: FloatArray, prior: FloatArray, *, equations: bool) -> Scaled:
        """Scale matrix (m, a) @ w + lift (m, k) @ z <= 0."""
        both, centre = np.hstack([matrix, lift]), np.append(prior, _deepest(matrix @ prior, lift))
        scale = np.ones(len(both))
        if not equations:
            size = np.abs(both).max(axis=1, initial=0.0)
            scale = size * np.maximum(-both @ centre / size, _DEEP)
        return cls(both / scale[:, None], centre)


def _deepest(limit: FloatArray, lift: FloatArray) -> FloatArray:
    """The z (k,) for which limit + lift @ z is least at its largest."""
    if not lift.shape[1]:
        return np.zeros(0)
    free = np.full(lift.shape[1], np.inf)
    program = Program(
        np.hstack([lift, np.ones((len(lift), 1))]),
        np.full(len(lift), -np.inf),
        -limit,
        np.append(-free, -1.0),
        np.append(free, 1.0),
    )
    program.costs(np.append(np.zeros(lift.shape[1]), 1.0))
    return program.solve().point[:-1]
