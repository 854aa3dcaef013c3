"""The cone of rows whose averages over groups stay close, by sorting instead of linear programs."""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.groups.levels import Groups
from funnel.optimise.worst_case import UncertaintySets


class GroupCone:
    """What rounding has to know of `box_cone(sets, ratio)`: R·v <= ratio · R'·v for all R in D_s, R' in D_s', s ≠ s'.

    Its worst inequalities are found by sorting each group of a row, so that no auxiliary variables are written out.
    ValueError where the ratio is not above one, so that all-ones is not inside.
    """

    equalities: tuple[tuple[int, ...], ...] = ()
    complete = False

    def __init__(self, sets: UncertaintySets, ratio: float) -> None:
        if ratio <= 1:
            raise ValueError("the all-ones vector is not strictly inside the cone")
        self.groups, self.ratio, self.dimension = (
            Groups.of(sets, np.ones(sets.dimension)),
            ratio,
            sets.dimension,
        )

    def facets(self, matrix: FloatArray) -> FloatArray:
        """The inequality that each row of a (b, a) matrix exceeds most, or misses least, -1 at all-ones."""
        most, least = self.groups.extremes(matrix)
        parts = self.groups.split(matrix)
        top, bottom = (most * parts).sum(axis=-1), (least * parts).sum(axis=-1)
        excess = top[:, :, None] - self.ratio * bottom[:, None, :]
        count = self.groups.count
        excess[:, np.arange(count), np.arange(count)] = -np.inf
        worst = excess.reshape(len(matrix), -1).argmax(axis=1)
        rows, (s, other) = np.arange(len(matrix)), np.unravel_index(worst, (count, count))
        chosen = np.zeros(most.shape)
        chosen[rows, s] = most[rows, s]
        chosen[rows, other] -= self.ratio * least[rows, other]
        return self.groups.joined(chosen) / (self.ratio - 1)
