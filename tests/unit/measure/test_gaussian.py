"""The Gaussian funnel: its formulas, the optimum under a budget, and that the finite channel is what they speak of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from funnel.measure import gaussian
from funnel.measure.gaussian import allocate, channel, directions, leak_at
from funnel.measure.information import mutual_information

rates = st.floats(0, 20)
shares = st.floats(0, 1)
seeds = st.integers(0, 2**32 - 1)


def model(seed, k, j=1):
    """Covariance of (X, S) for k public and j sensitive columns of very different scales, and Σ_{x|s}."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(k + j, k + j)) * 10.0 ** rng.uniform(-2, 2, size=(k + j, 1))
    both = mix @ mix.T
    given_s = both[:k, :k] - both[:k, k:] @ np.linalg.solve(both[k:, k:], both[k:, :k])
    return both, given_s


def leak(rate, kept):
    """The leak at the rate r = I(X;Y_i), where the error is e^(-2r)."""
    return leak_at(np.exp(-2 * rate), kept)


@given(rates, rates, shares)
def test_the_leak_increases_to_its_limit_and_is_concave(one, other, kept):
    low, high = sorted((one, other))
    assert leak(0.0, kept) == pytest.approx(0, abs=1e-15)
    assert leak(low, kept) <= leak(high, kept) + 1e-12
    assert leak((low + high) / 2, kept) >= (leak(low, kept) + leak(high, kept)) / 2 - 1e-12
    if kept > 0:
        assert leak(high, kept) <= -0.5 * np.log(kept) + 1e-12
    if kept > 0.01:
        assert leak(40.0, kept) == pytest.approx(-0.5 * np.log(kept), abs=1e-12)


@given(st.floats(0, 5), shares)
def test_the_leak_is_the_formula_and_never_more_than_the_rate(rate, kept):
    assert leak(rate, kept) == pytest.approx(
        rate - 0.5 * np.log(1 - kept + kept * np.exp(2 * rate)), abs=1e-9
    )
    assert leak(rate, kept) <= rate + 1e-12
    assert leak(rate, 1.0) == pytest.approx(0, abs=1e-15)
    assert leak(rate, 0.0) == pytest.approx(rate, abs=1e-12)


@given(seeds, st.integers(1, 4), st.integers(1, 2))
def test_directions_whiten_x_and_make_it_independent_given_s(seed, k, j):
    both, given_s = model(seed, k, j)
    scale = np.sqrt(np.diag(both))
    assume(np.linalg.cond(both / np.outer(scale, scale)) < 1e6)
    found = directions(both[:k, :k], given_s)
    v = found.vectors
    assert v @ both[:k, :k] @ v.T == pytest.approx(np.eye(k), abs=1e-5)
    assert v @ given_s @ v.T == pytest.approx(np.diag(found.kept), abs=1e-5)
    assert ((found.kept >= 0) & (found.kept <= 1)).all()
    assert found.kept[j:] == pytest.approx(1, abs=1e-5)


@given(seeds, st.integers(1, 3), st.data())
def test_what_a_noisy_release_tells_is_the_sum_over_the_directions(seed, k, data):
    """I(X;Y) and I(S;Y) of Y = X + N by determinants, as in the proof of [PF] Theorem 2."""
    rng = np.random.default_rng(seed)
    root = np.eye(k + 1) + 0.3 * rng.normal(size=(k + 1, k + 1))
    both = root @ root.T
    x, xs = both[:k, :k], both[:k, k:]
    given_s = x - xs @ xs.T / both[k, k]
    found = directions(x, given_s)
    errors = np.array([data.draw(st.floats(0.01, 0.99)) for _ in range(k)])
    noise = found.back * (errors / (1 - errors)) @ found.back.T
    log = [np.linalg.slogdet(m)[1] for m in (x + noise, noise, given_s + noise)]
    assert (log[0] - log[1]) / 2 == pytest.approx(-0.5 * np.log(errors).sum(), rel=1e-7, abs=1e-9)
    assert (log[0] - log[2]) / 2 == pytest.approx(leak_at(errors, found.kept).sum(), rel=1e-7, abs=1e-9)
    estimate = x @ np.linalg.solve(x + noise, np.eye(k))
    assert estimate == pytest.approx(found.back * (1 - errors) @ found.vectors, abs=1e-7)
    weights = rng.uniform(0.1, 2, k)
    left = np.diag(x - estimate @ x)
    assert gaussian.prices(found, weights) @ errors == pytest.approx(weights @ left, rel=1e-6)


