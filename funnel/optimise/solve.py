"""One door to the optimum over a cone: rays that theory knows, pairs of values, or rows priced until none is left."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.budget import Budget
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.search import columns
from funnel.optimise.cone import Cone
from funnel.optimise.cost import Method
from funnel.optimise.master import master
from funnel.optimise.pairs import best_of_pairs
from funnel.optimise.utility import information

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FINISH = 0.9
"""Share of the budget after which no more rows are looked for."""
_LAST = 10.0
"""Seconds for the last linear program: it is small, and without it there is nothing."""
_INSIDE = 1e-12
"""Share of a row's mass by which it may exceed a constraint."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A protocol (b, a) with columns that sum to one, its information, and a bound on the optimum (nats).

    `method` is the way it was found, `rays` how many rows there were to choose from, `nodes` how many boxes the proof
    looked at. `certificate` is what the bound rests on, unless a ceiling is lower.
    """

    protocol: FloatArray
    value: float
    bound: float
    method: Method
    rays: int
    nodes: int = 0
    certificate: Certificate | None = None

    @property
    def gap(self) -> float:
        """What the optimum may be worth more than this protocol (nats)."""
        return self.bound - self.value


def maximise(
    cone: Cone,
    prior: FloatArray,
    *,
    budget: Budget | float,
    gap: float = 1e-6,
    ceiling: float | None = None,
    rays: csr_array | None = None,
) -> Solution:
    """The most informative protocol among those whose rows all lie in the cone, and a bound on all of them.

    `prior` (a,) is positive and sums to one; `budget`, or its seconds, is for everything, and a number of seconds is
    never more than the `clock` leaves. b <= a. Rows meet the cone up to rounding errors: `integers.round_inward`
    brings them inside. `ceiling` (nats) is an upper bound known beforehand, `rays` (k, a) are all extreme rays where
    theory lists them. The search ends when bound and value differ by the share `gap` of H(X), or with what it has when
    the budget is spent: then the bound says how good that is. SolverError with status time or failed.
    """
    if prior.shape != (cone.dimension,) or prior.min() <= 0:
        raise ValueError("the prior is a positive number per coordinate of the cone")
    budget = Budget.of(budget)
    tolerance = gap * float(-prior @ np.log(prior))
    limit = math.inf if ceiling is None else ceiling
    problem = _Problem(cone, prior, budget, tolerance, limit)
    if rays is not None:
        return problem.known(rays)
    return problem.paired() or problem.priced()


@dataclass(frozen=True, eq=False)
class _Problem:
    """One problem and its terms; a way that does not serve gives None."""

    cone: Cone
    prior: FloatArray
    budget: Budget
    tolerance: float
    ceiling: float

    def paired(self) -> Solution | None:
        """The best protocol of pairs of values, for a planar cone."""
        found = (
            None if self.cone.lift is not None else best_of_pairs(self.cone, self.prior, budget=self.budget)
        )
        if found is None:
            return None
        value, proof = float(information(found.rows, self.prior).sum()), found.certificate
        bound = max(min(self.ceiling, proof.bound), value)
        return Solution(found.rows.toarray(), value, bound, "planar", found.rays, certificate=proof)

    def known(self, rays: csr_array) -> Solution:
        """The best protocol of all rays there are."""
        return self._solution("known", rays, self.budget)

    def priced(self) -> Solution:
        """The best protocol of the rows that were found in time."""
        found = columns(
            self.cone,
            self.prior,
            budget=self.budget.part(_FINISH),
            tolerance=self.tolerance,
            ceiling=self.ceiling,
            start=self._noisy(),
        )
        solution = self._solution("columns", found.rays, Budget(_LAST), found.certificate)
        return replace(solution, nodes=found.nodes)

    def _noisy(self) -> FloatArray | None:
        """Each value with as much noise as it needs (k, a): so there is a protocol whatever the budget."""
        if self.cone.equalities or self.cone.lift is not None:
            return None
        single = np.eye(self.cone.dimension)
        rows = single + self.cone.violation(single)[:, None]
        rows = rows / (rows @ self.prior)[:, None]
        excess = (rows * self.prior) @ self.cone.constraints(self.prior).T
        return np.asarray(rows[excess.max(axis=1, initial=0.0) <= _INSIDE])

    def _solution(
        self, method: Method, rays: csr_array | FloatArray, budget: Budget, proof: Certificate | None = None
    ) -> Solution:
        """The master over rays, and the bound that goes with them: without a proof, that of its duals."""
        optimum = master(rays, self.prior, budget=budget)
        if proof is None:
            proof = Certificate(optimum.duals, optimum.bound - float(optimum.duals.sum()), 0.0, 0)
        bound = max(min(self.ceiling, proof.bound), optimum.value)
        return Solution(optimum.protocol, optimum.value, bound, method, rays.shape[0], certificate=proof)
