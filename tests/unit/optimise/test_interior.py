"""The way through the inside: the same optimum as by corners, prices that show it, and room."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.data import Joint
from funnel.errors import SolverError
from funnel.notions import NOTIONS
from funnel.optimise import interior
from funnel.optimise.budget import Budget
from funnel.optimise.interior import Interior
from funnel.optimise.transport import Facets, Transport
from tests.support.strategies import joints

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def posed(joint, epsilon: float, notion: str = "lip"):
    """Sides, prior, and the cost of changing a record."""
    cone = NOTIONS[notion](notion=notion, epsilon=epsilon).demand(joint, {}, 0).cone()
    prior = joint.table().sum(axis=0) / joint.rows
    return cone, prior, 1.0 - np.eye(len(prior))


def bound(prices, prior, cost) -> float:
    """What prices show, as it is written at `Prices`."""
    left = cost - prices.totals[:, None]
    for owner, facet, price in zip(prices.owner, prices.facets, prices.multipliers, strict=True):
        left[owner] += price * facet / prior
    return float(prior @ left.min(axis=0) + prices.totals @ prior)


@given(joints(), st.floats(0.1, 2), st.sampled_from(["lip", "ldp", "pml"]), st.booleans())
@SETTINGS
def test_it_is_the_optimum_that_corners_have(joint, epsilon, notion, kept):
    cone, prior, cost = posed(joint, epsilon, notion)
    found = Interior(cost, prior, Facets(cone), cone.normalised(), kept=kept).solve(Budget(60))
    expected = Transport(cost, prior, Facets(cone), kept=kept).solve(Budget(60))
    reached = float((cost * prior * found.protocol).sum())
    assert found.bound <= expected.cost + 1e-7
    assert reached == pytest.approx(expected.cost, abs=2e-5)
    assert bound(found.prices, prior, cost) == pytest.approx(found.bound, abs=1e-9)
    assert found.protocol.sum(axis=0) == pytest.approx(np.ones(len(prior)))
    assert found.protocol.min() >= 0
    if kept:
        assert found.protocol @ prior == pytest.approx(prior, abs=1e-9)
    assert cone.violation(found.protocol).max() <= 1e-6


@given(joints(), st.floats(0.3, 2))
@SETTINGS
def test_room_is_kept_from_every_side(joint, epsilon):
    cone, prior, cost = posed(joint, epsilon)
    sides, room = cone.normalised(), 1e-4
    program = Interior(cost, prior, Facets(cone), sides, kept=True)
    found = program.solve(Budget(60), room)
    wanted = np.minimum(room * np.linalg.norm(sides, axis=1), 0.25 * prior[:, None])
    assert (found.protocol @ sides.T <= 1e-12 - wanted).all()
    assert found.protocol @ prior == pytest.approx(prior, abs=1e-9)
    assert found.cost >= program.solve(Budget(60)).cost - 1e-9


def test_sides_join_as_rows_violate_them(monkeypatch):
    """However few sides there are at first, in the end none is violated, and the optimum is the same."""
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 60, (6, 12))
    cone = NOTIONS["ldp"](notion="ldp", epsilon=0.7).demand(joint_of(counts), {}, 0).cone()
    prior, cost = counts.sum(axis=0) / counts.sum(), 1.0 - np.eye(12)
    whole = Interior(cost, prior, Facets(cone), cone.normalised(), kept=True).solve(Budget(60))
    monkeypatch.setattr(interior, "_ALL", 1)
    monkeypatch.setattr(interior, "_BEGIN", 1)
    few = Interior(cost, prior, Facets(cone), cone.normalised(), kept=True).solve(Budget(60))
    assert few.cost == pytest.approx(whole.cost, abs=5e-6)
    assert cone.violation(few.protocol).max() <= 1e-6


def joint_of(counts):
    return Joint.from_table(counts)


def test_it_ends_when_its_time_is_over():
    cone, prior, cost = posed(joint_of(np.array([[9, 1, 5], [2, 8, 5]])), 0.5)
    with pytest.raises(SolverError) as late:
        Interior(cost, prior, Facets(cone), cone.normalised(), kept=True).solve(Budget(0.0))
    assert late.value.status == "time"
