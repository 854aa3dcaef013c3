"""Rows worth adding to a protocol: local maxima of a convex price over the slice Σ w = 1 of a cone.

In w = prior·v a row's information is the divergence D(w || prior); at the master's duals λ its price is
f(w) = Σ w ln(w / prior) - Σ w η with η = λ/prior: separable, convex, so largest at a vertex of the slice.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.columns.compact import Compact
from funnel.optimise.columns.reach import Cut, cuts, widest
from funnel.optimise.columns.tree import Tree
from funnel.optimise.cone import Cone
from funnel.optimise.linear.highs import Answer, Program
from funnel.optimise.linear.many import Programs

FLOOR = 1e-9
"""Share of the prior from which the logarithm is taken as it is; below, slopes stop falling."""
_DUST = 1e-12
"""Share of a row's mass below which a coordinate is a rounding error."""
_DEEP = 1e-4
"""Slack at the centre to which inequalities are scaled, where that leaves coefficients below its inverse."""
_FEW = 40
"""Inequalities that take part from the start, as it is not worth waiting for them."""
_WIDEST = 32
"""Constraints that may be met at once up to which programs are solved many at a time: wider bases take too long."""
_AT_ONCE = 16
"""Inequalities that enter at a time."""
_CLOSE = 1e-11
"""Share of the centre that a row may need to be inside."""
_MET = 1e-9
"""Excess up to which an inequality is met."""
RISE = 1e-10
"""Rise of the price (nats) up to which a hop got nowhere."""
_ALIKE = 9
"""Digits to which two rows are the same row."""
HOPS = 30
"""Hops from one start; far fewer are needed."""


