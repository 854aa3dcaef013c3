"""The same linear programs as `Programs` solves together, one after the other: for cones too wide for that.

With auxiliary variables, or with bases of many inequalities, a solver that is given one program after the other is
faster, each begun from where the last one ended.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.columns.chords import MISSED, filled
from funnel.optimise.linear.bases import EMPTY, OPTIMAL, Answers, Bases, Objectives
from funnel.optimise.linear.highs import Program

_FEW = 40
"""Inequalities that take part from the start, as it is not worth waiting for them."""
_AT_ONCE = 16
"""Inequalities that enter at a time."""
_MET = 1e-9
"""Excess up to which an inequality is met."""
_TRUSTED = 0.5
"""Share of itself by which a bound on auxiliaries may depend on itself."""


class _Lazy:
    """max slope·w under Σ w = 1 and inequalities on w and auxiliaries that enter when a solution violates them.

    Few of them ever do. With auxiliaries all are there from the start, since they are unbounded otherwise. `rows`
    (m, a + k) are all equations, or none is. Answers have multipliers of all rows and of Σ w = 1, in this order;
    where there is no solution, they are the ray that shows it, or zero.
    """

    def __init__(self, rows: FloatArray, size: int, equalities: int, *, boxed: bool) -> None:
        self._rows = rows
        count, width = rows.shape
        free = np.full(width - size, np.inf)
        self.program = Program(
            np.vstack([np.append(np.ones(size), np.zeros(len(free))), rows[:equalities]]),
            np.append(1.0, np.zeros(equalities)),
            np.append(1.0, np.zeros(equalities)),
            np.append(np.zeros(size), -free),
            np.append(np.ones(size), free),
            method="dual" if boxed else "primal",
        )
        self._active = np.arange(equalities)
        if not equalities and (len(free) or count <= _FEW):
            self._enter(np.arange(count))

    def _enter(self, rows: IntArray) -> None:
        """Let these inequalities take part."""
        self.program.at_most(self._rows[rows], np.zeros(len(rows)))
        self._active = np.append(self._active, rows)

    def solve(self, slope: FloatArray) -> tuple[FloatArray | None, FloatArray]:
        """The best point (a + k,) for a slope (a + k,), None if there is none; multipliers (m + 1,)."""
        self.program.costs(slope)
        answer = self.program.solve()
        while answer.optimal and len(self._active) < len(self._rows):
            excess = self._rows @ answer.point
            excess[self._active] = 0.0
            if excess.max() <= _MET:
                break
            self._enter(np.argsort(-excess)[: min(_AT_ONCE, int((excess > _MET).sum()))])
            answer = self.program.solve()
        held = answer.multipliers if answer.optimal else answer.ray
        multipliers = np.zeros(len(self._rows) + 1)
        multipliers[self._active], multipliers[-1] = held[1:], held[0]
        return (answer.point if answer.optimal else None), multipliers


class OneByOne:
    """max slope·w subject to Σ w = 1, matrix @ w + lift @ z <= 0 and lower <= w <= upper, for many slopes and boxes.

    The last `equalities` rows of `matrix` (m, a) are equations; `lift` (m, k) has no columns where there are no
    auxiliaries z. Points have a + k entries.
    """

    at_once, batched = 8, False
    """Boxes that are worth splitting together; programs are solved each by itself."""

    def __init__(self, matrix: FloatArray, lift: FloatArray, equalities: int) -> None:
        self.matrix, self.lift, self.equalities = matrix, lift, equalities
        self.size, rows = matrix.shape[1], np.hstack([matrix, lift])
        self._spare = np.zeros(lift.shape[1])
        self._anywhere = _Lazy(rows, self.size, equalities, boxed=False)
        self._boxed = _Lazy(rows, self.size, equalities, boxed=True)

    def solve(self, objectives: Objectives) -> Answers:
        """Solve all; programs without a point get multipliers that bound them by `enough` where some do.

        Bases and patience are those of the solver.
        """
        o, many = objectives, len(objectives)
        weights = np.zeros((many, len(self.matrix)))
        points = np.zeros((many, self.size + self.lift.shape[1]))
        how = np.full(many, EMPTY)
        for n in range(many):
            point, weights[n] = self._solved(o.lower[n], o.upper[n], o.slope[n])
            if point is not None:
                how[n], points[n] = OPTIMAL, point
            else:
                weights[n] *= self._factor(weights[n], o.lower[n], o.upper[n], o.slope[n], float(o.enough[n]))
        width = max(int((weights != 0).sum(axis=1).max(initial=0)), 1)
        index = np.argsort(weights == 0, axis=1, kind="stable")[:, :width]
        left = np.array([self._leftover(weight) for weight in weights])
        weight = np.take_along_axis(weights, index, 1)
        return Answers(how, points, index, weight, left, Bases.none(many, width))

    def _solved(
        self, lower: FloatArray, upper: FloatArray, slope: FloatArray
    ) -> tuple[FloatArray | None, FloatArray]:
        """One point, and multipliers (m,) with the sign that a bound needs; zero where auxiliaries do not cancel."""
        slope = np.append(slope, self._spare)
        if not lower.any() and upper.min() == 1:
            point, multipliers = self._anywhere.solve(slope)
        else:
            self._boxed.program.bounds(lower, upper)
            point, multipliers = self._boxed.solve(slope)
        weight = multipliers[:-1] if self.equalities else np.maximum(multipliers[:-1], 0.0)
        return point, weight if np.isfinite(self._leftover(weight)) else np.zeros_like(weight)

    def _factor(
        self, weight: FloatArray, lower: FloatArray, upper: FloatArray, slope: FloatArray, enough: float
    ) -> float:
        """By how much to enlarge multipliers that no row can meet in a box, so that nothing there is worth `enough`."""
        box = lower[None], upper[None]
        miss = float(filled(-(weight @ self.matrix)[None], *box)[0][0]) + self._leftover(weight)
        if not miss < -MISSED * np.abs(weight).sum():
            return 0.0
        # Twice as much as is needed, so that rounding errors do not matter.
        worth = float(filled(slope[None], *box)[0][0])
        excess = worth - enough if np.isfinite(enough) else abs(worth)
        return (2 * max(excess, 0.0) + 1.0) / -miss

    def _leftover(self, weight: FloatArray) -> float:
        """What a combination of the constraints leaves of auxiliaries: a rounding error times their size."""
        left = float(np.abs(weight @ self.lift).sum()) if self.lift.shape[1] else 0.0
        return left * self._widest if left else 0.0

    @cached_property
    def _widest(self) -> float:
        """A bound on every auxiliary's absolute value over the slice; infinite where there may be none.

        With z_j = e_j·z and any multipliers y, z_j <= max -(y A)·w + |e_j - y B|·|z|, and the last term is a small
        share of the largest |z|, which is therefore bounded.
        """
        size, most, share = self.lift.shape[1], 0.0, 0.0
        simplex = np.zeros((1, self.size)), np.ones((1, self.size))
        for slope in np.vstack([np.eye(size), -np.eye(size)]):
            point, multipliers = self._anywhere.solve(np.append(np.zeros(self.size), slope))
            if point is None:
                return float(np.inf)
            weight = np.maximum(multipliers[:-1], 0.0)
            most = max(most, float(filled(-(weight @ self.matrix)[None], *simplex)[0][0]))
            share = max(share, float(np.abs(slope - weight @ self.lift).sum()))
        return most / (1 - share) if share <= _TRUSTED else float(np.inf)
