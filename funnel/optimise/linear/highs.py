"""Linear programs through HiGHS: kept warm while they change, and never a value without its status.

The only place that calls the library. Multipliers are d optimum / d row of max cost·x. Its debugging lines are kept
out of our standard output.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.errors import SolverError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Status = Literal["optimal", "empty", "unbounded", "time", "steps", "failed"]
"""How a program ended: solved; without a point; without a limit; out of time, or of steps; in any other way."""
Method = Literal["primal", "dual"]
"""The primal simplex is faster while only costs change, the dual one where bounds and rows do."""
_SIMPLEX: dict[Method, int] = {"primal": 4, "dual": 1}
"""HiGHS's option simplex_strategy."""
_TOLERANCE = 1e-9
"""Feasibility asked of the solver, primal and dual, in the units of the caller's rows."""
_ENDLESS = 1e9
"""Seconds that are no limit."""


@dataclass(frozen=True, eq=False)
class Answer:
    """How a program ended: `point` (n,), `multipliers` of the rows (m,) and `optimum` can be read where it is optimal.

    Where it is empty, `ray` (m,) combines the rows to one that no point within the bounds meets; else it is zero.
    Reading any other value raises SolverError with the status.
    """

    status: Status
    ray: FloatArray
    values: tuple[FloatArray, FloatArray, float] | None = None

    @property
    def optimal(self) -> bool:
        """Whether there are values to read."""
        return self.values is not None

    @property
    def point(self) -> FloatArray:
        """Where the optimum is (n,)."""
        return self.require()[0]

    @property
    def multipliers(self) -> FloatArray:
        """d optimum / d row (m,)."""
        return self.require()[1]

    @property
    def optimum(self) -> float:
        """The largest cost·x."""
        return self.require()[2]

    def require(self, what: str = "a linear program") -> tuple[FloatArray, FloatArray, float]:
        """The values, or SolverError (time, empty or failed) unless it was solved; `what` names it to people."""
        if self.values is not None:
            return self.values
        status = "failed" if self.status == "unbounded" else self.status
        code = "solver-time" if status == "time" else "solver-failed"
        advice = "Raise mechanism.time_limit, or shrink the public alphabet with `bins` or `groups`."
        raise SolverError(code, f"{what} ended as {self.status}", status=status, advice=advice)


