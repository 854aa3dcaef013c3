"""A notion's inequalities say the same as its definition, whatever the row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from funnel.data import Joint
from funnel.notions import Ldp, Lip, Notion, Perfect
from tests.support.strategies import joints

EPSILONS = st.floats(0.01, 3)
SLACK = 1e-9


def allowed(notion: Notion, joint: Joint, row: np.ndarray) -> float:
    """How far the row lies outside the cone; at most zero inside."""
    cone = notion.demand(joint, {}, 0).cone()
    outside = [(cone.rows @ row).max()] if len(cone.rows) else []
    outside += [abs(float(np.dot(np.array(e, float), row))) for e in cone.equalities]
    return max(outside)


def chances(joint: Joint, row: np.ndarray) -> tuple[np.ndarray, float]:
    """P(y|s) for every s, and P(y), for the output whose row is given."""
    counts = joint.table()
    return (counts @ row) / counts.sum(axis=1), float(counts.sum(axis=0) @ row) / joint.rows


@given(joints(), EPSILONS, st.data())
def test_lip(joint, epsilon, data):
    row = np.array(data.draw(st.lists(st.floats(0, 1), min_size=joint.shape[1], max_size=joint.shape[1])))
    given_s, overall = chances(joint, row)
    assume(overall > 1e-3)
    worst = max(np.max(given_s / overall), np.max(overall / np.maximum(given_s, 1e-300)))
    assume(abs(math.log(worst) - epsilon) > 1e-6)
    assert (allowed(Lip(notion="lip", epsilon=epsilon), joint, row) <= 0) == (math.log(worst) <= epsilon)


@given(joints(), EPSILONS, st.data())
def test_ldp(joint, epsilon, data):
    row = np.array(data.draw(st.lists(st.floats(0, 1), min_size=joint.shape[1], max_size=joint.shape[1])))
    given_s, _ = chances(joint, row)
    assume(given_s.max() > 1e-3)
    worst = math.log(given_s.max() / max(given_s.min(), 1e-300))
    assume(abs(worst - epsilon) > 1e-6)
    assert (allowed(Ldp(notion="ldp", epsilon=epsilon), joint, row) <= 0) == (worst <= epsilon)


@given(joints())
def test_perfect_allows_exactly_the_rows_that_are_independent_of_the_secret(joint):
    cone = Perfect(notion="perfect").demand(joint, {}, 0).cone()
    counts = joint.table()
    for x in range(joint.shape[1]):
        independent = all(
            counts[s, x] * joint.rows == counts[s].sum() * counts[:, x].sum() for s in range(len(counts))
        )
        assert independent == all(equality[x] == 0 for equality in cone.equalities)
    assert all(sum(equality) == 0 for equality in cone.equalities)


@given(joints(), EPSILONS)
def test_the_uninformative_row_is_always_allowed(joint, epsilon):
    ones = np.ones(joint.shape[1])
    for notion in (
        Lip(notion="lip", epsilon=epsilon),
        Ldp(notion="ldp", epsilon=epsilon),
        Perfect(notion="perfect"),
    ):
        assert allowed(notion, joint, ones) <= SLACK


@pytest.mark.parametrize("kind", [Lip, Ldp])
@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1"])
def test_epsilon_is_positive_and_finite(kind, epsilon):
    with pytest.raises(ValidationError):
        kind(notion=kind.__name__.lower(), epsilon=epsilon)


def test_a_notion_is_frozen_and_scales_to_a_copy():
    notion = Lip(notion="lip", epsilon=1.0)
    with pytest.raises(ValidationError):
        notion.epsilon = 2.0
    assert notion.at(0.25).epsilon == 0.25
    assert notion.epsilon == 1.0
