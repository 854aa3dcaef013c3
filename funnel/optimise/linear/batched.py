"""Many linear programs over the same inequalities at once, each with its own box and objective.

A dual simplex in which every step is taken by all programs together, as operations on arrays: a program of this size
costs a solver less than the call. Nothing here needs to be exact: multipliers of any size prove something, and whoever
uses them computes the bound that they prove.

Steps of the dual simplex method, taken by many linear programs together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.linear.bases import (
    EMPTY,
    ENOUGH,
    GIVEN_UP,
    NONE,
    OPTIMAL,
    RUNNING,
    SUM,
    Answers,
    Bases,
    BoolArray,
    Constraints,
    Objectives,
    joined,
    widened,
)

STEPS = 300
"""Steps at most."""
_NUMBERS = 1 << 20
"""Numbers per array: more programs are solved in several groups."""
_MET = 1e-10
"""Excess up to which a constraint is met."""
_PIVOT = 1e-9
"""Changes of a multiplier below this are rounding errors."""
_WRONG = 1e-12
"""Size from which a multiplier of the wrong sign counts."""
_LONG, _FEW = 4, 2
"""Steps after which a share of one in so many programs is left for another time."""
_SPARE = 4
"""Room for inequalities that come."""
_ALONE = 200_000
"""Multiplications up to which BLAS works alone."""


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


class Run:
    """Programs under way. Arrays have an entry per program that has not ended yet; `place` says which one it is."""

    _STATE = ("place", "rows", "values", "count", "cost", "lower", "upper", "high", "above")
    _VIEW = ("active", "inverse", "weight", "rate", "point", "worth", "loose", "spare")
    _ENTERING = ("which", "excess", "over")

    def __init__(self, constraints: Constraints, objectives: Objectives) -> None:
        self.constraints, self.enough = constraints, objectives.enough
        self.patient, bases = objectives.patient, objectives.bases
        self.many, self.size = objectives.slope.shape
        self.place: IntArray = np.arange(self.many)
        width = max(int(bases.count.max(initial=1)), 1)
        self.rows, self.values = bases.rows[:, :width].copy(), bases.values[:, :width].copy()
        self.count = bases.count.copy()
        # One more coordinate, always zero, is what NONE stands for.
        none = np.zeros((self.many, 1))
        self.cost, self.lower, self.upper = (
            np.hstack([array, none]) for array in (objectives.slope, objectives.lower, objectives.upper)
        )
        self.out = Answers.nothing(self.many, width + _SPARE, self.size)
        self.look(first=True)

    def answers(self, most: int) -> Answers:
        """Take steps until all have ended."""
        for step in range(most + 1):
            self.end(self.ended())
            few = len(self.place) * _FEW <= self.many and step >= _LONG and not self.patient
            if not len(self.place) or few or step == most:
                break
            self.turn()
            if not len(self.place):
                break
            self.look()
        if len(self.place):
            self.end(np.full(len(self.place), GIVEN_UP))
        return self.out

    def look(self, *, first: bool = False) -> None:
        """Multipliers and points of the bases."""
        several = np.arange(len(self.place))[:, None]
        self.active = self.constraints.extended[self.rows]
        width = self.rows.shape[1]
        matrix = self.active[several[:, :, None], np.arange(width)[None, :, None], self.values[:, None, :]]
        self.spare = np.arange(width) >= self.count[:, None]
        matrix[:, np.arange(width), np.arange(width)] += self.spare
        self.inverse = _inverse(matrix)
        self.weight = np.matmul(self.cost[several, self.values][:, None, :], self.inverse)[:, 0]
        self.rate = self.cost - np.matmul(self.weight[:, None, :], self.active)[:, 0]
        self.rate[several, self.values] = 0.0
        if first:
            self.high, self.above = self.rate > 0, self.weight > 0
        self.loose = ~self.constraints.fixed[self.rows]
        point = np.where(self.high, self.upper, self.lower)
        point[several, self.values] = 0.0
        target = np.where(self.above, self.constraints.high[self.rows], self.constraints.low[self.rows])
        rest = target - np.matmul(self.active, point[:, :, None])[:, :, 0]
        point[several, self.values] = np.matmul(self.inverse, rest[:, :, None])[:, :, 0]
        point[:, -1] = 0.0
        self.point, self.worth = point, (self.cost * point).sum(axis=1)

    def ended(self) -> IntArray:
        """Codes of those that have, after a look at which constraint is missed the most."""
        point = self.point[:, :-1]
        over, under = point - self.upper[:, :-1], self.lower[:, :-1] - point
        rows = _product(point, self.constraints.transposed)
        missed = np.hstack([np.maximum(over, under), rows])
        if self.constraints.equalities:
            equations = slice(missed.shape[1] - self.constraints.equalities, None)
            missed[:, equations] = np.abs(missed[:, equations])
        here = np.arange(len(point))
        self.which = missed.argmax(axis=1)
        self.excess = missed[here, self.which]
        self.over = np.hstack([over, rows])[here, self.which] > 0
        wrong = (self.loose & ~self.above & (self.weight < -_WRONG)).any(axis=1)
        how = np.where((self.worth <= self.enough[self.place]) & ~wrong, ENOUGH, RUNNING)
        how[self.excess <= _MET] = OPTIMAL
        how[~np.isfinite(self.excess)] = GIVEN_UP
        return how

    def end(self, how: IntArray) -> None:
        """Write down how programs ended, and go on with the others."""
        done = how != RUNNING
        if done.any():
            self.write(done, how[done], self.weight[done], np.full(int(done.sum()), NONE))
            self.keep(~done, self._STATE + self._VIEW + self._ENTERING)

    def write(self, done: BoolArray, how: IntArray, weight: FloatArray, beside: IntArray) -> None:
        """The answers of those who are done, with room for an inequality beside those of the basis."""
        place, width = self.place[done], self.rows.shape[1]
        self.out = out = self.out.wide(width + 1)
        out.how[place], out.point[place] = how, self.point[done][:, :-1]
        out.index[place, :width], out.index[place, width] = self.rows[done], beside
        out.weight[place, : weight.shape[1]] = weight
        out.bases.rows[place, :width], out.bases.values[place, :width] = self.rows[done], self.values[done]
        out.bases.count[place] = self.count[done]

    def keep(self, chosen: BoolArray, names: tuple[str, ...]) -> None:
        """Go on with some only."""
        for name in names:
            setattr(self, name, getattr(self, name)[chosen])

    def turn(self) -> None:
        """Let the constraint that is missed most hold, in place of one whose multiplier becomes zero first."""
        value = np.where(self.which < self.size, self.which, NONE)
        row = np.append(np.full(self.size, NONE), self.constraints.live)[self.which]
        step, change = self.changes(value, row)
        until, falls = self.until(change)
        # A program's worth falls until so much is met that the constraint is; what has two sides changes sides.
        span = np.hstack([(self.upper - self.lower)[:, :-1], self.span()])
        gained = np.zeros(change.shape)
        np.multiply(np.abs(change), span, out=gained, where=falls)
        here = np.arange(len(self.place))
        order = until.argsort(axis=1)
        met = gained[here[:, None], order].cumsum(axis=1)
        reached = met >= self.excess[:, None]
        place = reached.argmax(axis=1)
        flips = np.zeros(falls.shape, bool)
        flips[here[:, None], order] = np.arange(falls.shape[1]) < place[:, None]
        leaving, flips, some = order[here, place], flips & falls, reached[:, -1]
        if not some.all():
            last = np.where(np.isfinite(until), until, 0.0).max(axis=1)
            self.empty(~some, row, step, last, self.excess - met[:, -1])
            self.keep(some, self._STATE + self._ENTERING)
            value, row, leaving, flips = value[some], row[some], leaving[some], flips[some]
        self.high[:, :-1] ^= flips[:, : self.size]
        self.above ^= flips[:, self.size :]
        self.swap(value, row, leaving)

    def changes(self, value: IntArray, row: IntArray) -> tuple[FloatArray, FloatArray]:
        """What a unit of the entering multiplier changes: the multipliers (N, k), and rates and these (N, a + k)."""
        several = np.arange(len(self.place))[:, None]
        entering = self.constraints.extended[row]
        own = entering[several, self.values] + ((self.values == value[:, None]) & (value != NONE)[:, None])
        step = np.where(self.spare, 0.0, np.matmul(own[:, None, :], self.inverse)[:, 0])
        slope = entering - np.matmul(step[:, None, :], self.active)[:, 0]
        slope[several, self.values] = 0.0
        sign = np.where(self.over, 1.0, -1.0)
        return step, sign[:, None] * np.hstack([slope[:, :-1], step])

    def until(self, change: FloatArray) -> tuple[FloatArray, BoolArray]:
        """How far the multiplier may grow until each other one is zero (N, a + k), and which ones fall at all."""
        side = np.hstack([self.high[:, :-1], self.above])
        fixed = np.hstack([np.zeros((len(self.place), self.size), bool), ~self.loose])
        falls = np.where(side, change > _PIVOT, change < -_PIVOT) & ~fixed
        until = np.full(change.shape, np.inf)
        np.divide(np.hstack([self.rate[:, :-1], self.weight]), change, out=until, where=falls)
        return np.maximum(until, 0.0, out=until), falls

    def span(self) -> FloatArray:
        """How far rows of the basis are from their other side; those where they should be never leave it."""
        far = (self.constraints.high - self.constraints.low)[self.rows]
        return np.where(self.above & self.loose, np.inf, far)

    def empty(
        self, lost: BoolArray, row: IntArray, step: FloatArray, last: FloatArray, rate: FloatArray
    ) -> None:
        """Programs without a point: multipliers so large that little is left, as nothing holds them back."""
        fall = np.maximum(self.worth - self.enough[self.place], 0.0)
        fall = np.where(np.isfinite(fall), fall, np.abs(self.worth)) + 1.0
        far = np.where(self.over, 1.0, -1.0) * (last + 2 * fall / np.maximum(rate, 1e-300))
        weight = np.hstack([self.weight - far[:, None] * step, far[:, None]])
        self.write(lost, np.full(int(lost.sum()), EMPTY), weight[lost], row[lost])

    def swap(self, value: IntArray, row: IntArray, leaving: IntArray) -> None:
        """Bring each basis up to date: a row or a value enters at its bound, another one leaves."""
        enters, leaves = value == NONE, leaving >= self.size
        if (enters & ~leaves & (self.count == self.rows.shape[1])).any():
            self.widen()
        x = np.flatnonzero(enters & ~leaves)
        slot = self.count[x]
        self.rows[x, slot], self.above[x, slot], self.values[x, slot] = row[x], self.over[x], leaving[x]
        self.count[x] += 1
        x = np.flatnonzero(enters & leaves)
        slot = leaving[x] - self.size
        self.rows[x, slot], self.above[x, slot] = row[x], self.over[x]
        x = np.flatnonzero(~enters)
        slot = (self.values[x] == value[x, None]).argmax(axis=1)
        self.high[x, value[x]] = self.over[x]
        self.values[x, slot] = np.where(leaves[x], self.values[x, slot], leaving[x])
        self.drop(x[leaves[x]], leaving[x[leaves[x]]] - self.size, slot[leaves[x]])

    def drop(self, x: IntArray, row: IntArray, value: IntArray) -> None:
        """Take a row and a value out of bases; the last ones take their slots."""
        end = self.count[x] - 1
        self.values[x, value] = self.values[x, end]
        self.values[x, end] = NONE
        self.rows[x, row], self.above[x, row] = self.rows[x, end], self.above[x, end]
        self.rows[x, end], self.above[x, end] = NONE, False
        self.count[x] = end

    def widen(self) -> None:
        """Room for one more in every basis."""
        width = self.rows.shape[1] + 1
        self.rows, self.values = widened(self.rows, width), widened(self.values, width)
        self.above = widened(self.above, width, filling=False)


def _inverse(matrices: FloatArray) -> FloatArray:
    """Inverses (N, k, k), or something like them."""
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrices))


def _product(points: FloatArray, candidates: FloatArray) -> FloatArray:
    """points (n, a) @ candidates (a, m), in parts so small that BLAS starts no threads, as waiting costs more."""
    step = max(_ALONE // max(candidates.size, 1), 1)
    if step >= len(points):
        return points @ candidates
    return np.concatenate(
        [points[start : start + step] @ candidates for start in range(0, len(points), step)]
    )
