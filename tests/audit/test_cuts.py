"""Pairs of distributions that occur together in an uncertainty set, against the definition of the set."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit.cuts import occurs
from funnel.audit.uncertainty import Seen, Uncertainty

ORDERS = [Fraction(1, 2), Fraction(7, 10), Fraction(1), Fraction(2), Fraction(3)]
GRID = np.linspace(1e-4, 1 - 1e-4, 4001)


def around(counts: np.ndarray, order: Fraction, radius: Fraction) -> Uncertainty:
    shares = [Fraction(int(row.sum()), int(counts.sum())) for row in counts]
    places = np.arange(counts.size).reshape(counts.shape)
    seen = tuple(Seen(s, places[s], row, shares[s], Fraction(0)) for s, row in enumerate(counts))
    return Uncertainty(order, radius, seen)


def divergence(estimate: np.ndarray, other: np.ndarray, order: float) -> np.ndarray:
    """D_α(P̂ || P) in nats over the last axis, from its definition."""
    if order == 1:
        return (estimate * np.log(estimate / other)).sum(axis=-1)
    return np.log((estimate**order * other ** (1 - order)).sum(axis=-1)) / (order - 1)


def nearest(counts: np.ndarray, first: np.ndarray, second: np.ndarray, order: float) -> float:
    """The least divergence of any P with these two conditionals, by trying many P_S."""
    estimate = counts.ravel() / counts.sum()
    tried = np.concatenate([GRID[:, None] * first, (1 - GRID)[:, None] * second], axis=1)
    return float(divergence(estimate, tried, order).min())


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(ORDERS), st.floats(1e-4, 0.3), st.floats(0.1, 4))
def test_a_pair_occurs_exactly_where_some_distribution_of_the_set_has_it(
    seed: int, order: Fraction, radius: float, apart: float
) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(5, 200, (2, 3))
    known = around(counts, order, Fraction(radius))
    chances = counts / counts.sum(axis=1, keepdims=True)
    first, second = (
        (1 - share) * row + share * other
        for share, row, other in zip(
            np.minimum(apart * math.sqrt(radius) * random.uniform(size=2), 1), chances, random.dirichlet(np.ones(3), 2),
            strict=True,
        )
    )  # fmt: skip
    least = nearest(counts, first, second, float(order))
    if abs(least - radius) > 1e-6 + 1e-3 * radius:
        assert occurs(known, (known.seen[0], first), (known.seen[1], second)) == (least <= radius)


@pytest.mark.parametrize("order", ORDERS)
def test_a_distribution_that_misses_what_was_seen_occurs_only_below_order_one(order: Fraction) -> None:
    known = around(np.array([[10, 10], [10, 10]]), order, Fraction(2))
    empty, even = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    assert occurs(known, (known.seen[0], empty), (known.seen[1], even)) == (order < 1)