problems = st.integers(1, 5).flatmap(
    lambda k: st.tuples(
        st.lists(st.floats(0.01, 0.98), min_size=k, max_size=k),
        st.lists(st.floats(0.1, 10), min_size=k, max_size=k),
        st.floats(0.01, 3),
        st.floats(0.001, 0.2),
    )
)


@given(problems)
def test_the_allocation_is_the_optimum(problem):
    """Karush, Kuhn and Tucker, and a general solver that finds nothing better."""
    kept, price, budget, least = (np.array(part) for part in problem)
    errors = allocate(kept, price, float(budget), least)
    assert leak_at(errors, kept).sum() <= budget
    assert (errors >= least).all() and (errors <= 1).all()
    if leak_at(np.full(kept.shape, least), kept).sum() <= budget:
        assert (errors == least).all()
        return
    assert leak_at(errors, kept).sum() == pytest.approx(budget, rel=1e-6)
    level = 2 * price * (errors + kept / (1 - kept))
    inside = (errors > least * (1 + 1e-9)) & (errors < 1 - 1e-9)
    if inside.any():
        common = level[inside][0]
        assert level[inside] == pytest.approx(common, rel=1e-6)
        assert (level[errors <= least * (1 + 1e-9)] >= common * (1 - 1e-6)).all()
        assert (level[errors >= 1 - 1e-9] <= common * (1 + 1e-6)).all()
    other = minimize(
        lambda d: price @ d,
        np.ones(len(kept)),
        jac=lambda d: price,
        bounds=[(float(least), 1.0)] * len(kept),
        constraints={
            "type": "ineq",
            "fun": lambda d: budget - leak_at(d, kept).sum(),
            "jac": lambda d: 0.5 * (1 - kept) / (kept + (1 - kept) * d),
        },
        method="SLSQP",
    )
    if other.success and leak_at(other.x, kept).sum() <= budget:
        assert price @ errors <= other.fun + 1e-6 * price.sum()


def test_a_general_solver_arrives_at_the_same_place():
    kept, price = np.array([0.2, 0.5, 0.9]), np.array([1.0, 2.0, 0.5])
    other = minimize(
        lambda d: price @ d,
        np.full(3, 0.9),
        bounds=[(0.01, 1.0)] * 3,
        constraints={"type": "ineq", "fun": lambda d: 0.3 - leak_at(d, kept).sum()},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert allocate(kept, price, 0.3, 0.01) == pytest.approx(other.x, abs=1e-5)


def test_no_budget_releases_only_what_tells_nothing():
    kept = np.array([0.3, 1.0, 0.8])
    for budget in (0.0, 1e-12, 1e-9):
        errors = allocate(kept, np.ones(3), budget, 0.05)
        assert errors[1] == 0.05
        assert errors[[0, 2]] == pytest.approx(1, abs=1e-6)


def test_a_large_budget_releases_everything():
    assert allocate(np.array([0.0, 0.5]), np.ones(2), 100.0, np.array([0.1, 0.2])).tolist() == [0.1, 0.2]


@given(seeds)
def test_moments_of_weighted_values_are_those_of_the_repeated_ones(seed):
    rng = np.random.default_rng(seed)
    x, s, counts = rng.normal(size=(9, 2)), rng.normal(size=(9, 1)), rng.integers(1, 5, 9)
    everyone = np.repeat(np.hstack([x, s]), counts, axis=0)
    both = np.cov(everyone.T, bias=True)
    assert gaussian.covariance(x, counts) == pytest.approx(both[:2, :2], abs=1e-10)
    expected = both[:2, :2] - np.outer(both[:2, 2], both[:2, 2]) / both[2, 2]
    assert gaussian.given_numbers(x, s, counts) == pytest.approx(expected, abs=1e-9)
    doubled = np.hstack([s, 2 * s - 1])
    assert gaussian.given_numbers(x, doubled, counts) == pytest.approx(expected, abs=1e-7)


@given(seeds)
def test_groups_are_pooled(seed):
    rng = np.random.default_rng(seed)
    groups = np.array([3, 3, 3, 7, 7, 7, 7, 1, 1])
    x, counts = rng.normal(size=(9, 2)) + groups[:, None], rng.integers(1, 6, 9)
    within = np.zeros((2, 2))
    for group in (1, 3, 7):
        mine = groups == group
        within += counts[mine].sum() / counts.sum() * gaussian.covariance(x[mine], counts[mine])
    assert gaussian.given_groups(x, groups, counts) == pytest.approx(within, abs=1e-9)


@pytest.mark.parametrize(
    ("public", "message"),
    [
        (np.array([[1.0, 0.0], [0.0, 0.0]]), "constant"),
        (np.array([[1.0, 20.0], [20.0, 400.0]]), "linear combination"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), "constant"),
    ],
)
def test_singular_covariances_are_named(public, message):
    with pytest.raises(ValueError, match=message):
        directions(public, public / 2)


