"""The optimum over a convex cone of rows: rows of the cone from below, a shrinking polyhedron from above."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.pricing import divergence, price, tidy
from funnel.optimise.convex.cone import ConvexSlice, Judge
from funnel.optimise.convex.crowd import crowded
from funnel.optimise.linear.highs import Program
from funnel.optimise.master import master

_STAGES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Gaps that are closed one after the other, as shares of the value: there is a bound whenever the time is over."""
_MUCH = 3.0
"""A gap is worth a stage of its own where it is so many times the one that is asked for in the end."""
_AIM = 0.95
"""Share of the gap allowed that a proof aims for; the rest is for rounding errors."""
_ENTRY = 0.03
"""A row that was climbed to enters where its price is above this share of the gap asked for, nearly."""
_SETTLED = 0.05
"""Share of the same that rows must add to be worth another round of climbs."""
_FINEST, _COARSEST = 1e-9, 1e-3
"""Within what excess climbs over the polyhedron end; in between, a third of the gap allowed (nats)."""
_SAMPLES, _FEW = 30, 2
"""Random rows per value that are priced, as many crossings, and how many per value are climbed from, the best ones."""
_SPARSE = 0.25
"""Parameter of the Dirichlet distribution of random rows."""
_SHARES, _TRACE = (0.1, 0.25, 0.5), 1e-6
"""Shares of the entries that crossings change; a little of everything, so that some mass is left."""
_ASIDE = 0.2
"""By how much detours change prices (nats)."""
_LESS = 0.9
"""A gap is smaller where it is below this share of the one before."""
_LAST = 10.0
"""Seconds for the last linear program, which is small."""
_ENOUGH = 8
"""Better rows that end a proof."""
_MOST = 24
"""Rows of a proof that take part, the best ones."""
_CLIMBING = 0.5
"""Share of the time after which rows come from proofs only."""
_ALIKE = 8
"""Digits to which two rows are the same row."""
_SEED = 0


@dataclass(frozen=True, eq=False)
class Closed:
    """A protocol (b, a) of rows of the cone, its value (nats), the best certificate; inequalities (m, a), boxes."""

    protocol: FloatArray
    value: float
    certificate: Certificate
    inequalities: int
    nodes: int


def close_in(
    judge: Judge,
    prior: FloatArray,
    *,
    deadline: float,
    tolerance: float,
    ceiling: float,
    share: float = 0.0,
    start: FloatArray | None = None,
) -> Closed:
    """The most informative protocol found, whose rows are in the judge's cone, and why none is much better.

    `prior` (a,) is positive and sums to one. It ends when bound and value differ by `tolerance` (nats) or by a `share`
    of the value, or with the time: whatever the judge's cone, releasing nothing is allowed, and H(X) is a bound.
    `ceiling` is one known before, `start` (k, a) are rows v >= 0 to begin with; others are moved into the cone.
    """
    search = _Generation(judge, prior, tolerance, share, ceiling)
    search.begin(np.zeros((0, len(prior))) if start is None else start, deadline)
    return search.run(deadline)


