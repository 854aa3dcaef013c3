"""Extreme rays in closed form, for cones whose constraints span at most a plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.errors import SolverError
from funnel.optimise.cone import Cone

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_PAIRS = 20_000_000
"""Most rays that are listed; each takes about 24 bytes here and several times that in the linear program."""
_RANK = 1e-10
"""Singular values below this share of the largest count as zero."""
ON_FACET = 1e-12
"""Coordinates below this share of a facet's largest coefficient lie on it."""


def planar_rays(cone: Cone, prior: FloatArray) -> csr_array | None:
    """All extreme rays of a planar cone as sparse rows (k, a) with prior·r = 1; None when it is not planar.

    In w = prior·v a constraint matrix of rank 2 maps every unit vector to a point of a plane. While these
    points lie in an open half-plane, a ray is a unit vector inside every facet, or a point of a facet between
    a unit vector outside and one inside. SolverError (size) beyond MAX_PAIRS candidates.
    """
    facets = plane_facets(cone, prior)
    if facets is None:
        return None
    outside, inside = facets > ON_FACET, facets < -ON_FACET
    _refuse_size(int((outside.sum(axis=1) * inside.sum(axis=1)).sum()))
    singles = np.flatnonzero(~(outside | inside if cone.equalities else outside).any(axis=0))
    pairs = [_edge(facet, facets) for facet in facets]
    support = np.concatenate([np.column_stack([singles, singles]), *(index for index, _ in pairs)])
    unit = np.column_stack([np.ones(len(singles)), np.zeros(len(singles))])
    weight = np.concatenate([unit, *(weight for _, weight in pairs)])
    return _sparse(support, weight / prior[support], len(prior))


def plane_facets(cone: Cone, prior: FloatArray) -> FloatArray | None:
    """The one or two constraints that matter, on w; (0, a) when there are none; None if not planar."""
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


def _edge(facet: FloatArray, facets: FloatArray) -> tuple[IntArray, FloatArray]:
    """Rays on one facet: pairs of coordinates (k, 2) and their weights on w, which sum to one."""
    outside, inside = np.flatnonzero(facet > ON_FACET), np.flatnonzero(facet < -ON_FACET)
    pair = np.column_stack([np.repeat(outside, len(inside)), np.tile(inside, len(outside))])
    weight = np.abs(facet[pair[:, ::-1]])
    weight /= weight.sum(axis=1, keepdims=True)
    kept = np.ones(len(pair), bool)
    for other in facets:
        kept &= (other[pair] * weight).sum(axis=1) <= ON_FACET
    return pair[kept], weight[kept]


def _refuse_size(pairs: int) -> None:
    """SolverError when the pairs do not fit."""
    if pairs > MAX_PAIRS:
        raise SolverError(
            "solver-size",
            f"the cone has up to {pairs:,} extreme rays, more than the {MAX_PAIRS:,} that are listed",
            status="size",
            advice="Shrink the public alphabet with `bins` or `top`, or use mechanism: randomised-response.",
        )


def _sparse(support: IntArray, values: FloatArray, dimension: int) -> csr_array:
    """Two coordinates per row as a sparse matrix, without explicit zeros."""
    from scipy.sparse import csr_array

    starts = np.arange(0, support.size + 1, 2)
    rays = csr_array((values.ravel(), support.ravel(), starts), shape=(len(support), dimension))
    rays.eliminate_zeros()
    return rays
