"""Cones whose constraints span at most a plane, so that one or two of them matter."""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Cone

_RANK = 1e-10
"""Singular values below this share of the largest count as zero."""
ON_FACET = 1e-12
"""Coordinates below this share of a facet's largest coefficient lie on it."""


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
