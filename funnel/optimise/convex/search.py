"""The optimum over a convex cone of rows: rows of the cone from below, a shrinking polyhedron from above.

How much a row can be worth at most is found by branch and bound over boxes of that polyhedron, which grows
sides wherever the best point of a box is worth too much and no row of the cone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Certificate, Proof
from funnel.optimise.columns.boxes import BoxSearch
from funnel.optimise.columns.chords import xlogx
from funnel.optimise.columns.climbing import climb
from funnel.optimise.columns.pool import RowPool
from funnel.optimise.columns.pricing import Peak, price, tidy
from funnel.optimise.columns.reach import cuts
from funnel.optimise.convex.cone import ConvexSlice, SeparationOracle
from funnel.optimise.generation import generate
from funnel.optimise.linear.bases import OPTIMAL, Answers, Objectives
from funnel.optimise.linear.highs import Answer
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
_ROUNDS = 16
"""Times that a box is looked at again because its best point was cut off."""


@dataclass(frozen=True, eq=False)
class Closed:
    """A protocol (b, a) of rows of the cone, its value (nats), the best certificate; inequalities (m, a), boxes."""

    protocol: FloatArray
    value: float
    certificate: Certificate
    inequalities: int
    nodes: int


def close_in(
    oracle: SeparationOracle,
    prior: FloatArray,
    *,
    budget: Budget | float,
    tolerance: float,
    ceiling: float,
    share: float = 0.0,
    start: FloatArray | None = None,
) -> Closed:
    """The most informative protocol found, whose rows are in the oracle's cone, and why none is much better.

    `prior` (a,) is positive and sums to one. It ends when bound and value differ by `tolerance` (nats) or by a `share`
    of the value, or with the budget: whatever the cone, releasing nothing is allowed, and H(X) is a bound. `ceiling`
    is one known before, `start` (k, a) are rows v >= 0 to begin with; others are moved into the cone.
    """
    rows = RowPool(prior, tolerance, ceiling, digits=_ALIKE)
    search = _ConvexSearch(oracle, rows, tolerance, share, Budget.of(budget))
    search.begin(np.zeros((0, len(prior))) if start is None else start)
    return search.run()


class _ConvexSearch:
    """The oracles that look for rows of a convex cone: climbs near the rows in use, and proofs of ever smaller gaps."""

    def __init__(
        self,
        oracle: SeparationOracle,
        rows: RowPool,
        tolerance: float,
        share: float,
        budget: Budget,
    ) -> None:
        self.rows, self.prior, self.tolerance, self.share = rows, rows.prior, tolerance, share
        self.budget, self.climbing = budget, budget.part(_CLIMBING)
        self.room = ConvexSlice(oracle, rows.prior)
        self.random = np.random.default_rng(_SEED)
        self.fine = _COARSEST

    def begin(self, start: FloatArray) -> None:
        """The rows given, each value with as much noise as it needs, and where climbs from single values end."""
        single = np.eye(len(self.prior))
        mass = start[start.any(axis=1)] * self.prior
        mass /= mass.sum(axis=1, keepdims=True)
        self.rows.add(self.room.land(np.vstack([single, mass]), cut=False)[0])
        self.rows.add(climb(self.room, single, np.zeros(len(self.prior)), self.fine, self.budget))

    def run(self) -> Closed:
        """Close ever smaller gaps, until the last one is, or nothing helps, or the budget is spent."""
        generate(self.rows.master, [self.climbed, self.prove], budget=self.budget, settled=self.settled)
        optimum = master(self.rows.rays, self.prior, budget=Budget(_LAST))
        inequalities, rows = len(self.room.matrix), self.rows
        return Closed(optimum.protocol, optimum.value, rows.best, inequalities, rows.nodes)

    def settled(self, value: float) -> bool:
        """Whether the gap is closed, or there is none to close."""
        return self.rows.gap(value) <= self.asked(value) or not self.allowed(value)

    def climbed(self, answer: Answer) -> bool:
        """Climb from many rows; whether that raised the value by enough for another round."""
        if self.climbing.over:
            return False
        closely = min(self.allowed(answer.optimum), _MUCH * self.asked(answer.optimum))
        self.fine = float(np.clip(closely / 3, _FINEST, _COARSEST))
        starts = self.starts(self.rows.used(answer), answer.multipliers)
        self.climb(starts, answer.multipliers / self.prior, _ENTRY * closely, self.climbing)
        now = self.rows.master.solve(self.budget)
        return now.optimal and now.optimum > answer.optimum + _SETTLED * closely

    def asked(self, value: float) -> float:
        """The gap that is small enough (nats)."""
        return max(self.tolerance, self.share * value)

    def allowed(self, value: float) -> float:
        """The next gap to close (nats)."""
        asked = self.asked(value)
        least, most = _MUCH * asked, self.rows.gap(value) * _LESS
        return max([asked, *(stage * value for stage in _STAGES if least < stage * value < most)])

    def starts(self, used: FloatArray, duals: FloatArray) -> FloatArray:
        """Where to climb from: the best of many random rows and crossings, the rows in use, and detours from these."""
        size, eta = len(self.prior), duals / self.prior
        spread = self.random.dirichlet(np.full(size, _SPARSE), size=_SAMPLES * size)
        rows, _ = self.room.land(np.vstack([spread, self.crossed(used, _SAMPLES * size)]), cut=False)
        rows = rows[np.argsort(-price(rows, self.prior, eta), kind="stable")[: _FEW * size]]
        detours = self.random.normal(scale=_ASIDE, size=used.shape)
        return np.vstack([rows, used, climb(self.room, used, eta + detours, self.fine, self.climbing)])

    def crossed(self, used: FloatArray, count: int) -> FloatArray:
        """Random rows (count, a) that take most entries from one row and some from another, or none in their place."""
        first, second = used[self.random.integers(len(used), size=(2, count))]
        some = self.random.random(first.shape) < self.random.choice(_SHARES, size=(count, 1))
        second = second * (self.random.random((count, 1)) < 0.5)
        return tidy(np.where(some, second, first) + _TRACE * self.prior)

    def climb(self, starts: FloatArray, eta: FloatArray, least: float, budget: Budget) -> bool:
        """Let rows near the starts take part whose price is above `least`; whether there are any."""
        rows = climb(self.room, starts, eta, self.fine, budget)
        return self.rows.add(rows[price(rows, self.prior, eta) > least])

    def prove(self, answer: Answer) -> bool:
        """Bound what any row can add; whether the search found rows instead, or closed a good part of the gap."""
        now = self.rows.master.solve(self.budget)
        _, duals, value = (now if now.optimal else answer).require()
        eta, before, allowed = duals / self.prior, self.rows.gap(value), self.allowed(value)
        aim = _AIM * (value + allowed - float(duals.sum()))
        found = peak(self.room, eta, tolerance=aim, budget=self.budget, enough=_ENOUGH)
        self.rows.bounded(duals, aim, found)
        best = found.points[np.argsort(-price(found.points, self.prior, eta))[:_MOST]]
        new = self.rows.add(best)
        new |= len(best) > 0 and self.climb(best, eta, 0.0, self.budget)
        return new or self.rows.gap(value) < _LESS * before


def peak(room: ConvexSlice, eta: FloatArray, *, tolerance: float, budget: Budget, enough: int) -> Peak:
    """Bound f(w) = D(w||prior) - eta·w over the slice, down to `tolerance` and no further.

    Ends early when the budget is spent, or with `enough` rows of price above tolerance.
    """
    floor, linear = -float(eta @ room.prior), np.log(room.prior) + eta
    search = _ConvexBoxes(room, linear, tolerance=tolerance, floor=floor, cuts=cuts(room), many=enough)
    search.run(budget)
    points = np.array(search.points).reshape(-1, len(eta))
    return Peak(search.bound, points, search.nodes, search.proof())


class _ConvexBoxes(BoxSearch):
    """Boxes of the polyhedron, which loses the best point of a box where that is no row; `points` are rows."""

    programs: ConvexSlice

    def relaxed(self, objectives: Objectives) -> Answers:
        """The linear programs of boxes, again and again until no best point is worth more than it should."""
        answers = super().relaxed(objectives)
        for _ in range(_ROUNDS):
            again = self.cut_off(objectives, answers)
            if not len(again):
                break
            answers = answers.replaced(again, self.programs.solve(objectives.since(answers)[again]))
        return answers

    def cut_off(self, objectives: Objectives, answers: Answers) -> IntArray:
        """The boxes whose best point was worth more than the tolerance until now, when it was cut off."""
        above = (objectives.slope * answers.point).sum(axis=1) > objectives.enough
        points = answers.point.clip(objectives.lower, objectives.upper)
        high = np.flatnonzero((answers.how == OPTIMAL) & above & (self.price(points) > self.tolerance))
        if not len(high):
            return high
        rows, outside = self.programs.land(points[high])
        good = self.price(rows) > self.tolerance
        self.points.extend(rows[good])
        return high[outside & ~good]

    def price(self, rows: FloatArray) -> FloatArray:
        """f(w) of rows (k, a)."""
        return np.asarray(xlogx(rows).sum(axis=1) - rows @ self.linear)

    def note(self, answers: Answers, points: FloatArray) -> None:
        """Nothing: rows of the cone are found where points are cut off."""

    def proof(self) -> Proof | None:
        """The boxes, with the inequalities that carry a multiplier."""
        whole = self.tree.proof(self.programs.matrix, 0)
        if whole is None:
            return None
        used, index = np.unique(whole.index, return_inverse=True)
        return replace(whole, inequalities=self.programs.matrix[used], index=index)
