"""The protocol of least expected cost that keeps totals, and limits against everybody for all masses between ends.

Where totals are kept P(y) = p_y whatever the protocol, so that a limit Σ m v <= ratio·p_y Σ m for all masses between l
and h has one bend in each entry: Σ l (v - t) + Σ (h - l) max(v - t, 0) <= 0 at t = ratio·p_y, and its mirror where a
side must not fall below. An entry in pieces, one up to each bend, makes of that a linear program: to fill a piece
before those below it are full never helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Prices
from funnel.optimise.linear.highs import Program
from funnel.optimise.masses import Worst
from funnel.optimise.transport import TransportPlan, with_room

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Bends:
    """Limits (m,) of masses `least` <= m <= `most` (m, a): averages of at most, or at least, `at` times the total."""

    least: FloatArray
    most: FloatArray
    at: FloatArray
    above: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def bends(worst: Worst) -> Bends | None:
    """The limits, where each is between some side and everybody, whose masses are known; None for others."""
    if len(worst.least) != 1 or not (worst.least[0, -1] == worst.most[0, -1]).all():
        return None
    everybody = worst.least.shape[1] - 1
    rises = [one for one in worst.limits if (one.low == everybody).all()]
    falls = [one for one in worst.limits if (one.high == everybody).all()]
    if len(rises) + len(falls) != len(worst.limits):
        return None
    sides = np.concatenate([*(one.high for one in rises), *(one.low for one in falls)])
    at = [np.full(len(one.high), one.ratio) for one in rises] + [np.full(len(one.low), 1 / one.ratio) for one in falls]
    above = np.arange(len(sides)) >= sum(len(one.high) for one in rises)
    return Bends(worst.least[0, sides], worst.most[0, sides], np.concatenate(at), above)


class Bent:
    """min Σ p_x d(y, x) Q(y|x) over protocols with Σ_x p_x Q(y|x) = p_y whose rows keep the limits.

    `cost` d (a, a) by [y, x] is not negative; `prior` (a,) is positive and sums to one. `worst` tells by how much rows
    miss limits.
    """

    def __init__(self, cost: FloatArray, prior: FloatArray, limits: Bends, worst: Worst) -> None:
        self.cost, self.prior, self.limits, self.worst = cost, prior, limits, worst
        self._found: TransportPlan | None = None

    def solve(self, budget: Budget, room: float = 0.0) -> TransportPlan:
        """The optimum; with `room`, mixed with what tells nothing until every row keeps v·f <= -room |f|.

        Raises SolverError.
        """
        if self._found is None:
            self._found = self._solved(budget)
        return with_room(self._found, self.worst, self.cost, self.prior, room) if room else self._found

    def _solved(self, budget: Budget) -> TransportPlan:
        """In units of z = Q(y|x) / p_y, so that every row has the same bends."""
        a, p = len(self.prior), self.prior
        at = np.unique(self.limits.at)
        widths = np.append(np.diff(at, prepend=0.0), np.inf)
        matrix, high = self._posed(at)
        low = np.where(np.arange(len(high)) < 2 * a, high, -np.inf)
        upper = np.repeat(widths, a * a)
        program = Program(matrix, low, high, np.zeros(len(upper)), upper, method="dual", presolve=True)
        each = (self.cost * p * p[:, None]).ravel() * a
        program.costs(-np.tile(each, len(widths)))
        point, _, optimum = program.solve(budget.seconds).require("the program of a protocol that keeps totals")
        chances = point.reshape(len(widths), a, a).sum(axis=0) * p[:, None]
        chances /= chances.sum(axis=0)
        nothing = Prices(np.zeros(a), np.zeros(0, np.int64), np.zeros((0, a)), np.zeros(0))
        return TransportPlan(chances, float((self.cost * chances).sum(axis=0) @ p), -optimum / a, nothing)

    def _posed(self, at: FloatArray) -> tuple[csr_array, FloatArray]:
        """Sums, totals, and the limits of every row, over pieces that end `at` the bends; and what they come to."""
        from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

        a, p, one = len(self.prior), self.prior, self.limits
        each, pieces = eye_array(a), len(at) + 1
        rows = [hstack([kron(p[None], each)] * pieces), hstack([kron(each, p[None])] * pieces)]
        high = [np.ones(2 * a)]
        for low, most, bend, above in zip(one.least, one.most, one.at, one.above, strict=True):
            ends = (-most, -low) if above else (low, most)
            size = most.sum()
            below = np.append(at <= bend, False)
            rows.append(hstack([kron(each, ends[0 if first else 1][None] / size) for first in below]))
            high.append(np.full(a, bend * ends[0].sum() / size))
        return csr_array(vstack(rows)), np.concatenate(high)
