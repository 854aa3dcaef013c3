"""The protocol of least expected cost whose rows lie in a cone and whose totals are given: one linear program.

With p the distribution of X and w[y, x] = p_x Q(y|x), the mass that goes from x to y, it is a transport problem with
sides: Σ_y w = p_x, Σ_x w = p_y where totals are kept, every row of Q in the cone. The cone's inequalities come when a
row violates them, so there may be very many of them, or no end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Prices
from funnel.optimise.cone import Cone
from funnel.optimise.convex.cone import SeparationOracle
from funnel.optimise.linear.highs import Answer, Program

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_DEEPEST = 4
"""Inequalities that one row of the protocol brings in at a time."""
_MET = 1e-8
"""By how much a row may miss an inequality, in the units of the program, where it is said to meet it."""
FINE = 1e-6
"""The same as a chance, for cones that no list of inequalities ends."""
_GIVEN = 0.25
"""Share of the room asked for that a row may go without."""
_NOTHING = 1e-12
"""Chances below this are rounding errors of the solver."""
_FULL = 0.25
"""Share of a total that may be asked of its row as room."""


@dataclass(frozen=True, eq=False)
class TransportPlan:
    """A protocol Q[y, x] (a, a), its expected cost Σ p_x d(y, x) Q[y, x], and why nothing costs less than `bound`."""

    protocol: FloatArray
    cost: float
    bound: float
    prices: Prices


class Facets:
    """A polyhedral cone, asked as those are that have no list of inequalities."""

    def __init__(self, cone: Cone) -> None:
        self._cone, self._all = cone, cone.normalised() if cone.complete else None

    @property
    def listed(self) -> FloatArray | None:
        """All of them (m, a), each -1 at all-ones; None where the cone does not list them."""
        return self._cone.normalised() if self._cone.complete else None

    def worst(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much rows (k, a) exceed the cone's facets (k, q); and these, the same for each row (k, q, a)."""
        known = self._cone.facets(rows) if self._all is None else self._all
        return rows @ known.T, np.broadcast_to(known, (len(rows), *known.shape))


@dataclass(frozen=True, eq=False)
class _Sides:
    """Inequalities that take part: of which row of the protocol (k,), and on it (k, a), each -1 at all-ones."""

    owner: IntArray
    facets: FloatArray

    def with_more(self, more: _Sides) -> _Sides:
        """Both together."""
        return _Sides(np.concatenate([self.owner, more.owner]), np.concatenate([self.facets, more.facets]))


def with_room(
    plan: TransportPlan, oracle: SeparationOracle, cost: FloatArray, prior: FloatArray, room: float
) -> TransportPlan:
    """The plan mixed with the constant rows of its own totals, by one share, until every row keeps its distance."""
    mass = plan.protocol @ prior
    used = np.flatnonzero(mass > 0)
    excess, known = oracle.worst(plan.protocol[used])
    lengths = np.sqrt(np.einsum("kqa,kqa->kq", known, known))
    wanted = np.minimum(room * lengths, _FULL * mass[used, None])
    over = np.maximum(excess + wanted, 0.0)
    share = float((over / (over - wanted + mass[used, None])).max(initial=0.0))
    mixed = (1 - share) * plan.protocol + share * mass[:, None]
    return replace(plan, protocol=mixed, cost=float((cost * mixed).sum(axis=0) @ prior))


