"""What may be a cone, and how far outside it a row is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import SolverError
from funnel.optimise.cone import Cone, intersection
from funnel.optimise.linear.highs import Program
from tests.support.cones import ldp, lifted_ldp, lip, perfect, prior_of, problems
from tests.support.strategies import tables


def test_all_ones_must_be_strictly_inside() -> None:
    with pytest.raises(ValueError, match="strictly inside"):
        Cone(np.array([[1.0, -0.5]]))


def test_a_bound_that_floats_cannot_tell_from_zero_is_refused() -> None:
    with pytest.raises(SolverError) as caught:
        lip(np.array([[30, 10], [20, 40]]), 1e-15)
    assert (caught.value.code, caught.value.status) == ("precision", "precision")


def test_equalities_hold_at_all_ones() -> None:
    with pytest.raises(ValueError, match="equality"):
        Cone(np.zeros((0, 2)), ((1, -2),))
    with pytest.raises(ValueError, match="equality"):
        Cone(np.zeros((0, 3)), ((1, -1),))


def test_inequalities_and_equalities_do_not_mix() -> None:
    with pytest.raises(ValueError, match="not both"):
        Cone(np.array([[1.0, -2.0]]), ((1, -1),))


@pytest.mark.parametrize("rows", [np.zeros((2, 0)), np.zeros(3), np.array([[np.nan, -1.0]])])
def test_rows_are_a_finite_matrix(rows: np.ndarray) -> None:
    with pytest.raises(ValueError, match="finite matrix"):
        Cone(rows)


def test_empty_rows_constrain_nothing() -> None:
    cone = Cone(np.array([[0.0, 0.0], [1.0, -2.0]]))
    assert cone.normalised().tolist() == [[1.0, -2.0]]
    assert cone.constraints(np.array([0.5, 0.5])).tolist() == [[0.5, -1.0]]


@given(problems())
def test_violation_is_the_uninformative_mass_that_repairs(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    outside = np.eye(table.shape[1])
    mass = cone.violation(outside)
    assert (cone.violation(outside + mass[:, None]) <= 1e-9).all()
    short = mass > 1e-6
    assert (cone.violation(outside + 0.99 * mass[:, None])[short] > 0).all()


@given(tables())
def test_residual_of_an_equality_is_relative(table: np.ndarray) -> None:
    cone = perfect(table)
    assert cone.violation(np.ones((1, table.shape[1])))[0] <= 1e-12
    assert cone.violation(np.eye(table.shape[1])).max() <= 1


def test_constraints_are_scaled_on_mass() -> None:
    table = np.array([[1, 2, 400], [300, 2, 1]])
    scaled = lip(table, 0.5).constraints(prior_of(table))
    assert np.allclose(np.abs(scaled).max(axis=1), 1)
    assert (scaled @ prior_of(table) < 0).all()


@given(problems(), st.integers(0, 2**32 - 1))
def test_the_cone_is_a_cone(problem: tuple[np.ndarray, Cone], seed: int) -> None:
    """Closed under sums and scaling, and under post-processing of outputs, which merges rows."""
    table, cone = problem
    rows = np.random.default_rng(seed).exponential(size=(3, table.shape[1]))
    rows += cone.violation(rows)[:, None]
    assert cone.violation(7 * rows).max() <= 1e-9
    assert cone.violation(rows.sum(axis=0, keepdims=True)).max() <= 1e-9


def test_a_negative_entry_is_a_violation() -> None:
    assert Cone(np.zeros((0, 2))).violation(np.array([[-0.25, 1.0], [0.0, 1.0]])).tolist() == [0.25, 0.0]


@given(tables(), st.floats(0.05, 2), st.integers(0, 2**32 - 1))
def test_a_lifted_cone_is_its_shadow(table: np.ndarray, epsilon: float, seed: int) -> None:
    """Membership by linear programs is membership by inequalities."""
    plain, lifted = ldp(table, epsilon), lifted_ldp(table, epsilon)
    rows = np.random.default_rng(seed).exponential(size=(3, table.shape[1])) ** 4
    assert lifted.violation(rows) == pytest.approx(plain.violation(rows), rel=1e-6, abs=1e-8 * rows.max())
    assert lifted.violation(-rows) == pytest.approx(plain.violation(-rows), rel=1e-6, abs=1e-8 * rows.max())


@given(tables(), st.floats(0.05, 2), st.integers(0, 2**32 - 1))
def test_facets_of_a_lifted_cone_hold_in_it_and_are_met_by_what_is_outside(
    table: np.ndarray, epsilon: float, seed: int
) -> None:
    plain, lifted = ldp(table, epsilon), lifted_ldp(table, epsilon)
    rows = np.random.default_rng(seed).exponential(size=(3, table.shape[1])) ** 4
    facets = lifted.facets(rows)
    inside = rows + plain.violation(rows)[:, None]
    assert facets.sum(axis=1) == pytest.approx(-np.ones(len(facets)))
    assert (inside @ facets.T).max(initial=-np.inf) <= 1e-8 * rows.max()
    seen = (rows @ facets.T).max(axis=1, initial=0.0).clip(min=0)
    assert seen == pytest.approx(plain.violation(rows), rel=1e-6, abs=1e-8 * rows.max())


def test_the_normalised_inequalities_of_a_lifted_cone_hold_in_it() -> None:
    table = np.array([[30, 10, 5], [20, 40, 7]])
    facets = lifted_ldp(table, 0.5).normalised()
    assert {tuple(row) for row in facets.round(9)} <= {
        tuple(row) for row in ldp(table, 0.5).normalised().round(9)
    }
    assert len(facets)


@given(tables(), st.integers(0, 2**32 - 1))
def test_an_intersection_keeps_auxiliaries_apart(table: np.ndarray, seed: int) -> None:
    cones = [lifted_ldp(table, 0.3), lip(table, 0.2), lifted_ldp(table[::-1], 0.5)]
    both = intersection(cones)
    assert both.lift is not None
    assert both.lift.shape == (len(both.rows), 2)
    rows = np.random.default_rng(seed).exponential(size=(3, table.shape[1]))
    each = np.max([cone.violation(rows) for cone in cones], axis=0)
    assert both.violation(rows) == pytest.approx(each, rel=1e-6, abs=1e-7)


def test_a_lifted_cone_has_all_ones_strictly_inside() -> None:
    with pytest.raises(ValueError, match="strictly inside"):
        Cone(np.array([[1.0, 1.0]]), lift=np.zeros((1, 1)))
    with pytest.raises(ValueError, match="strictly inside"):
        Cone(np.array([[1.0, 0.0], [0.0, -0.5]]), lift=np.array([[-1.0], [1.0]]))
    table = np.array([[30, 10], [20, 40]])
    with pytest.raises(SolverError) as caught:
        lifted_ldp(table, 1e-13)
    assert caught.value.status == "precision"


@pytest.mark.parametrize("lift", [np.zeros(2), np.zeros((3, 1)), np.full((2, 1), np.inf)])
def test_a_lift_fits_its_rows(lift: np.ndarray) -> None:
    with pytest.raises(ValueError, match="finite matrix"):
        Cone(np.array([[1.0, -2.0], [-2.0, 1.0]]), lift=lift)


def test_a_lift_without_auxiliaries_is_none() -> None:
    rows = np.array([[1.0, -2.0]])
    cone = Cone(rows, lift=np.zeros((1, 0)))
    assert cone.lift is None
    assert cone.constraints(np.full(2, 0.5)).tolist() == Cone(rows).constraints(np.full(2, 0.5)).tolist()


def test_a_lifted_cone_has_no_list_of_constraints_on_the_row_alone() -> None:
    cone = lifted_ldp(np.array([[30, 10], [20, 40]]), 0.5)
    with pytest.raises(ValueError, match="lifted"):
        cone.constraints(np.full(2, 0.5))


def test_the_solver_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    cone = lifted_ldp(np.array([[30, 10], [20, 40]]), 0.5)
    monkeypatch.setattr(Program, "_status", lambda _: "failed")
    with pytest.raises(SolverError) as caught:
        cone.violation(np.eye(2))
    assert (caught.value.code, caught.value.status) == ("solver-failed", "failed")
