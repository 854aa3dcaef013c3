"""Many linear programs over the same inequalities at once, each with its own box and objective.

A dual simplex in which every step is taken by all programs together, as operations on arrays: a program of this size
costs a solver less than the call. Nothing here needs to be exact: multipliers of any size prove something, and whoever
uses them computes the bound that they prove.
"""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.linear.bases import SUM, Answers, Bases, Constraints, joined
from funnel.optimise.linear.steps import Run

STEPS = 300
"""Steps at most."""
_NUMBERS = 1 << 20
"""Numbers per array: more programs are solved in several groups."""


class Programs(Constraints):
    """max slope·w under such constraints and lower <= w <= upper, for many slopes and boxes."""

    at_once, batched = 64, True
    """Boxes that are worth splitting together; programs are solved all at once."""

    def fresh(self, slope: FloatArray) -> Bases:
        """Where programs begin of which nothing is known: nothing but Σ w = 1 is met."""
        ones = np.ones(len(slope), np.int64)
        return Bases(np.full((len(slope), 1), SUM), slope.argmax(axis=1)[:, None], ones)

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
        bases = self._begun(bases, slope)
        step = max(1, _NUMBERS // (len(self.live) + self.size))
        parts = []
        for start in range(0, max(len(slope), 1), step):
            some = np.arange(start, min(start + step, len(slope)))
            with np.errstate(all="ignore"):
                run = Run(self, lower[some], upper[some], slope[some], bases[some], enough[some])
                parts.append(run.answers(most, patient=patient))
        return parts[0] if len(parts) == 1 else joined(parts)

    def _begun(self, bases: Bases, slope: FloatArray) -> Bases:
        """The bases, with a fresh one wherever there is none."""
        new = bases.count == 0
        if not new.any():
            return bases
        rows, values, count = bases.rows.copy(), bases.values.copy(), bases.count.copy()
        fresh = self.fresh(slope[new])
        rows[new, :1], values[new, :1], count[new] = fresh.rows, fresh.values, 1
        return Bases(rows, values, count)
