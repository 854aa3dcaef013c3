"""Rows worth adding to a protocol: local maxima of a convex price over the slice Σ w = 1 of a cone.

In w = prior·v a row's information is the divergence D(w || prior); at the master's duals λ its price is
f(w) = Σ w ln(w / prior) - Σ w η with η = λ/prior: separable, convex, so largest at a vertex of the slice.
"""

from __future__ import annotations

import numpy as np

from funnel.geometry.cone import Cone
from funnel.geometry.simplex import Answer, Program
from funnel.model.joint import FloatArray, IntArray

_FLOOR = 1e-9
"""Share of the prior from which the logarithm is taken as it is; below, slopes stop falling."""
_DUST = 1e-12
"""Share of a row's mass below which a coordinate is a rounding error."""
_DEEP = 1e-4
"""Slack at the centre to which inequalities are scaled, where that leaves coefficients below its inverse."""
_FEW = 40
"""Inequalities that take part from the start, as it is not worth waiting for them."""
_AT_ONCE = 16
"""Inequalities that enter at a time."""
_CLOSE = 1e-11
"""Share of the centre that a row may need to be inside."""
_MET = 1e-9
"""Excess up to which an inequality is met."""
_RISE = 1e-10
"""Rise of the price (nats) up to which a hop got nowhere."""
_HOPS = 30
"""Hops from one start; far fewer are needed."""


class Slice:
    """The slice {w >= 0 : Σ w = 1, A w + B z <= 0} of a cone, as a linear program with any objective.

    `matrix` A (m, a), `lift` B (m, k); the last `equalities` rows are equations. The centre, w = prior and the
    z that keeps it farthest from every inequality, misses them by `slack` (m,).
    """

    def __init__(self, cone: Cone, prior: FloatArray) -> None:
        self.prior = prior
        self.matrix, self.lift = cone.on_mass(prior)
        self.equalities = len(self.matrix) if cone.equalities else 0
        self._centre = np.append(prior, _deepest(self.matrix @ prior, self.lift))
        self._scale()
        self._any = _Lazy(self, dual=False)
        self._boxed = _Lazy(self, dual=True)

    def _scale(self) -> None:
        """Scale inequalities so that the solver's tolerance is small against the room there is."""
        both = np.hstack([self.matrix, self.lift])
        if not self.equalities:
            slack = -both @ self._centre
            scale = np.maximum(slack / np.abs(both).max(axis=1, initial=0.0), _DEEP)
            both = both / np.where(scale > 0, scale, 1.0)[:, None]
        self.both = both
        self.matrix, self.lift = both[:, : len(self.prior)], both[:, len(self.prior) :]
        self.slack = -both @ self._centre

    def best(self, slope: FloatArray) -> Answer:
        """max slope·w over the slice; the point's first a entries are w, multipliers are (m + 1,)."""
        return self._any.solve(slope)

    def best_in(self, lower: FloatArray, upper: FloatArray, slope: FloatArray) -> Answer:
        """The same within a box."""
        self._boxed.program.bounds(lower, upper)
        return self._boxed.solve(slope)

    def inside(self, point: FloatArray) -> FloatArray:
        """The row w (a,) of a solver's point (a + k,), moved towards the centre as far as it is outside.

        Unless that is next to nothing, as it would cost the row its zeros.
        """
        point = np.append(tidy(point[: len(self.prior)]), point[len(self.prior) :])
        if not self.equalities:
            excess = self.both @ point
            out = excess > 0
            share = float((excess[out] / (excess[out] + self.slack[out])).max(initial=0.0))
            if share > _CLOSE:
                point = (1 - share) * point + share * self._centre
        return np.asarray(point[: len(self.prior)])


class _Lazy:
    """The slice as a linear program whose inequalities enter when a solution violates them.

    Few of them ever do. With auxiliaries all are there from the start, since they are unbounded otherwise.
    """

    def __init__(self, room: Slice, *, dual: bool) -> None:
        self._both = room.both
        count, width = room.both.shape
        free = np.full(width - len(room.prior), np.inf)
        self._unit = np.append(np.ones(len(room.prior)), np.zeros(len(free)))
        fixed = count if room.equalities else 0
        self.program = Program(
            np.vstack([self._unit, room.both[:fixed]]),
            np.append(1.0, np.zeros(fixed)),
            np.append(1.0, np.zeros(fixed)),
            np.append(np.zeros(len(room.prior)), -free),
            np.append(np.ones(len(room.prior)), free),
            dual=dual,
        )
        self._active = np.arange(fixed)
        if not fixed and (len(free) or count <= _FEW):
            self._enter(np.arange(count))

    def _enter(self, rows: IntArray) -> None:
        """Let these inequalities take part."""
        self.program.at_most_zero(self._both[rows])
        self._active = np.append(self._active, rows)

    def solve(self, slope: FloatArray) -> Answer:
        """max slope·w, with multipliers of all inequalities and of Σ w = 1, in this order."""
        self.program.costs(slope)
        while True:
            answer = self.program.solve()
            if answer.status != "optimal":
                return answer
            excess = self._both @ answer.point
            excess[self._active] = 0.0
            if excess.max(initial=0.0) <= _MET:
                break
            self._enter(np.argsort(-excess)[: min(_AT_ONCE, int((excess > _MET).sum()))])
        multipliers = np.zeros(len(self._both) + 1)
        multipliers[self._active], multipliers[-1] = answer.multipliers[1:], answer.multipliers[0]
        return Answer(answer.status, answer.point, multipliers, answer.optimum)


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


def climb(room: Slice, start: FloatArray, eta: FloatArray) -> FloatArray | None:
    """Hop from vertex to vertex, each best for the tangent at the one before, until the price stops rising.

    The start (a,) may be outside the cone. None when the solver fails.
    """
    here: FloatArray | None = None
    point, reached = start, -np.inf
    for _ in range(_HOPS):
        answer = room.best(np.log(np.maximum(point / room.prior, _FLOOR)) - eta)
        if answer.status != "optimal":
            break
        point = room.inside(answer.point)
        rises = price(point, room.prior, eta) > reached + _RISE
        if not rises:
            break
        here, reached = point, float(price(point, room.prior, eta))
    return here
