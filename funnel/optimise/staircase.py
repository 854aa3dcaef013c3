"""The optimum over rows whose entries differ by a factor at most: the usual local differential privacy."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Cone
from funnel.optimise.solve import Solution, maximise

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_LISTED = 12
"""Coordinates up to which all 2^a rays are listed."""
_SECONDS = 30.0


def staircase_cone(dimension: int, ratio: float) -> Cone:
    """v_x <= ratio · v_x' for all x, x' of a coordinates: a(a-1) inequalities."""
    return Cone.of_odds(np.eye(dimension), ratio)


def staircase_count(dimension: int) -> int | None:
    """How many rays `staircase_rays` lists; None where they are too many."""
    return 2**dimension - 1 if dimension <= _LISTED else None


def staircase_rays(prior: FloatArray, ratio: float) -> csr_array | None:
    """The extreme rays {1, ratio}^a (Kairouz, Oh and Viswanath) with prior·r = 1, (2^a - 1, a); None for many."""
    from scipy.sparse import csr_array

    if staircase_count(len(prior)) is None:
        return None
    rays = np.array(list(itertools.product([1.0, ratio], repeat=len(prior))))[:-1]
    return csr_array(rays / (rays @ prior)[:, None])


def staircase(prior: FloatArray, ratio: float) -> Solution:
    """The most informative protocol on a prior (a,) whose rows lie in the staircase cone. SolverError."""
    cone = staircase_cone(len(prior), ratio)
    return maximise(cone, prior, budget=_SECONDS, rays=staircase_rays(prior, ratio))
