"""What every mechanism owes under every notion, over random tables, the degenerate ones included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.errors import SolverError
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.base import LOSS
from funnel.mechanisms.product import protect
from funnel.model import Alphabet, Joint
from funnel.model import leakage as measure
from funnel.model.channel import released_table
from funnel.model.exact import exp_below, rational
from funnel.model.information import public_entropy, released_information
from funnel.notions import NOTIONS
from tests.strategies import joints, many_block_joints

SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
OPTIMAL = MECHANISMS["optimal"](kind="optimal")
PAIRS = [(notion, mechanism) for notion in NOTIONS for mechanism in MECHANISMS]


def made(notion: str, epsilon: float):
    return NOTIONS[notion](notion=notion, **({} if notion == "perfect" else {"epsilon": epsilon}))


def solved(joint: Joint, notion: str, mechanism: str, epsilon: float):
    """The protection, or None where the mechanism says that it has nothing to offer."""
    try:
        return protect(joint, made(notion, epsilon), MECHANISMS[mechanism](kind=mechanism), (1.0,))
    except SolverError as error:
        assert error.code in {"nothing-to-release", "precision"}
        assert notion == "perfect"
        return None


def kept(joint: Joint, protection) -> float:
    return released_information(joint, protection.protocols, protection.table)


@pytest.mark.parametrize(("notion", "mechanism"), PAIRS)
@given(joint=joints(), epsilon=st.floats(0.01, 4))
@SETTINGS
def test_the_bound_holds_in_exact_arithmetic(notion, mechanism, joint, epsilon):
    protection = solved(joint, notion, mechanism, epsilon)
    if protection is None:
        return
    (protocol,) = protection.protocols
    assert (protocol.weights.sum(axis=0) == 1 << protocol.bits).all()
    table = released_table(joint, [protocol])
    ratio = (measure.ldp if notion == "ldp" else measure.lip)(table).ratio
    assert ratio is not None
    assert ratio <= (1 if notion == "perfect" else exp_below(rational(epsilon)))
    assert len(protocol.outputs) <= len(protocol.inputs)
    assert set(protocol.outputs.values) <= set(protocol.inputs.values)
    utility = kept(joint, protection)
    assert -1e-12 <= utility <= public_entropy(joint) + 1e-9
    if protection.bound is not None:
        assert utility <= protection.bound + 1e-9


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("notion", ["lip", "ldp"])
@given(joint=joints(), low=st.floats(0.05, 1.5), more=st.floats(0.1, 1.5))
@SETTINGS
def test_a_larger_epsilon_keeps_at_least_as_much(notion, mechanism, joint, low, more):
    first, second = (solved(joint, notion, mechanism, epsilon) for epsilon in (low, low + more))
    assert kept(joint, second) >= kept(joint, first) * (1 - 2e-3) - 1e-9


@given(joint=joints(), epsilon=st.floats(0.05, 3), data=st.data())
@SETTINGS
def test_relabelling_changes_nothing_for_the_optimum(joint, epsilon, data):
    table = joint.table()
    rows = data.draw(st.permutations(range(table.shape[0])))
    columns = data.draw(st.permutations(range(table.shape[1])))
    relabelled = Joint.from_table(table[np.ix_(rows, columns)])
    values = [solved(one, "lip", "optimal", epsilon).bound for one in (joint, relabelled)]
    assert values[0] == pytest.approx(values[1], abs=1e-7)


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "optimal"])
@pytest.mark.parametrize("notion", ["lip", "ldp"])
@given(joint=joints(), epsilon=st.floats(0.05, 3))
@SETTINGS
def test_nothing_that_reads_x_alone_beats_the_optimum(notion, mechanism, joint, epsilon):
    best, other = solved(joint, notion, "optimal", epsilon), solved(joint, notion, mechanism, epsilon)
    if not other.protocols[0].reads_secret:
        assert kept(joint, other) <= best.bound + 1e-9
    assert kept(joint, best) >= best.bound * (1 - 2 * LOSS) - 1e-9


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_above_what_x_itself_gives_away_x_is_released_as_it_is(mechanism):
    joint = Joint.from_table([[30, 20, 50], [25, 25, 40]])
    protection = solved(joint, "lip", mechanism, 3.0)
    assert kept(joint, protection) == pytest.approx(public_entropy(joint))
    assert np.array_equal(protection.protocols[0].probabilities()[:, 0], np.eye(3))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(joint=many_block_joints(), epsilon=st.floats(0.1, 2), data=st.data())
@settings(SETTINGS, max_examples=10)
def test_the_product_of_the_blocks_keeps_the_bound(mechanism, joint, epsilon, data):
    """Also where the composition theorem's budgets would not: the product is what is measured."""
    weights = data.draw(st.lists(st.integers(1, 5), min_size=len(joint.blocks), max_size=len(joint.blocks)))
    shares = [weight / sum(weights) for weight in weights]
    try:
        protection = protect(joint, made("lip", epsilon), MECHANISMS[mechanism](kind=mechanism), shares)
    except SolverError as error:
        # Even with a random secret, conditional reporting of a second column tells on the first.
        assert (mechanism, error.code) == ("conditional-reporting", "nothing-to-release")
        return
    table = released_table(joint, protection.protocols)
    assert measure.lip(table).ratio <= exp_below(rational(epsilon))


def test_a_column_that_determines_the_secret_is_refused_under_perfect_privacy():
    joint = Joint.from_table([[10, 0, 20], [0, 30, 0]])
    with pytest.raises(SolverError) as caught:
        protect(joint, made("perfect", 0), MECHANISMS["optimal"](kind="optimal"), (1.0,))
    assert caught.value.code == "nothing-to-release"
    assert "determines" in caught.value.message


def test_blocks_stay_perfectly_private_together():
    """Two fair bits whose exclusive or leans on the secret: either may be told, both together may not."""
    cells = np.array([[s, a, b] for s in range(2) for a in range(2) for b in range(2)])
    counts = np.array([40 if (a + b) % 2 == s else 5 for s, a, b in cells])
    bit = (("0",), ("1",))
    joint = Joint(Alphabet(("s",), bit), (Alphabet(("a",), bit), Alphabet(("b",), bit)), cells, counts)
    alone = [protect(joint.block(j), made("perfect", 0), OPTIMAL, (1.0,)) for j in range(2)]
    assert [kept(joint.block(j), alone[j]) for j in range(2)] == [pytest.approx(np.log(2))] * 2
    assert measure.lip(released_table(joint, [one.protocols[0] for one in alone])).ratio > 1
    together = protect(joint, made("perfect", 0), OPTIMAL, (0.5, 0.5))
    assert measure.lip(together.table).ratio == 1
    assert kept(joint, together) == pytest.approx(np.log(2))
