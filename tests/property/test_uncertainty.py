"""Balls around an estimate: the paper's numbers corrected, and bounds that hold inside the ball and are attained."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import chi2

from funnel.measure.uncertainty import limits, project, rad, radius
from tests.support.balls import divergence, onto

ESTIMATE = np.array([[0.07, 0.10], [0.26, 0.57]])
SHARES = ESTIMATE.sum(axis=1)
GIVEN = ESTIMATE / SHARES[:, None]
ORDERS = st.sampled_from([0.2, 0.5, 0.8, 1.0, 1.3, 2.0, 3.0, 8.0])
RADII = st.floats(1e-3, 2.0)
WEIGHT = st.one_of(st.just(0.0), st.floats(1e-3, 1))
DISTRIBUTIONS = st.lists(st.floats(0.01, 1), min_size=2, max_size=6).map(lambda w: np.array(w) / np.sum(w))






def test_examples_1_and_2_of_rldp():
    bound = radius(0.95, 2, 100, 4)
    assert bound == pytest.approx(0.0752441, abs=5e-8)
    within = project(bound, 2, SHARES)
    assert within == pytest.approx([0.4067335, 0.0903123], abs=5.1e-8)
    lower, _ = limits(2, within[:, None], GIVEN)
    assert lower.ravel() == pytest.approx([0.1552225, 0.2727205, 0.1921312, 0.5333724], abs=5.1e-8)
    distances = [rad(2, b, p) for b, p in zip(within, GIVEN, strict=True)]
    assert distances == pytest.approx([0.6310297, 0.3067491], abs=5.1e-8)


@pytest.mark.parametrize(("confidence", "rows", "cells"), [(0.95, 100, 4), (0.999, 32561, 240), (0.5, 7, 2)])
def test_the_radius_is_the_chi_square_statement(confidence, rows, cells):
    quantile = chi2.ppf(confidence, cells - 1) / rows
    assert math.expm1(radius(confidence, 2, rows, cells)) == pytest.approx(quantile, abs=1e-11)
    assert math.expm1(radius(confidence, 2, rows, cells)) >= quantile * (1 - 1e-13)
    assert radius(confidence, 3, rows, cells) == pytest.approx(1.5 * quantile, abs=1e-11)


def test_the_radii_of_two_statements_agree_to_first_order():
    exact, limit = radius(0.95, 2, 10**6, 10), radius(0.95, 2 + 1e-9, 10**6, 10)
    assert exact == pytest.approx(limit, rel=1e-4)


@pytest.mark.parametrize(
    ("order", "least", "held"),
    [(2.0, 40, 0.93), (0.5, 40, 0.93), (10.0, 2_000, 0.93), (50.0, 50_000, 0.93), (50.0, 40, None), (10.0, 10, None)],
)
def test_a_set_holds_the_truth_as_often_as_is_said_where_no_cell_is_too_small_for_its_order(order, least, held):
    """Of 4,000 samples; as far more records of each cell than the square of the order are. With fewer it does not."""
    counts = np.array([1, 2, 4, 8, 30, 45, 60, 100]) * least
    rows, truth = int(counts.sum()), counts / counts.sum()
    drawn = np.random.default_rng(1).multinomial(rows, truth, 4_000) / rows
    with np.errstate(divide="ignore"):
        ratio = np.log(drawn / truth)
    found = np.log((truth * np.exp(order * ratio)).sum(axis=1)) / (order - 1)
    share = float((found <= radius(0.95, order, rows, len(counts))).mean())
    assert share < 0.9 if held is None else held < share < 0.97


def test_a_radius_refuses_what_is_not_a_confidence_or_order():
    for confidence, order, rows, cells in ((1.0, 2, 9, 9), (0.9, 0, 9, 9), (0.9, 2, 0, 9), (-0.1, 2, 9, 9)):
        with pytest.raises(ValueError, match="radius needs"):
            radius(confidence, order, rows, cells)
    assert radius(0.9, 2, 5, 1) == 0


@given(ORDERS, RADII, DISTRIBUTIONS, DISTRIBUTIONS, st.data())
def test_a_ball_projects_onto_the_ball_of_theorem_1(order, bound, first, second, data):
    share = data.draw(st.floats(0.1, 0.9))
    joint = np.concatenate([share * first, (1 - share) * second])
    size = len(first)
    weights = np.array(data.draw(st.lists(st.floats(0.001, 1), min_size=len(joint), max_size=len(joint))))
    other = onto(order, bound, joint, weights / weights.sum())
    allowed = project(bound, order, share)
    assert divergence(order, first, other[:size] / other[:size].sum()) <= allowed * (1 + 1e-9) + 1e-12


@given(ORDERS, RADII, DISTRIBUTIONS, DISTRIBUTIONS, st.data())
def test_every_point_of_the_projection_comes_from_the_ball(order, bound, first, second, data):
    share = data.draw(st.floats(0.1, 0.9))
    allowed = float(project(bound, order, share))
    assume(allowed < 20)
    weights = np.array(data.draw(st.lists(st.floats(0.001, 1), min_size=len(first), max_size=len(first))))
    moved = onto(order, allowed * (1 - 1e-9), first, weights / weights.sum())
    masses = np.array([share * math.exp((order - 1) / order * divergence(order, first, moved)), 1 - share])
    masses /= masses.sum()
    joint = np.concatenate([masses[0] * moved, masses[1] * second])
    assert divergence(order, np.concatenate([share * first, (1 - share) * second]), joint) <= bound + 1e-12


def test_a_projection_knows_nothing_when_the_rest_can_absorb_the_divergence():
    assert project(1.0, 0.5, [0.3])[0] == math.inf
    assert project(math.inf, 2, [0.3])[0] == math.inf
    assert project(0.0, 2, SHARES).tolist() == [0, 0]
    with pytest.raises(ValueError, match="projection needs"):
        project(1.0, 2, [0.0])


@given(ORDERS, RADII, DISTRIBUTIONS, st.data())
def test_limits_hold_inside_the_ball_and_are_attained(order, bound, p, data):
    weights = np.array(data.draw(st.lists(WEIGHT, min_size=len(p), max_size=len(p))))
    assume(weights.sum() > 0.01)
    inside = onto(order, bound, p, weights / weights.sum())
    lower, upper = limits(order, bound, p)
    assert (lower <= inside).all()
    assert (inside <= upper).all()
    for end, inward in ((lower[0], lower[0] * (1 + 4e-13)), (upper[0], upper[0] * (1 - 4e-13))):  # they are rounded
        if 0 < end < 1:
            near, attained = (
                divergence(order, p, np.concatenate([[one], (1 - one) / (1 - p[0]) * p[1:]])) for one in (inward, end)
            )
            assert near <= bound * (1 + 1e-6) and attained >= bound * (1 - 1e-6)


@given(st.floats(1e-3, 3), st.floats(0.01, 0.99))
def test_limits_of_order_two_continue_those_of_other_orders(bound, share):
    for order in (2 - 1e-9, 2 + 1e-9):
        assert np.allclose(limits(order, bound, share), limits(2, bound, share), rtol=1e-7)
    assert np.allclose(limits(1, bound, share), limits(1 + 1e-9, bound, share), rtol=1e-6)


def test_limits_at_the_ends():
    for order in (0.5, 1, 2, 4):
        lower, upper = limits(order, [0.3, 0.3, 0.0, math.inf], [0.0, 1.0, 0.4, 0.4])
        assert lower == pytest.approx([0, math.exp(-0.3), 0.4, 0], rel=1e-7)
        assert upper == pytest.approx([1 - math.exp(-0.3), 1, 0.4, 1], rel=1e-7)


@pytest.mark.long
@given(ORDERS, RADII, DISTRIBUTIONS, st.data())
def test_no_point_of_the_ball_is_farther_than_rad(order, bound, p, data):
    weights = np.array(data.draw(st.lists(WEIGHT, min_size=len(p), max_size=len(p))))
    assume(weights.sum() > 0.01)
    inside = onto(order, bound, p, weights / weights.sum())
    assert abs(inside - p).sum() <= rad(order, bound, p) + 1e-12


@pytest.mark.long
@given(ORDERS, RADII, DISTRIBUTIONS)
def test_rad_is_attained_by_moving_one_set_of_values(order, bound, p):
    best = 0.0
    for subset in range(1, 2 ** len(p) - 1):
        chosen = np.array([(subset >> i) & 1 for i in range(len(p))], bool)
        mass = p[chosen].sum()

        def excess(raised, mass=mass):
            return divergence(order, np.array([mass, 1 - mass]), np.array([raised, 1 - raised])) - bound

        raised = brentq(excess, mass, 1 - 1e-15) if excess(1 - 1e-15) > 0 else 1.0
        best = max(best, 2 * (raised - mass))
    assert rad(order, bound, p) == pytest.approx(best, rel=1e-6)


def test_rad_of_many_values_is_never_below_that_of_their_groups():
    fine = np.full(24, 1 / 24)
    assert rad(2, 0.1, fine) >= rad(2, 0.1, fine.reshape(12, 2).sum(axis=1))
    assert rad(2, 0.1, fine) <= math.sqrt(math.expm1(0.1)) * (1 + 1e-8)
    assert rad(2, 0.1, [0.5, 0.5, 0.0]) >= 2 * (1 - math.exp(-0.1))


@pytest.mark.parametrize("confidence", [1e-9, 1e-6, 0.01, 0.5, 0.95, 1 - 1e-9])
@pytest.mark.parametrize("cells", [2, 3, 6, 61])
def test_the_quantile_keeps_its_digits_at_both_ends(confidence, cells):
    from scipy.special import gammainc

    found = radius(
        confidence, 1.0, 1, cells
    )  # half the quantile where n = 1, and steps of 10^-12 hardly show
    assert gammainc((cells - 1) / 2, found) >= confidence * (1 - 1e-13)
    assert gammainc((cells - 1) / 2, max(found - 3e-12 - 1e-13 * found, 0.0)) <= confidence * (1 + 1e-13)
