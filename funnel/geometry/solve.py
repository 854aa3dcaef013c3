"""One door to the optimum over a cone: extreme rays by the cheapest way that serves, then the master."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from funnel.errors import SolverError
from funnel.geometry.columns import Certificate, columns
from funnel.geometry.cone import Cone
from funnel.geometry.enumeration import enumerated_rays, is_quick
from funnel.geometry.master import master
from funnel.geometry.planar import planar_rays
from funnel.geometry.utility import Utility, information
from funnel.model.joint import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Rung = Literal["known", "planar", "enumeration", "columns"]
"""Ways to the optimum: all rays from theory, in closed form, or listed; or rows priced until none is left to add."""
_LISTED = ((6, 256), (16, 14))
"""Dimension and constraints up to which listing all rays takes about a second, as a rule."""
_SHARE, _PATIENCE = 0.25, 4.0
"""Share of the time, and seconds, that listing may take before rows are priced instead."""
_FINISH = 0.9
"""Share of the time after which no more rows are looked for."""
_LAST = 10.0
"""Seconds at least for the last linear program: it is small, and without it there is nothing."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A protocol (b, a) with columns that sum to one, its utility, and a bound on the optimum (nats).

    `rung` is the way it was found, `rays` how many rows were listed or found, `nodes` how many boxes the proof
    looked at. `certificate` is what the bound rests on where rows were priced, unless a ceiling is lower.
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


def forecast(rank: int, dimension: int | None = None, constraints: int | None = None) -> Rung:
    """The rung that will serve a cone of these sizes, before any data is seen; lifted cones are priced.

    `rank` bounds the rank of the constraints. The data can only make the way cheaper.
    """
    if rank <= 2:
        return "planar"
    return (
        "columns" if dimension and constraints and not _is_listed(dimension, constraints) else "enumeration"
    )


def _is_listed(dimension: int, constraints: int) -> bool:
    """Whether listing all rays takes a second or so."""
    return is_quick(dimension, constraints) or any(
        dimension <= most and constraints <= rows for most, rows in _LISTED
    )


def maximise(
    cone: Cone,
    prior: FloatArray,
    *,
    time_limit: float,
    gap: float = 1e-6,
    utility: Utility = information,
    ceiling: float | None = None,
    rays: csr_array | None = None,
) -> Solution:
    """The protocol of largest utility among those whose rows all lie in the cone.

    `prior` (a,) is positive and sums to one; `time_limit` is in seconds, for everything. b <= a. Rows meet
    the cone up to rounding errors: `integers.round_inward` brings them inside. `ceiling` (nats) is an upper
    bound known beforehand, `rays` (k, a) are all extreme rays where theory lists them. Small cones are solved
    to the last digit; on others the search ends when bound and value differ by the share `gap` of H(X), or with
    what it has when the time is over: then the bound says how good that is. Other utilities than information
    are maximised over plain cones only, by listing.
    SolverError with status time, size or failed.
    """
    if prior.shape != (cone.dimension,) or prior.min() <= 0:
        raise ValueError("the prior is a positive number per coordinate of the cone")
    if cone.lift is not None and utility is not information:
        raise ValueError("only information is maximised over a lifted cone")
    task = _Task(
        cone, prior, time.monotonic(), time_limit, gap, utility, np.inf if ceiling is None else ceiling
    )
    if rays is not None:
        return task.listed("known", rays)
    planar = planar_rays(cone, prior) if cone.lift is None else None
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

    def listed_or_priced(self) -> Solution:
        """List the rays where that is cheap, or the only way; price rows otherwise."""
        if self.utility is not information:
            return self.listed(
                "enumeration", enumerated_rays(self.cone, self.prior, time_limit=self.time_limit)
            )
        number = len(self.cone.rows) + len(self.cone.equalities)
        if self.cone.lift is None and _is_listed(self.cone.dimension, number):
            try:
                patience = min(_SHARE * self.time_limit, _PATIENCE)
                rays = enumerated_rays(self.cone, self.prior, time_limit=patience)
                return self.listed("enumeration", rays)
            except SolverError:
                pass
        return self.priced()

    def listed(self, rung: Rung, rays: csr_array) -> Solution:
        """The best protocol of all rays there are."""
        return self._solution(rung, rays, self.begun + self.time_limit - time.monotonic())

    def priced(self) -> Solution:
        """The best protocol of the rows that were found in time."""
        from scipy.sparse import csr_array

        found = columns(
            self.cone,
            self.prior,
            deadline=self.begun + _FINISH * self.time_limit,
            tolerance=self.gap * float(-self.prior @ np.log(self.prior)),
            ceiling=self.ceiling,
        )
        return self._solution("columns", csr_array(found.rays), _LAST, found.certificate, found.nodes)

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
            proof,
        )
