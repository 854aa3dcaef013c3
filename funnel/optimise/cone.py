"""Polyhedral cones of rows: which vectors may be a row of a protocol.

Whether a row lies in the projection of a cone with auxiliary variables, linear programs say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from funnel.data.joint import FloatArray
from funnel.errors import SolverError
from funnel.optimise.linear.highs import Answer, Program

_SLACK = 1e-12
"""Least slack of the all-ones vector, as a share of a row's coefficients, that floats can work with."""
_MARGIN = 1e-9
"""Least slack of the all-ones vector, relative to a row's coefficients, that linear programs can work with."""
_NONE = 1e-9
"""A combination of rows that takes less than this at the all-ones vector, relative, is no inequality."""


class RoundingCone(Protocol):
    """What rounding has to know of a cone: see `Cone`."""

    @property
    def dimension(self) -> int:
        """The number of coordinates a."""

    @property
    def equalities(self) -> tuple[tuple[int, ...], ...]:
        """Exact integers e with e·v = 0."""

    @property
    def complete(self) -> bool:
        """Whether `facets` tells all inequalities there are."""

    def facets(self, matrix: FloatArray) -> FloatArray:
        """Inequalities that the rows of a (b, a) matrix exceed most, -1 at all-ones."""


@dataclass(frozen=True, eq=False)
class Cone:
    """The cone {v >= 0 : rows @ v <= 0, e·v = 0 for every e in equalities} in R^a, or a lifted one.

    `rows` has shape (r, a). `equalities` hold exact integers; a cone with equalities has no inequalities, so
    its `rows` have shape (0, a). A lifted cone has auxiliary variables z, free in sign, and is their projection
    {v >= 0 : rows @ v + lift @ z <= 0 for some z}, with `lift` of shape (r, k); a `lift` without columns is
    none.
    The all-ones vector lies in the cone, and strictly inside every inequality that is not empty:
    whatever the data, releasing nothing is allowed. ValueError when that is not so, SolverError (precision)
    when it is so by less than floats can tell.
    """

    rows: FloatArray
    equalities: tuple[tuple[int, ...], ...] = ()
    lift: FloatArray | None = None

    @classmethod
    def of_odds(cls, given: FloatArray, ratio: float) -> Cone:
        """The cone {v >= 0 : given[s]·v <= ratio · given[t]·v for all s ≠ t}; c(c-1) rows for `given` (c, a)."""
        pairs = given[:, None, :] - ratio * given[None, :, :]
        return cls(pairs[~np.eye(len(given), dtype=bool)])

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.shape[1] == 0 or not np.isfinite(self.rows).all():
            raise ValueError("the rows of a cone are a finite matrix with a column per value")
        if self.equalities and len(self.rows):
            raise ValueError("a cone has inequalities or equalities, not both")
        if self.lift is not None and (
            self.lift.ndim != 2 or len(self.lift) != len(self.rows) or not np.isfinite(self.lift).all()
        ):
            raise ValueError("the lift of a cone is a finite matrix with a row per inequality")
        if self.lift is not None and not self.lift.shape[1]:
            object.__setattr__(self, "lift", None)
        if any(len(equality) != self.dimension or sum(equality) != 0 for equality in self.equalities):
            raise ValueError("the all-ones vector does not meet an equality of the cone")
        self._check_centre()

    def _check_centre(self) -> None:
        """The all-ones vector meets each inequality, and by a margin that floats can resolve."""
        if self.lift is not None:
            self._projection.check_centre()
            return
        proper = self._proper()
        slack = -proper.sum(axis=1) / np.abs(proper).sum(axis=1)
        if (slack < -_SLACK).any():
            raise ValueError("the all-ones vector is not strictly inside the cone")
        if (slack < _SLACK).any():
            raise too_close()

    @property
    def dimension(self) -> int:
        """The number of coordinates a."""
        return int(self.rows.shape[1])

    @property
    def complete(self) -> bool:
        """Whether `facets` tells all inequalities there are."""
        return self.lift is None

    def normalised(self) -> FloatArray:
        """The inequalities that are not empty, each scaled so that the all-ones vector takes the value -1.

        A vector that exceeds such a row by f is brought inside by adding f times the all-ones vector. Of a
        lifted cone these are some of its inequalities only: those that the unit vectors exceed the most.
        """
        return self.facets(np.eye(self.dimension))

    def facets(self, matrix: FloatArray) -> FloatArray:
        """Inequalities scaled as `normalised` does that the rows of a (b, a) matrix exceed most, or nearly.

        All there are, for a cone that is not lifted; else one at most per row, and perhaps none.
        """
        if self.lift is not None:
            return self._projection.facets(matrix)
        proper = self._proper()
        return np.asarray(proper / -proper.sum(axis=1, keepdims=True))

    def constraints(self, prior: FloatArray) -> FloatArray:
        """Inequalities, or equalities, as rows on w = prior·v, each scaled to largest coefficient 1; (m, a).

        Empty constraints are left out. These coordinates are the ones in which solvers stay accurate.
        ValueError for a lifted cone.
        """
        if self.lift is not None:
            raise ValueError("a lifted cone has more variables than the row")
        matrix = self._float_equalities() if self.equalities else self._proper()
        matrix = matrix / prior
        return np.asarray(matrix / np.abs(matrix).max(axis=1, keepdims=True)) if len(matrix) else matrix

    def violation(self, matrix: FloatArray) -> FloatArray:
        """How far each row of a (b, a) matrix is outside: the multiple of all-ones that repairs it; (b,).

        With equalities it is the largest residual, relative to that of the coefficients' absolute values.
        For a lifted cone it is found by a linear program per row.
        """
        if self.lift is not None:
            return self._projection.violation(matrix)
        if self.equalities:
            exact = self._float_equalities()
            excess = np.abs(matrix @ exact.T) / np.abs(exact).sum(axis=1)
        else:
            excess = matrix @ self.normalised().T
        return np.asarray(np.maximum(excess.max(axis=1, initial=0.0), (-matrix).max(axis=1)))

    def on_mass(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Constraints A w + B z <= 0 on w = prior·v and the auxiliaries; (m, a) and (m, k), k = 0 for none.

        Rows are scaled to largest coefficient 1, auxiliaries to the size of w. Empty ones are left out. Where
        the cone has equalities, all constraints are equations.
        """
        if self.lift is None:
            plain = self.constraints(prior)
            return plain, np.zeros((len(plain), 0))
        both = np.hstack([self.rows / prior, self.lift / prior.mean()])
        both = both[(both != 0).any(axis=1)]
        both /= np.abs(both).max(axis=1, keepdims=True)
        return both[:, : self.dimension], both[:, self.dimension :]

    @cached_property
    def _projection(self) -> Projection:
        """Membership in a lifted cone."""
        return Projection(self.rows, np.zeros((len(self.rows), 0)) if self.lift is None else self.lift)

    def _proper(self) -> FloatArray:
        """Inequalities that constrain something."""
        return np.asarray(self.rows[(self.rows != 0).any(axis=1)])

    def _float_equalities(self) -> FloatArray:
        """Equalities that constrain something, scaled to largest coefficient 1."""
        proper = [equality for equality in self.equalities if any(equality)]
        scaled = [[number / max(map(abs, equality)) for number in equality] for equality in proper]
        return np.array(scaled, float).reshape(-1, self.dimension)


def intersection(cones: Sequence[Cone]) -> Cone:
    """The cone of vectors that lie in every one of several cones of the same kind; auxiliaries side by side."""
    rows = np.vstack([cone.rows for cone in cones])
    equalities = tuple(equality for cone in cones for equality in cone.equalities)
    if all(cone.lift is None for cone in cones):
        return Cone(rows, equalities)
    from scipy.linalg import block_diag

    lifts = [np.zeros((len(cone.rows), 0)) if cone.lift is None else cone.lift for cone in cones]
    return Cone(rows, equalities, np.asarray(block_diag(*lifts)))


class Projection:
    """{v : rows @ v + lift @ z <= 0 for some z}, rows (r, a) and lift (r, k)."""

    def __init__(self, rows: FloatArray, lift: FloatArray) -> None:
        size = np.abs(np.hstack([rows, lift])).max(axis=1, initial=0.0)
        kept = size > 0
        self._rows, self._lift = rows[kept] / size[kept, None], lift[kept] / size[kept, None]

    def check_centre(self) -> None:
        """Some z makes every row strict at all-ones: ValueError if none does, SolverError if none by enough."""
        count, auxiliaries = self._lift.shape
        program = self._program(self._lift, np.ones((count, 1)), upper=1.0)
        program.highs(-self._rows.sum(axis=1))
        program.costs(np.append(np.zeros(auxiliaries), 1.0))
        answer = program.solve()
        if not answer.optimal or answer.optimum < -_MARGIN:
            raise ValueError("the all-ones vector is not strictly inside the cone")
        if answer.optimum < _MARGIN:
            raise too_close()

    def violation(self, matrix: FloatArray) -> FloatArray:
        """The least t >= 0 per row v of a (b, a) matrix such that v + t·1 is inside and not negative; (b,)."""
        excess = [-answer.optimum * size for answer, size in self._nearest(matrix)]
        return np.asarray(np.maximum(np.maximum(excess, 0.0), (-matrix).max(axis=1)))

    def facets(self, matrix: FloatArray) -> FloatArray:
        """Per row of a (b, a) matrix, the inequality that it exceeds most or misses least, -1 at all-ones."""
        multipliers = np.array([answer.multipliers for answer, _ in self._nearest(matrix)])
        combined = np.maximum(multipliers.reshape(-1, len(self._rows)), 0.0) @ self._rows
        total, size = combined.sum(axis=1), np.abs(combined).sum(axis=1)
        kept = total < -_NONE * size
        return np.asarray(combined[kept] / -total[kept, None])

    def _nearest(self, matrix: FloatArray) -> list[tuple[Answer, float]]:
        """max -t such that v/size + t·1 is inside, for each row v, and its size."""
        auxiliaries = self._lift.shape[1]
        program = self._program(self._lift, self._rows.sum(axis=1, keepdims=True), upper=np.inf)
        program.costs(np.append(np.zeros(auxiliaries), -1.0))
        answers = []
        for row in matrix:
            size = float(np.abs(row).max()) or 1.0
            program.highs(-self._rows @ (row / size))
            answer = program.solve()
            answer.require("the test whether a row lies in its cone")
            answers.append((answer, size))
        return answers

    def _program(self, lift: FloatArray, last: FloatArray, upper: float) -> Program:
        """lift @ z + last·t <= high, z free, -1 <= t <= upper."""
        free = np.full(lift.shape[1], np.inf)
        return Program(
            np.hstack([lift, last]),
            np.full(len(lift), -np.inf),
            np.zeros(len(lift)),
            np.append(-free, -1.0),
            np.append(free, upper),
        )


def too_close() -> SolverError:
    """The error of a cone that is as good as flat."""
    return SolverError(
        "precision",
        "the bound is so close to zero that floating point cannot tell them apart",
        status="precision",
        advice="Use a larger epsilon, or the notion of perfect privacy.",
    )