def test_rounding_errors_in_lambda_are_clipped():
    public = np.array([[2.0, 0.5], [0.5, 1.0]])
    assert directions(public, public * (1 + 1e-12)).kept.tolist() == pytest.approx([1, 1], abs=0)
    assert directions(public, -1e-13 * public).kept.tolist() == [0, 0]


def gaussian_joint(x, public, xs):
    """P(s, x) on the points x (a, k), for a standard normal S of covariance xs (k,) with X, fine in S."""
    prior = np.exp(-0.5 * np.einsum("ij,jk,ik->i", x, np.linalg.inv(public), x))
    slope = np.linalg.solve(public, xs)
    s = np.linspace(-4.5, 4.5, 61)[:, None]
    chances = np.exp(-((s - x @ slope) ** 2) / (2 * (1 - xs @ slope)))
    return chances / chances.sum(axis=0) * prior / prior.sum()


@pytest.mark.parametrize(("correlation", "budget"), [(0.8, 0.1), (0.8, 0.3), (0.4, 0.05)])
def test_the_channel_of_one_column_leaks_what_the_formula_says(correlation, budget):
    x = np.linspace(-4, 4, 161)[:, None]
    public, xs = np.eye(1), np.array([correlation])
    joint = gaussian_joint(x, public, xs)
    found = directions(public, public - np.outer(xs, xs))
    errors = allocate(found.kept, np.ones(1), budget, gaussian.resolution(found, [0.1]))
    protocol, points = channel(x, np.zeros(1), found, errors, [0.1])
    assert mutual_information(joint @ protocol.T) == pytest.approx(budget, rel=0.01)
    assert mutual_information(joint @ protocol.T) <= mutual_information(joint)
    prior = joint.sum(axis=0)
    assert mutual_information((protocol * prior).T) == pytest.approx(-0.5 * np.log(errors).sum(), rel=0.02)
    # The output is E[X|Y]: what is left of X is the error that was allocated.
    left = (prior * protocol * (x[:, 0] - points) ** 2).sum()
    assert left == pytest.approx(errors[0], rel=0.02)


@pytest.mark.parametrize(
    ("precision", "lost"), [((0.25, 0.25), 0.04), ((0.1, 0.4), 0.06), ((0.1, 0.8), 0.15), ((0.8, 0.1), 0.25)]
)
def test_the_channel_of_two_columns_leaks_what_the_formula_says_less_what_rounding_takes(precision, lost):
    axis = np.linspace(-3.5, 3.5, 29)
    x = np.array([(u, v) for u in axis for v in axis])
    public, xs = np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([0.7, 0.2])
    joint = gaussian_joint(x, public, xs)
    found = directions(public, public - np.outer(xs, xs))
    errors = allocate(found.kept, gaussian.prices(found, [1, 1]), 0.1, gaussian.resolution(found, precision))
    protocol, points = channel(x, np.zeros(2), found, errors, precision)
    told = mutual_information(joint @ protocol.T)
    assert 0.1 * (1 - lost) <= told <= 0.1 * 1.002
    left = sum((joint.sum(axis=0) * protocol * (x[:, j] - points[:, [j]]) ** 2).sum() for j in range(2))
    assert left == pytest.approx(gaussian.prices(found, [1, 1]) @ errors, rel=0.25)


