"""The most informative protocol over a planar cone of many values: pairs priced all at once, never listed.

In w = prior·v an extreme ray is one value inside every facet, or two values on either side of one, at distances
u (outside) and v, with w = (v, u) / (u + v): it is worth H(X)'s share less the entropy of w. Per unit of moment
about the facet a pair costs c(u, v) = ln(1 + u/v) / u + ln(1 + v/u) / v, of which the mixed derivative
1 / (u v (u + v)) is positive, so what lies farther outside belongs to what lies nearer inside. One facet is solved by
one sweep; a linear program joins the two, and takes in pairs until no pair of values is worth more than its duals say.

A cone is planar where its constraints span at most a plane, so that one or two of them matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Certificate
from funnel.optimise.cone import Cone
from funnel.optimise.generation import RestrictedMaster, generate
from funnel.optimise.linear.highs import Answer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ENTRY = 1e-10
"""A pair enters where its price is above this (nats)."""
_BLOCK = 2**18
"""Pairs priced at a time: what a processor keeps close by."""
_UNUSED = 1e-12
"""Rows of which no entry exceeds this are rounding errors of the solver."""
_RANK = 1e-10
"""Singular values below this share of the largest count as zero."""
ON_FACET = 1e-12
"""Coordinates below this share of a facet's largest coefficient lie on it."""


@dataclass(frozen=True, eq=False)
class Paired:
    """Rows (k, a) of a protocol, k <= a, and why it is near the best; `rays` counts all extreme rays, none left out."""

    rows: csr_array
    certificate: Certificate
    rays: int


