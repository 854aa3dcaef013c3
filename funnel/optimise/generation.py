"""Column generation: a master program over the columns known so far, and oracles that price what is missing.

The duals of the master are prices. A separation oracle finds columns that are worth more than their price, and adds
them; where the last oracle finds none, or proves that there is none, the master's optimum is that of all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.linear.highs import Answer, Method, Program

_CLOSELY = (1e-10, 1e-9, 1e-8, 1e-6)
"""Feasibility asked of the solver, the finest first; redundant equations may not be met so closely."""

Oracle = Callable[[Answer], bool]
"""Looks for columns that are missing at the duals of a solved master, and adds them; whether it found any."""


class RestrictedMaster:
    """max Σ θ_k worth_k subject to Σ θ_k column_k = total and θ >= 0, over columns that come one after the other."""

    def __init__(self, total: FloatArray, *, method: Method = "primal") -> None:
        none = np.zeros(0)
        matrix = np.zeros((len(total), 0))
        self._program = Program(matrix, total, total, none, none, method=method)
        self._known: set[Hashable] = set()

    def add(self, worth: float, column: FloatArray, name: Hashable) -> bool:
        """Let a column (m,) take part unless one of that name does already; whether it is new."""
        if name in self._known:
            return False
        self._known.add(name)
        self._program.add(worth, column)
        return True

    def solve(self, budget: Budget) -> Answer:
        """The best combination."""
        return closely(self._program, budget)


def closely(program: Program, budget: Budget) -> Answer:
    """A program that has an optimum, whatever the solver says: as closely as it can, ever less so if need be."""
    for tolerance in _CLOSELY:
        program.within(tolerance)
        answer = program.solve(budget.seconds)
        if answer.status in {"optimal", "time"}:
            break
        program.afresh()
    return answer


def generate(
    master: RestrictedMaster,
    oracles: Sequence[Oracle],
    *,
    budget: Budget,
    settled: Callable[[float], bool] = lambda _: False,
) -> Answer:
    """Solve the master and let the first oracle that finds columns add them, again and again; the last solution.

    Oracles come in order of what they cost. It ends where none finds anything, where the optimum is `settled`, or
    with the budget. The answer may have no values, if the solver never had any.
    """
    answer = Answer("time", np.zeros(0))
    while not budget.over:
        now = master.solve(budget)
        if not now.optimal:
            return answer if answer.optimal else now
        answer = now
        if settled(now.optimum) or not any(oracle(now) for oracle in oracles):
            break
    return answer
