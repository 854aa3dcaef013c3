"""Priced rows: the same optimum as listed ones, a bound that holds whatever the solver did, and time limits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from funnel.measure.information import kept_information
from funnel.optimise.budget import Budget
from funnel.optimise.columns import pricing
from funnel.optimise.columns.climbing import climb
from funnel.optimise.columns.pricing import Slice, divergence, price
from funnel.optimise.columns.search import Columns, columns
from funnel.optimise.cone import Cone, intersection
from funnel.optimise.linear import highs
from funnel.optimise.linear.bases import GIVEN_UP, Answers
from funnel.optimise.linear.batched import Programs
from funnel.optimise.linear.highs import Program
from funnel.optimise.master import Master, master
from funnel.optimise.solve import Solution, maximise
from funnel.optimise.utility import information
from tests.support.cones import (
    CONES,
    census,
    entropy,
    ldp,
    lifted_ldp,
    lip,
    perfect,
    prior_of,
    problems,
)
from tests.support.rays import listed_rays
from tests.support.strategies import tables

TOLERANCE = 1e-6


def priced(cone: Cone, prior: np.ndarray, seconds: float = 60) -> tuple[Columns, Master]:
    """The rows that pricing finds, and the best protocol of them."""
    found = columns(cone, prior, budget=Budget(seconds), tolerance=TOLERANCE, ceiling=np.inf)
    return found, master(csr_array(found.rays), prior, budget=60)


def check(cone: Cone, prior: np.ndarray) -> None:
    """Everything that listing all rays can tell about pricing them."""
    listed = listed_rays(cone, prior)
    optimum = master(listed, prior, budget=60)
    found, best = priced(cone, prior)
    proof = found.certificate
    assert best.value <= optimum.bound + 1e-9
    assert optimum.value <= proof.bound + 1e-9
    assert proof.bound - best.value <= TOLERANCE + 1e-9
    worth = information(listed, prior) - listed @ proof.duals
    assert worth.max() <= proof.peak + 1e-9, "the duals bound every ray there is"
    assert proof.bound == pytest.approx(proof.duals.sum() + proof.peak, abs=1e-12)
    assert np.allclose(found.rays @ prior, 1)
    assert (cone.violation(found.rays) <= 1e-10 * found.rays.max(axis=1)).all()


@settings(deadline=None, max_examples=40)
@given(problems())
def test_pricing_and_listing_agree(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    check(cone, prior_of(table))


@settings(deadline=None, max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(tables(most=6, secrets=5, largest=400_000), st.sampled_from(sorted(CONES)), st.floats(0.05, 2))
def test_rare_values_are_priced_as_closely(table: np.ndarray, kind: str, epsilon: float) -> None:
    """Cells of one record beside cells of hundreds of thousands, where listing can lose rays."""
    cone, prior = CONES[kind](table, epsilon), prior_of(table)
    solution = maximise(cone, prior, budget=60)
    assert solution.gap <= 1e-6 * entropy(prior) + 1e-9
    assert cone.violation(solution.protocol).max() <= 1e-9


@pytest.mark.parametrize(("kind", "epsilon"), [("lip", 0.5), ("ldp", 1.0)])
def test_a_value_of_one_in_a_million(kind: str, epsilon: float) -> None:
    table = np.array([[700_000, 200, 1, 40, 0], [90_000, 9_000, 0, 3, 1], [200_000, 10, 5, 0, 600]])
    check(CONES[kind](table, epsilon), prior_of(table))


def test_a_value_so_rare_that_its_multiplier_looks_like_an_error_is_released() -> None:
    prior = np.array([0.5, 0.5 - 1e-12, 1e-12])
    rays = np.vstack([np.ones(3), np.diag(1 / prior)])
    assert master(csr_array(rays), prior, budget=60).protocol == pytest.approx(np.eye(3), rel=1e-6)


@settings(deadline=None, max_examples=20)
@given(tables(most=5, secrets=3))
def test_equalities_are_priced_too(table: np.ndarray) -> None:
    cone, prior = perfect(table), prior_of(table)
    optimum = master(listed_rays(cone, prior), prior, budget=60)
    found, best = priced(cone, prior)
    assert cone.violation(found.rays * prior.min()).max() <= 1e-9
    assert best.value == pytest.approx(optimum.value, abs=2 * TOLERANCE)
    assert optimum.value <= found.certificate.bound + 1e-9


@settings(deadline=None, max_examples=20)
@given(tables(most=5, secrets=4), st.floats(0.05, 2))
def test_a_lifted_cone_has_the_optimum_of_its_shadow(table: np.ndarray, epsilon: float) -> None:
    prior = prior_of(table)
    plain = master(listed_rays(ldp(table, epsilon), prior), prior, budget=60)
    found, best = priced(lifted_ldp(table, epsilon), prior)
    assert best.value == pytest.approx(plain.value, abs=2 * TOLERANCE)
    assert plain.value <= found.certificate.bound + 1e-8
    assert (ldp(table, epsilon).violation(found.rays) <= 1e-8 * found.rays.max(axis=1)).all()


@settings(deadline=None, max_examples=20)
@given(tables(most=5, secrets=4), st.floats(0.05, 2))
def test_a_cone_of_odds_and_an_intersection(table: np.ndarray, epsilon: float) -> None:
    prior, given = prior_of(table), table / table.sum(axis=1, keepdims=True)
    cone = Cone.of_odds(given, float(np.exp(epsilon)))
    assert cone.rows == pytest.approx(ldp(table, epsilon).rows, abs=1e-15)
    check(cone, prior)
    check(intersection([cone, Cone.of_odds(given[:2], float(np.exp(epsilon / 2)))]), prior)


@settings(deadline=None, max_examples=20)
@given(problems())
def test_programs_one_by_one_find_the_same(problem: tuple[np.ndarray, Cone]) -> None:
    """As cones do that are too wide for many at once."""
    table, cone = problem
    with patch.object(pricing, "_WIDEST", 0):
        check(cone, prior_of(table))


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(CONES))
def test_no_protocol_of_a_large_cone_beats_its_certificate(kind: str) -> None:
    """Fifteen occupations behind sixteen levels of education: too many rays to list in a test."""
    table = census("occupation", "education")
    cone, prior = CONES[kind](table, 1.0), prior_of(table)
    solution = maximise(cone, prior, budget=120)
    assert solution.method == "columns"
    assert 0 <= solution.gap <= 1e-6 * entropy(prior)
    assert solution.value == pytest.approx(kept_information(prior, solution.protocol), abs=1e-9)
    assert np.abs(solution.protocol.sum(axis=0) - 1).max() <= 1e-12
    assert cone.violation(solution.protocol).max() <= 1e-10
    assert solution.certificate is not None
    random = np.random.default_rng(0)
    mass = random.dirichlet(np.full(len(prior), 0.1), size=2_000)
    rows = mass / prior
    rows += cone.violation(rows)[:, None]
    rows /= (rows @ prior)[:, None]
    worth = divergence(rows * prior, prior) - rows @ solution.certificate.duals
    assert worth.max() <= solution.certificate.peak
    assert maximise(CONES[kind](table, 0.5), prior, budget=3).value <= solution.bound


# Bounds on a price


@settings(deadline=None, max_examples=10)
@given(problems(), st.integers(0, 2**32 - 1))
def test_the_peak_is_the_best_price_of_all_rays(problem: tuple[np.ndarray, Cone], seed: int) -> None:
    table, cone = problem
    prior = prior_of(table)
    eta = np.random.default_rng(seed).normal(size=len(prior))
    mass = listed_rays(cone, prior).toarray() * prior
    best = float(price(mass, prior, eta).max())
    room = Slice(cone, prior)
    for most in (0, 3, 10_000):
        found = room.peak(eta, tolerance=-np.inf, budget=Budget(nodes=most), enough=10**9)
        assert found.bound >= best - 1e-9
        assert found.nodes <= most
    assert found.bound == pytest.approx(best, abs=1e-6)
    assert price(found.points, prior, eta).max(initial=-np.inf) <= best + 1e-9


@settings(deadline=None, max_examples=10)
@given(problems(), st.integers(0, 2**32 - 1))
def test_what_is_not_looked_into_is_below_the_tolerance(problem: tuple[np.ndarray, Cone], seed: int) -> None:
    """Boxes shrink to where the tolerance can be exceeded: the bound never falls below either."""
    table, cone = problem
    prior, random = prior_of(table), np.random.default_rng(seed)
    eta = random.normal(size=len(prior))
    mass = listed_rays(cone, prior).toarray() * prior
    best = float(price(mass, prior, eta).max())
    tolerance = best + float(random.normal(scale=0.1))
    found = Slice(cone, prior).peak(eta, tolerance=tolerance, budget=Budget(nodes=10_000), enough=10**9)
    assert max(best, tolerance) - 1e-9 <= found.bound <= max(best, tolerance) + 1e-6


@settings(deadline=None, max_examples=30)
@given(problems(), st.integers(0, 2**32 - 1))
def test_a_climb_ends_inside_where_no_tangent_rises(problem: tuple[np.ndarray, Cone], seed: int) -> None:
    table, cone = problem
    prior, random = prior_of(table), np.random.default_rng(seed)
    eta = random.normal(size=len(prior))
    room = Slice(cone, prior)
    start = random.dirichlet(np.ones(len(prior)), size=1)
    (row,) = climb(room, start, eta, 1e-10, Budget())
    assert row.sum() == pytest.approx(1)
    assert cone.violation((row / prior)[None] * prior.min()).max() <= 1e-10
    (again,) = climb(room, row[None], eta, 1e-10, Budget())
    assert price(again, prior, eta) <= price(row, prior, eta) + 1e-9


# Time, ceilings, and what is refused


@pytest.mark.parametrize("seconds", [1e-9, 0.4])
@pytest.mark.parametrize("lifted", [False, True])
def test_the_time_limit_returns_a_protocol_and_its_bound(seconds: float, lifted: bool) -> None:
    table = census("occupation", "education")
    prior = prior_of(table)
    cone = lifted_ldp(table, 0.5) if lifted else ldp(table, 0.5)
    solution = maximise(cone, prior, budget=seconds)
    assert solution.method == "columns"
    assert np.abs(solution.protocol.sum(axis=0) - 1).max() <= 1e-12
    assert cone.violation(solution.protocol).max() <= 1e-8
    assert solution.value == pytest.approx(kept_information(prior, solution.protocol), abs=1e-9)
    assert solution.value <= solution.bound <= entropy(prior) + 1e-9
    assert solution.certificate is not None
    assert longer().value <= solution.bound + 1e-9


@cache
def longer() -> Solution:
    """The same with more time, solved once."""
    table = census("occupation", "education")
    return maximise(lifted_ldp(table, 0.5), prior_of(table), budget=60, gap=0.03)


def test_a_ceiling_lowers_the_bound_and_ends_the_search() -> None:
    table = census("marital_status", "education")
    cone, prior = ldp(table, 1.0), prior_of(table)
    known = maximise(cone, prior, budget=120)
    told = maximise(cone, prior, budget=120, ceiling=known.bound, gap=1e-3)
    assert (known.method, told.method) == ("columns", "columns")
    assert told.value <= told.bound <= known.bound
    assert told.gap <= 1e-3 * entropy(prior)
    assert told.nodes < known.nodes


def test_a_ceiling_holds_for_every_rung() -> None:
    table = np.array([[30, 10], [20, 40]])
    prior = prior_of(table)
    value = maximise(lip(table, 0.2), prior, budget=60).value
    assert maximise(lip(table, 0.2), prior, budget=60, ceiling=0.0).bound == pytest.approx(value)


def test_a_wider_gap_takes_no_more_boxes() -> None:
    table = census("marital_status", "education")
    cone, prior = ldp(table, 0.5), prior_of(table)
    wide, narrow = (maximise(cone, prior, budget=120, gap=gap) for gap in (1e-2, 1e-6))
    assert wide.gap <= 1e-2 * entropy(prior)
    assert wide.nodes <= narrow.nodes


# The linear programs underneath


def small() -> Program:
    """max over x + y <= 1, 0 <= x, y <= 3."""
    return Program(np.ones((1, 2)), np.array([-np.inf]), np.ones(1), np.zeros(2), np.full(2, 3.0))


def test_a_program_follows_its_changes() -> None:
    program = small()
    program.costs(np.array([2.0, 1.0]))
    first = program.solve()
    assert (first.status, first.optimum) == ("optimal", pytest.approx(2.0))
    assert first.multipliers == pytest.approx([2.0])
    program.at_most(np.array([[1.0, -1.0]]), np.zeros(1))
    assert program.solve().optimum == pytest.approx(1.5)
    program.bounds(np.zeros(2), np.array([0.25, 3.0]))
    assert program.solve().point == pytest.approx([0.25, 0.75])
    program.add(5.0, np.array([1.0, 0.0]))
    assert program.solve().point == pytest.approx([0.0, 0.0, 1.0])
    program.highs(np.array([2.0]))
    assert program.solve().optimum == pytest.approx(10.0)


def test_a_program_says_how_it_ended() -> None:
    empty = small()
    empty.bounds(np.full(2, 2.0), np.full(2, 3.0))
    assert empty.solve().status == "empty"
    endless = Program(np.ones((1, 1)), np.zeros(1), np.full(1, np.inf), np.zeros(1), np.full(1, np.inf))
    endless.costs(np.ones(1))
    assert endless.solve().status in {"unbounded", "failed"}


def test_a_program_that_fails_is_tried_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    program = small()
    program.costs(np.ones(2))
    answers = iter(["failed", "optimal"])
    monkeypatch.setattr(Program, "_status", lambda _: next(answers))
    assert program.solve().status == "optimal"


def gone_wrong(answers: Answers) -> Answers:
    """The same answers, none of which is one."""
    return replace(
        answers, how=np.full(len(answers.how), GIVEN_UP), point=np.full_like(answers.point, np.nan)
    )


@pytest.mark.parametrize("status", ["failed", "empty"])
def test_solver_trouble_leaves_the_uninformative_protocol(
    monkeypatch: pytest.MonkeyPatch, status: highs.Status
) -> None:
    """Whatever goes wrong in pricing, releasing nothing stays possible, and H(X) stays a bound."""
    table = census("occupation", "education")
    cone, prior = lip(table, 1.0), prior_of(table)
    honest = Programs.solve
    with monkeypatch.context() as broken:
        broken.setattr(Program, "_status", lambda _: status)
        broken.setattr(Programs, "solve", lambda *asked, **how: gone_wrong(honest(*asked, **how)))
        found = columns(cone, prior, budget=Budget(1), tolerance=TOLERANCE, ceiling=np.inf)
    best = master(csr_array(found.rays), prior, budget=60)
    assert found.rays == pytest.approx(np.ones((1, len(prior))))
    assert (best.value, found.certificate.bound) == pytest.approx((0.0, entropy(prior)))
