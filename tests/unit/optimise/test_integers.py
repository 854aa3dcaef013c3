"""Integer weights: exactly inside, exactly summing, as coarse and as informative as promised."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import SolverError
from funnel.optimise.cone import Cone
from funnel.optimise.linear.highs import silenced
from funnel.optimise.rounding import integers
from funnel.optimise.rounding.integers import Rounded, round_inward
from funnel.optimise.rounding.rows import Near, round_by_choice, round_by_mixing
from funnel.optimise.solve import Solution, maximise
from funnel.optimise.utility import worth
from tests.support.cones import (
    CONES,
    census,
    entropy,
    exactly_inside,
    ldp,
    lifted_ldp,
    lip,
    perfect,
    prior_of,
    problems,
)
from tests.support.strategies import tables


def rounded(cone: Cone, prior: np.ndarray, **options: float) -> tuple[Solution, Rounded]:
    """The optimum and its integers, judged exactly."""
    solution = maximise(cone, prior, budget=60)
    return solution, round_inward(
        solution.protocol, cone, prior, lambda weights: exactly_inside(weights, cone), **options
    )


def check(result: Rounded, cone: Cone) -> None:
    """What holds for every result."""
    weights = result.weights
    assert weights.dtype == np.int64
    assert weights.min() >= 0
    assert (weights.sum(axis=0) == 1 << result.bits).all()
    assert len(weights) <= cone.dimension
    assert exactly_inside(weights, cone)
    primitive = {tuple(row // np.gcd.reduce(row)) for row in weights}
    assert len(primitive) == len(weights), "proportional rows are one row"
    assert result.bits == 0 or (weights % 2).any(), "no bit is wasted"


@settings(deadline=None, max_examples=15)
@given(problems())
def test_inequalities_hold_exactly_at_little_loss(problem: tuple[np.ndarray, Cone]) -> None:
    table, cone = problem
    prior = prior_of(table)
    solution, result = rounded(cone, prior)
    check(result, cone)
    assert worth(result.weights / 2.0**result.bits, prior) >= solution.value * (1 - 2.1e-5) - 1e-12


@settings(deadline=None, max_examples=20)
@given(tables(secrets=3, most=6, largest=30000))
def test_equalities_hold_exactly(table: np.ndarray) -> None:
    cone, prior = perfect(table), prior_of(table)
    try:
        solution, result = rounded(cone, prior)
    except SolverError as error:
        assert error.status == "precision"
        return
    check(result, cone)
    assert worth(result.weights / 2.0**result.bits, prior) >= solution.value / 2 - 1e-12


@pytest.mark.parametrize(
    ("secret", "public", "most"),
    [("sex", "education", 20), ("income", "occupation", 20), ("marital_status", "education", 24)],
)
def test_perfect_privacy_on_census_counts(secret: str, public: str, most: int) -> None:
    table = census(secret, public)
    cone, prior = perfect(table), prior_of(table)
    solution, result = rounded(cone, prior)
    check(result, cone)
    assert result.bits <= most
    assert worth(result.weights / 2.0**result.bits, prior) >= 0.999 * solution.value


@pytest.mark.parametrize("kind", sorted(CONES))
@pytest.mark.parametrize(
    "pair", [("occupation", "sex"), ("occupation", "relationship"), ("marital_status", "education")]
)
def test_a_census_table_needs_few_bits(kind: str, pair: tuple[str, str]) -> None:
    table = census(*pair)
    cone, prior = CONES[kind](table, 1.0), prior_of(table)
    solution, result = rounded(cone, prior)
    check(result, cone)
    assert result.bits <= 20
    assert worth(result.weights / 2.0**result.bits, prior) >= (1 - 2e-5) * solution.value


def test_what_is_released_of_education_is_close_to_the_optimum() -> None:
    table = census("marital_status", "education")
    prior = prior_of(table)
    _, result = rounded(lip(table, 1.0), prior)
    assert worth(result.weights / 2.0**result.bits, prior) / entropy(prior) >= 0.9397


def test_choice_keeps_zeros() -> None:
    table = census("marital_status", "education")
    solution, result = rounded(lip(table, 1.0), prior_of(table))
    assert (result.weights > 0).sum() <= (solution.protocol > 0).sum()


def test_more_loss_never_costs_more_bits() -> None:
    table = census("marital_status", "relationship")
    bits = [rounded(lip(table, 1.0), prior_of(table), loss=loss)[1].bits for loss in (1e-2, 1e-3, 1e-4, 1e-5)]
    assert bits == sorted(bits)
    assert bits[0] < bits[-1]


def test_a_protocol_that_says_nothing_is_one_row() -> None:
    table = census("marital_status", "relationship")
    solution, result = rounded(perfect(table), prior_of(table))
    assert solution.value == pytest.approx(0, abs=1e-12)
    assert (result.weights.tolist(), result.bits) == ([[1] * 6], 0)


def test_a_protocol_that_says_everything_needs_no_bits() -> None:
    table = np.outer([3, 5], [1, 2, 4])
    _, result = rounded(lip(table, 0.5), prior_of(table))
    assert sorted(result.weights.tolist()) == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert result.bits == 0


def test_the_judge_has_the_last_word() -> None:
    """A judge stricter than the floats: it refuses all but rows well inside."""
    table = census("marital_status", "relationship")
    cone, prior = lip(table, 1.0), prior_of(table)
    solution = maximise(cone, prior, budget=60)
    asked = []

    def strict(weights: np.ndarray) -> bool:
        asked.append(weights)
        return bool((weights @ cone.normalised().T <= -0.5).all())

    result = round_inward(solution.protocol, cone, prior, strict)
    assert len(asked) > 1
    assert strict(result.weights)


@pytest.mark.parametrize(
    "cone", [lip(np.array([[30, 10], [20, 40]]), 0.5), perfect(np.array([[9, 3, 1], [2, 5, 6]]))]
)
def test_a_judge_that_refuses_everything_gets_no_release(cone: Cone) -> None:
    prior = np.full(cone.dimension, 1 / cone.dimension)
    protocol = np.array([[1.0, *[0.0] * (cone.dimension - 1)], [0.0, *[1.0] * (cone.dimension - 1)]])
    with pytest.raises(SolverError) as caught:
        round_inward(protocol, cone, prior, lambda _: False)
    assert (caught.value.code, caught.value.status) == ("precision", "precision")


def test_a_lattice_without_short_vectors_is_refused() -> None:
    """Eleven secrets on twelve values with counts in the thousands: only all-ones is shorter than 2^62."""
    table = np.random.default_rng(0).integers(1000, 9000, size=(11, 12))
    cone, prior = perfect(table), prior_of(table)
    with pytest.raises(SolverError) as caught:
        rounded(cone, prior)
    assert caught.value.code == "precision"


def test_the_best_is_taken_where_the_promised_loss_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    table = census("marital_status", "relationship")
    cone, prior = lip(table, 1.0), prior_of(table)
    monkeypatch.setattr(integers, "MAX_BITS", 9)
    solution, result = rounded(cone, prior, loss=1e-12)
    check(result, cone)
    assert 0.5 <= worth(result.weights / 2.0**result.bits, prior) / solution.value < 1


@settings(deadline=None, max_examples=30)
@given(problems(), st.integers(16, 40))
def test_mixing_always_succeeds_with_bits_to_spare(problem: tuple[np.ndarray, Cone], bits: int) -> None:
    table, cone = problem
    prior = prior_of(table)
    solution = maximise(cone, prior, budget=60)
    weights = round_by_mixing(Near(solution.protocol, prior, cone.normalised()), bits, margin=1e-3)
    assert weights is not None
    assert weights.min() >= 0
    assert (weights.sum(axis=0) == 1 << bits).all()
    assert cone.violation(weights.astype(float)).max() <= 0


def test_mixing_serves_where_the_zeros_leave_no_room() -> None:
    """Two pairs of values, each alone in its output and exactly on a facet: nothing near has these zeros."""
    cone = Cone(np.array([[3.0, -3.0, 0.0, -1.0], [0.0, -1.0, 3.0, -3.0]]))
    prior = np.full(4, 0.25)
    protocol = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    near = Near(protocol, prior, cone.normalised())
    assert round_by_choice(near, 20, margin=1e-6, loss=1e-4) is None
    result = round_inward(protocol, cone, prior, lambda weights: bool((weights @ cone.rows.T < 0).all()))
    assert (result.weights > 0).all()
    assert worth(result.weights / 2.0**result.bits, prior) >= (1 - 2e-5) * np.log(2)


def test_room_is_seen_and_used() -> None:
    table = census("marital_status", "relationship")
    cone, prior = ldp(table, 1.0), prior_of(table)
    near = Near(maximise(cone, prior, budget=60).protocol, prior, cone.normalised())
    chosen = round_by_choice(near, 20, margin=1e-6, loss=2e-5)
    assert chosen is not None
    assert (chosen.sum(axis=0) == 1 << 20).all()
    assert (chosen[near.protocol == 0] == 0).all()
    assert round_by_choice(near, 6, margin=1e-6, loss=2e-5) is None


def test_choosing_saves_bits_over_mixing() -> None:
    table = census("marital_status", "education")
    cone, prior = lip(table, 1.0), prior_of(table)
    (_, chosen), (_, mixed) = rounded(cone, prior), rounded(cone, prior, choose=False)
    check(mixed, cone)
    assert chosen.bits <= mixed.bits - 4


@settings(deadline=None, max_examples=10)
@given(tables(), st.floats(0.1, 2))
def test_lifted_cones_are_rounded_inside_their_shadow(table: np.ndarray, epsilon: float) -> None:
    """The judge knows the inequalities of the shadow; the rounding knows the lifted cone only."""
    cone, lifted, prior = ldp(table, epsilon), lifted_ldp(table, epsilon), prior_of(table)
    solution = maximise(lifted, prior, budget=60)
    result = round_inward(
        solution.protocol, lifted, prior, lambda weights: exactly_inside(weights, cone), loss=2e-5
    )
    check(result, cone)
    assert worth(result.weights / 2.0**result.bits, prior) >= solution.value * (1 - 2.1e-5) - 1e-12


@pytest.mark.parametrize("lifted", [False, True])
def test_priced_protocols_of_a_census_table_need_few_bits(lifted: bool) -> None:
    table = census("marital_status", "education")
    cone, prior = ldp(table, 1.0), prior_of(table)
    given = lifted_ldp(table, 1.0) if lifted else cone
    solution = maximise(given, prior, budget=60, gap=1e-3)
    result = round_inward(solution.protocol, given, prior, lambda weights: exactly_inside(weights, cone))
    check(result, cone)
    assert result.bits <= 26
    assert worth(result.weights / 2.0**result.bits, prior) >= (1 - 2e-5) * solution.value


def test_what_libraries_print_does_not_reach_our_output(capfd: pytest.CaptureFixture[str]) -> None:
    print("before", flush=True)
    with silenced():
        ctypes.CDLL(None).puts(b"noise")
    ctypes.CDLL(None).puts(b"after")
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "before\nafter\n"


def test_without_a_standard_output_nothing_is_silenced(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "dup", closed)
    with silenced():
        ran = True
    assert ran
