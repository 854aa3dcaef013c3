"""Membership in the projection of a cone with auxiliary variables, by linear programs."""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray
from funnel.errors import SolverError
from funnel.optimise.linear.highs import Answer, Program

_SLACK = 1e-9
"""Least slack of the all-ones vector, relative to a row's coefficients, that linear programs can work with."""
_NONE = 1e-9
"""A combination of rows that takes less than this at the all-ones vector, relative, is no inequality."""


class Projection:
    """{v : rows @ v + lift @ z <= 0 for some z}, rows (r, a) and lift (r, k)."""

    def __init__(self, rows: FloatArray, lift: FloatArray) -> None:
        size = np.abs(np.hstack([rows, lift])).max(axis=1, initial=0.0)
        kept = size > 0
        self._rows, self._lift = rows[kept] / size[kept, None], lift[kept] / size[kept, None]

    def check_centre(self) -> None:
        """Some z makes every row strict at all-ones: ValueError if none does, SolverError if none by enough."""
        count, auxiliaries = self._lift.shape
        program = self._program(self._lift, np.ones((count, 1)), upper=1.0)
        program.highs(-self._rows.sum(axis=1))
        program.costs(np.append(np.zeros(auxiliaries), 1.0))
        answer = program.solve()
        if not answer.optimal or answer.optimum < -_SLACK:
            raise ValueError("the all-ones vector is not strictly inside the cone")
        if answer.optimum < _SLACK:
            raise too_close()

    def violation(self, matrix: FloatArray) -> FloatArray:
        """The least t >= 0 per row v of a (b, a) matrix such that v + t·1 is inside and not negative; (b,)."""
        excess = [-answer.optimum * size for answer, size in self._nearest(matrix)]
        return np.asarray(np.maximum(np.maximum(excess, 0.0), (-matrix).max(axis=1)))

    def facets(self, matrix: FloatArray) -> FloatArray:
        """Per row of a (b, a) matrix, the inequality that it exceeds most or misses least, -1 at all-ones."""
        multipliers = np.array([answer.multipliers for answer, _ in self._nearest(matrix)])
        combined = np.maximum(multipliers.reshape(-1, len(self._rows)), 0.0) @ self._rows
        total, size = combined.sum(axis=1), np.abs(combined).sum(axis=1)
        kept = total < -_NONE * size
        return np.asarray(combined[kept] / -total[kept, None])

    def _nearest(self, matrix: FloatArray) -> list[tuple[Answer, float]]:
        """max -t such that v/size + t·1 is inside, for each row v, and its size."""
        auxiliaries = self._lift.shape[1]
        program = self._program(self._lift, self._rows.sum(axis=1, keepdims=True), upper=np.inf)
        program.costs(np.append(np.zeros(auxiliaries), -1.0))
        answers = []
        for row in matrix:
            size = float(np.abs(row).max()) or 1.0
            program.highs(-self._rows @ (row / size))
            answer = program.solve()
            answer.require("the test whether a row lies in its cone")
            answers.append((answer, size))
        return answers

    def _program(self, lift: FloatArray, last: FloatArray, upper: float) -> Program:
        """lift @ z + last·t <= high, z free, -1 <= t <= upper."""
        free = np.full(lift.shape[1], np.inf)
        return Program(
            np.hstack([lift, last]),
            np.full(len(lift), -np.inf),
            np.zeros(len(lift)),
            np.append(-free, -1.0),
            np.append(free, upper),
        )


def too_close() -> SolverError:
    """The error of a cone that is as good as flat."""
    return SolverError(
        "precision",
        "the bound is so close to zero that floating point cannot tell them apart",
        status="precision",
        advice="Use a larger epsilon, or the notion of perfect privacy.",
    )
