"""The protocol of least expected cost whose rows lie in one cone of very many sides: a primal-dual interior method.

With c_y = p∘d(y, ·) and z_y = Q(y|·) it is min Σ_y c_y·z_y over z_y >= 0, F z_y <= 0, Σ_y z_y = 1 and, where totals
are kept, p·z_y = p_y. Rows meet in Σ_y z_y = 1 alone. So a step of Newton's method on the central path (Mehrotra's
predictor and corrector) takes one matrix of the size of X for each row, and one for all of them; there are no bases to
wander through, however many sides meet in a corner. The protocol that tells nothing, Q(y|x) = p_y, is strictly inside.

Sides join as rows violate them; prices bound the cost from below whatever is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.errors import SolverError
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Prices
from funnel.optimise.convex.cone import SeparationOracle
from funnel.optimise.transport import TransportPlan, with_room

_GAP, _COARSE, _FINER = 4e-6, 1e-2, 0.05
"""Expected cost by which the optimum may be off; by how much while sides still join, and how much finer each time."""
_ALL = 1000
"""Sides that join at once."""
_OUTSIDE = 1e-6
"""Share of a row's total by which it may be outside of sides that have not joined: that much noise brings it inside."""
_BEGIN, _JOIN = 8, 12
"""Sides that each value, and then each row, brings in."""
_STEPS = 150
_AGAIN = 2
_SHORT = 0.995
"""Share of the way to the border that a step may take."""
_BELOW = 5e-6
"""Cost that may be left unshown, so that few prices show the rest."""


class Interior:
    """min Σ p_x d(y, x) Q(y|x) over protocols whose rows keep F v <= 0 (m, a), each side -1 at all-ones: an oracle's.

    `cost` d (a, a) by [y, x] is not negative; `prior` (a,) is positive and sums to one. `kept`: Σ_x p_x Q(y|x) = p_y.
    """

    def __init__(
        self, cost: FloatArray, prior: FloatArray, oracle: SeparationOracle, sides: FloatArray, *, kept: bool
    ) -> None:
        self.cost, self.prior, self.sides, self.kept = cost * prior, prior, sides, kept
        self.distance, self.oracle = cost, oracle
        self._found: TransportPlan | None = None

    def solve(self, budget: Budget, room: float = 0.0) -> TransportPlan:
        """The optimum; with `room`, mixed with what tells nothing until every row keeps v·f <= -room |f|.

        Less is asked of a row with a small total. Raises SolverError.
        """
        if self._found is None:
            self._found = self._solved(budget)
        return with_room(self._found, self.oracle, self.distance, self.prior, room) if room else self._found

    def _solved(self, budget: Budget) -> TransportPlan:
        """Rounds of the method, each with more sides, until no row is outside of one by more than may be."""
        joined = self._first()
        gap = _GAP if len(joined) == len(self.sides) else _COARSE
        while True:
            path = _Path(self.cost, self.prior, self.sides[joined], kept=self.kept).followed(budget, gap)
            excess = path.z @ self.sides.T
            more = self._violated(excess, joined)
            if not len(more) and gap <= _GAP:
                return self._plan(path, joined)
            joined, gap = np.union1d(joined, more), max(_GAP, gap * _FINER)

    def _first(self) -> IntArray:
        """All sides where they are few, else those that ask most of single values."""
        if len(self.sides) <= _ALL:
            return np.arange(len(self.sides))
        return np.unique(np.argsort(-self.sides, axis=0, kind="stable")[:_BEGIN])

    def _violated(self, excess: FloatArray, joined: IntArray) -> IntArray:
        """Sides that rows exceed most (a, m), a few for each."""
        over = excess - _OUTSIDE * self.prior[:, None]
        over[:, joined] = -1.0
        worst = np.argsort(-over, axis=1, kind="stable")[:, :_JOIN]
        return np.unique(worst[np.take_along_axis(over, worst, axis=1) > 0])

    def _plan(self, path: _Point, joined: IntArray) -> TransportPlan:
        """The protocol and the prices that show what it costs at least."""
        totals = path.totals - np.median(path.totals) if self.kept else np.zeros(len(self.prior))
        used = self._telling(path.u, totals, self.sides[joined])
        owner, side = np.nonzero(used)
        prices = Prices(totals, owner, self.sides[joined[side]], used[owner, side])
        protocol, bound = path.z / path.z.sum(axis=0), self._shown(used, totals, self.sides[joined])
        return TransportPlan(protocol, max(float((self.cost * protocol).sum()), bound), bound, prices)

    def _telling(self, multipliers: FloatArray, totals: FloatArray, sides: FloatArray) -> FloatArray:
        """The largest prices (a, m) alone, as few as show nearly the same: of sides that do not bind they are small."""
        order = np.argsort(-multipliers * np.abs(sides).sum(axis=1), axis=None)
        enough = self._shown(multipliers, totals, sides) - _BELOW
        few, many = 0, order.size
        while many - few > 1 + many // 50:
            number = (few + many) // 2
            if self._shown(_only(multipliers, order[:number]), totals, sides) >= enough:
                many = number
            else:
                few = number
        return _only(multipliers, order[:many])

    def _shown(self, multipliers: FloatArray, totals: FloatArray, sides: FloatArray) -> float:
        """What prices show of the cost of any protocol: see `Prices`."""
        left = self.cost - totals[:, None] * self.prior + multipliers @ sides
        return float(left.min(axis=0).sum() + totals @ self.prior)


