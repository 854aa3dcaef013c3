"""Convex cones of rows with infinitely many sides, reached by inequalities that come when a point violates them.

The slice Σ w = 1 of such a cone lies inside a polyhedron that shrinks wherever somebody looks: linear programs over the
polyhedron bound from above what no row of the cone can exceed, and what they find is moved towards the centre until it
is a row of the cone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from funnel.geometry.pricing import Slice, tidy
from funnel.geometry.reach import Cut, cuts
from funnel.geometry.simplex import Answer, Program
from funnel.model.joint import FloatArray, IntArray

_MET = 1e-9
"""Excess up to which an inequality is met."""
_DEEP = 1e-4
"""Slack at the centre to which inequalities are scaled, where that leaves coefficients below its inverse."""
_AT_ONCE = 4
"""Inequalities that enter a linear program at a time."""
_MOST = 400
"""Inequalities in a linear program from which those longest out of use leave it, down to half as many."""
_MEETS = 1e-6
"""By how much a row on the border may miss an inequality that it is said to meet."""
_ROUNDS = 60
"""Times that a point is cut off before it is taken as it is."""
_SHOTS = 30
"""Steps from the outside to the border of the cone; each is Newton's."""
_ON_BORDER = 1e-12
"""Excess up to which a row is in the cone."""
_NO_SEARCH = np.inf
"""A price that no point exceeds."""