@dataclass(frozen=True, eq=False)
class FacetPairs:
    """The values on either side of a facet with their distances (> 0): outside nearest first, inside farthest first."""

    outer: IntArray
    u: FloatArray
    inner: IntArray
    v: FloatArray

    @classmethod
    def of(cls, facet: FloatArray) -> FacetPairs:
        """Sort the values by the facet's coefficients on w (a,); those on it have no part."""
        order = np.argsort(facet, kind="stable")
        outer, inner = order[facet[order] > ON_FACET], order[facet[order] < -ON_FACET]
        return cls(outer, facet[outer], inner, -facet[inner])

    def touches(self, others: FloatArray) -> bool:
        """Whether pairs on this facet lie inside the others (k, a); all of them lie on one ray of the plane."""
        if not len(self.outer) or not len(self.inner):
            return False
        support, mass = self.pair(-1, 0)
        return bool((others[:, support] @ mass <= ON_FACET).all())

    def sweep(self, prior: FloatArray) -> IntArray:
        """The best pairs (k, 2) were this the only facet: the inside far away is enough, taken in order.

        c falls in v, and is supermodular: moments of both sides, in these orders, are cut at the same places.
        """
        need = np.cumsum(prior[self.outer] * self.u)
        have = np.minimum(np.cumsum(prior[self.inner] * self.v), need[-1])
        cuts = np.union1d(need, have)
        ends = [np.minimum(np.searchsorted(side, cuts), len(side) - 1) for side in (need, have)]
        return np.unique(np.column_stack(ends), axis=0)

    def pair(self, i: int, j: int) -> tuple[IntArray, FloatArray]:
        """The two values of a pair of positions, and their masses."""
        mass = np.array([self.v[j], self.u[i]])
        return np.array([self.outer[i], self.inner[j]]), mass / mass.sum()

    def blocks(self, worth: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Prices of all pairs, some rows of the (outer, inner) matrix at a time; `worth` (a,) is -η - ln p.

        D(w||p) - η·w = Σ w worth - H(w), and -H(w) = (u ln u + v ln v) / (u + v) - ln(u + v).
        """
        u, v = self.u, self.v
        left = np.column_stack([worth[self.outer], u, u * np.log(u), np.ones_like(u)])
        right = np.vstack([v, worth[self.inner], np.ones_like(v), v * np.log(v)])
        step = max(1, _BLOCK // len(v))
        for start in range(0, len(u), step):
            part = slice(start, start + step)
            total = u[part, None] + v
            price = left[part] @ right
            price /= total
            price -= np.log(total, out=total)
            yield part, price

    def best(self, worth: FloatArray, budget: Budget) -> tuple[IntArray, FloatArray]:
        """For each value on either side the pair of highest price: positions (k, 2) and prices (k,), if in time."""
        n, m = len(self.u), len(self.v)
        partner, price = np.zeros(n, np.int64), np.full(n, -np.inf)
        other, worthy = np.zeros(m, np.int64), np.full(m, -np.inf)
        for part, block in self.blocks(worth):
            if budget.over:
                break
            partner[part], price[part] = block.argmax(axis=1), block.max(axis=1)
            top = block.max(axis=0)
            better = top > worthy
            other[better] = part.start + block[:, better].argmax(axis=0)
            worthy[better] = top[better]
        pairs = np.vstack([np.column_stack([np.arange(n), partner]), np.column_stack([other, np.arange(m)])])
        return pairs, np.concatenate([price, worthy])


def best_of_pairs(cone: Cone, prior: FloatArray, *, budget: Budget) -> Paired | None:
    """The most informative protocol over a planar cone, to the last digit, or what there was time for.

    None if the cone is not planar. `prior` (a,) is positive and sums to one. Memory grows with a, time with a² at
    worst. The all-ones row is always there, and H(X) bounds everything, so the budget may be spent before it begins.
    SolverError (failed) where the linear program cannot be solved.
    """
    facets = plane_facets(cone, prior)
    return None if facets is None else _Pairs(facets, bool(cone.equalities), prior, budget).run()


class _Pairs:
    """Rows that take part, the master over them, and the lowest bound so far."""

    def __init__(self, facets: FloatArray, equal: bool, prior: FloatArray, budget: Budget) -> None:
        one = np.ones(len(prior))
        sides = [FacetPairs.of(facet) for facet in facets]
        self.prior, self.budget = prior, budget
        self.sides = [side for side in sides if side.touches(facets)]
        self.singles = np.flatnonzero(~((np.abs(facets) if equal else facets) > ON_FACET).any(axis=0))
        self.rays = len(self.singles) + sum(len(side.u) * len(side.v) for side in self.sides)
        self.master = RestrictedMaster(one, method="dual")
        self.support: list[IntArray] = []
        self.entries: list[FloatArray] = []
        self.best = Certificate.of_entropy(prior, _ENTRY)
        self.add("all", np.arange(len(prior)), prior)
        for single in self.singles:
            self.add(int(single), np.array([single]), one[:1])

    def run(self) -> Paired:
        """Take in pairs until none is worth more than the duals say, or the budget is spent."""
        self.take([side.sweep(self.prior) for side in self.sides])
        answer = generate(self.master, [self.price], budget=self.budget)
        if answer.status == "time":
            return Paired(self.protocol(np.ones(1)), self.best, self.rays)
        answer.require("the linear program over pairs of values")
        return Paired(self.protocol(answer.point), self.best, self.rays)

    def price(self, answer: Answer) -> bool:
        """Price every ray there is: a bound, and per side the best pairs; whether any was missing, if in time."""
        duals = answer.multipliers
        worth = -duals / self.prior - np.log(self.prior)
        found = [side.best(worth, self.budget) for side in self.sides]
        self.budget.spend()
        if self.budget.over:
            return False
        peak = float(max([*worth[self.singles], *(price.max() for _, price in found)]))
        certificate = Certificate(duals, peak, _ENTRY, self.rays)
        if certificate.bound < self.best.bound:
            self.best = certificate
        return self.take([pairs[price > _ENTRY] for pairs, price in found])

    def take(self, pairs: list[IntArray]) -> bool:
        """Let pairs of positions (k, 2) per side take part that do not yet; whether there are any."""
        new = [
            self.add((number, i, j), *side.pair(i, j))
            for number, (side, more) in enumerate(zip(self.sides, pairs, strict=True))
            for i, j in sorted(map(tuple, more.tolist()))
        ]
        return any(new)

    def add(self, name: Hashable, support: IntArray, mass: FloatArray) -> bool:
        """One more row, of masses w on some values, which sum to one; whether it is new."""
        column = np.zeros(len(self.prior))
        column[support] = mass / self.prior[support]
        new = self.master.add(float(mass @ np.log(column[support])), column, name)
        if new:
            self.support.append(support)
            self.entries.append(column[support])
        return new

    def protocol(self, theta: FloatArray) -> csr_array:
        """The rows in use, as much of each as there is; columns sum to one."""
        from scipy.sparse import csr_array

        used = [k for k, amount in enumerate(theta) if amount * self.entries[k].max() > _UNUSED]
        data = np.concatenate([theta[k] * self.entries[k] for k in used])
        columns = np.concatenate([self.support[k] for k in used])
        data /= np.bincount(columns, data, len(self.prior))[columns]
        starts = np.cumsum([0, *(len(self.support[k]) for k in used)])
        return csr_array((data, columns, starts), shape=(len(used), len(self.prior)))


def plane_facets(cone: Cone, prior: FloatArray) -> FloatArray | None:
    """The one or two constraints that matter, on w (k, a); k = 0 when there are none; None if not planar.

    In w = prior·v a constraint matrix of rank 2 maps every unit vector to a point of a plane. While these points lie
    in an open half-plane, an extreme ray is a unit vector inside every facet, or a point of a facet between a unit
    vector outside and one inside.
    """
    constraints = cone.constraints(prior)
    if not len(constraints):
        return constraints
    left, singular, right = np.linalg.svd(constraints, full_matrices=False)
    rank = int((singular > _RANK * singular[0]).sum())
    if rank == 1 and (cone.equalities or (left[:, 0] < 0).all() or (left[:, 0] > 0).all()):
        return constraints[:1]
    if rank > 2 or cone.equalities or not _in_half_plane(right[:2]):
        return None
    turn = _angles((left * singular)[:, :2].T, -right[:2] @ prior)
    return constraints[[turn.argmin(), turn.argmax()]]


def _angles(points: FloatArray, axis: FloatArray) -> FloatArray:
    """Signed angles of (2, k) points from an axis.

    Every constraint is negative at the centre z, so normals lie within a right angle of -z, and the two that
    bound the plane cone are those turned farthest to either side.
    """
    across = axis[0] * points[1] - axis[1] * points[0]
    return np.asarray(np.arctan2(across, axis @ points))


def _in_half_plane(points: FloatArray) -> bool:
    """Whether the (2, a) points other than the origin lie in an open half-plane."""
    length = np.linalg.norm(points, axis=0)
    turn = np.sort(np.arctan2(*points[:, length > ON_FACET * length.max()]))
    gaps = np.diff(turn, append=turn[0] + 2 * np.pi)
    return bool(gaps.max() > np.pi * (1 + _RANK))