class Program:
    """max cost·x subject to low <= matrix @ x <= high and lower <= x <= upper, begun from where it ended last.

    `matrix` (m, n) is dense or sparse; costs are zero until they are given. `presolve` pays where a program is solved
    once. With `nodes`, entries of x are integers, looked for in as many nodes of the solver's tree at most. All its
    solutions together take `steps` of the simplex method at most: a limit that is the same on every machine.
    """

    def __init__(
        self,
        matrix: FloatArray | csr_array,
        low: FloatArray,
        high: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        *,
        tolerance: float = _TOLERANCE,
        method: Method = "primal",
        presolve: bool = False,
        nodes: int | None = None,
        steps: int | None = None,
    ) -> None:
        import highspy

        known = highspy.HighsModelStatus
        self._words: dict[Any, Status] = {
            known.kOptimal: "optimal",
            known.kInfeasible: "empty",
            known.kUnbounded: "unbounded",
            known.kTimeLimit: "time",
            known.kIterationLimit: "steps",
        }
        self._limited, self._whole, self._steps = False, nodes is not None, steps
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._set(output_flag=False, threads=1, presolve="on" if presolve else "off")
        self._set(solver="choose" if nodes else "simplex", simplex_strategy=_SIMPLEX[method])
        self.within(tolerance)
        program, width = highspy.HighsLp(), matrix.shape[1]
        program.num_row_, program.num_col_ = matrix.shape
        program.col_cost_ = np.zeros(width)
        program.col_lower_, program.col_upper_ = lower, upper
        program.row_lower_, program.row_upper_ = low, high
        program.sense_ = highspy.ObjSense.kMaximize
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.num_row_, program.a_matrix_.num_col_ = matrix.shape
        program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = _by_columns(matrix)
        if nodes is not None:
            self._set(mip_max_nodes=nodes)
            program.integrality_ = [highspy.HighsVarType.kInteger] * width
        self._solver.passModel(program)

    @property
    def width(self) -> int:
        """How many variables there are."""
        return int(self._solver.getNumCol())

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

    def highs(self, high: FloatArray, first: int = 0) -> None:
        """Replace the upper limits of the rows from `first` on, which have no lower limit."""
        free, rows = np.full(len(high), -np.inf), np.arange(first, first + len(high), dtype=np.int32)
        self._solver.changeRowsBounds(len(high), rows, free, high)

    def at_most(self, rows: FloatArray | csr_array, high: FloatArray) -> None:
        """More rows (k, n) with upper limits (k,)."""
        from scipy.sparse import csr_array

        rows = csr_array(rows)
        starts, columns = rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32)
        self._solver.addRows(
            len(high), np.full(len(high), -np.inf), high, rows.nnz, starts, columns, rows.data
        )

    def add(self, cost: float, column: FloatArray) -> None:
        """One more column (m,), not negative."""
        support = np.flatnonzero(column).astype(np.int32)
        self._solver.addCol(cost, 0.0, np.inf, len(support), support, column[support])

    def solve(self, seconds: float = np.inf) -> Answer:
        """Solve from the last basis; from nothing where that fails. Without seconds or steps, that is the answer."""
        if seconds <= 0 or self._steps == 0:
            return Answer("time" if seconds <= 0 else "steps", np.zeros(self._solver.getNumRow()))
        answer = self._run(seconds)
        # A search for integers fails where its nodes are spent, and would spend them again.
        if answer.status == "failed" and not self._whole:
            self.afresh()
            answer = self._run(seconds)
        return answer

    def _run(self, seconds: float) -> Answer:
        """One run of the solver, and what came of it."""
        if seconds < np.inf or self._limited:
            self._limited = seconds < np.inf
            self._set(time_limit=float(min(seconds + self._solver.getRunTime(), _ENDLESS)))
        if self._steps is not None:
            self._set(simplex_iteration_limit=self._steps)
        with silenced() if self._whole else nullcontext():
            self._solver.run()
        if self._steps is not None:
            self._steps -= min(max(self._solver.getInfo().simplex_iteration_count, 1), self._steps)
        status, solution = self._status(), self._solver.getSolution()
        if status != "optimal":
            return Answer(status, self._ray() if status == "empty" else np.zeros(self._solver.getNumRow()))
        values = np.array(solution.col_value), np.array(solution.row_dual), self._solver.getObjectiveValue()
        return Answer(status, np.zeros(len(values[1])), values)

    def _ray(self) -> FloatArray:
        """Multipliers (m,) of the rows by which nothing is feasible; zero where the solver has none."""
        _, known, ray = self._solver.getDualRay()
        return -np.array(ray) if known else np.zeros(self._solver.getNumRow())

    def _status(self) -> Status:
        """The solver's word in ours."""
        return self._words.get(self._solver.getModelStatus(), "failed")

    def _set(self, **options: float | str) -> None:
        """Set options of the solver."""
        for name, value in options.items():
            self._solver.setOptionValue(name, value)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Send what C code prints to standard output nowhere.

    HiGHS's integer solver prints a line now and then, whatever its options; standard output is for our
    results, which programs read. C's own buffer is emptied on the way in and out. Does nothing where there is
    no standard output.
    """
    library = ctypes.CDLL(None)
    try:
        kept = os.dup(1)
    except OSError:
        yield
        return
    library.fflush(None)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    try:
        yield
    finally:
        library.fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def _by_columns(matrix: FloatArray | csr_array) -> tuple[IntArray, IntArray, FloatArray]:
    """Where each column starts (n+1,), and the row and the value of each entry, column by column."""
    if not isinstance(matrix, np.ndarray):
        sparse = matrix.tocsc()
        return sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64), sparse.data
    # Programs of a few dense rows, such as nights under a lock solve, need not wait for SciPy.
    columns, rows = np.nonzero(matrix.T)
    starts = np.searchsorted(columns, np.arange(matrix.shape[1] + 1))
    return starts, rows, matrix[rows, columns]