class _Generation:
    """Rows of the cone, the master over them, and the lowest bound so far."""

    def __init__(
        self, judge: Judge, prior: FloatArray, tolerance: float, share: float, ceiling: float
    ) -> None:
        self.prior, self.tolerance, self.share, self.ceiling = prior, tolerance, share, ceiling
        self.room = ConvexSlice(judge, prior)
        self.mass: list[FloatArray] = []
        self.known: set[bytes] = set()
        self.random = np.random.default_rng(_SEED)
        size = len(prior)
        none, one = np.zeros(0), np.ones(size)
        self.master = Program(np.zeros((size, 0)), one, one, none, none, tolerance=1e-10)
        self.nodes, self.fine = 0, _COARSEST
        self.best = Certificate(-np.log(prior) * prior, 0.0, tolerance, 0)
        self.add([prior])

    def begin(self, start: FloatArray, deadline: float) -> None:
        """The rows given, each value with as much noise as it needs, and where climbs from single values end."""
        single = np.eye(len(self.prior))
        mass = start[start.any(axis=1)] * self.prior
        mass /= mass.sum(axis=1, keepdims=True)
        self.add(self.room.land(np.vstack([single, mass]), cut=False)[0])
        self.add(self.room.climb(single, np.zeros(len(self.prior)), self.fine, deadline))

    def run(self, deadline: float) -> Closed:
        """Close ever smaller gaps, until the last one is, or nothing helps, or the time is over."""
        late = time.monotonic() + _CLIMBING * (deadline - time.monotonic())
        while time.monotonic() < deadline:
            value, duals, used = self.solved()
            allowed = self.allowed(value)
            if self.gap(value) <= self.asked(value) or not allowed:
                break
            closely = min(allowed, _MUCH * self.asked(value))
            self.fine = float(np.clip(closely / 3, _FINEST, _COARSEST))
            if time.monotonic() < late:
                starts = self.starts(used, duals, late)
                self.climb(starts, duals / self.prior, _ENTRY * closely, late)
                if self.solved()[0] > value + _SETTLED * closely:
                    continue
            if not self.prove(allowed, deadline):
                break
        return self.result()

    def result(self) -> Closed:
        """The best protocol of the rows there are."""
        from scipy.sparse import csr_array

        rows = csr_array(np.array(self.mass) / self.prior)
        optimum = master(rows, self.prior, budget=_LAST)
        used = np.flatnonzero(optimum.theta)
        protocol = rows[used].toarray() * optimum.theta[used, None]
        protocol /= protocol.sum(axis=0)
        return Closed(protocol, optimum.value, self.best, len(self.room.matrix), self.nodes)

    def solved(self) -> tuple[float, FloatArray, FloatArray]:
        """The value of the rows there are, the duals (a,), and the rows in use (k, a)."""
        answer = self.master.solve()
        return answer.optimum, answer.multipliers, np.array(self.mass)[answer.point > 0]

    def gap(self, value: float) -> float:
        """What the optimum may be worth more (nats)."""
        return min(self.best.bound, self.ceiling) - value

    def asked(self, value: float) -> float:
        """The gap that is small enough (nats)."""
        return max(self.tolerance, self.share * value)

    def allowed(self, value: float) -> float:
        """The next gap to close (nats)."""
        asked = self.asked(value)
        least, most = _MUCH * asked, self.gap(value) * _LESS
        return max([asked, *(stage * value for stage in _STAGES if least < stage * value < most)])

    def starts(self, used: FloatArray, duals: FloatArray, deadline: float) -> FloatArray:
        """Where to climb from: the best of many random rows and crossings, the rows in use, and detours from these."""
        size, eta = len(self.prior), duals / self.prior
        spread = self.random.dirichlet(np.full(size, _SPARSE), size=_SAMPLES * size)
        rows, _ = self.room.land(np.vstack([spread, self.crossed(used, _SAMPLES * size)]), cut=False)
        rows = rows[np.argsort(-price(rows, self.prior, eta), kind="stable")[: _FEW * size]]
        detours = self.random.normal(scale=_ASIDE, size=used.shape)
        return np.vstack([rows, used, self.room.climb(used, eta + detours, self.fine, deadline)])

    def crossed(self, used: FloatArray, count: int) -> FloatArray:
        """Random rows (count, a) that take most entries from one row and some from another, or none in their place."""
        first, second = used[self.random.integers(len(used), size=(2, count))]
        some = self.random.random(first.shape) < self.random.choice(_SHARES, size=(count, 1))
        second = second * (self.random.random((count, 1)) < 0.5)
        return tidy(np.where(some, second, first) + _TRACE * self.prior)

    def climb(self, starts: FloatArray, eta: FloatArray, least: float, deadline: float) -> int:
        """Let rows near the starts take part whose price is above `least`; how many there are."""
        rows = self.room.climb(starts, eta, self.fine, deadline)
        return self.add(rows[price(rows, self.prior, eta) > least])

    def prove(self, allowed: float, deadline: float) -> bool:
        """Bound what any row can add; whether the search found rows instead, or closed the gap."""
        value, duals, _ = self.solved()
        eta, before = duals / self.prior, self.gap(value)
        aim = _AIM * (value + allowed - float(duals.sum()))
        found = crowded(self.room, eta, tolerance=aim, deadline=deadline, enough=_ENOUGH)
        self.nodes += found.nodes
        certificate = Certificate(duals, found.bound, aim, found.nodes, found.proof)
        if certificate.bound < self.best.bound:
            self.best = certificate
        best = found.points[np.argsort(-price(found.points, self.prior, eta))[:_MOST]]
        new = self.add(best) + (self.climb(best, eta, 0.0, deadline) if len(best) else 0)
        return new > 0 or self.gap(value) < _LESS * before

    def add(self, rows: Iterable[FloatArray]) -> int:
        """Let rows take part that do not yet; how many there are."""
        new = 0
        for row in rows:
            key = (np.round(row, _ALIKE) + 0.0).tobytes()
            if key not in self.known:
                self.known.add(key)
                self.mass.append(row)
                self.master.add(float(divergence(row, self.prior)), row / self.prior)
                new += 1
        return new
