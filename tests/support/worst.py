"""A distribution of a ball under which a protocol leaks as much as is claimed: no claim is too large."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.measure.ball import Ball, RowExtremes
from funnel.measure.extremes import Pairs, moments
from funnel.measure.robust import Search


@dataclass(frozen=True, eq=False)
class Worst:
    """R1·v_s / R2·v_s' = ratio at output y, s = secret, s' = other, R1 = distribution, R2 = other_distribution (a,)."""

    y: int
    secret: int
    other: int
    ratio: float
    distribution: np.ndarray
    other_distribution: np.ndarray


def worst_cases(
    table: np.ndarray,
    rows: np.ndarray,
    possible: np.ndarray,
    radius: Fraction,
    order: Fraction = Fraction(2),
    above: float = 0.0,
) -> list[Worst]:
    """For rows (b, s|1, x) in any unit and each (y, s, s') whose ratio exceeds `above` the worst of F, largest first.

    In floats. (R1, R2) is a linear cut R1·v_s <= k R2·v_s' that every allowed row keeps and this row does not, for
    k < ratio. Without `above` only the single worst case.
    """
    search = Search.of(table, rows, possible, radius, order)
    if above:
        every = [(pairs, int(n)) for pairs in search.candidates(above) for n in np.flatnonzero(pairs.ratio > above)]
        found = sorted(every, key=lambda one: -one[0].ratio[one[1]])
    else:
        found = [top] if (top := search.largest()) is not None else []
    return [
        Worst(
            int(pairs.y[index]),
            int(pairs.first[index]),
            int(pairs.second[index]),
            float(pairs.ratio[index]),
            *_extreme(search.ball, search.rows, pairs, index),
        )
        for pairs, index in found
    ]


def _extreme(ball: Ball, rows: RowExtremes, pairs: Pairs, index: int) -> tuple[np.ndarray, np.ndarray]:
    """R1 and R2 (a,) of one candidate: P_{X|s} and P_{X|s'} for some P of F (a wider set for α < 1/2)."""
    y, first, second = int(pairs.y[index]), int(pairs.first[index]), int(pairs.second[index])
    ends = (rows.top[y, first], rows.bottom[y, second])
    return (
        _distribution(ball, rows.values[y, first] == ends[0], first, rows.above[y, first], pairs, 0, index),
        _distribution(
            ball, rows.values[y, second] == ends[1], second, rows.below[y, second], pairs, 1, index
        ),
    )


def _distribution(
    ball: Ball, end: np.ndarray, s: int, gaps: np.ndarray, pairs: Pairs, half: int, index: int
) -> np.ndarray:
    """R ∝ P (g+τ)^{-1/α}; where its divergence D_0 is below D, e^{D_0-D} of it, and the rest at the row's `end`."""
    shift, order = pairs.shifts[half][index], float(ball.order)
    chances = ball.given[s]
    tilted = chances * (1 + gaps / shift) ** (-1 / order)
    reached = moments(order, chances[None], gaps[None], np.array([shift])).divergence[0]
    kept = min(1.0, float(np.exp(reached - pairs.divergences[half][index])))
    kept = 1.0 if kept > 1 - 1e-6 else kept
    result = np.zeros(ball.table.shape[1])
    np.add.at(result, ball.support[s], kept * tilted / tilted.sum())
    result[np.flatnonzero(end & ball.possible[s])[0]] += 1 - kept
    return result
