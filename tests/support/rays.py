"""All extreme rays of a cone, listed: what searches that list nothing are compared with."""

from __future__ import annotations

import cdd
import numpy as np
from scipy.sparse import csr_array

from funnel.optimise.cone import Cone
from funnel.optimise.pairs import ON_FACET, plane_facets


def listed_rays(cone: Cone, prior: np.ndarray) -> csr_array:
    """Sparse rows (k, a) with prior·r = 1, by the double description method, deepest cuts first."""
    constraints = cone.constraints(prior)
    constraints = constraints[np.argsort(-(constraints @ prior), kind="stable")]
    halfspaces = np.vstack([np.eye(len(prior)), -constraints])
    halfspaces = np.hstack([np.zeros((len(halfspaces), 1)), halfspaces])
    exact = range(len(prior), len(halfspaces)) if cone.equalities else ()
    matrix = cdd.matrix_from_array(halfspaces.tolist(), lin_set=exact, rep_type=cdd.RepType.INEQUALITY)
    polyhedron = cdd.polyhedron_from_matrix(matrix, row_order=cdd.RowOrderType.MIN_INDEX)
    mass = np.array(cdd.copy_generators(polyhedron).array, float).reshape(-1, len(prior) + 1)[:, 1:]
    mass = mass[mass.sum(axis=1) > 0]
    mass /= mass.sum(axis=1, keepdims=True)
    mass = np.where(mass > 1e-12, mass, 0.0)
    mass /= mass.sum(axis=1, keepdims=True)
    _, first = np.unique(np.round(mass, 10), axis=0, return_index=True)
    return csr_array(mass[np.sort(first)] / prior)


def planar_rays(cone: Cone, prior: np.ndarray) -> csr_array:
    """The same for a planar cone, in closed form: one value inside every facet, or two on either side of one."""
    facets = plane_facets(cone, prior)
    assert facets is not None
    outside, inside = facets > ON_FACET, facets < -ON_FACET
    singles = np.flatnonzero(~(outside | inside if cone.equalities else outside).any(axis=0))
    pairs = [edge(facet, facets) for facet in facets]
    support = np.concatenate([np.column_stack([singles, singles]), *(index for index, _ in pairs)])
    unit = np.column_stack([np.ones(len(singles)), np.zeros(len(singles))])
    weight = np.concatenate([unit, *(weight for _, weight in pairs)])
    starts = np.arange(0, support.size + 1, 2)
    values = weight / prior[support]
    rays = csr_array((values.ravel(), support.ravel(), starts), shape=(len(support), len(prior)))
    rays.eliminate_zeros()
    return rays


def edge(facet: np.ndarray, facets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rays on one facet that no other cuts off: pairs of coordinates (k, 2) and their weights on w."""
    outside, inside = np.flatnonzero(facet > ON_FACET), np.flatnonzero(facet < -ON_FACET)
    pair = np.column_stack([np.repeat(outside, len(inside)), np.tile(inside, len(outside))])
    weight = np.abs(facet[pair[:, ::-1]])
    weight /= weight.sum(axis=1, keepdims=True)
    kept = np.ones(len(pair), bool)
    for other in facets:
        kept &= (other[pair] * weight).sum(axis=1) <= ON_FACET
    return pair[kept], weight[kept]
