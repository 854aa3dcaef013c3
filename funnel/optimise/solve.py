"""One door to the optimum over a cone: extreme rays by the cheapest way that serves, then the master."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray
from funnel.errors import SolverError
from funnel.measure import clock
from funnel.optimise import memory
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.proving import boxed
from funnel.optimise.columns.search import columns
from funnel.optimise.cone import Cone
from funnel.optimise.effort import Extent, Rung, effort
from funnel.optimise.listing.enumeration import enumerated_rays
from funnel.optimise.listing.pairs import Paired, best_of_pairs
from funnel.optimise.listing.planar import planar_rays
from funnel.optimise.master import Master, master
from funnel.optimise.utility import Utility, information

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_SHARE, _PATIENCE = 0.25, 4.0
"""Share of the time, and seconds, that listing may take before rows are priced instead: `effort` can be wrong."""
_FINISH = 0.9
"""Share of the time after which no more rows are looked for."""
_LAST = 10.0
"""Seconds at least for the last linear program: it is small, and without it there is nothing."""
_ROOM = 0.2
"""Share of the gap allowed by which the bound of a listed optimum may give way for a proof."""
_NEAR = 0.05
"""Nats below its worth in the optimum up to which a row may serve again when epsilon changes."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A protocol (b, a) with columns that sum to one, its utility, and a bound on the optimum (nats).

    `rung` is the way it was found, `rays` how many rows were listed or found, `nodes` how many boxes the proof
    looked at. `certificate` is what the bound rests on, unless a ceiling is lower.
    """

    protocol: FloatArray
    value: float
    bound: float
    rung: Rung
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
    time_limit: float,
    gap: float = 1e-6,
    utility: Utility = information,
    ceiling: float | None = None,
    rays: csr_array | None = None,
    start: FloatArray | None = None,
) -> Solution:
    """The protocol of largest utility among those whose rows all lie in the cone.

    `prior` (a,) is positive and sums to one; `time_limit` is in seconds, for everything, and never more than the
    `clock` leaves. b <= a. Rows meet the cone up to rounding errors: `integers.round_inward` brings them inside.
    `ceiling` (nats) is an upper bound known beforehand, `rays` (k, a) are all extreme rays where theory lists them,
    `start` (k, a) rows to begin with, such as those of a smaller epsilon: what is outside the cone is left out.
    `effort` chooses the way. The search ends when bound and value differ by the share `gap` of H(X), or with what it
    has when the time is over: then the bound says how good that is. Where all rays are listed the value is exact, but
    the bound still rests on a proof by boxes, since cdd can lose a ray when counts differ by many orders. Inside
    `memory.remembering` it begins with what earlier searches found. Other utilities than information are maximised
    over plain cones only, by listing.
    SolverError with status time, size or failed.
    """
    if prior.shape != (cone.dimension,) or prior.min() <= 0:
        raise ValueError("the prior is a positive number per coordinate of the cone")
    if cone.lift is not None and utility is not information:
        raise ValueError("only information is maximised over a lifted cone")
    time_limit, limit = min(time_limit, clock.left()), np.inf if ceiling is None else ceiling
    task = _Task(cone, prior, time.monotonic(), time_limit, gap, utility, limit, start)
    if rays is not None:
        return task.listed("known", rays)
    if cone.lift is None and utility is information:
        paired = best_of_pairs(cone, prior, deadline=task.begun + time_limit)
        if paired is not None:
            return task.paired(paired)
    planar = planar_rays(cone, prior) if utility is not information else None
    if planar is not None:
        return task.listed("planar", planar)
    return task.listed_or_priced()


@dataclass(frozen=True, eq=False)
class _Task:
    """One problem and its terms."""

    cone: Cone
    prior: FloatArray
    begun: float
    time_limit: float
    gap: float
    utility: Utility
    ceiling: float
    start: FloatArray | None

    def listed_or_priced(self) -> Solution:
        """List the rays where that is cheap, or the only way; price rows otherwise."""
        if self.utility is not information:
            return self.listed(
                "enumeration", enumerated_rays(self.cone, self.prior, time_limit=self.time_limit)
            )
        if effort(Extent.of(self.cone, self.prior)).rung == "enumeration":
            try:
                patience = min(_SHARE * self.time_limit, _PATIENCE)
                listed = self.listed(
                    "enumeration", enumerated_rays(self.cone, self.prior, time_limit=patience)
                )
                return self.proven(listed) or self.priced(listed.protocol)
            except SolverError:
                pass
        return self.priced()

    def proven(self, listed: Solution) -> Solution | None:
        """A listed optimum whose bound does not rest on the list, as floats can lose a ray; None if it cannot be."""
        if listed.certificate is None:
            return listed
        tolerance = _ROOM * self.gap * float(-self.prior @ np.log(self.prior))
        deadline = self.begun + _SHARE * self.time_limit + _PATIENCE
        found = boxed(self.cone, self.prior, listed.certificate, tolerance=tolerance, deadline=deadline)
        if found is None:
            return None
        bound = max(min(self.ceiling, found.bound), listed.value)
        return replace(listed, bound=bound, nodes=found.nodes, certificate=found)

    def listed(self, rung: Rung, rays: csr_array) -> Solution:
        """The best protocol of all rays there are."""
        return self._solution(rung, rays, self.begun + self.time_limit - time.monotonic())

    def paired(self, found: Paired) -> Solution:
        """The best protocol of pairs of values."""
        value, proof = float(self.utility(found.rows, self.prior).sum()), found.certificate
        bound = max(min(self.ceiling, proof.bound), value)
        return Solution(found.rows.toarray(), value, bound, "planar", found.rays, certificate=proof)

    def priced(self, listed: FloatArray | None = None) -> Solution:
        """The best protocol of the rows that were found in time, those `listed` among them."""
        from scipy.sparse import csr_array

        found = columns(
            self.cone,
            self.prior,
            deadline=self.begun + _FINISH * self.time_limit,
            tolerance=self.gap * float(-self.prior @ np.log(self.prior)),
            ceiling=self.ceiling,
            start=self._known_rows() if listed is None else _normalised(listed, self.prior),
        )
        duals = found.certificate.duals
        near = information(csr_array(found.rays), self.prior) > found.rays @ duals - _NEAR
        memory.keep(self.cone, self.prior, found.rays[near])
        return self._solution("columns", csr_array(found.rays), _LAST, found.certificate, found.nodes)

    def _known_rows(self) -> FloatArray:
        """Rows of the cone that are known before the search, so that there is a protocol whatever the time: each value
        with as much noise as it needs, what earlier searches found, and what the caller knows."""
        known = [memory.recall(self.cone, self.prior)]
        if self.start is not None:
            known.append(memory.allowed(self.cone, self.prior, self.start))
        if not (self.cone.equalities or self.cone.lift is not None):
            single = np.eye(self.cone.dimension)
            known.append(memory.allowed(self.cone, self.prior, single + self.cone.violation(single)[:, None]))
        return np.vstack(known)

    def _solution(
        self, rung: Rung, rays: csr_array, seconds: float, proof: Certificate | None = None, nodes: int = 0
    ) -> Solution:
        """The master over rays, and the bound that goes with them."""
        optimum = master(rays, self.prior, time_limit=seconds, utility=self.utility)
        used = np.flatnonzero(optimum.theta)
        protocol = rays[used].toarray() * optimum.theta[used, None]
        bound = min(self.ceiling, optimum.bound if proof is None else proof.bound)
        return Solution(
            protocol / protocol.sum(axis=0),
            optimum.value,
            max(bound, optimum.value),
            rung,
            rays.shape[0],
            nodes,
            self._certificate(optimum) if proof is None else proof,
        )

    def _certificate(self, optimum: Master) -> Certificate | None:
        """The duals of all rays there are, and the highest price of one."""
        if self.utility is not information:
            return None
        peak = optimum.bound - float(optimum.duals.sum())
        return Certificate(optimum.duals, peak, 0.0, 0)


def _normalised(rows: FloatArray, prior: FloatArray) -> FloatArray:
    """Rows (k, a) scaled to prior·v = 1."""
    return np.asarray(rows / (rows @ prior)[:, None])
