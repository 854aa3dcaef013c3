"""Planar cones: which ones are, and which facets matter."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from funnel.optimise.cone import Cone
from funnel.optimise.pairs import plane_facets
from tests.support.cones import census, ldp, lip, perfect, prior_of, problems
from tests.support.rays import listed_rays, planar_rays
from tests.support.strategies import tables


def canonical(rays: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Masses w = p·v in a fixed order, so that two lists of rays can be compared."""
    mass = np.round(rays * prior, 7) + 0.0
    return np.unique(mass, axis=0)


@given(problems(secrets=2))
def test_closed_form_and_listing_list_the_same_rays(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    prior = prior_of(table)
    closed = planar_rays(cone, prior)
    listed = listed_rays(cone, prior)
    assert np.allclose(canonical(closed.toarray(), prior), canonical(listed.toarray(), prior), atol=1e-6)


@given(tables(secrets=2))
def test_closed_form_and_listing_agree_on_an_equality(table: np.ndarray) -> None:
    cone, prior = perfect(table), prior_of(table)
    closed = planar_rays(cone, prior)
    listed = listed_rays(cone, prior)
    assert np.allclose(canonical(closed.toarray(), prior), canonical(listed.toarray(), prior), atol=1e-6)


def test_independent_columns_are_all_allowed() -> None:
    """X independent of S: no inequality is ever reached, rank one."""
    table = np.outer([3, 5], [1, 2, 4])
    rays = planar_rays(lip(table, 0.5), prior_of(table))
    assert np.allclose(rays.toarray(), np.diag(1 / prior_of(table)))


def test_a_cone_without_constraints_is_the_orthant() -> None:
    rays = planar_rays(Cone(np.zeros((3, 4))), np.full(4, 0.25))
    assert np.allclose(rays.toarray(), 4 * np.eye(4))


def test_a_column_on_a_facet_is_a_ray_of_its_own() -> None:
    """v1 <= v2 + 2 v3 on three values, with a fourth that the constraint does not see."""
    rays = planar_rays(Cone(np.array([[1.0, -1.0, -2.0, 0.0]])), np.full(4, 0.25))
    directions = {tuple(np.round(ray / ray.max(), 9)) for ray in rays.toarray()}
    assert directions == {(0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (1, 0, 0.5, 0)}


def test_duplicated_columns_are_no_trouble() -> None:
    table = np.array([[30, 30, 1, 1], [2, 2, 20, 20]])
    rays = planar_rays(ldp(table, 0.5), prior_of(table))
    assert rays.shape[0] == 8
    assert (np.diff(rays.indptr) == 2).all()


def test_rank_two_is_not_enough_when_three_columns_surround_the_origin() -> None:
    """A v = 0 has then a solution with three entries, which the closed form does not know."""
    prior = np.full(3, 1 / 3)
    surrounded = Cone(np.array([[1.0, 0.0, -1.1], [0.0, 1.0, -1.1]]))
    assert plane_facets(surrounded, prior) is None
    rays = listed_rays(surrounded, prior).toarray()
    assert any((ray > 0).all() for ray in rays)


def test_higher_rank_is_not_planar() -> None:
    table = census("marital_status", "relationship")
    assert plane_facets(lip(table, 0.5), prior_of(table)) is None
