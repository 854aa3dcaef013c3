"""Who wants the counts N[s, x] back: what the files of one published folder leave open of each, by linear programs.

The attacker has no code of the publisher, nothing private, and knows of the draws that a total lies within DEVIATIONS
of its mean. Every fact is linear in the counts: their number; at least the minimum for every public value; the
released totals; and that no released value moves a belief further than the stated leakage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from tests.trials.attacking.bench import Bench, Table
from tests.trials.attacking.row import Row

NAME = "counts from figures"
DEVIATIONS = 4.5
_USUAL = {"solver": "simplex", "simplex_strategy": 4, "presolve": "choose"}
"""The primal simplex: only costs change."""
Floats = npt.NDArray[np.float64]


def shipped(bench: Bench, table: Table, measure: str) -> Iterator[Row]:
    """The count that is left the least open, which has to be at least the minimum wide."""
    minimum = bench.terms.get("estimate", {}).get("minimum", 10)
    ends = open_counts(bench.releases[-1])
    least = float((ends[:, 1] - ends[:, 0]).min())
    yield Row(NAME, "the least range of a count", f"at least {minimum}", f"{least:.1f}", least >= minimum)


def open_counts(folder: Path, most: int | None = None) -> Floats:
    """The least and the largest count of each public value with one value of the secret, (a, 2).

    Of more than `most` public values, of so many spread evenly among them.

    Which value of the secret makes no difference to who knows none of their names. Of a folder with one block of
    weights that do not read the secret. Raises ValueError of any other.
    """
    stated, (block, *others) = _read(folder, "release"), _read(folder, "protocol")["blocks"]
    if others or block["kind"] != "weights" or block["secret"] is not None:
        raise ValueError("one block of weights on public values is asked for")
    chances = np.array(block["weights"], float) / (1 << block["bits"])
    seen = np.zeros(len(chances))
    for y, count in _read(folder, "released")["rows"]:
        seen[y] += count
    size, values = stated["alphabet"]["sensitive"], chances.shape[1]
    rows, low, high = zip(*_facts(stated, chances, seen, size), strict=True)
    matrix = np.array(rows).reshape(len(rows), -1)
    solver = _solver(matrix, np.array(low, float), np.array(high, float), stated["rows"])
    asked = np.unique(np.linspace(0, values - 1, min(values, most or values)).astype(int))
    ends = np.zeros((len(asked), 2))
    for row, x in enumerate(asked.tolist()):
        for place, sign in enumerate((1.0, -1.0)):
            solver.changeColCost(x, sign)
            ends[row, place] = sign * _least(solver, x)
        solver.changeColCost(x, 0.0)
    return ends


def _least(solver: highspy.Highs, x: int) -> float:
    """The least cost: from where the last one ended, where that goes astray from the beginning, and in other ways.

    A basis kept over many costs can become too close to singular for the primal simplex to see its optimum.
    """
    for ways in ({}, {"simplex_strategy": 1, "presolve": "on"}, {"solver": "ipm", "presolve": "on"}):
        if ways:
            solver.clearSolver()
        for name, way in ways.items():
            solver.setOptionValue(name, way)
        solver.run()
        for name in ways:
            solver.setOptionValue(name, _USUAL[name])
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return solver.getObjectiveValue()
    raise RuntimeError(f"the range of count {x} was not found: {solver.getModelStatus()}")


def _solver(matrix: Floats, low: Floats, high: Floats, most: float) -> highspy.Highs:
    """Looks for the least cost of variables in [0, most], rows between low and high; begins where it ended last."""
    solver, program, sparse = highspy.Highs(), highspy.HighsLp(), csc_array(matrix)
    solver.setOptionValue("output_flag", False)
    for name, way in _USUAL.items():
        solver.setOptionValue(name, way)
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_ = np.zeros(matrix.shape[1])
    program.col_lower_, program.col_upper_ = np.zeros(matrix.shape[1]), np.full(matrix.shape[1], float(most))
    program.row_lower_, program.row_upper_ = low, high
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = sparse.indptr, sparse.indices
    program.a_matrix_.value_ = sparse.data
    solver.passModel(program)
    return solver


def _facts(stated: Any, chances: Floats, seen: Floats, size: int) -> Iterator[tuple[Floats, float, float]]:
    """Coefficients (c, a) with their limits."""
    rows, values = stated["rows"], chances.shape[1]
    yield np.ones((size, values)), rows, rows
    for x in range(values):
        one = np.zeros((size, values))
        one[:, x] = 1
        yield one, stated["estimate"]["minimum"], np.inf
    width = DEVIATIONS * np.sqrt(seen + DEVIATIONS**2) + DEVIATIONS
    most = stated["leakage"]["lip"]
    for y, total in enumerate(seen):
        yield np.tile(chances[y], (size, 1)), total - width[y], total + width[y]
        for s in range(size if most is not None else 0):
            for sign in (1, -1):
                bound = np.exp(sign * most) * (total + sign * width[y]) / rows
                one = np.zeros((size, values))
                one[s] = sign * (chances[y] - bound)
                yield one, -np.inf, 0.0


def _read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())
