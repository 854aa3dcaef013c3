"""Pairs of distributions that occur together in an uncertainty set, against the definition of the set."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit import cuts
from funnel.audit.cuts import occurs, robust_rows
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


# --- inequalities of a proof, read back into pairs

COUNTS = np.array([[40, 30, 30], [20, 50, 30]])
PRIOR = COUNTS.ravel() / COUNTS.sum()
EPSILON = Fraction(1, 2)
NEAR, ALSO = np.array([0.42, 0.29, 0.29]), np.array([0.19, 0.5, 0.31])
FAR = np.array([0.98, 0.01, 0.01])


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`robust_rows` for six values, three of each secret value, which their first part tells."""
    table = np.zeros((2, 6), np.int64)
    table[0, :3], table[1, 3:] = COUNTS
    evidence: Any = SimpleNamespace(dense=lambda: table)
    manifest: Any = SimpleNamespace(epsilon=EPSILON)

    def run(*given: np.ndarray, known: Uncertainty | None = None) -> np.ndarray | None:
        own = around(COUNTS, Fraction(2), Fraction(1, 50)) if known is None else known
        monkeypatch.setattr(cuts, "around", lambda *_: own)
        return robust_rows(evidence, manifest, np.array(given).reshape(-1, 6))

    return run


def inequality(first: np.ndarray, second: np.ndarray, ratio: float, swapped: bool = False) -> np.ndarray:
    """R_1 - ratio R_2 <= 0 on w, R_1 of the first secret value unless swapped."""
    parts = (-ratio * first, second) if swapped else (first, -ratio * second)
    return np.concatenate(parts) / PRIOR


def largest_one(row: np.ndarray) -> np.ndarray:
    return np.asarray(row / np.abs(row).max())


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("claimed", [1.0, 1.5, math.exp(0.5), 40.0])
@pytest.mark.parametrize("scale", [1.0, 7.0, 1e-6])
def test_the_ratio_is_the_bound_s_and_not_the_file_s(
    rows: Any, claimed: float, swapped: bool, scale: float
) -> None:
    (found,) = rows(scale * inequality(NEAR, ALSO, claimed, swapped))
    own = inequality(NEAR, ALSO, math.exp(EPSILON), swapped)
    assert found == pytest.approx(largest_one(own), rel=1e-12)


def test_a_pair_that_does_not_occur_in_the_set_is_refused_and_the_others_stay(rows: Any) -> None:
    fine = inequality(NEAR, ALSO, 2.0)
    found = rows(inequality(FAR, ALSO, 2.0), fine, inequality(NEAR, FAR, 2.0))
    assert found.shape == (1, 6)
    assert found == pytest.approx(rows(fine))


def test_two_that_occur_each_alone_may_not_occur_together(rows: Any) -> None:
    """The whole radius is spent once."""
    known = around(COUNTS, Fraction(2), Fraction(1, 50))
    chances = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    ends = []
    for s in (0, 1):
        one, other = known.seen[s], known.seen[1 - s]
        shares = np.linspace(0, 1, 4001)
        tried = [(1 - t) * chances[s] + t * np.array([0.9, 0.05, 0.05]) for t in shares]
        ends.append([r for r in tried if occurs(known, (one, r), (other, chances[1 - s]))][-1])
    assert rows(inequality(ends[0], chances[1], 2.0)).shape == (1, 6)
    assert rows(inequality(chances[0], ends[1], 2.0)).shape == (1, 6)
    assert rows(inequality(ends[0], ends[1], 2.0)).shape == (0, 6)


WRONG = {
    "both of one secret value": np.array([1, -1, 0, 0, 0, 0]),
    "more on both": np.array([1, 1, 1, 1, 1, -5]),
    "less on both": np.array([5, -1, -1, -1, -1, -1]),
    "nothing that is less": np.array([1, 1, 1, 0, 0, 0]),
    "nothing that is more": np.array([0, 0, 0, -1, -1, -1]),
    "nothing at all": np.zeros(6),
    "no number": np.array([math.nan, 1, 1, -1, -1, -1]),
    "no finite number": np.array([math.inf, 1, 1, -1, -1, -1]),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_pair_of_two_secret_values_is_refused(what: str, rows: Any) -> None:
    assert rows(WRONG[what].astype(float)).shape == (0, 6)


def test_of_no_inequalities_there_are_none(rows: Any) -> None:
    assert rows().shape == (0, 6)


def test_pairs_are_not_read_back_where_values_are_shared_or_left_over_or_the_order_is_small(
    rows: Any,
) -> None:
    known, one = around(COUNTS, Fraction(2), Fraction(1, 50)), inequality(NEAR, ALSO, 2.0)
    shared = (
        known.seen[0],
        Seen(1, np.array([2, 4, 5]), known.seen[1].counts, known.seen[1].share, Fraction(0)),
    )
    assert rows(one, known=Uncertainty(known.order, known.radius, shared)) is None
    assert rows(one, known=Uncertainty(known.order, known.radius, known.seen[:1])) is None
    assert rows(one, known=Uncertainty(Fraction(1, 3), known.radius, known.seen)) is None
    assert rows(one, known=Uncertainty(Fraction(1, 2), known.radius, known.seen)) is not None
