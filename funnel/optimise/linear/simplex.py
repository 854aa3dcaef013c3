"""Linear programs that are solved again and again after small changes, each from where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from funnel.data.joint import FloatArray

Status = Literal["optimal", "empty", "unbounded", "time", "failed"]
_PRIMAL, _DUAL = 4, 1
_TOLERANCE = 1e-9
"""Feasibility asked of the solver, primal and dual, in the units of the caller's rows."""


@dataclass(frozen=True, eq=False)
class Answer:
    """How a program ended; where optimal, the point (n,), the rows' multipliers (m,) and the optimum.

    Where it is empty, the multipliers are those that show it, or zero: they combine rows to one that no point
    within the bounds meets.
    """

    status: Status
    point: FloatArray
    multipliers: FloatArray
    optimum: float


class Program:
    """max cost·x subject to low <= matrix @ x <= high, lower <= x <= upper, on scipy's HiGHS, kept warm.

    `matrix` has shape (m, n). scipy offers the solver to its own functions only, cold at every call; the
    binding it carries is that of the public package highspy. Multipliers are d optimum / d row. The primal
    simplex is faster while only costs change, the `dual` one where bounds and rows do.
    """

    def __init__(
        self,
        matrix: FloatArray,
        low: FloatArray,
        high: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        *,
        tolerance: float = _TOLERANCE,
        dual: bool = False,
    ) -> None:
        from scipy.optimize._highspy import _core  # type: ignore[import-not-found]
        from scipy.sparse import csc_array

        known = _core.HighsModelStatus
        self._words: dict[Any, Status] = {
            known.kOptimal: "optimal",
            known.kInfeasible: "empty",
            known.kUnbounded: "unbounded",
            known.kTimeLimit: "time",
        }
        self._limited = False
        self._solver: Any = _core._Highs()
        self._set(output_flag=False, threads=1, solver="simplex", presolve="off")
        self._set(simplex_strategy=_DUAL if dual else _PRIMAL)
        self.within(tolerance)
        program = _core.HighsLp()
        sparse = csc_array(matrix)
        program.num_row_, program.num_col_ = matrix.shape
        program.col_cost_ = np.zeros(matrix.shape[1])
        program.col_lower_, program.col_upper_ = lower, upper
        program.row_lower_, program.row_upper_ = low, high
        program.sense_ = _core.ObjSense.kMaximize
        program.a_matrix_.format_ = _core.MatrixFormat.kColwise
        program.a_matrix_.num_row_, program.a_matrix_.num_col_ = matrix.shape
        program.a_matrix_.start_, program.a_matrix_.index_ = sparse.indptr, sparse.indices
        program.a_matrix_.value_ = sparse.data
        self._solver.passModel(program)

    def within(self, tolerance: float) -> None:
        """How closely rows, and signs of multipliers, are to be met."""
        self._set(primal_feasibility_tolerance=tolerance, dual_feasibility_tolerance=tolerance)

    def afresh(self) -> None:
        """Forget where the last solution ended."""
        self._solver.clearSolver()

    def costs(self, cost: FloatArray) -> None:
        """Replace the cost of the first columns."""
        self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)

    def bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Replace the bounds of the first columns."""
        self._solver.changeColsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)

    def highs(self, high: FloatArray) -> None:
        """Replace the upper limits of the first rows, which have no lower limit."""
        for row, limit in enumerate(high):
            self._solver.changeRowBounds(row, -np.inf, float(limit))

    def at_most_zero(self, rows: FloatArray) -> None:
        """More rows (k, n), each at most zero."""
        size, width = rows.shape
        starts, columns = (
            np.arange(size, dtype=np.int32) * width,
            np.tile(np.arange(width, dtype=np.int32), size),
        )
        limits = np.full(size, -np.inf), np.zeros(size)
        self._solver.addRows(size, *limits, rows.size, starts, columns, rows.ravel())

    def add(self, cost: float, column: FloatArray) -> None:
        """One more column (m,), not negative."""
        support = np.flatnonzero(column).astype(np.int32)
        self._solver.addCol(cost, 0.0, np.inf, len(support), support, column[support])

    def solve(self, seconds: float = np.inf) -> Answer:
        """Solve from the last basis; from nothing where that fails."""
        answer = self._run(seconds)
        if answer.status == "failed":
            self.afresh()
            answer = self._run(seconds)
        return answer

    def _run(self, seconds: float) -> Answer:
        """One run of the solver, and what came of it."""
        if seconds < np.inf or self._limited:
            self._limited = seconds < np.inf
            self._set(time_limit=float(min(seconds + self._solver.getRunTime(), 1e9)))
        self._solver.run()
        status = self._status()
        solution = self._solver.getSolution()
        return Answer(
            status,
            np.array(solution.col_value),
            self._ray() if status == "empty" else np.array(solution.row_dual),
            self._solver.getObjectiveValue(),
        )

    def _ray(self) -> FloatArray:
        """Multipliers (m,) of the rows by which nothing is feasible; zero where the solver has none."""
        _, known, ray = self._solver.getDualRay()
        return -np.array(ray) if known else np.zeros(self._solver.getNumRow())

    def _status(self) -> Status:
        """The solver's word in ours."""
        return self._words.get(self._solver.getModelStatus(), "failed")

    def _set(self, **options: object) -> None:
        """Set options of the solver."""
        for name, value in options.items():
            self._solver.setOptionValue(name, value)