@given(seeds, st.integers(1, 3), st.floats(0, 2))
def test_every_channel_is_one_and_its_outputs_lie_on_the_grid(seed, k, budget):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(12, k)) * rng.uniform(0.5, 50, k)
    counts, groups = rng.integers(1, 9, 12), rng.integers(0, 3, 12)
    public = gaussian.covariance(x, counts)
    found = directions(public, gaussian.given_groups(x, groups, counts))
    precision = np.ptp(x, axis=0) / rng.integers(2, 9, k)
    errors = allocate(
        found.kept, gaussian.prices(found, np.ones(k)), budget, gaussian.resolution(found, precision)
    )
    mean = counts @ x / counts.sum()
    protocol, points = channel(x, mean, found, errors, precision)
    assert protocol.shape == (len(points), 12) and points.shape[1] == k
    assert (protocol >= 0).all() and protocol.sum(axis=0) == pytest.approx(np.ones(12), abs=1e-12)
    assert len(np.unique(points, axis=0)) == len(points)
    assert points / precision == pytest.approx(np.round(points / precision), abs=1e-9)
    slack = precision * (0.5 + 1e-9)
    assert (points >= x.min(axis=0) - slack).all() and (points <= x.max(axis=0) + slack).all()
    joint = np.zeros((3, 12))
    joint[groups, np.arange(12)] = counts
    joint = joint[joint.any(axis=1)]
    assert mutual_information(joint @ protocol.T) <= mutual_information(joint) + 1e-12


def test_the_outputs_follow_their_column():
    """Of two independent columns, released almost exactly, each output is near its own x."""
    x = np.array([(u, 100.0 * v) for u in range(4) for v in range(3)])
    public = gaussian.covariance(x, np.ones(12))
    found = directions(public, public)
    protocol, points = channel(x, x.mean(axis=0), found, np.full(2, 1e-4), [1, 100])
    assert points[protocol.argmax(axis=0)].tolist() == x.tolist()
    assert protocol.max(axis=0).min() > 0.99


def test_nothing_released_is_one_output():
    x = np.arange(6.0)[:, None]
    found = directions(gaussian.covariance(x, np.ones(6)), np.ones((1, 1)))
    protocol, points = channel(x, x.mean(axis=0), found, np.ones(1), [2.0])
    assert protocol.tolist() == [[1.0] * 6]
    assert points.tolist() == [[2.0]]


def test_chunks_change_nothing(monkeypatch):
    x = np.random.default_rng(3).normal(size=(20, 2))
    public = gaussian.covariance(x, np.ones(20))
    arguments = x, x.mean(axis=0), directions(public, public / 2), np.full(2, 0.3), [0.3, 0.5]
    whole = channel(*arguments)[0]
    monkeypatch.setattr(gaussian, "_CELLS", 1)
    assert (channel(*arguments)[0] == whole).all()


def test_too_fine_a_precision_is_refused():
    x = np.arange(100.0)[:, None]
    found = directions(gaussian.covariance(x, np.ones(100)), np.ones((1, 1)))
    with pytest.raises(ValueError, match="round more"):
        channel(x, x.mean(axis=0), found, np.full(1, 0.5), [0.01])


def test_a_few_points_in_a_cell_stand_for_all_of_it(monkeypatch):
    """Two columns whose noise goes together: total variation from the same with many more points."""
    axis = np.linspace(-3, 3, 7)
    x = np.array([(u, v) for u in axis for v in axis])
    public = np.array([[1.0, 0.8], [0.8, 1.0]])
    found = directions(public, public - np.outer([0.5, 0.1], [0.5, 0.1]))
    arguments = x, np.zeros(2), found, np.array([0.4, 0.2]), [0.3, 0.3]
    few, points = channel(*arguments)
    monkeypatch.setattr(gaussian, "_NODES", 60)
    many, same = channel(*arguments)
    assert (points == same).all()
    assert np.abs(few - many).sum(axis=0).max() / 2 < 0.005
