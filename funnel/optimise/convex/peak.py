"""How much a row of a convex cone can be worth at most: branch and bound over boxes of a polyhedron around it.

The polyhedron grows sides wherever the best point of a box is worth too much and no row of the cone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Proof
from funnel.optimise.columns.boxes import BoxSearch
from funnel.optimise.columns.chords import xlogx
from funnel.optimise.columns.pricing import Peak
from funnel.optimise.columns.reach import cuts
from funnel.optimise.convex.cone import ConvexSlice
from funnel.optimise.linear.bases import OPTIMAL, Answers, Objectives

_ROUNDS = 16
"""Times that a box is looked at again because its best point was cut off."""


def peak(room: ConvexSlice, eta: FloatArray, *, tolerance: float, budget: Budget, enough: int) -> Peak:
    """Bound f(w) = D(w||prior) - eta·w over the slice, down to `tolerance` and no further.

    Ends early when the budget is spent, or with `enough` rows of price above tolerance.
    """
    floor, linear = -float(eta @ room.prior), np.log(room.prior) + eta
    search = _ConvexBoxes(room, linear, tolerance=tolerance, floor=floor, cuts=cuts(room), many=enough)
    search.run(budget)
    points = np.array(search.points).reshape(-1, len(eta))
    return Peak(search.bound, points, search.nodes, search.proof())


class _ConvexBoxes(BoxSearch):
    """Boxes of the polyhedron, which loses the best point of a box where that is no row; `points` are rows."""

    programs: ConvexSlice

    def relaxed(self, objectives: Objectives) -> Answers:
        """The linear programs of boxes, again and again until no best point is worth more than it should."""
        answers = super().relaxed(objectives)
        for _ in range(_ROUNDS):
            again = self.cut_off(objectives, answers)
            if not len(again):
                break
            answers = answers.replaced(again, self.programs.solve(objectives.since(answers)[again]))
        return answers

    def cut_off(self, objectives: Objectives, answers: Answers) -> IntArray:
        """The boxes whose best point was worth more than the tolerance until now, when it was cut off."""
        above = (objectives.slope * answers.point).sum(axis=1) > objectives.enough
        points = answers.point.clip(objectives.lower, objectives.upper)
        high = np.flatnonzero((answers.how == OPTIMAL) & above & (self.price(points) > self.tolerance))
        if not len(high):
            return high
        rows, outside = self.programs.land(points[high])
        good = self.price(rows) > self.tolerance
        self.points.extend(rows[good])
        return high[outside & ~good]

    def price(self, rows: FloatArray) -> FloatArray:
        """f(w) of rows (k, a)."""
        return np.asarray(xlogx(rows).sum(axis=1) - rows @ self.linear)

    def note(self, answers: Answers, points: FloatArray) -> None:
        """Nothing: rows of the cone are found where points are cut off."""

    def proof(self) -> Proof | None:
        """The boxes, with the inequalities that carry a multiplier."""
        whole = self.tree.proof(self.programs.matrix, 0)
        if whole is None:
            return None
        used, index = np.unique(whole.index, return_inverse=True)
        return replace(whole, inequalities=self.programs.matrix[used], index=index)
