"""How far the slice of a cone reaches along every coordinate of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.columns.chords import filled
from funnel.optimise.linear.bases import Answers, Objectives

_BEYOND = 1e-3, 1e-9
"""How far beyond the reach to cut, as a share of it and at least: the closer, the larger the multipliers."""


class Relaxation(Protocol):
    """Linear programs over one slice {w >= 0 : Σ w = 1, matrix @ w <= 0} of a cone, within boxes.

    The last `equalities` rows of `matrix` (m, a) are equations. `at_once` boxes are worth splitting together.
    """

    equalities: int
    size: int
    at_once: int

    @property
    def matrix(self) -> FloatArray:
        """The inequalities that are known (m, a)."""

    def solve(self, objectives: Objectives) -> Answers:
        """max slope·w within boxes (N, a), or until it is known to be at most `enough` (N,)."""


@dataclass(frozen=True, eq=False)
class Proven:
    """What multipliers prove of programs: `rest` (N, a) is what they leave of the slopes, `top` (N,) the bounds.

    `weight` (N, k) are the multipliers with the sign that a bound needs, `level` (N,) those of Σ w = 1.
    """

    weight: FloatArray
    rest: FloatArray
    top: FloatArray
    level: FloatArray


_LOST = 1e-13
"""What rounding errors may add to a bound, as a share of the multipliers it comes from."""


def proven(programs: Relaxation, answers: Answers, objectives: Objectives) -> Proven:
    """The bounds on max slope·w within boxes (N, a) that the multipliers of any answers prove."""
    matrix, count = programs.matrix, len(programs.matrix)
    free = answers.index >= count - programs.equalities
    weight = np.where(free, answers.weight, np.maximum(answers.weight, 0.0))
    weight = np.where((answers.index >= 0) & np.isfinite(weight), weight, 0.0)
    rows = matrix[np.maximum(answers.index, 0)] if count else np.zeros((*weight.shape, programs.size))
    rest = objectives.slope - np.matmul(weight[:, None, :], rows)[:, 0]
    top, level, _ = filled(rest, objectives.lower, objectives.upper)
    lost = _LOST * (np.abs(weight) * np.abs(rows).max(axis=2, initial=0.0)).sum(axis=1)
    return Proven(weight, rest, top + answers.left + lost, level)


@dataclass(frozen=True, eq=False)
class Cut:
    """No row of the slice has coordinate `which` above `at` (or below, where not `upper`)."""

    which: int
    at: float
    upper: bool


def cuts(programs: Relaxation) -> list[Cut]:
    """The cuts that leave the least box around the slice, nearly, inside [0, 1]^a."""
    size = programs.size
    slope = np.repeat(np.eye(size), 2, axis=0) * np.tile([1.0, -1.0], size)[:, None]
    objectives = Objectives.anywhere(slope)
    limit = proven(programs, programs.solve(objectives), objectives).top
    share, least = _BEYOND
    at = (limit + share * np.abs(limit) + least) * np.tile([1.0, -1.0], size)
    found = [Cut(n // 2, float(at[n]), upper=n % 2 == 0) for n in range(2 * size)]
    return [cut for cut in found if (cut.at < 1 if cut.upper else cut.at > 0)]
