"""Integer rows inside a cone of inequalities, near a real protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.linear.highs import Program
from funnel.optimise.utility import information_slope

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MOST_CHOICES = 5_000
"""Entries up to which the integer program is tried."""
_RANGE = 2**17
"""How many units the deepest point may be away; one unit on a rare value can be worth many on a frequent one."""
_DEEP = 0.1
"""Radius in units of the largest ball inside below which hardly any integers are found."""
_AROUND = 4
"""How many units integers may be away from the deepest point: near it they are found at once, or hardly at all."""
_REACH = 64
"""Inequalities further away than this many units enter the integer program only when violated."""
_NODES = 20
"""Nodes the integer program may branch on: a limit on work, so that results do not depend on the machine."""
_FEASIBLE = 1e-6
"""Feasibility asked of the integer program; its points are rounded, and the cone has the last word."""
_ROUNDS = 8
"""Times that inequalities are added to the integer program, or mass to the rows that need it."""
_RELATIVE = 1e-14
"""Error of a floating-point product of weights and an inequality, as a share of the weights."""


@dataclass(frozen=True, eq=False)
class Near:
    """What to be near to: a protocol (b, a), the prior (a,), the cone's normalised inequalities (r, a)."""

    protocol: FloatArray
    prior: FloatArray
    inequalities: FloatArray


def round_by_choice(near: Near, bits: int, margin: float, *, loss: float) -> IntArray | None:
    """Integer weights (b, a) with the protocol's zeros, chosen by an integer program, or None.

    Columns sum to 2^bits, rows stay `margin` units inside, and slope·w keeps the share 1 - loss of the
    utility, which by convexity the utility itself can only exceed. Large protocols are not tried.
    """
    if np.count_nonzero(near.protocol) > _MOST_CHOICES:
        return None
    program = _IntegerProgram(near, bits, margin, loss)
    for _ in range(_ROUNDS):
        weights = program.solve()
        if weights is None or not program.add_violated(weights):
            return weights
    return None


def _column_sums(columns: IntArray) -> csr_array:
    """The matrix that adds up the entries of each column."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(columns)), (columns, np.arange(len(columns)))))


def _on_entries(near: Near, entries: tuple[IntArray, ...], active: npt.NDArray[np.bool_]) -> csr_array:
    """The active (b, r) inequalities of each row, as a matrix on the protocol's non-zero entries."""
    from scipy.sparse import csr_array

    row, inequality = np.nonzero(active)
    which, entry = np.nonzero(row[:, None] == entries[0])
    weight = near.inequalities[inequality[which], entries[1][entry]]
    return csr_array((weight, (which, entry)), shape=(len(row), len(entries[0])))


def _beside(matrix: csr_array, column: FloatArray) -> csr_array:
    """The matrix and one more column."""
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack([matrix, csr_array(column[:, None])]))


def _stacked(matrices: list[csr_array]) -> csr_array:
    """Matrices one below the other."""
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(matrices))


@dataclass(frozen=True, eq=False)
class _Polytope:
    """low <= matrix @ x <= high with x >= least, in units of weight."""

    matrix: csr_array
    low: FloatArray
    high: FloatArray
    least: FloatArray

    def integers(self, facets: int) -> FloatArray | None:
        """Integers inside (n,) near the point that is deepest below the last `facets` rows; None: none were found."""
        centre = self._deepest(facets)
        if centre is None:
            return None
        lower = np.maximum(np.floor(centre) - _AROUND, self.least)
        upper = np.ceil(centre) + _AROUND
        program = Program(
            self.matrix, self.low, self.high, lower, upper, tolerance=_FEASIBLE, presolve=True, nodes=_NODES
        )
        answer = program.solve()
        return answer.point if answer.optimal else None

    def _deepest(self, facets: int) -> FloatArray | None:
        """The centre of the largest ball inside (n,), as far as these rows bound it; None where that is too small."""
        length = np.sqrt(np.asarray((self.matrix * self.matrix).sum(axis=1)).ravel())
        length[: len(length) - facets] = 0.0
        lower, upper = np.append(self.least, -np.inf), np.full(len(self.least) + 1, float(_RANGE))
        matrix = _beside(self.matrix, length)
        program = Program(matrix, self.low, self.high, lower, upper, method="dual", presolve=True)
        program.costs(np.append(np.zeros(len(self.least)), 1.0))
        answer = program.solve()
        return answer.point[:-1] if answer.optimal and answer.optimum >= _DEEP else None