def _only(values: FloatArray, places: IntArray) -> FloatArray:
    """These values, and zero elsewhere."""
    found = np.zeros_like(values)
    found.ravel()[places] = values.ravel()[places]
    return found


@dataclass(frozen=True, eq=False)
class _Point:
    """Rows z (a, a), their slack s (a, m), prices u (a, m) of sides, reduced costs r (a, a), prices of sums and totals.

    r = c + u F - sums - totals p holds at every point, and so do the equations of z.
    """

    z: FloatArray
    s: FloatArray
    u: FloatArray
    r: FloatArray
    sums: FloatArray
    totals: FloatArray

    @property
    def gap(self) -> float:
        """Σ z r + Σ s u: by how much the costs of both sides differ."""
        return float((self.z * self.r).sum() + (self.s * self.u).sum())

    def moved(self, step: _Point, primal: float, dual: float) -> _Point:
        """So far along a step."""
        return _Point(
            self.z + primal * step.z,
            self.s + primal * step.s,
            self.u + dual * step.u,
            self.r + dual * step.r,
            self.sums + dual * step.sums,
            self.totals + dual * step.totals,
        )

    def reach(self, step: _Point) -> tuple[float, float]:
        """How far z and s, and how far u and r, stay positive along a step; at most 1."""
        primal = min(_reach(self.z, step.z), _reach(self.s, step.s))
        return primal, min(_reach(self.u, step.u), _reach(self.r, step.r))


def _reach(value: FloatArray, step: FloatArray) -> float:
    falls = step < 0
    return float((value[falls] / -step[falls]).min(initial=1.0))


@dataclass(frozen=True, eq=False)
class _Path:
    """The central path of one program."""

    cost: FloatArray
    prior: FloatArray
    sides: FloatArray
    kept: bool

    def followed(self, budget: Budget, gap: float) -> _Point:
        """The point where both sides agree, or nearly. Raises SolverError when the budget is spent."""
        point = self._start()
        for _ in range(_STEPS):
            if point.gap <= gap:
                break
            if budget.seconds <= 0:
                raise _no_time()
            system = _System.of(self, point)
            if system is None:
                break  # what is left of the gap is lost in rounding
            point = system.step()
        return point

    def _start(self) -> _Point:
        """Nothing is told, and every cost is raised until all reduced costs are positive."""
        a, m = len(self.prior), len(self.sides)
        rows = np.repeat(self.prior[:, None], a, axis=1)
        prices = np.full((a, m), float(self.cost.max()) * a / max(m, 1))
        reduced = self.cost + prices @ self.sides
        raised = max(0.0, -float(reduced.min())) + 0.5 * float(self.cost.max())
        return _Point(rows, -(rows @ self.sides.T), prices, reduced + raised, np.full(a, -raised), np.zeros(a))


