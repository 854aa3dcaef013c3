"""Protocols of least cost with given totals: against a program that lists everything, and against their own prices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel.data import Joint
from funnel.data.joint import FloatArray
from funnel.notions import NOTIONS
from funnel.optimise.budget import Budget
from funnel.optimise.cone import Cone
from funnel.optimise.transport import Facets, Transport, TransportPlan
from tests.support.strategies import joints, tables

SMALL = settings(max_examples=30, deadline=None)
NOTION = st.sampled_from(["lip", "ldp", "pml", "alip", "srlip", "ldp-x"])


def cone_of(joint: Joint, notion: str, epsilon: float) -> Cone:
    parameters = {} if notion == "perfect" else {"epsilon": epsilon}
    parameters |= {"lower": 2 * epsilon} if notion == "alip" else {}
    return NOTIONS[notion](notion=notion, **parameters).demand(joint, {}, 0).cone()


def listed(cost: FloatArray, prior: FloatArray, cone: Cone, *, kept: bool) -> float:
    """The optimum of the program written out whole, variables Q[y, x] row by row."""
    a = len(prior)
    sums, totals = np.tile(np.eye(a), a), np.kron(np.eye(a), prior)
    equal = np.vstack([sums, *([totals] if kept else []), *(np.kron(np.eye(a), e) for e in equations(cone))])
    value = np.concatenate([np.ones(a), *([prior] if kept else []), np.zeros(a * len(equations(cone)))])
    most = np.kron(np.eye(a), cone.normalised()) if len(cone.rows) else None
    limits = None if most is None else np.zeros(len(most))
    found = linprog((cost * prior).ravel(), A_ub=most, b_ub=limits, A_eq=equal, b_eq=value, method="highs")
    assert found.status == 0
    return float(found.fun)


def equations(cone: Cone) -> list[FloatArray]:
    proper = [np.array(e, float) for e in cone.equalities if any(e)]
    return [(e / np.abs(e).max())[None] for e in proper]


def shown(plan: TransportPlan, cost: FloatArray, prior: FloatArray) -> float:
    """What the prices alone show."""
    prices = plan.prices
    left = cost - prices.totals[:, None]
    for owner, facet, price in zip(prices.owner, prices.facets, prices.multipliers, strict=True):
        left[owner] += price * facet / prior
    return float(prior @ left.min(axis=0) + prices.totals @ prior)


@given(
    table=tables(most=5),
    notion=NOTION,
    epsilon=st.floats(0.2, 3),
    kept=st.booleans(),
    seed=st.integers(0, 99),
)
@SMALL
def test_the_cuts_find_what_the_whole_program_finds_and_their_prices_show_it(
    table, notion, epsilon, kept, seed
):
    joint = Joint.from_table(table)
    prior = table.sum(axis=0) / table.sum()
    cost = np.random.default_rng(seed).random((len(prior), len(prior)))
    np.fill_diagonal(cost, 0.0)
    cone = cone_of(joint, notion, epsilon)
    plan = Transport(cost, prior, Facets(cone), kept=kept).solve(Budget(30))
    assert plan.cost == pytest.approx(listed(cost, prior, cone, kept=kept), abs=1e-6)
    assert (plan.cost, plan.cost) == pytest.approx(
        (shown(plan, cost, prior), (cost * plan.protocol).sum(axis=0) @ prior), abs=1e-6
    )
    assert cone.violation(plan.protocol).max() <= 1e-6
    if kept:
        assert plan.protocol @ prior == pytest.approx(prior, abs=1e-9)


@given(joint=joints(most=5))
@SMALL
def test_equations_are_met(joint):
    prior = joint.table().sum(axis=0) / joint.rows
    cone, a = cone_of(joint, "perfect", 0.0), len(prior)
    cost = 1.0 - np.eye(a)
    equal = np.vstack([np.zeros((0, a)), *equations(cone)])
    plan = Transport(cost, prior, Facets(cone), kept=True, equal=equal).solve(Budget(30))
    assert plan.cost == pytest.approx(listed(cost, prior, cone, kept=True), abs=1e-6)
    assert np.abs(plan.protocol @ equal.T).max(initial=0.0) <= 1e-7


@given(joint=joints(most=5), epsilon=st.floats(0.2, 3), room=st.floats(1e-5, 1e-2))
@SMALL
def test_with_room_rows_lie_inside_and_totals_stay(joint, epsilon, room):
    prior = joint.table().sum(axis=0) / joint.rows
    cone = cone_of(joint, "lip", epsilon)
    program = Transport(1.0 - np.eye(len(prior)), prior, Facets(cone), kept=True)
    tight, wide = program.solve(Budget(30)), program.solve(Budget(30), room)
    assert wide.cost >= tight.cost - 1e-9
    assert wide.protocol @ prior == pytest.approx(prior, abs=1e-9)
    inside = -(wide.protocol @ cone.normalised().T)
    wanted = np.minimum(room * np.linalg.norm(cone.normalised(), axis=1), prior[:, None] / 4)
    assert (inside >= wanted / 2 - 1e-6).all()
    again = program.solve(Budget(30))
    assert again.cost == pytest.approx(tight.cost, abs=1e-7)


def test_a_cone_that_forbids_nothing_leaves_everything_as_it_is():
    prior = np.array([0.5, 0.3, 0.2])
    plan = Transport(1.0 - np.eye(3), prior, Facets(Cone(np.zeros((0, 3)))), kept=True).solve(Budget(1))
    assert (plan.cost, plan.protocol.tolist()) == (0.0, np.eye(3).tolist())


@given(joint=joints(most=5), epsilon=st.floats(0.2, 3), kept=st.booleans())
@SMALL
def test_where_the_time_is_over_rows_are_inside_all_the_same(joint, epsilon, kept):
    prior = joint.table().sum(axis=0) / joint.rows
    cone, cost = cone_of(joint, "lip", epsilon), 1.0 - np.eye(len(prior))
    plan = Transport(cost, prior, Facets(cone), kept=kept).solve(Budget(0))
    best = Transport(cost, prior, Facets(cone), kept=kept).solve(Budget(30))
    assert cone.violation(plan.protocol).max() <= 1e-9
    assert plan.protocol.sum(axis=0) == pytest.approx(np.ones(len(prior)))
    if kept:
        assert plan.protocol @ prior == pytest.approx(prior)
    assert plan.bound <= best.bound + 1e-7
    assert plan.cost >= best.cost - 1e-7
