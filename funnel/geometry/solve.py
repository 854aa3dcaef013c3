"""One door to the optimum over a cone: extreme rays by the cheapest way that serves, then the master."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from funnel.geometry.cone import Cone
from funnel.geometry.enumeration import enumerated_rays
from funnel.geometry.master import master
from funnel.geometry.planar import planar_rays
from funnel.geometry.utility import Utility, information
from funnel.model.joint import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Rung = Literal["planar", "enumeration"]
"""Ways to the optimum, cheapest first. One that prices rays instead of listing them would come third."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A protocol (b, a) with columns that sum to one, its utility, a bound on the optimum (nats), the way."""

    protocol: FloatArray
    value: float
    bound: float
    rung: Rung
    rays: int


def forecast(rank: int) -> Rung:
    """The rung that will serve a cone whose constraints have at most this rank, before any data is seen.

    The data can only make the way cheaper.
    """
    return "planar" if rank <= 2 else "enumeration"


def maximise(cone: Cone, prior: FloatArray, *, time_limit: float, utility: Utility = information) -> Solution:
    """The protocol of largest utility among those whose rows all lie in the cone.

    `prior` (a,) is positive and sums to one; `time_limit` is in seconds, for everything. b <= a. Rows meet
    the cone up to rounding errors: `integers.round_inward` brings them inside. SolverError with status time,
    size or failed.
    """
    if prior.shape != (cone.dimension,) or prior.min() <= 0:
        raise ValueError("the prior is a positive number per coordinate of the cone")
    deadline = time.monotonic() + time_limit
    rung, rays = _rays(cone, prior, time_limit)
    optimum = master(rays, prior, time_limit=deadline - time.monotonic(), utility=utility)
    used = np.flatnonzero(optimum.theta)
    protocol = rays[used].toarray() * optimum.theta[used, None]
    return Solution(protocol / protocol.sum(axis=0), optimum.value, optimum.bound, rung, rays.shape[0])


def _rays(cone: Cone, prior: FloatArray, time_limit: float) -> tuple[Rung, csr_array]:
    """The extreme rays, and the rung that found them."""
    rays = planar_rays(cone, prior)
    if rays is not None:
        return "planar", rays
    return "enumeration", enumerated_rays(cone, prior, time_limit=time_limit)