@dataclass(frozen=True, eq=False)
class _System:
    """Newton's equations at a point: the inverses (a, a, a) of the rows' matrices, and the factor of what ties them."""

    path: _Path
    point: _Point
    inverses: FloatArray
    tied: tuple[FloatArray, bool]

    @classmethod
    def of(cls, path: _Path, point: _Point) -> _System | None:
        """Set up; None where floats cannot tell the matrices from singular ones."""
        from scipy.linalg import LinAlgError, cho_factor

        weight, p = np.sqrt(point.u / point.s), path.prior
        inverses = np.empty((len(p),) * 3)
        for y, row in enumerate(weight):
            if not _invert(path.sides * row[:, None], point.r[y] / point.z[y], inverses[y]):
                return None
        whole = inverses.sum(axis=0)
        if path.kept:
            told = inverses @ p
            whole -= (told / np.sqrt(told @ p)[:, None]).T @ (told / np.sqrt(told @ p)[:, None])
            whole += np.outer(p, p) * (np.trace(whole) / len(p) / (p @ p))
        try:
            return cls(path, point, inverses, cho_factor(whole))
        except LinAlgError:
            return None

    def step(self) -> _Point:
        """Mehrotra's: as far as one can see, and from there back to the middle."""
        at = self.point
        seen = self._towards(-at.z * at.r, -at.s * at.u)
        far = at.moved(seen, *at.reach(seen)).gap
        aim = (far / at.gap) ** 3 * at.gap / (at.z.size + at.s.size)
        step = self._towards(aim - at.z * at.r - seen.z * seen.r, aim - at.s * at.u - seen.s * seen.u)
        primal, dual = at.reach(step)
        return at.moved(step, _SHORT * primal, _SHORT * dual)

    def _towards(self, rows: FloatArray, sides: FloatArray) -> _Point:
        """The step that changes z r by `rows` (a, a), and s u by `sides` (a, m), to first order.

        What rounding left of that is asked for again: towards the end the matrices are close to singular.
        """
        step = self._once(rows, sides)
        for _ in range(_AGAIN):
            left = rows - self.point.z * step.r - self.point.r * step.z
            step = step.moved(self._once(left, np.zeros_like(sides)), 1.0, 1.0)
        return step

    def _once(self, rows: FloatArray, sides: FloatArray) -> _Point:
        """The same as the inverses have it."""
        from scipy.linalg import cho_solve

        at, p, f = self.point, self.path.prior, self.path.sides
        moved = np.asarray(np.matmul(self.inverses, (rows / at.z - (sides / at.s) @ f)[:, :, None])[:, :, 0])
        told = self.inverses @ p
        scale = (told @ p) if self.path.kept else np.full(len(p), np.inf)
        sums = cho_solve(self.tied, -(moved - told * ((moved @ p) / scale)[:, None]).sum(axis=0))
        moved += self.inverses @ sums
        totals = -(moved @ p) / scale
        moved += told * totals[:, None]
        slack = -(moved @ f.T)
        prices = (sides - at.u * slack) / at.s
        return _Point(moved, slack, prices, prices @ f - sums - totals[:, None] * p, sums, totals)


def _invert(weighted: FloatArray, diagonal: FloatArray, into: FloatArray) -> bool:
    """The inverse of diag + W^T W, W (m, a); whether there is one."""
    from scipy.linalg.blas import dsyrk
    from scipy.linalg.lapack import dpotrf, dpotri

    matrix = dsyrk(1.0, weighted.T, lower=1)
    matrix[np.diag_indices(len(matrix))] += diagonal
    factor, failed = dpotrf(matrix, lower=1, overwrite_a=1)
    if failed:
        return False
    half, failed = dpotri(factor, lower=1, overwrite_c=1)
    np.copyto(into, np.tril(half))
    into += np.tril(half, -1).T
    return not failed


def _no_time() -> SolverError:
    return SolverError(
        "solver-time",
        "the program of a protocol that keeps totals was not solved in the time allowed",
        status="time",
        advice="Raise mechanism.time_limit, say that others know fewer columns, or shrink the public alphabet.",
    )