class Judge(Protocol):
    """What knows a convex cone with the all-ones vector inside."""

    def worst(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much rows (k, a) exceed each of q inequalities (k, q), found for these rows; and these (k, q, a).

        Inequalities hold for every row of the cone, and take the value -1 at the all-ones vector. A row that exceeds
        none of its own is in the cone.
        """


class ConvexSlice(Slice):
    """The slice {w >= 0 : Σ w = 1, w / prior in the cone}, as far as it is known: `matrix` (m, a) grows.

    `aim` says which points are cut off while boxes are looked at: those whose price Σ w ln w - linear·w exceeds it.
    """

    def __init__(self, judge: Judge, prior: FloatArray) -> None:
        self.prior, self.judge = prior, judge
        self.equalities, self.lift = 0, np.zeros((0, 0))
        self._store, self.matrix = np.zeros((256, len(prior))), np.zeros((0, len(prior)))
        self.linear, self.aim = np.zeros(len(prior)), _NO_SEARCH
        _, known = judge.worst(np.ones((1, len(prior))))
        self._remember(known[0])
        self._hull, self._hull_boxed = _Relaxed(self, dual=False), _Relaxed(self, dual=True)

    @property
    def cuts(self) -> list[Cut]:
        """What cuts off all that the slice is known not to reach."""
        found = cuts(self)
        return [
            replace(cut, weight=np.pad(cut.weight, (0, len(self.matrix) - len(cut.weight)))) for cut in found
        ]

    def weight(self, multipliers: FloatArray) -> FloatArray:
        """Multipliers (m,) of the inequalities, none below zero."""
        known = np.zeros(len(self.matrix))
        known[: len(multipliers) - 1] = np.maximum(multipliers[:-1], 0.0)
        return known

    def leftover(self, weight: FloatArray) -> float:
        """There are no auxiliary variables."""
        return 0.0

    def best(self, slope: FloatArray) -> Answer:
        """max slope·w over what is known of the slice."""
        return self._hull.solve(slope)

    def best_in(self, lower: FloatArray, upper: FloatArray, slope: FloatArray) -> Answer:
        """The same within a box; a point whose price exceeds the aim is cut off, unless the cone has one as good."""
        self._hull_boxed.bounds(lower, upper)
        for _ in range(_ROUNDS):
            answer = self._hull_boxed.solve(slope)
            if answer.status != "optimal" or self._price(answer.point.clip(lower, upper)) <= self.aim:
                return answer
            row, cut = self.land(answer.point)
            if self._price(row) > self.aim or not cut:
                break
        return Answer(answer.status, row, answer.multipliers, answer.optimum)

    def _price(self, point: FloatArray) -> float:
        """Σ w ln w - linear·w of a point w (a,)."""
        return float(point @ np.log(np.where(point > 0, point, 1.0)) - self.linear @ point)

    def land(self, point: FloatArray) -> tuple[FloatArray, bool]:
        """Where the way from a point to the centre crosses the border, and whether the point is now cut off.

        It is by the inequalities that the row there meets: they cut deepest.
        """
        aside, share, cut = tidy(np.maximum(point, 0.0)) / self.prior - 1, 1.0, False
        for _ in range(_SHOTS):
            excess, known = self.judge.worst((1 + share * aside)[None])
            if excess.max(initial=0.0) <= _ON_BORDER:
                break
            cut = True
            with np.errstate(divide="ignore"):
                share = float(min((1 / np.maximum(known[0] @ aside, 0.0)).min(), share))
        if cut:
            self._remember(known[0][excess[0] >= -_MEETS])
        row = (1 + share * aside) * self.prior
        return row / row.sum(), cut

    def inside(self, point: FloatArray) -> FloatArray:
        """The row w (a,) of the cone where the way from a point to the centre crosses the border."""
        return self.land(point)[0]

    def all_inside(self, points: FloatArray) -> FloatArray:
        """The same for several points (k, a); nothing is cut off."""
        aside, share = points / self.prior - 1, np.ones(len(points))
        active = np.arange(len(points))
        for _ in range(_SHOTS):
            excess, known = self.judge.worst(1 + share[active, None] * aside[active])
            out = excess.max(axis=1, initial=0.0) > _ON_BORDER
            active = active[out]
            if not len(active):
                break
            rise = np.einsum("kqa,ka->kq", known[out], aside[active])
            with np.errstate(divide="ignore"):
                share[active] = np.minimum((1 / np.maximum(rise, 0.0)).min(axis=1), share[active])
        moved = points + (1 - share[:, None]) * (self.prior - points)
        return np.asarray(moved / moved.sum(axis=1, keepdims=True))

    def _remember(self, known: FloatArray) -> None:
        """More inequalities (k, a) on v."""
        rows = known / self.prior
        rows /= np.maximum(1 / np.abs(rows).max(axis=1, initial=1.0), _DEEP)[:, None]
        count = len(self.matrix) + len(rows)
        while count > len(self._store):
            self._store = np.vstack([self._store, np.zeros_like(self._store)])
        self._store[len(self.matrix) : count] = rows
        self.matrix = self._store[:count]


class _Relaxed:
    """The slice as a linear program: inequalities enter when a solution violates them, and leave when long unused."""

    def __init__(self, room: ConvexSlice, *, dual: bool) -> None:
        self._room, self._dual, self._clock = room, dual, 0
        self._bounds = np.zeros(len(room.prior)), np.ones(len(room.prior))
        self._build(np.zeros(0, np.int64))

    def _build(self, rows: IntArray) -> None:
        """A program with these inequalities only."""
        one, (lower, upper) = np.ones(1), self._bounds
        self._program = Program(np.ones((1, len(lower))), one, one, lower, upper, dual=self._dual)
        self._active, self._used = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._enter(rows)

    def _enter(self, rows: IntArray) -> None:
        """Let these inequalities take part."""
        if len(rows):
            self._program.at_most_zero(self._room.matrix[rows])
        self._active = np.append(self._active, rows)
        self._used = np.append(self._used, np.full(len(rows), self._clock))

    def bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Replace the bounds."""
        self._bounds = lower, upper
        self._program.bounds(lower, upper)

    def solve(self, slope: FloatArray) -> Answer:
        """max slope·w, with multipliers of all inequalities known and of Σ w = 1, in this order."""
        matrix = self._room.matrix
        self._program.costs(slope)
        while True:
            answer = self._program.solve()
            if answer.status != "optimal":
                break
            excess = matrix @ answer.point
            excess[self._active] = 0.0
            worst = np.argsort(-excess)[:_AT_ONCE]
            if excess[worst[0]] <= _MET:
                break
            self._enter(worst[excess[worst] > _MET])
        multipliers = np.zeros(len(matrix) + 1)
        multipliers[self._active], multipliers[-1] = answer.multipliers[1:], answer.multipliers[0]
        self._clock += 1
        self._used[answer.multipliers[1:] > 0] = self._clock
        if len(self._active) > _MOST:
            self._build(np.sort(self._active[np.argsort(-self._used, kind="stable")[: _MOST // 2]]))
        return Answer(answer.status, answer.point, multipliers, answer.optimum)
