"""Convex cones of rows with infinitely many sides, reached by inequalities that come when a point violates them.

The slice Σ w = 1 of such a cone lies inside a polyhedron that shrinks wherever somebody looks: linear programs over the
polyhedron bound from above what no row of the cone can exceed, and what they find is moved towards the centre until it
is a row of the cone.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.columns.pricing import tidy
from funnel.optimise.linear.bases import OPTIMAL, Answers, Objectives
from funnel.optimise.linear.batched import Programs

_MOST = 1500
"""Inequalities in linear programs from which those longest out of use leave them, down to half as many."""
_MEETS = 1e-6
"""By how much a row on the border may miss an inequality that it is said to meet."""
_MISSED = 1e-7
"""By how much a point may miss an inequality that is known but takes no part."""
_ROUNDS = 12
"""Times that linear programs are solved again because their solutions miss such inequalities."""
_SHOTS = 30
"""Steps from the outside to the border of the cone; each is Newton's."""
_ON_BORDER = 1e-12
"""Excess up to which a row is in the cone."""


class SeparationOracle(Protocol):
    """What knows a convex cone with the all-ones vector inside."""

    def worst(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much rows (k, a) exceed each of q inequalities (k, q), found for these rows; and these (k, q, a).

        Inequalities hold for every row of the cone, and take the value -1 at the all-ones vector. A row that exceeds
        none of its own is in the cone.
        """


class ConvexSlice:
    """The slice {w >= 0 : Σ w = 1, w / prior in the cone}, as far as it is known: `matrix` (m, a) grows.

    Its rows, inequalities on w, have length one.
    """

    equalities = 0
    at_once, together = 256, 1024
    """Boxes that are worth splitting together, and starts that are climbed from together."""

    def __init__(self, oracle: SeparationOracle, prior: FloatArray) -> None:
        self.prior, self.oracle, self.size = prior, oracle, len(prior)
        self._programs = Programs(np.zeros((0, len(prior))))
        self._used, self._clock = np.zeros(0, np.int64), 0
        _, known = oracle.worst(np.ones((1, len(prior))))
        self._remember(known[0])

    @property
    def matrix(self) -> FloatArray:
        """The inequalities that are known (m, a)."""
        return self._programs.matrix

    def solve(self, objectives: Objectives) -> Answers:
        """max slope·w over what is known of the slice, beginning from bases that an earlier answer has."""
        self._forget()
        answers = self._programs.solve(objectives)
        for _ in range(_ROUNDS):
            # Which inequalities are of use, and when they last were.
            self._clock += 1
            self._used[np.unique(answers.index[(answers.weight > 0) & (answers.index >= 0)])] = self._clock
            worth = np.einsum("na,na->n", objectives.slope, answers.point)
            short = np.flatnonzero((answers.how == OPTIMAL) & (worth > objectives.enough))
            again = short[self._enlivened(answers.point[short])]
            if not len(again):
                break
            answers = answers.replaced(again, self._programs.solve(objectives.since(answers)[again]))
        return answers

    def land(self, points: FloatArray, *, cut: bool = True) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Where the ways from points (k, a) to the centre cross the border, and which points are outside (k,).

        These are cut off unless told otherwise, by the inequalities that the rows there meet: they cut deepest.
        """
        points = tidy(np.maximum(points, 0.0))
        aside, share = points / self.prior - 1, np.ones(len(points))
        outside, active = np.zeros(len(points), np.bool_), np.arange(len(points))
        for _ in range(_SHOTS):
            excess, known = self.oracle.worst(1 + share[active, None] * aside[active])
            out = excess.max(axis=1, initial=0.0) > _ON_BORDER
            if cut:
                self._remember(known[(excess >= -_MEETS) & (~out & outside[active])[:, None]])
            active = active[out]
            if not len(active):
                break
            outside[active] = True
            rise = np.einsum("kqa,ka->kq", known[out], aside[active])
            with np.errstate(divide="ignore"):
                share[active] = np.minimum((1 / np.maximum(rise, 0.0)).min(axis=1), share[active])
        rows = (1 + share[:, None] * aside) * self.prior
        return rows / rows.sum(axis=1, keepdims=True), outside

    def _remember(self, known: FloatArray) -> None:
        """More inequalities (k, a) on v; they take part from now on."""
        if len(known):
            rows = known / self.prior
            self._programs.more(rows / np.linalg.norm(rows, axis=1, keepdims=True))
            self._used = np.append(self._used, np.full(len(known), self._clock))

    def _forget(self) -> None:
        """Leave out what has not been of use for long."""
        live = self._programs.live
        if len(live) > _MOST:
            latest = np.argsort(-self._used[live], kind="stable")[: _MOST // 2]
            self._programs.heed(np.sort(live[latest]))

    def _enlivened(self, points: FloatArray) -> IntArray:
        """The points (k, a) that miss inequalities which took no part; those missed the most do from now on."""
        resting = np.setdiff1d(np.arange(len(self.matrix)), self._programs.live)
        if not len(resting) or not len(points):
            return np.zeros(0, np.int64)
        excess = points @ self.matrix[resting].T
        worst = excess.argmax(axis=1)
        missed = np.flatnonzero(excess[np.arange(len(points)), worst] > _MISSED)
        self._programs.heed(np.append(self._programs.live, resting[np.unique(worst[missed])]))
        return missed
