"""Many linear programs over the same inequalities at once, each with its own box and objective.

A dual simplex in which every step is taken by all programs together, as operations on arrays: a program of this size
costs a solver less than the call. Nothing here needs to be exact: multipliers of any size prove something, and whoever
uses them computes the bound that they prove.
"""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.linear.bases import Answers, Bases, joined
from funnel.optimise.linear.steps import Run

STEPS = 300
"""Steps at most."""
_NUMBERS = 1 << 20
"""Numbers per array: more programs are solved in several groups."""


class Programs:
    """max slope·w subject to Σ w = 1, matrix @ w <= 0 and lower <= w <= upper, for many slopes and boxes.

    The last `equalities` rows of `matrix` (m, a) are equations.
    """

    def __init__(self, matrix: FloatArray, equalities: int) -> None:
        self.count, self.size = matrix.shape
        self.equalities = equalities
        self.extended = np.zeros((self.count + 2, self.size + 1))
        self.extended[:-2, :-1], self.extended[-2, :-1] = matrix, 1.0
        self.transposed = np.ascontiguousarray(matrix.T)
        # Within the simplex no row is lower than its least coefficient: a limit that never binds.
        least = matrix.min(axis=1, initial=0.0) - 1.0
        least[self.count - equalities :] = 0.0
        self.low = np.concatenate([least, [1.0, 0.0]])
        self.high = np.concatenate([np.zeros(self.count), [1.0, 0.0]])
        self.fixed = self.low == self.high

    def fresh(self, slope: FloatArray) -> Bases:
        """Where programs begin of which nothing is known: nothing but Σ w = 1 is met."""
        ones = np.ones(len(slope), np.int64)
        return Bases(np.full((len(slope), 1), self.count), slope.argmax(axis=1)[:, None], ones)

    def solve(
        self,
        lower: FloatArray,
        upper: FloatArray,
        slope: FloatArray,
        bases: Bases,
        enough: FloatArray,
        *,
        most: int = STEPS,
        patient: bool = True,
    ) -> Answers:
        """Solve all (N, a) from their bases, each until it is solved or known to be worth at most `enough` (N,).

        Or until `most` steps have been taken; who is not patient leaves a few that take long for another time.
        """
        step = max(1, _NUMBERS // (self.count + self.size))
        parts = []
        for start in range(0, max(len(slope), 1), step):
            some = np.arange(start, min(start + step, len(slope)))
            with np.errstate(all="ignore"):
                run = Run(self, lower[some], upper[some], slope[some], bases[some], enough[some])
                parts.append(run.answers(most, patient=patient))
        return parts[0] if len(parts) == 1 else joined(parts, self.count, self.size)