class Transport:
    """min Σ p_x d(y, x) Q(y|x) over protocols whose rows keep an oracle's inequalities and the `equal` ones (e, a).

    `cost` d (a, a) by [y, x] is not negative, and zero on the diagonal; `prior` (a,) is positive and sums to one. With
    `kept`, Σ_x p_x Q(y|x) = p_y. `fine` is the chance by which a row may miss an inequality. The program stays warm:
    asked again with more room, it goes on from where it ended.
    """

    def __init__(
        self,
        cost: FloatArray,
        prior: FloatArray,
        oracle: SeparationOracle,
        *,
        kept: bool,
        equal: FloatArray | None = None,
        fine: float = 0.0,
    ) -> None:
        self.cost, self.prior, self.oracle, self.kept, self.fine = cost, prior, oracle, kept, fine
        self.size, self._mass = len(prior), prior
        self._equal = np.zeros((0, len(prior))) if equal is None else equal
        self._sides = _Sides(np.zeros(0, np.int64), np.zeros((0, self.size)))
        self._plan: TransportPlan | None = None
        self._program, self._first = self._posed()

    def solve(self, budget: Budget, room: float = 0.0) -> TransportPlan:
        """The optimum over rows that keep every inequality v·f <= -room |f|, or less where a total is too small.

        `room` is a chance; where totals are free the optimum without any comes first. Where the budget ends before,
        what was found is mixed with rows that tell nothing until it keeps all. Raises SolverError.
        """
        self._program.highs(self._limits(self._sides, room), self._first)
        self._plan = plan = self._stay() if self._bare else self._next(budget)
        while len((more := self._violated(plan.protocol, room)).owner):
            if budget.over:
                return with_room(plan, self.oracle, self.cost, self.prior, room)
            self._program.at_most(self._scaled(more), self._limits(more, room))
            self._sides = self._sides.with_more(more)
            self._plan = plan = self._next(budget)
        if not self.kept and not room:
            self._mass = plan.protocol @ self.prior
        return plan

    def _next(self, budget: Budget) -> TransportPlan:
        """The optimum over the inequalities so far; the one before where the time is over."""
        answer = self._program.solve(budget.seconds)
        before = self._plan
        return before if answer.status == "time" and before is not None else self._found(answer)

    @property
    def _bare(self) -> bool:
        """Whether nothing bears on rows yet."""
        return not len(self._equal) and not len(self._sides.owner)

    def _stay(self) -> TransportPlan:
        """What is best as long as rows may be anything: everything stays where it is."""
        nothing = Prices(np.zeros(self.size), self._sides.owner, self._sides.facets, np.zeros(0))
        return TransportPlan(np.eye(self.size), 0.0, 0.0, nothing)

    def _posed(self) -> tuple[Program, int]:
        """The program in units of mass a·w, with how many rows it begins."""
        from scipy.sparse import csr_array, eye_array, kron, vstack

        a, ones = self.size, np.ones((1, self.size))
        sums = [csr_array(kron(ones, eye_array(a)))]
        value = [a * self.prior]
        if self.kept:
            sums.append(csr_array(kron(eye_array(a), ones)))
            value.append(a * self.prior)
        if len(self._equal):
            sums.append(csr_array(kron(eye_array(a), self._on_mass(self._equal)[0])))
            value.append(np.zeros(a * len(self._equal)))
        matrix, fixed = csr_array(vstack(sums)), np.concatenate(value)
        free = np.zeros(a * a), np.full(a * a, np.inf)
        program = Program(matrix, fixed, fixed, *free, method="dual")
        program.costs(-self.cost.ravel())
        return program, len(fixed)

    def _on_mass(self, facets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Inequalities (k, a) on w, each scaled to largest coefficient 1, and what they were divided by (k,)."""
        rows = facets / self.prior
        size = np.abs(rows).max(axis=1)
        return rows / size[:, None], size

    def _limits(self, sides: _Sides, room: float) -> FloatArray:
        """Upper ends (k,) of the program's rows."""
        return -self._rooms(sides, room) * self.size / self._on_mass(sides.facets)[1]

    def _rooms(self, sides: _Sides, room: float) -> FloatArray:
        """How far inside each inequality a row has to be (k,): at the constant row of its total T_y all are -T_y."""
        wanted = room * np.linalg.norm(sides.facets, axis=1)
        return np.asarray(np.minimum(wanted, _FULL * self._mass[sides.owner]))

    def _scaled(self, sides: _Sides) -> csr_array:
        """The program's rows (k, a·a) of some inequalities."""
        from scipy.sparse import csr_array

        rows, _ = self._on_mass(sides.facets)
        which, x = np.nonzero(rows)
        return csr_array(
            (rows[which, x], (which, sides.owner[which] * self.size + x)), shape=(len(rows), self.size**2)
        )

    def _violated(self, protocol: FloatArray, room: float) -> _Sides:
        """The inequalities that rows of a protocol violate most, a few for each."""
        used = np.flatnonzero(protocol.any(axis=1))
        excess, known = self.oracle.worst(protocol[used])
        if not excess.size:
            return _Sides(np.zeros(0, np.int64), np.zeros((0, self.size)))
        deepest = np.argsort(-excess, axis=1, kind="stable")[:, :_DEEPEST]
        place = np.repeat(np.arange(len(used)), deepest.shape[1])
        sides = _Sides(used[place], np.asarray(known[place, deepest.ravel()]))
        _, size = self._on_mass(sides.facets)
        wanted = self._rooms(sides, room)
        over = excess[place, deepest.ravel()] + wanted
        new = over > np.maximum(_MET * size / self.size, self.fine + _GIVEN * wanted)
        return _Sides(sides.owner[new], sides.facets[new])

    def _found(self, answer: Answer) -> TransportPlan:
        """What the program found."""
        point, multipliers, optimum = answer.require("the linear program of a protocol that keeps totals")
        chances = np.maximum(point.reshape(self.size, self.size), 0.0) / (self.size * self.prior)
        chances[chances < _NOTHING] = 0.0
        chances /= chances.sum(axis=0)
        totals = -multipliers[self.size : 2 * self.size] if self.kept else np.zeros(self.size)
        # A common amount on all totals changes nothing; what is left bounds what their deviations are worth.
        prices = self._priced(totals - np.median(totals), multipliers[(2 if self.kept else 1) * self.size :])
        return TransportPlan(chances, -optimum / self.size, -optimum / self.size, prices)

    def _priced(self, totals: FloatArray, multipliers: FloatArray) -> Prices:
        """The prices of totals, and of what bears on rows: equations first, whose multipliers have any sign."""
        a, equations = self.size, len(self._equal)
        sides = _Sides(np.repeat(np.arange(a), equations), np.tile(self._equal, (a, 1))).with_more(
            self._sides
        )
        found = multipliers / self._on_mass(sides.facets)[1]
        found[a * equations :] = np.maximum(found[a * equations :], 0.0)
        used = np.flatnonzero(found)
        return Prices(totals, sides.owner[used], sides.facets[used], found[used])
