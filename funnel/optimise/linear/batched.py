"""Many linear programs over the same inequalities at once, each with its own box and objective.

A dual simplex in which every step is taken by all programs together, as operations on arrays: a program of this size
costs a solver less than the call. Nothing here needs to be exact: multipliers of any size prove something, and whoever
uses them computes the bound that they prove.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.optimise.linear.bases import SUM, Answers, Bases, Constraints, Objectives, joined
from funnel.optimise.linear.steps import Run

STEPS = 300
"""Steps at most."""
_NUMBERS = 1 << 20
"""Numbers per array: more programs are solved in several groups."""


class Programs(Constraints):
    """max slope·w under such constraints and lower <= w <= upper, for many slopes and boxes."""

    at_once, batched = 64, True
    """Boxes that are worth splitting together; programs are solved all at once."""

    def solve(self, objectives: Objectives, *, most: int = STEPS) -> Answers:
        """Solve all from their bases, each until it is solved or known to be worth little enough.

        Or until `most` steps have been taken.
        """
        many, begun = len(objectives), _begun(objectives)
        step = max(1, _NUMBERS // (len(self.live) + self.size))
        parts = []
        for start in range(0, max(many, 1), step):
            with np.errstate(all="ignore"):
                run = Run(self, begun[np.arange(start, min(start + step, many))])
                parts.append(run.answers(most))
        return parts[0] if len(parts) == 1 else joined(parts)


def _begun(objectives: Objectives) -> Objectives:
    """The same with a basis wherever there is none: nothing but Σ w = 1 is met, at the best value."""
    bases = objectives.bases
    new = bases.count == 0
    if not new.any():
        return objectives
    rows, values, count = bases.rows.copy(), bases.values.copy(), bases.count.copy()
    rows[new, 0], values[new, 0], count[new] = SUM, objectives.slope[new].argmax(axis=1), 1
    return replace(objectives, bases=Bases(rows, values, count))
