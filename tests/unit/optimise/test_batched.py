"""Linear programs solved many at once: what a solver finds one by one, and multipliers that prove it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel.optimise.budget import Budget
from funnel.optimise.columns.alone import OneByOne
from funnel.optimise.columns.climbing import climb
from funnel.optimise.columns.pricing import Peak, Slice, price
from funnel.optimise.cone import Cone
from funnel.optimise.linear.bases import EMPTY, ENOUGH, GIVEN_UP, OPTIMAL, Answers, Bases, Objectives
from funnel.optimise.linear.batched import Programs
from funnel.optimise.solve import maximise
from tests.support.cones import census, ldp, lip, perfect, prior_of, problems
from tests.support.proofs import excess
from tests.support.strategies import tables

MANY = 20
CLOSE = 1e-8


def drawn(size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes, empty ones and flat ones among them, and objectives."""
    random = np.random.default_rng(seed)
    one, other = random.dirichlet(np.full(size, 0.5), size=(2, MANY))
    lower, upper = np.minimum(one, other), np.maximum(one, other)
    wide = random.random((MANY, size)) < 0.5
    return np.where(wide, 0.0, lower), np.where(wide, 1.0, upper), random.normal(size=(MANY, size))


def within(
    lower: np.ndarray, upper: np.ndarray, slope: np.ndarray, enough: float | np.ndarray = -np.inf
) -> Objectives:
    """Programs that have not begun, each to be solved until it is known to be worth little enough."""
    many = len(slope)
    return Objectives(lower, upper, slope, Bases.none(many, 1), np.broadcast_to(enough, many))


