"""The slice Σ w = 1 of a cone, and what rows in it are worth.

In w = prior·v a row's information is the divergence D(w || prior); at the master's duals λ its price is
f(w) = Σ w ln(w / prior) - Σ w η with η = λ/prior: separable, convex, so largest at a vertex of the slice.

Its inequalities are scaled for solvers, so that their tolerance is small against the room there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Proof
from funnel.optimise.columns.alone import OneByOne
from funnel.optimise.columns.boxes import BoxSearch
from funnel.optimise.columns.chords import xlogx
from funnel.optimise.columns.reach import Cut, cuts
from funnel.optimise.columns.tree import BoxTree
from funnel.optimise.cone import Cone
from funnel.optimise.linear.bases import Answers, BoolArray, Objectives
from funnel.optimise.linear.batched import Programs
from funnel.optimise.linear.highs import Program

_DUST = 1e-12
"""Share of a row's mass below which a coordinate is a rounding error."""
_WIDEST = 64
"""Constraints that may be met at once up to which programs are solved many at a time: wider bases take too long."""
_CLOSE = 1e-11
"""Share of the centre that a row may need to be inside."""
_TOGETHER = 256
"""Starts that are climbed from together, where programs are solved so."""
_POINTS = 32
"""Points of a search that are told, the best ones."""
_DEEP = 1e-4
"""Slack at the centre to which inequalities are scaled, where that leaves coefficients below its inverse."""


class Slice:
    """The slice {w >= 0 : Σ w = 1, w / prior in the cone} as `programs` over it, with any objective and in any box.

    `matrix` (m, a) are its inequalities, of which the last `equalities` are equations.
    """

    programs: Programs | OneByOne

    def __init__(self, cone: Cone, prior: FloatArray) -> None:
        self.prior = prior
        matrix, lift = cone.on_mass(prior)
        self.equalities = len(matrix) if cone.equalities else 0
        scaled = Scaled.of(matrix, lift, prior, equations=bool(self.equalities))
        self._both, self._slack = scaled.rows, -scaled.rows @ scaled.centre
        self.matrix, lift = scaled.rows[:, : len(prior)], scaled.rows[:, len(prior) :]
        self.lifted = bool(lift.shape[1])
        if not self.lifted and min(matrix.shape) <= _WIDEST:
            self.programs = Programs(self.matrix, self.equalities)
        else:
            self.programs = OneByOne(self.matrix, lift, self.equalities)
        self.together = _TOGETHER if self.programs.batched else 1
        self._tree: BoxTree | None = None

    @cached_property
    def cuts(self) -> list[Cut]:
        """What cuts off all that the slice does not reach."""
        return cuts(self.programs)

    def solve(self, objectives: Objectives) -> Answers:
        """max slope·w over the slice."""
        return self.programs.solve(objectives)

    def land(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The rows of a solver's points (N, a + k); none is cut off."""
        return self.inside(points), np.zeros(len(points), bool)

    def inside(self, points: FloatArray) -> FloatArray:
        """Rows w (N, a) of a solver's points (N, a + k), moved towards the centre as far as they are outside.

        Unless that is next to nothing, as it would cost a row its zeros.
        """
        mass = tidy(points[:, : len(self.prior)])
        if self.equalities:
            return mass
        excess = np.hstack([mass, points[:, mass.shape[1] :]]) @ self._both.T
        share = np.zeros_like(excess)
        np.divide(excess, excess + self._slack, out=share, where=excess > _CLOSE * self._slack)
        most = share.max(axis=1, initial=0.0)[:, None]
        return np.asarray((1 - most) * mass + most * self.prior)

    def peak(self, eta: FloatArray, *, tolerance: float, budget: Budget, enough: int) -> Peak:
        """Bound f(w) = D(w||prior) - η·w over the slice, down to `tolerance` and no further.

        Boxes in which the over-estimate stays below `tolerance` are not looked into, so no bound is lower. Ends
        early when the budget is spent, or with `enough` points of price above tolerance.
        """
        linear = np.log(self.prior) + eta
        search = BoxSearch(
            self.programs,
            linear,
            tolerance=tolerance,
            floor=-float(eta @ self.prior),
            cuts=self.cuts,
            tree=self._tree,
            many=enough,
        )
        search.run(budget)
        if self.programs.batched:
            # A tree is gone through again in no time; box by box it would take as long as a new one.
            self._tree = search.tree
        rows = self.inside(np.array(search.points)) if search.points else np.zeros((0, len(eta)))
        worth = rows @ linear - xlogx(rows).sum(axis=1)
        best = rows[np.argsort(worth, kind="stable")[:_POINTS]]
        proof = None if self.lifted else search.tree.proof(self.matrix, self.equalities)
        return Peak(search.bound, best, search.nodes, proof)


@dataclass(frozen=True, eq=False)
class Peak:
    """What is known of max f: a bound from above, rows w (k, a) of high price, how many boxes were split.

    `proof` is why the bound holds; None for lifted cones, and where there were too many boxes.
    """

    bound: float
    points: FloatArray
    nodes: int
    proof: Proof | None


def tidy(mass: FloatArray) -> FloatArray:
    """Rows (..., a) without rounding errors, summing to one."""
    mass = np.where(mass > _DUST, mass, 0.0)
    return np.asarray(mass / mass.sum(axis=-1, keepdims=True))


def divergence(mass: FloatArray, prior: FloatArray) -> FloatArray:
    """D(w || prior) in nats of every row w (..., a)."""
    ratio = np.where(mass > 0, mass, prior) / prior
    return np.asarray((mass * np.log(ratio)).sum(axis=-1))


def price(mass: FloatArray, prior: FloatArray, eta: FloatArray) -> FloatArray:
    """f(w) of every row w (..., a)."""
    return np.asarray(divergence(mass, prior) - mass @ eta)


@dataclass(frozen=True, eq=False)
class Scaled:
    """Inequalities on w and auxiliaries z (m, a + k), scaled so that a solver's tolerance is small against the room.

    `centre` (a + k,) is w = prior with the z that keeps it farthest from every inequality. Equations are left as they
    are.
    """

    rows: FloatArray
    centre: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, lift: FloatArray, prior: FloatArray, *, equations: bool) -> Scaled:
        """Scale matrix (m, a) @ w + lift (m, k) @ z <= 0."""
        both, centre = np.hstack([matrix, lift]), np.append(prior, _deepest(matrix @ prior, lift))
        scale = np.ones(len(both))
        if not equations:
            size = np.abs(both).max(axis=1, initial=0.0)
            scale = size * np.maximum(-both @ centre / size, _DEEP)
        return cls(both / scale[:, None], centre)


def _deepest(limit: FloatArray, lift: FloatArray) -> FloatArray:
    """The z (k,) for which limit + lift @ z is least at its largest."""
    if not lift.shape[1]:
        return np.zeros(0)
    free = np.full(lift.shape[1], np.inf)
    program = Program(
        np.hstack([lift, np.ones((len(lift), 1))]),
        np.full(len(lift), -np.inf),
        -limit,
        np.append(-free, -1.0),
        np.append(free, 1.0),
    )
    program.costs(np.append(np.zeros(lift.shape[1]), 1.0))
    return program.solve().point[:-1]