class _IntegerProgram:
    """Integer steps from the rounded-down protocol; inequalities enter when a solution violates them."""

    def __init__(self, near: Near, bits: int, margin: float, loss: float) -> None:
        scaled = near.protocol * 2.0**bits
        self.near = near
        self.margin = max(margin, 2.0**bits * _RELATIVE)
        self.base = np.floor(scaled).astype(np.int64)
        self.entries = np.nonzero(near.protocol)
        self.active = scaled @ near.inequalities.T > -_REACH * np.abs(near.inequalities).max(axis=1)
        self.missing = ((1 << bits) - self.base.sum(axis=0)).astype(float)
        slope = information_slope(near.protocol, near.prior)
        # The linear lower bound of the utility keeps a share of it.
        needed = (1 - loss) * 2.0**bits * (slope * near.protocol).sum() - (slope * self.base).sum()
        self.slope, self.needed = slope[self.entries], float(needed)

    def solve(self) -> IntArray | None:
        """Any integer point, as weights; None when there is none, or none was found in the nodes allowed."""
        from scipy.sparse import csr_array

        start = self.base[self.entries]
        inside = _on_entries(self.near, self.entries, self.active)
        room = -self.margin - (self.base @ self.near.inequalities.T)[self.active]
        polytope = _Polytope(
            _stacked([_column_sums(self.entries[1]), csr_array(self.slope[None, :]), inside]),
            np.concatenate([self.missing, [self.needed], np.full(len(room), -np.inf)]),
            np.concatenate([self.missing, [np.inf], room]),
            np.maximum(-start, -_RANGE).astype(float),
        )
        steps = polytope.integers(len(room))
        if steps is None:
            return None
        weights = self.base.copy()
        weights[self.entries] += np.round(steps).astype(np.int64)
        return weights

    def add_violated(self, weights: IntArray) -> bool:
        """Let inequalities that these weights violate take part from now on; whether there are any."""
        violated = weights @ self.near.inequalities.T > -self.margin / 2
        self.active |= violated
        return bool(violated.any())


def round_by_mixing(near: Near, bits: int, margin: float) -> IntArray | None:
    """Integer weights (b, a) by largest remainders, with uninformative mass for rows outside, or None.

    Always succeeds with enough bits: each row needs a few units of the all-ones vector, whatever 2^bits is.
    Whole units leave the remainders as they are; ever more rows get some, as rounding anew pushes out others.
    """
    from scipy.sparse import csr_array

    total = 1 << bits
    margin = max(margin, total * _RELATIVE)
    row, column = np.nonzero(near.protocol)
    share, level = near.protocol[row, column], near.inequalities.sum(axis=1)
    mass = np.zeros(len(near.protocol), np.int64)
    for attempt in range(_ROUNDS):
        rest = total - int(mass.sum())
        if rest <= 0:
            break
        units = largest_remainders(share, column, rest)
        shape = csr_array((units.astype(float), (row, column)), shape=near.protocol.shape)
        need = (shape @ near.inequalities.T + mass[:, None] * level + margin).max(axis=1, initial=-1.0)
        if (need <= 0).all():
            weights = np.repeat(mass[:, None], near.protocol.shape[1], axis=1)
            weights[row, column] += units
            return weights
        more = np.ceil(np.maximum(need + need.max() * 2**attempt, 0.0))
        if more.sum() >= total:
            break
        mass += more.astype(np.int64)
    return None


def largest_remainders(share: FloatArray, column: IntArray, total: int) -> IntArray:
    """Integers in the shares' proportion that sum to `total` in each column: down, then up where most was cut off."""
    scaled = total * share
    units = np.floor(scaled).astype(np.int64)
    order = np.lexsort((units - scaled, column))
    place = np.arange(len(order)) - np.searchsorted(column[order], column[order])
    units[order] += place < _missing(units, column, total)[column[order]]
    largest = np.lexsort((-share, column))[np.unique(np.sort(column), return_index=True)[1]]
    units[largest] += _missing(units, column, total)
    return units


def nearest_weights(protocol: FloatArray, bits: int) -> IntArray:
    """The nearest integers (b, a) whose columns sum to 2^bits; what is zero stays zero."""
    row, column = np.nonzero(protocol)
    weights = np.zeros(protocol.shape, np.int64)
    weights[row, column] = largest_remainders(protocol[row, column], column, 1 << bits)
    return weights


def _missing(units: IntArray, column: IntArray, total: int) -> IntArray:
    """What each column lacks of a total; columns are 0, 1, …, and none is empty."""
    missing = np.full(int(column.max()) + 1, total)
    np.subtract.at(missing, column, units)
    return missing