class Slice:
    """The slice {w >= 0 : Σ w = 1, A w + B z <= 0} of a cone, as a linear program with any objective.

    `matrix` A (m, a), `lift` B (m, k); the last `equalities` rows are equations. The centre, w = prior and the
    z that keeps it farthest from every inequality, misses them by `slack` (m,). Where there are no auxiliaries and
    bases are small, `programs` solves many such programs at once, and `tree` are the boxes of the last proof.
    """

    programs: Programs | None = None
    tree: Tree | None = None

    def __init__(self, cone: Cone, prior: FloatArray) -> None:
        self.prior = prior
        matrix, lift = cone.on_mass(prior)
        self.equalities = len(matrix) if cone.equalities else 0
        self.both, self._centre, _ = self._scaled(matrix, lift)
        self.matrix, self.lift = self.both[:, : len(prior)], self.both[:, len(prior) :]
        self.slack = -self.both @ self._centre
        self._compact: Compact | None = None
        rows = self.both
        if cone.odds:
            self._compact = Compact(cone.odds, self.matrix, prior)
            rows, _, self._scale = self._scaled(self._compact.matrix, self._compact.lift)
        if not self.lift.shape[1] and min(self.matrix.shape) <= _WIDEST:
            self.programs = Programs(self.matrix, self.equalities)
        self._any = _Lazy(rows, len(prior), self.equalities, dual=False)
        self._boxed = _Lazy(rows, len(prior), self.equalities, dual=True)

    def _scaled(self, matrix: FloatArray, lift: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Both side by side, scaled so that the solver's tolerance is small against the room; the centre; the scale."""
        both, centre = np.hstack([matrix, lift]), np.append(self.prior, _deepest(matrix @ self.prior, lift))
        scale = np.ones(len(both))
        if not self.equalities:
            size = np.abs(both).max(axis=1, initial=0.0)
            scale = size * np.maximum(-both @ centre / size, _DEEP)
        return both / scale[:, None], centre, scale

    @property
    def cuts(self) -> list[Cut]:
        """What cuts off all that the slice does not reach."""
        return self._cuts

    @cached_property
    def _cuts(self) -> list[Cut]:
        """Found once, as they do not depend on prices."""
        return cuts(self)

    @cached_property
    def _widest(self) -> float:
        """How large auxiliaries are."""
        return widest(self)

    def weight(self, multipliers: FloatArray) -> FloatArray:
        """The multipliers (m,) of the constraints out of a solver's, with the sign that a bound needs.

        Zero where auxiliaries do not cancel and may be of any size.
        """
        weight = multipliers[:-1] if self.equalities else np.maximum(multipliers[:-1], 0.0)
        if self._compact is not None:
            return self._compact.spread(weight / self._scale)
        return weight if np.isfinite(self.leftover(weight)) else np.zeros_like(weight)

    def leftover(self, weight: FloatArray) -> float:
        """What a combination of the constraints leaves of auxiliaries: a rounding error times their size."""
        left = float(np.abs(weight @ self.lift).sum()) if self.lift.shape[1] else 0.0
        return left * self._widest if left else 0.0

    def best(self, slope: FloatArray) -> Answer:
        """max slope·w over the slice; the point's first a entries are w, `weight` reads the multipliers.

        Where the slice is empty these show it. With auxiliaries, the slope may be on them, too.
        """
        return self._any.solve(slope)

    def best_in(self, lower: FloatArray, upper: FloatArray, slope: FloatArray) -> Answer:
        """The same within a box."""
        self._boxed.program.bounds(lower, upper)
        return self._boxed.solve(slope)

    def inside(self, point: FloatArray) -> FloatArray:
        """The row w (a,) of a solver's point (a + k,), moved towards the centre as far as it is outside.

        Unless that is next to nothing, as it would cost the row its zeros.
        """
        size, width = len(self.prior), len(self._centre)
        return np.asarray(self.all_inside(point[None, :width] if width > size else point[None, :size])[0])

    def all_inside(self, points: FloatArray) -> FloatArray:
        """The same for points (N, a + k)."""
        mass = tidy(points[:, : len(self.prior)])
        if self.equalities:
            return mass
        excess = np.hstack([mass, points[:, mass.shape[1] :]]) @ self.both.T
        share = np.zeros_like(excess)
        np.divide(excess, excess + self.slack, out=share, where=excess > _CLOSE * self.slack)
        most = share.max(axis=1, initial=0.0)[:, None]
        return np.asarray((1 - most) * mass + most * self.prior)


class _Lazy:
    """The slice as a linear program whose inequalities enter when a solution violates them.

    Few of them ever do. With auxiliaries all are there from the start, since they are unbounded otherwise. `rows`
    (r, a + k) on w and auxiliaries are all equations, or none is.
    """

    def __init__(self, rows: FloatArray, size: int, equalities: int, *, dual: bool) -> None:
        self._rows = rows
        count, width = rows.shape
        free = np.full(width - size, np.inf)
        unit = np.append(np.ones(size), np.zeros(len(free)))
        self.program = Program(
            np.vstack([unit, rows[:equalities]]),
            np.append(1.0, np.zeros(equalities)),
            np.append(1.0, np.zeros(equalities)),
            np.append(np.zeros(size), -free),
            np.append(np.ones(size), free),
            method="dual" if dual else "primal",
        )
        self._free = np.zeros(len(free))
        self._active = np.arange(equalities)
        if not equalities and (len(free) or count <= _FEW):
            self._enter(np.arange(count))

    def _enter(self, rows: IntArray) -> None:
        """Let these inequalities take part."""
        self.program.at_most_zero(self._rows[rows])
        self._active = np.append(self._active, rows)

    def solve(self, slope: FloatArray) -> Answer:
        """max slope·w, with multipliers of all inequalities and of Σ w = 1, in this order."""
        self.program.costs(np.concatenate([slope, self._free]) if len(slope) < self._rows.shape[1] else slope)
        answer = self.program.solve()
        while answer.optimal and len(self._active) < len(self._rows):
            excess = self._rows @ answer.point
            excess[self._active] = 0.0
            if excess.max() <= _MET:
                break
            self._enter(np.argsort(-excess)[: min(_AT_ONCE, int((excess > _MET).sum()))])
            answer = self.program.solve()
        multipliers = np.zeros(len(self._rows) + 1)
        held = answer.multipliers if answer.optimal else answer.ray
        multipliers[self._active], multipliers[-1] = held[1:], held[0]
        values = (answer.point, multipliers, answer.optimum) if answer.optimal else None
        return Answer(answer.status, multipliers, values)


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


def climb(
    room: Slice, start: FloatArray, eta: FloatArray, seen: set[bytes] | None = None
) -> tuple[FloatArray, float] | None:
    """Hop from vertex to vertex, each best for the tangent at the one before, until the price stops rising.

    The row it ends at, and its price. The start (a,) may be outside the cone. None when the solver fails, and where
    the way leads over a vertex of `seen`, which takes up those on it: the end of that way is known.
    """
    here: tuple[FloatArray, float] | None = None
    point = start
    for _ in range(HOPS):
        answer = room.best(np.log(np.maximum(point / room.prior, FLOOR)) - eta)
        if answer.status != "optimal":
            break
        point = room.inside(answer.point)
        worth = float(price(point, room.prior, eta))
        if here is not None and worth <= here[1] + RISE:
            break
        here = point, worth
        if seen is not None:
            if key(point) in seen:
                return None
            seen.add(key(point))
    return here


def key(row: FloatArray) -> bytes:
    """What rows w have in common that are the same but for rounding errors."""
    return (np.round(row, _ALIKE) + 0.0).tobytes()
