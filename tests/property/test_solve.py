"""The optimum over a cone: known numbers, theorems, and every way it can be refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from funnel.errors import SolverError
from funnel.measure.information import kept_information
from funnel.optimise import master as module
from funnel.optimise.cone import Cone
from funnel.optimise.linear.highs import Answer, Status
from funnel.optimise.master import master
from funnel.optimise.solve import maximise
from funnel.optimise.utility import information_slope, worth
from tests.support.cones import CONES, census, entropy, ldp, lip, perfect, prior_of, problems
from tests.support.rays import listed_rays
from tests.support.strategies import tables


def optimum(table: np.ndarray, kind: str, epsilon: float) -> float:
    """The certified optimum in nats."""
    solution = maximise(CONES[kind](table, epsilon), prior_of(table), budget=60)
    assert solution.gap <= 1e-6 * entropy(prior_of(table))
    return solution.value


# Numbers that were computed elsewhere


@pytest.mark.parametrize(
    ("a", "kind", "epsilon", "expected"),
    [
        (3, "ldp", 0.5, 0.6353506656),
        (3, "ldp", 1.0, 0.9264096825),
        (3, "lip", 0.5, 0.8313041774),
        (3, "lip", 1.0, 1.0311916867),
        (5, "ldp", 0.5, 1.3534727400),
        (5, "lip", 0.5, 1.3775375712),
    ],
)
def test_small_random_tables(a: int, kind: str, epsilon: float, expected: float) -> None:
    table = np.random.default_rng(1).uniform(size=(2, a))
    assert optimum(table, kind, epsilon) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("secret", "public", "kind", "expected"),
    [
        ("occupation", "sex", "lip", (0.1168261, 0.3518113, 0.7329280)),
        ("occupation", "sex", "ldp", (0.0472907, 0.1741043, 0.5249947)),
        ("occupation", "relationship", "lip", (0.6368990, 0.8590300, 0.9507117)),
        ("occupation", "relationship", "ldp", (0.4361629, 0.7110578, 0.9173919)),
        ("marital_status", "relationship", "lip", (0.4235522, 0.6237563, 0.8231183)),
        ("marital_status", "relationship", "ldp", (0.3383934, 0.4433724, 0.6991621)),
        ("marital_status", "education", "lip", (0.8588399, 0.9397998, 0.9776523)),
        ("marital_status", "education", "ldp", (0.7812089, 0.9108032, 0.9643750)),
    ],
)
def test_census(secret: str, public: str, kind: str, expected: tuple[float, ...]) -> None:
    table = census(secret, public)
    kept = [optimum(table, kind, epsilon) / entropy(prior_of(table)) for epsilon in (0.5, 1.0, 2.0)]
    assert kept == pytest.approx(expected, abs=6e-8)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("lip", (0.93465426, 0.96553650, 0.98836826)), ("ldp", (0.91466155, 0.94470823, 0.97915636))],
)
def test_a_binary_secret_of_a_hundred_values(kind: str, expected: tuple[float, ...]) -> None:
    """Dirichlet(½), seed 0, as a census of 32,561 records drawn from it with the same generator."""
    rng = np.random.default_rng(0)
    table = rng.multinomial(32561, rng.dirichlet(np.full(200, 0.5))).reshape(2, 100)
    kept = [optimum(table, kind, epsilon) / entropy(prior_of(table)) for epsilon in (0.5, 1.0, 2.0)]
    assert kept == pytest.approx(expected, abs=6e-9)


def test_two_values_by_hand() -> None:
    """a = c = 2, S = X uniform: the optimum is randomised response with odds e^ε."""
    solution = maximise(ldp(np.eye(2), 1.0), np.full(2, 0.5), budget=60)
    keep = np.e / (1 + np.e)
    assert sorted(solution.protocol.ravel()) == pytest.approx([1 - keep, 1 - keep, keep, keep])
    assert solution.value == pytest.approx(np.log(2) - entropy(np.array([keep, 1 - keep])))
    assert (solution.method, solution.rays) == ("planar", 2)


def test_tens_of_thousands_of_rays() -> None:
    """A binary secret of three hundred values, and three hundred outputs at most."""
    table = np.random.default_rng(0).dirichlet(np.full(600, 0.5)).reshape(2, 300)
    solution = maximise(lip(table, 0.5), prior_of(table), budget=60)
    assert solution.rays == 41124
    assert len(solution.protocol) <= 300
    assert solution.bound - solution.value <= 1e-8
    assert solution.value == pytest.approx(4.9594295325, abs=1e-8)


# Theorems


@settings(deadline=None)
@given(problems())
def test_the_protocol_is_one_and_the_bound_bounds_it(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    prior = prior_of(table)
    solution = maximise(cone, prior, budget=60)
    assert solution.protocol.shape[0] <= table.shape[1]
    assert np.abs(solution.protocol.sum(axis=0) - 1).max() <= 1e-12
    assert solution.protocol.min() >= 0
    assert cone.violation(solution.protocol).max() <= 1e-7
    assert solution.value <= solution.bound <= solution.value + 1e-6 * entropy(prior)
    assert solution.value == pytest.approx(kept_information(prior, solution.protocol), abs=1e-9)
    assert solution.value <= entropy(prior) + 1e-9


@settings(deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_no_protocol_in_the_cone_beats_the_bound(problem: tuple[np.ndarray, Cone], seed: int) -> None:
    """A random protocol, mixed with the uninformative one until it is inside."""
    table, cone = problem
    prior = prior_of(table)
    solution = maximise(cone, prior, budget=60)
    rows = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), size=table.shape[1]).T
    rows = (rows + cone.violation(rows)[:, None]) / (1 + cone.violation(rows).sum())
    assert kept_information(prior, rows) <= solution.bound + 1e-9


@pytest.mark.long
@settings(deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_names_of_values_do_not_matter(problem: tuple[np.ndarray, Cone], random: object) -> None:
    table, cone = problem
    order = np.arange(table.shape[1])
    random.shuffle(order)  # type: ignore[attr-defined]
    prior = prior_of(table)
    turned = maximise(Cone(cone.rows[:, order]), prior[order], budget=60)
    assert turned.value == pytest.approx(maximise(cone, prior, budget=60).value, abs=1e-8)


@pytest.mark.long
@settings(deadline=None)
@given(tables(), st.sampled_from(sorted(CONES)), st.tuples(st.floats(0.05, 3), st.floats(0.05, 3)))
def test_a_larger_cone_holds_no_less(table: np.ndarray, kind: str, pair: tuple[float, float]) -> None:
    prior = prior_of(table)
    small, large = (maximise(CONES[kind](table, epsilon), prior, budget=60) for epsilon in sorted(pair))
    assert small.value <= large.bound + 1e-9


@pytest.mark.long
@settings(deadline=None)
@given(tables(), st.floats(0.05, 2))
def test_ldp_lies_inside_lip_inside_twice_ldp(table: np.ndarray, epsilon: float) -> None:
    """[DS] Lemma 1."""
    prior = prior_of(table)
    inner = maximise(ldp(table, epsilon), prior, budget=60)
    middle = maximise(lip(table, epsilon), prior, budget=60)
    outer = maximise(ldp(table, 2 * epsilon), prior, budget=60)
    assert inner.value <= middle.bound + 1e-9
    assert middle.value <= outer.bound + 1e-9


@settings(deadline=None)
@given(tables(secrets=2))
def test_an_equality_is_the_limit_of_its_inequalities(table: np.ndarray) -> None:
    prior = prior_of(table)
    exact = maximise(perfect(table), prior, budget=60)
    near = maximise(lip(table, 1e-4), prior, budget=60)
    assert exact.value <= near.bound + 1e-9
    assert np.abs(exact.protocol.sum(axis=0) - 1).max() <= 1e-12


def test_identical_values_need_no_merging() -> None:
    table = np.array([[10, 10, 30], [20, 20, 5]])
    merged = np.array([[20, 30], [40, 5]])
    twin, single = optimum(table, "lip", 0.5), optimum(merged, "lip", 0.5)
    assert twin == pytest.approx(single + prior_of(merged)[0] * np.log(2))


def test_a_single_value_says_nothing() -> None:
    solution = maximise(lip(np.array([[3], [4]]), 0.5), np.ones(1), budget=60)
    assert solution.value == pytest.approx(0, abs=1e-15)
    assert solution.protocol.tolist() == [[1.0]]


# Utilities


@given(tables(), st.integers(0, 2**32 - 1))
def test_information_is_mutual_information(table: np.ndarray, seed: int) -> None:
    prior = prior_of(table)
    protocol = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), size=len(prior)).T
    assert worth(protocol, prior) == pytest.approx(kept_information(prior, protocol), abs=1e-12)


@given(tables(), st.integers(0, 2**32 - 1), st.floats(0.01, 100))
def test_information_is_sublinear(table: np.ndarray, seed: int, factor: float) -> None:
    prior, rng = prior_of(table), np.random.default_rng(seed)
    one, two = rng.exponential(size=(2, 1, len(prior)))
    assert worth(factor * one, prior) == pytest.approx(factor * worth(one, prior), abs=1e-9)
    assert worth(one + two, prior) <= worth(one, prior) + worth(two, prior) + 1e-9
    tangent = float((information_slope(one, prior) * two).sum())
    assert tangent <= worth(two, prior) + 1e-9


# Refusals


@pytest.mark.parametrize("prior", [np.ones(3), np.array([1.0, 0.0])])
def test_the_prior_must_fit(prior: np.ndarray) -> None:
    with pytest.raises(ValueError, match="prior"):
        maximise(lip(np.array([[3, 1], [1, 3]]), 0.5), prior, budget=60)


def test_no_time_left_is_a_status() -> None:
    with pytest.raises(SolverError) as caught:
        master(csr_array(np.eye(2)), np.ones(2), budget=0)
    assert caught.value.status == "time"


def test_rays_that_do_not_span_the_protocol_are_a_status() -> None:
    with pytest.raises(SolverError) as caught:
        master(csr_array(np.array([[2.0, 0.0]])), np.full(2, 0.5), budget=60)
    assert (caught.value.code, caught.value.status) == ("solver-failed", "empty")


@pytest.mark.parametrize(
    ("status", "ours"), [("time", "time"), ("empty", "empty"), ("unbounded", "failed"), ("failed", "failed")]
)
def test_a_value_is_never_read_without_its_status(status: Status, ours: str) -> None:
    answer = Answer(status, np.zeros(1))
    assert not answer.optimal
    for name in ("point", "multipliers", "optimum"):
        with pytest.raises(SolverError, match=status) as caught:
            getattr(answer, name)
        assert caught.value.status == ours


def test_equations_that_floats_make_redundant_are_met_less_closely() -> None:
    """Three independent equations on six values whose masses differ by a factor of ten thousand."""
    table = np.array([[642, 0, 0, 2, 0, 1], [1, 1, 1, 0, 0, 0], [0, 26609, 0, 0, 1, 0]])
    cone = perfect(table)
    solution = maximise(cone, prior_of(table), budget=60)
    assert np.abs(solution.protocol.sum(axis=0) - 1).max() <= 1e-12
    assert cone.violation(solution.protocol).max() <= 1e-9
    assert solution.value == pytest.approx(0.00118167, abs=1e-8)


def test_a_bound_from_poor_duals_is_still_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound trusts nothing but arithmetic: wrong duals make it loose, never wrong."""
    table = census("marital_status", "relationship")
    prior = prior_of(table)
    rays = listed_rays(lip(table, 1.0), prior)
    honest = master(rays, prior, budget=60)
    solve = module._solve

    def poor(*asked: object) -> Answer:
        answer = solve(*asked)
        return replace(answer, values=(answer.point, 0.5 * answer.multipliers + 0.01, answer.optimum))

    monkeypatch.setattr(module, "_solve", poor)
    assert master(rays, prior, budget=60).bound > honest.value + 1e-3