def proven(
    programs: Programs, answers: Answers, slope: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """What the multipliers of inequalities prove that no point of a box is worth more than."""
    free = answers.index >= len(programs.matrix) - programs.equalities
    weight = np.where(free, answers.weight, np.maximum(answers.weight, 0.0))
    weight[answers.index < 0] = 0.0
    rest = slope - np.einsum("nk,nka->na", weight, programs.extended[answers.index][:, :, :-1])
    levels = np.concatenate([rest, rest.max(axis=1, keepdims=True)], axis=1)
    values = [
        level + np.maximum((rest - level[:, None]) * lower, (rest - level[:, None]) * upper).sum(axis=1)
        for level in levels.T
    ]
    return np.min(values, axis=0)


def compared(cone: Cone, prior: np.ndarray, seed: int) -> None:
    """All programs at once, and each by itself with the solver."""
    room = Slice(cone, prior)
    programs = room.programs
    assert isinstance(programs, Programs)
    lower, upper, slope = drawn(len(prior), seed)
    answers = programs.solve(within(lower, upper, slope))
    bound = proven(programs, answers, slope, lower, upper)
    solver = OneByOne(room.matrix, np.zeros((len(room.matrix), 0)), room.equalities)
    alone = solver.solve(within(lower, upper, slope))
    optimum = (alone.point * slope).sum(axis=1)
    for place in range(MANY):
        if answers.how[place] == OPTIMAL:
            worth = float(slope[place] @ answers.point[place])
            assert worth == pytest.approx(bound[place], abs=CLOSE * (1 + np.abs(answers.weight[place]).sum()))
            assert answers.point[place].sum() == pytest.approx(1)
            assert (answers.point[place] >= lower[place] - CLOSE).all()
            assert (answers.point[place] <= upper[place] + CLOSE).all()
            assert (room.matrix @ answers.point[place]).max(initial=0.0) <= CLOSE
        if alone.how[place] == OPTIMAL:
            assert bound[place] >= optimum[place] - CLOSE * (1 + np.abs(answers.weight[place]).sum())


@settings(deadline=None, max_examples=40)
@given(problems(), st.integers(0, 2**32 - 1))
def test_many_programs_end_where_each_of_them_does(problem: tuple[np.ndarray, Cone], seed: int) -> None:
    table, cone = problem
    compared(cone, prior_of(table), seed)


@settings(deadline=None, max_examples=20)
@given(tables(most=5, secrets=3), st.integers(0, 2**32 - 1))
def test_equations_are_met_by_many_too(table: np.ndarray, seed: int) -> None:
    compared(perfect(table), prior_of(table), seed)


def begun() -> tuple[Programs, tuple[np.ndarray, ...], Answers]:
    """Programs of a table of the census, solved from nothing."""
    table = census("occupation", "education")
    programs = Slice(lip(table, 0.5), prior_of(table)).programs
    assert isinstance(programs, Programs)
    asked = np.zeros((MANY, 16)), np.ones((MANY, 16)), drawn(16, 0)[2]
    return programs, asked, programs.solve(within(*asked))


def test_from_a_basis_that_is_best_no_step_is_taken() -> None:
    programs, (lower, upper, slope), first = begun()
    assert (first.how == OPTIMAL).all()
    again = programs.solve(within(lower, upper, slope).since(first), most=0)
    assert (again.how == OPTIMAL).all()
    assert again.point == pytest.approx(first.point, abs=1e-9)


def test_whatever_the_basis_the_optimum_is_the_same() -> None:
    programs, (lower, upper, slope), first = begun()
    shuffled = first.bases[np.roll(np.arange(MANY), 7)]
    again = programs.solve(replace(within(lower, upper, slope), bases=shuffled))
    assert (again.how == OPTIMAL).all()
    assert (again.point * slope).sum(axis=1) == pytest.approx((first.point * slope).sum(axis=1), abs=1e-9)


def test_a_basis_that_cannot_be_solved_proves_nothing_wrong() -> None:
    """The same inequality twice: there is no inverse."""
    programs, (lower, upper, slope), first = begun()
    twice = Bases(np.zeros((MANY, 2), np.int64), np.tile([0, 1], (MANY, 1)), np.full(MANY, 2))
    again = programs.solve(replace(within(lower, upper, slope), bases=twice), most=3)
    held = np.isfinite(again.weight).all(axis=1)
    bound = proven(programs, again, slope, lower, upper)
    assert (bound >= (first.point * slope).sum(axis=1) - 1e-9)[held].all()


def test_a_program_ends_when_it_is_known_to_be_worth_little_enough() -> None:
    programs, (lower, upper, slope), first = begun()
    worth = (first.point * slope).sum(axis=1)
    soon = programs.solve(within(lower, upper, slope, worth + 0.5))
    assert np.isin(soon.how, (OPTIMAL, ENOUGH)).all()
    assert (soon.how == ENOUGH).any()
    bound = proven(programs, soon, slope, lower, upper)
    assert (bound <= worth + 0.5 + 1e-9).all()
    assert (bound >= worth - 1e-9).all()


def test_boxes_without_a_point_of_the_slice_are_shown_to_be_empty() -> None:
    """Of occupations so kept, no row is one level of education with certainty."""
    programs, (_, _, slope), _ = begun()
    size = slope.shape[1]
    lower, upper = np.zeros((size, size)), np.ones((size, size))
    lower[np.arange(size), np.arange(size)] = 0.999
    found = programs.solve(within(lower, upper, slope[:size], -50.0))
    assert (found.how == EMPTY).any()
    bound = proven(programs, found, slope[:size], lower, upper)
    assert (bound[found.how == EMPTY] <= -50.0).all()


def test_those_who_take_long_are_left_where_they_stand_and_go_on_from_there() -> None:
    table = census("occupation", "education")
    programs = Slice(ldp(table, 0.5), prior_of(table)).programs
    assert isinstance(programs, Programs)
    lower, upper, slope = np.zeros((MANY, 16)), np.ones((MANY, 16)), drawn(16, 3)[2]
    asked = within(lower, upper, slope)
    whole = programs.solve(asked)
    part = programs.solve(replace(asked, patient=False))
    left = part.how == GIVEN_UP
    assert left.any()
    rest = programs.solve(asked.since(part)[left])
    assert (rest.point * slope[left]).sum(axis=1) == pytest.approx(
        (whole.point * slope).sum(axis=1)[left], abs=1e-9
    )


# Rows that come from no cone of a notion


def scattered(seed: int, count: int) -> tuple[Programs, tuple[np.ndarray, ...]]:
    """Rows that the centre keeps, slopes, and boxes of all widths, some of which nothing is in."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(12, 5))
    rows -= np.maximum(rows.mean(axis=1, keepdims=True) + random.uniform(0, 0.2, (12, 1)), 0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    middle = random.dirichlet(np.ones(5), size=count)
    apart = random.choice([0.02, 0.3, 1.0], size=(count, 1))
    lower = np.maximum(middle - apart * random.uniform(size=middle.shape), 0)
    upper = np.minimum(middle + apart * random.uniform(size=middle.shape), 1)
    return Programs(rows), (lower, upper, random.normal(size=middle.shape))


def one_by_one(rows: np.ndarray, lower: np.ndarray, upper: np.ndarray, slope: np.ndarray) -> float | None:
    """The optimum by a solver, None where there is none."""
    sums, limits = np.ones((1, len(slope))), list(zip(lower, upper, strict=True))
    found = linprog(-slope, rows, np.zeros(len(rows)), sums, [1.0], limits)
    return None if found.status == 2 else -float(found.fun)


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_each_program_has_the_optimum_that_a_solver_finds_and_multipliers_that_show_it(seed: int) -> None:
    programs, (lower, upper, slope) = scattered(seed, 20)
    answers = programs.solve(within(lower, upper, slope, -50.0))
    shown = proven(programs, answers, slope, lower, upper)
    for box in range(20):
        optimum = one_by_one(programs.matrix, lower[box], upper[box], slope[box])
        if optimum is None:
            # On the way to showing that a box is empty, its worth may be known to be little enough.
            assert answers.how[box] in (EMPTY, ENOUGH)
            assert shown[box] <= -50.0
        else:
            assert answers.how[box] == OPTIMAL
            assert shown[box] == pytest.approx(optimum, abs=1e-7)
            assert slope[box] @ answers.point[box] == pytest.approx(optimum, abs=1e-7)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_inequalities_that_come_later_or_take_no_part(seed: int) -> None:
    """Bases of fewer inequalities are where programs of more begin."""
    programs, (lower, upper, slope) = scattered(seed, 20)
    rows, asked = programs.matrix, within(lower, upper, slope)
    few = Programs(rows[:6])
    first = few.solve(asked)
    few.more(rows[6:])
    later = few.solve(asked.since(first))
    whole = programs.solve(asked)
    assert (later.how == whole.how).all()
    value = ((later.point - whole.point) * slope).sum(axis=1)
    assert np.abs(value[whole.how == OPTIMAL]).max(initial=0) < 1e-7
    programs.heed(np.arange(6))
    less = programs.solve(asked)
    assert (less.point == first.point).all()


# What they are for


@settings(deadline=None, max_examples=25)
@given(problems(), st.integers(0, 2**32 - 1))
def test_climbs_together_end_where_some_climb_alone_does(problem: tuple[np.ndarray, Cone], seed: int) -> None:
    """At vertices from which no hop leads higher."""
    table, cone = problem
    prior, random = prior_of(table), np.random.default_rng(seed)
    room, eta = Slice(cone, prior), random.normal(size=len(prior))
    for row in climb(room, random.dirichlet(np.ones(len(prior)), size=8), eta, 1e-10, Budget()):
        assert cone.violation((row / prior)[None] * prior.min()).max() <= 1e-9
        (again,) = climb(room, row[None], eta, 1e-10, Budget())
        assert price(again, prior, eta) <= price(row, prior, eta) + 1e-8


def searched(room: Slice, eta: np.ndarray, tolerance: float, most: int = 3_000) -> Peak:
    return room.peak(eta, tolerance=tolerance, budget=Budget(nodes=most), enough=10**9)


@settings(deadline=None, max_examples=10)
@given(problems(), st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_a_tree_that_is_kept_bounds_other_prices_as_well(
    problem: tuple[np.ndarray, Cone], seed: int, most: int
) -> None:
    """Whatever was looked at before, under whatever prices, and wherever it ended: and others can go through it."""
    table, cone = problem
    prior, random = prior_of(table), np.random.default_rng(seed)
    room, eta = Slice(cone, prior), random.normal(size=len(prior))
    least = -float(eta @ prior)
    for _ in range(3):
        before = eta + random.normal(scale=0.3, size=len(prior))
        searched(room, before, least + random.normal(scale=0.2), most)
    aim = max(searched(Slice(cone, prior), eta, -np.inf, 100).bound, least) + 1e-3
    for tolerance in (aim, least + 1e-3):
        kept = searched(room, eta, tolerance, 200)
        assert kept.proof is not None
        assert excess(kept.proof, np.log(prior) + eta, kept.bound) <= 1e-9
        assert kept.bound == aim or tolerance != aim


def test_a_kept_tree_saves_most_of_the_boxes() -> None:
    table = census("occupation", "education")
    prior = prior_of(table)
    cone = lip(table, 1.0)
    best = maximise(cone, prior, budget=60).certificate
    assert best is not None
    room, eta = Slice(cone, prior), best.duals / prior
    first = searched(room, eta, 1e-3)
    again = searched(room, eta + 1e-4, 1e-3)
    assert again.nodes * 4 < first.nodes
