"""Polyhedral cones of rows: which vectors may be a row of a protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import SolverError
from funnel.model.joint import FloatArray

_SLACK = 1e-12
"""Least slack of the all-ones vector, as a share of a row's coefficients, that floats can work with."""


@dataclass(frozen=True, eq=False)
class Cone:
    """The cone {v >= 0 : rows @ v <= 0, e·v = 0 for every e in equalities} in R^a.

    `rows` has shape (r, a). `equalities` hold exact integers; a cone with equalities has no inequalities, so
    its `rows` have shape (0, a). The all-ones vector lies in the cone, and strictly inside every inequality
    that is not empty: whatever the data, releasing nothing is allowed. ValueError when that is not so,
    SolverError (precision) when it is so by less than floats can tell.
    """

    rows: FloatArray
    equalities: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.shape[1] == 0 or not np.isfinite(self.rows).all():
            raise ValueError("the rows of a cone are a finite matrix with a column per value")
        if self.equalities and len(self.rows):
            raise ValueError("a cone has inequalities or equalities, not both")
        if any(len(equality) != self.dimension or sum(equality) != 0 for equality in self.equalities):
            raise ValueError("the all-ones vector does not meet an equality of the cone")
        self._check_centre()

    def _check_centre(self) -> None:
        """The all-ones vector meets each inequality, and by a margin that floats can resolve."""
        proper = self._proper()
        slack = -proper.sum(axis=1) / np.abs(proper).sum(axis=1)
        if (slack < -_SLACK).any():
            raise ValueError("the all-ones vector is not strictly inside the cone")
        if (slack < _SLACK).any():
            raise SolverError(
                "precision",
                "the bound is so close to zero that floating point cannot tell them apart",
                status="precision",
                advice="Use a larger epsilon, or the notion of perfect privacy.",
            )

    @property
    def dimension(self) -> int:
        """The number of coordinates a."""
        return int(self.rows.shape[1])

    def normalised(self) -> FloatArray:
        """The inequalities that are not empty, each scaled so that the all-ones vector takes the value -1.

        A vector that exceeds such a row by f is brought inside by adding f times the all-ones vector.
        """
        proper = self._proper()
        return np.asarray(proper / -proper.sum(axis=1, keepdims=True))

    def constraints(self, prior: FloatArray) -> FloatArray:
        """Inequalities, or equalities, as rows on w = prior·v, each scaled to largest coefficient 1; (m, a).

        Empty constraints are left out. These coordinates are the ones in which solvers stay accurate.
        """
        matrix = self._float_equalities() if self.equalities else self._proper()
        matrix = matrix / prior
        return np.asarray(matrix / np.abs(matrix).max(axis=1, keepdims=True)) if len(matrix) else matrix

    def violation(self, matrix: FloatArray) -> FloatArray:
        """How far each row of a (b, a) matrix is outside: the multiple of all-ones that repairs it; (b,).

        With equalities it is the largest residual, relative to that of the coefficients' absolute values.
        """
        if self.equalities:
            exact = self._float_equalities()
            excess = np.abs(matrix @ exact.T) / np.abs(exact).sum(axis=1)
        else:
            excess = matrix @ self.normalised().T
        return np.asarray(np.maximum(excess.max(axis=1, initial=0.0), (-matrix).max(axis=1)))

    def _proper(self) -> FloatArray:
        """Inequalities that constrain something."""
        return np.asarray(self.rows[(self.rows != 0).any(axis=1)])

    def _float_equalities(self) -> FloatArray:
        """Equalities that constrain something, scaled to largest coefficient 1."""
        proper = [equality for equality in self.equalities if any(equality)]
        scaled = [[number / max(map(abs, equality)) for number in equality] for equality in proper]
        return np.array(scaled, float).reshape(-1, self.dimension)


def intersection(cones: Sequence[Cone]) -> Cone:
    """The cone of vectors that lie in every one of several cones of the same kind."""
    rows = np.vstack([cone.rows for cone in cones])
    return Cone(rows, tuple(equality for cone in cones for equality in cone.equalities))
