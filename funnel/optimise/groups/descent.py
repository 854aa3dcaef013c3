"""The lowest bound over prices of rows, by a linear program over the rows found, kept near the best prices so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.columns.chords import xlogx
from funnel.optimise.groups.listed import Found
from funnel.optimise.linear.highs import Program

_WIDTH, _LEAST_WIDTH = 0.3, 1e-3
"""How far prices of w may be from the best so far (nats), at first and at last."""
_WIDER, _NARROWER = 1.5, 0.7
_PROGRESS = 0.1
"""Share of what the program promises from which a step is a good one."""
_ROWS = 150
"""Rows that are added in a step."""
_STEPS = 100
_DIGITS = 8
"""Digits to which two rows are the same."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Prices λ (a,), the `peak` beyond them, and rows (k, a) with prior·v = 1 that were found on the way."""

    duals: FloatArray
    peak: float
    rows: FloatArray

    @property
    def bound(self) -> float:
        """Σ λ + peak."""
        return float(self.duals.sum()) + self.peak


def descend(
    price: Callable[[FloatArray, int], Found],
    prior: FloatArray,
    protocol: FloatArray,
    *,
    enough: float,
    budget: Budget,
) -> Descent:
    """Lower the bound from the prices of a protocol (b, a) that leaves no zero total, until it is `enough` or stuck.

    The bound is convex in the prices, and every row is a plane below it.
    """
    model = _Model(prior)
    model.add(protocol)
    duals, width = _natural(prior, protocol), _WIDTH
    best = _priced(price, model, duals)
    for _ in range(_STEPS):
        if best.bound <= enough or width < _LEAST_WIDTH or budget.over:
            break
        answer = model.near(best.duals, width, budget)
        if answer is None:
            break
        promised, duals = answer
        found = _priced(price, model, duals)
        good = found.bound < best.bound - _PROGRESS * max(best.bound - promised, 0.0)
        width *= _WIDER if good else _NARROWER
        best = found if good else best
    return Descent(best.duals, best.peak, np.array(model.rows))


def _natural(prior: FloatArray, protocol: FloatArray) -> FloatArray:
    """λ_x = p_x Σ_y Q_yx ln(Q_yx / P(y)): the slope of the information at a protocol, and its value in total."""
    total = protocol @ prior
    return np.asarray((xlogx(protocol) - protocol * np.log(total)[:, None]).sum(axis=0) * prior)


def _priced(price: Callable[[FloatArray, int], Found], model: _Model, duals: FloatArray) -> Descent:
    """The bound at some prices; the rows that it is due to join the program."""
    found = price(duals, _ROWS)
    model.add(found.rows)
    return Descent(duals, found.peak, found.rows)


class _Model:
    """min Σ λ with λ·v >= the worth of v for the rows known, |λ - centre| <= width · prior, as its dual program."""

    def __init__(self, prior: FloatArray) -> None:
        size = len(prior)
        self.prior, self.rows = prior, [np.ones(size)]
        self.known: set[bytes] = set()
        ones, none = np.ones(size), np.zeros(0)
        self.program = Program(np.zeros((size, 0)), ones, ones, none, none)
        for column in np.vstack([np.eye(size), -np.eye(size)]):
            self.program.add(0.0, column)
        self.program.add(0.0, np.ones(size))

    def add(self, rows: FloatArray) -> None:
        """Rows that are not known yet."""
        for row in rows / (rows @ self.prior)[:, None]:
            key = np.round(row, _DIGITS).tobytes()
            if key not in self.known:
                self.known.add(key)
                self.rows.append(row)
                self.program.add(float(self.prior @ xlogx(row)), row)

    def near(self, centre: FloatArray, width: float, budget: Budget) -> tuple[float, FloatArray] | None:
        """The lowest Σ λ near the centre, and its λ; None where the program fails."""
        reach = width * self.prior
        self.program.costs(np.concatenate([centre - reach, -(centre + reach)]))
        answer = self.program.solve(budget.seconds)
        return (answer.optimum, answer.multipliers) if answer.optimal else None
