"""The cone of rows whose averages over groups stay close, by sorting instead of linear programs."""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Cone
from funnel.optimise.groups.levels import Groups
from funnel.optimise.worst_case import Sets


class GroupCone(Cone):
    """The same cone as `box_cone(sets, ratio)`: R·v <= ratio · R'·v for all R in D_s, R' in D_s', s ≠ s'.

    Its worst inequalities are found by sorting each group of a row, so that no auxiliary variables are written out.
    """

    def __init__(self, sets: Sets, ratio: float) -> None:
        object.__setattr__(self, "groups", Groups.of(sets, np.ones(sets.dimension)))
        object.__setattr__(self, "ratio", ratio)
        super().__init__(np.zeros((0, sets.dimension)), lift=np.zeros((0, 1)))

    groups: Groups
    ratio: float

    def _check_centre(self) -> None:
        """All-ones has every average 1 < ratio."""
        if self.ratio <= 1:
            raise ValueError("the all-ones vector is not strictly inside the cone")

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

    def violation(self, matrix: FloatArray) -> FloatArray:
        """How far each row of a (b, a) matrix is outside, in units of the all-ones vector; (b,)."""
        excess = (self.facets(matrix) * matrix).sum(axis=1)
        return np.asarray(np.maximum(np.maximum(excess, 0.0), (-matrix).max(axis=1)))
