"""Leakage over a ball: never exceeded by a distribution of the ball, attained by one, and proved."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from funnel.data.sending import sent
from funnel.measure import leakage
from funnel.measure.robust import robust_holds, robust_leakage
from funnel.measure.uncertainty import limits, project, radius
from tests.support.balls import divergence, onto
from tests.support.robust import CONVEX, ORDERS, RADII, cases
from tests.support.worst import worst_cases

FEWER = settings(max_examples=20)
"""Each example measures several protocols."""
EXAMPLE = np.array([[7, 10], [26, 57]])




def chances(distribution: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """P(y|s) (b, c) up to the protocol's unit, under a joint distribution (c, a)."""
    given_s = distribution / distribution.sum(axis=1, keepdims=True)
    return np.einsum("sx,ysx->ys", given_s, np.broadcast_to(weights, (len(weights), *distribution.shape)))


def of_any_distribution(weights: np.ndarray, possible: np.ndarray) -> float:
    """max P(y|s)/P(y|s') over all distributions on the possible cells: their corners."""
    rows = np.broadcast_to(weights, (len(weights), *possible.shape)).astype(float)
    top, bottom = np.where(possible, rows, 0).max(axis=2), np.where(possible, rows, np.inf).min(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(top[:, :, None] / bottom[:, None, :], nan=1.0, posinf=math.inf)
    return float(np.where(np.eye(len(possible), dtype=bool), 1.0, ratio).max())


def largest(distribution: np.ndarray, weights: np.ndarray) -> float:
    """max P(y|s)/P(y|s') under one distribution."""
    chance = chances(distribution, weights)
    chance = chance[chance.max(axis=1) > 0]
    return float((chance.max(axis=1) / np.maximum(chance.min(axis=1), 1e-300)).max())


@FEWER
@given(cases(), ORDERS, RADII, st.integers(0, 2**32))
def test_no_distribution_of_the_ball_leaks_more(case, order, bound, seed):
    table, weights, possible = case
    proved = robust_leakage(table, weights, possible, bound, order).ratio
    assume(proved is not None)
    estimate, generator = table / table.sum(), np.random.default_rng(seed)
    for _ in range(5):
        towards = np.where(
            possible, generator.gamma(generator.choice([0.05, 1.0]), size=table.shape) + 1e-9, 0
        )
        inside = onto(float(order), float(bound), estimate, towards / towards.sum())
        assert largest(inside, weights) <= float(proved) * (1 + 1e-9)


@pytest.mark.long
@FEWER
@given(cases(), st.sampled_from(CONVEX), RADII)
def test_some_distribution_of_the_ball_leaks_as_much(case, order, bound):
    table, weights, possible = case
    proved = robust_leakage(table, weights, possible, bound, order).ratio
    (worst,) = worst_cases(table, weights, possible, bound, order)
    assume(proved is not None and proved > 1)
    masses, conditional = table.sum(axis=1) / table.sum(), table / table.sum(axis=1, keepdims=True)
    for s, moved in ((worst.secret, worst.distribution), (worst.other, worst.other_distribution)):
        assert moved[~possible[s]].sum() == 0
        masses[s] *= math.exp(float((order - 1) / order) * divergence(float(order), conditional[s], moved))
        conditional[s] = moved
    joint = conditional * (masses / masses.sum())[:, None]
    assert divergence(float(order), table / table.sum(), joint) <= float(bound) * (1 + 1e-6) + 1e-12
    chance = chances(joint, weights)
    attained = chance[worst.y, worst.secret] / chance[worst.y, worst.other]
    assert attained == pytest.approx(worst.ratio, rel=1e-6)
    assert attained == pytest.approx(float(proved), rel=1e-6)


@pytest.mark.long
@FEWER
@given(cases(), ORDERS, RADII)
def test_a_bound_is_proved_exactly_when_it_is_no_less_than_the_leakage(case, order, bound):
    table, weights, possible = case
    proved = robust_leakage(table, weights, possible, bound, order).ratio
    if proved is None:
        assert not robust_holds(table, weights, possible, bound, order, Fraction(10**6))
        return
    assert robust_holds(table, weights, possible, bound, order, proved * Fraction(10**12 + 1, 10**12))
    if proved > 1:
        assert not robust_holds(table, weights, possible, bound, order, proved * Fraction(10**7 - 1, 10**7))


@FEWER
@given(cases(), RADII)
def test_the_pair_set_is_no_larger_than_the_projections(case, bound):
    """Both secrets cannot have the whole radius at once; one value's limits are those of a row that tells it."""
    table, _, possible = case
    shares, given_s = table.sum(axis=1) / table.sum(), table / table.sum(axis=1, keepdims=True)
    lower, upper = limits(2, project(float(bound), 2, shares)[:, None], given_s)
    first = int(np.flatnonzero(table.sum(axis=0))[0])
    weights = np.full((1, 1, table.shape[1]), 50, np.int64)
    weights[0, 0, first] = 100
    high, low = np.where(possible[:, first], 50 + 50 * upper[:, first], 50), 50 + 50 * lower[:, first]
    low = np.where(possible[:, first], low, 50)
    apart = ~np.eye(len(table), dtype=bool)
    most = (high[:, None] / low[None, :])[apart].max()
    assert float(robust_leakage(table, weights, possible, bound).ratio) <= most * (1 + 1e-9)


@FEWER
@given(cases(), ORDERS)
def test_without_a_radius_it_is_the_leakage_of_the_estimate(case, order):
    table, weights, possible = case
    assert robust_leakage(table, weights, possible, Fraction(0), order) == leakage.ldp(sent(table, weights))
    least = robust_leakage(table, weights, possible, Fraction(1, 10**12), order).ratio
    exact = leakage.ldp(sent(table, weights)).ratio
    if exact is not None and least is not None:
        assert float(exact) * (1 - 1e-12) <= float(least) <= float(exact) * (1 + 1e-2)


@pytest.mark.long
@FEWER
@given(cases(), ORDERS)
def test_leakage_grows_with_the_radius_up_to_that_of_all_distributions(case, order):
    table, weights, possible = case
    found = [
        robust_leakage(table, weights, possible, Fraction(b, 1000), order).ratio for b in (1, 10, 300, 9000)
    ]
    ratios = [math.inf if one is None else float(one) for one in found]
    everything = of_any_distribution(weights, possible)
    for small, large in zip(
        ratios, [*ratios[1:], everything], strict=True
    ):
        assert small <= large * (1 + 1e-9)


@FEWER
@given(cases(), ORDERS, RADII, st.randoms(use_true_random=False))
def test_names_do_not_matter(case, order, bound, random):
    table, weights, possible = case
    secrets, values, outputs = (list(range(n)) for n in (*table.shape, len(weights)))
    for names in (secrets, values, outputs):
        random.shuffle(names)
    turned = weights[outputs][:, :, values]
    turned = turned[:, secrets] if weights.shape[1] > 1 else turned
    again = robust_leakage(table[secrets][:, values], turned, possible[secrets][:, values], bound, order)
    before = robust_leakage(table, weights, possible, bound, order)
    assert (again.ratio is None) == (before.ratio is None)
    if before.ratio is not None:
        assert float(again.ratio) == pytest.approx(float(before.ratio), rel=1e-9)


@pytest.mark.parametrize("order", [Fraction(1), Fraction(2)])
def test_orders_join_without_a_step(order):
    weights, possible = np.array([[[9, 4]], [[1, 6]]]), np.ones((2, 2), bool)
    ratios = [
        float(robust_leakage(EXAMPLE, weights, possible, Fraction(3, 40), order + step).ratio)
        for step in (-Fraction(1, 10**8), Fraction(0), Fraction(1, 10**8))
    ]
    assert ratios == pytest.approx([ratios[1]] * 3, rel=1e-6)


def test_two_values_against_a_search_over_joint_distributions():
    """[RLDP] Example 1: a constrained optimiser over logits of P gets as far, and no farther."""
    bound, weights, possible = (
        Fraction(repr(radius(0.95, 2, 100, 4))),
        np.array([[[9, 4]], [[1, 6]]]),
        np.ones((2, 2)),
    )
    estimate, best = EXAMPLE / 100, 0.0

    def joint(logits):
        return (np.exp(logits) / np.exp(logits).sum()).reshape(2, 2)

    def room(logits):
        return math.exp(bound) - (estimate**2 / joint(logits)).sum()

    for y, first, second in product(range(2), range(2), range(2)):
        if first != second:
            found = minimize(
                lambda z, y=y, s=first, t=second: float(
                    np.log(chances(joint(z), weights)[y, t] / chances(joint(z), weights)[y, s])
                ),
                np.log(estimate.ravel() * [1.01, 0.99, 1.02, 1.0]),
                constraints=[{"type": "ineq", "fun": room}],
                options={"ftol": 1e-13, "maxiter": 500},
            )
            best = max(best, -float(found.fun))
    proved = robust_leakage(EXAMPLE, weights, possible.astype(bool), bound).nats
    assert proved == pytest.approx(best, abs=1e-7)


def test_a_chance_that_can_vanish_is_infinite():
    weights, possible = np.array([[[0, 5]], [[5, 0]]]), np.ones((2, 2), bool)
    table = np.array([[5, 0], [3, 4]])
    assert robust_leakage(table, weights, possible, Fraction(1, 100)).ratio is None
    assert of_any_distribution(weights, possible) == math.inf
    assert robust_leakage(EXAMPLE, weights, possible, Fraction(1, 100)).ratio is not None


def test_a_value_not_yet_seen_with_a_secret_may_still_come():
    table, weights = np.array([[50, 50, 0], [40, 40, 0]]), np.array([[[5, 5, 9]], [[5, 5, 1]]])
    everywhere = np.ones((2, 3), bool)
    assert robust_leakage(table, weights, table > 0, Fraction(1, 20)).ratio == 1
    assert robust_leakage(table, weights, everywhere, Fraction(1, 20)).ratio > 1


def test_all_distributions_are_their_corners():
    """Secret-randomised response ([RLDP] section 6) at e^ε = 2 on two secrets with two values each."""
    weights = np.array([[8, 2, 4, 4], [2, 8, 4, 4], [4, 4, 8, 2], [4, 4, 2, 8]], np.int64)[:, None, :]
    possible = np.repeat(np.eye(2, dtype=bool), 2, axis=1)
    table = np.where(possible, 3, 0)
    assert of_any_distribution(weights, possible) == 2
    assert robust_leakage(table, weights, possible, Fraction(90)).ratio <= 2
    assert robust_holds(table, weights, possible, Fraction(90), Fraction(2), Fraction(2))


def test_cuts_separate_a_row_from_all_that_keep_the_bound():
    possible, bound = np.ones((2, 2), bool), Fraction(3, 40)
    row = np.array([[[1.0, 0.3]]])
    found = worst_cases(EXAMPLE, row, possible, bound, Fraction(2), above=1.05)
    ratios = [one.ratio for one in found]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 1.05
    kept = np.array([[[51, 50]]])
    assert float(robust_leakage(EXAMPLE, kept, possible, bound).ratio) <= 1.05
    for one in found:
        assert one.distribution @ row[0, 0] > 1.05 * (one.other_distribution @ row[0, 0])
        assert one.distribution @ kept[0, 0] <= 1.05 * (one.other_distribution @ kept[0, 0])


@pytest.mark.parametrize(
    ("table", "possible", "bound", "order"),
    [
        ([[1, 2], [0, 0]], [[1, 1], [1, 1]], 1, 2),
        ([[1, 2], [3, 4]], [[1, 0], [1, 1]], 1, 2),
        ([[1, 2], [3, 4]], [[1, 1], [1, 1]], -1, 2),
        ([[1, 2], [3, 4]], [[1, 1], [1, 1]], 101, 2),
        ([[1, 2], [3, 4]], [[1, 1], [1, 1]], 1, 0),
    ],
)
def test_a_ball_refuses_what_it_cannot_be_drawn_around(table, possible, bound, order):
    weights = np.ones((1, 1, 2), np.int64)
    with pytest.raises(ValueError, match="ball"):
        robust_leakage(np.array(table), weights, np.array(possible, bool), Fraction(bound), Fraction(order))
