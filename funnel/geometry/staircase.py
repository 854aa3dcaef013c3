"""The optimum over rows whose entries differ by a factor at most: the usual local differential privacy."""

from __future__ import annotations

import itertools

import numpy as np

from funnel.geometry.cone import Cone
from funnel.geometry.master import master
from funnel.geometry.solve import Solution, maximise
from funnel.model.joint import FloatArray

_LISTED = 12
"""Coordinates up to which all 2^a rays are listed."""


def staircase_cone(dimension: int, ratio: float) -> Cone:
    """v_x <= ratio · v_x' for all x, x' of a coordinates: a(a-1) inequalities."""
    eye = np.eye(dimension)
    differences = eye[:, None, :] - ratio * eye[None, :, :]
    return Cone(differences[~np.eye(dimension, dtype=bool)])


def staircase(prior: FloatArray, ratio: float, *, time_limit: float = 30.0) -> Solution:
    """The most informative protocol on a prior (a,) whose rows lie in the staircase cone.

    Its extreme rays are {1, ratio}^a (Kairouz, Oh and Viswanath), listed while they are few. SolverError.
    """
    from scipy.sparse import csr_array

    dimension = len(prior)
    if dimension > _LISTED:
        return maximise(staircase_cone(dimension, ratio), prior, time_limit=time_limit)
    rays = np.array(list(itertools.product([1.0, ratio], repeat=dimension)))[:-1]
    rays /= (rays @ prior)[:, None]
    found = master(csr_array(rays), prior, time_limit=time_limit)
    used = np.flatnonzero(found.theta)
    protocol = rays[used] * found.theta[used, None]
    return Solution(protocol / protocol.sum(axis=0), found.value, found.bound, "enumeration", len(rays))
