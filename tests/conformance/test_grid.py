"""What every mechanism owes, by being registered, under every notion that it serves; degenerate tables included."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from funnel.cells.make import make
from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import released_table
from funnel.errors import SolverError
from funnel.measure import clock
from funnel.measure import leakage as measure
from funnel.measure.faithful import share_unchanged
from funnel.measure.information import mutual_information, public_entropy
from funnel.mechanisms import MECHANISMS, single
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS
from funnel.notions.implications import least
from funnel.release.export import released_file
from funnel.release.filled import filled
from tests.support.strategies import joints, many_block_joints
from tests.support.wide import mixed

EXAMPLES = max(settings.default.max_examples // 15, 1)
"""Tables for each cell of the grid: four, or as many as a profile asks for (`--hypothesis-profile=thorough`)."""
NODES = 100
"""Boxes that one search may look at: a limit that is the same on every machine."""
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # every example solves: shrinking takes minutes
)
OPTIMAL = MECHANISMS["optimal"](kind="optimal")
DEGENERATE = {
    "zero cells": [[5, 0, 7], [0, 9, 2]],
    "one public value": [[4], [9]],
    "perfectly correlated": [[30, 0, 0], [0, 20, 0], [0, 0, 50]],
    "independent": [[10, 20, 30], [20, 40, 60]],
    "tiny counts": [[1, 0], [1, 1]],
    "one rare value": [[10_000, 1], [10_000, 9_999]],
}
CASES = [
    (notion, mechanism, released)
    for notion, kind in NOTIONS.items()
    for released in ([False, True] if kind.secret_may_be_public else [False])
    for mechanism, how in single.named(single.SINGLE).items()
    if how.misfit(notion, secret_public=released) is None
]
HIDDEN = [(notion, mechanism) for notion, mechanism, released in CASES if not released]
SEARCHED = [
    pytest.param(*one, marks=[pytest.mark.long(whole=True)] if one == ("rldp", "optimal") else []) for one in HIDDEN
]
"""The same, but that its search over boxes waits for `--long` where it is made several times over."""
BEST = {"optimal", "polyopt", "non-robust"}
"""Mechanisms that use extreme rays, so as few outputs as there are values."""


@pytest.fixture(autouse=True)
def limited():
    """No search is stopped by the clock, and none goes on for long."""
    with clock.within(math.inf, NODES):
        yield


def made(notion: str, epsilon: float):
    """The notion with its defaults."""
    return NOTIONS[notion](notion=notion, **({} if NOTIONS[notion].exact_zero else {"epsilon": epsilon}))


def named(mechanism: str):
    """The mechanism with its defaults."""
    return MECHANISMS[mechanism](kind=mechanism)


def placed(joint: Joint, released: bool) -> Joint:
    """The same table with numbers for values, and with the secret among them where it is released."""
    table = joint.table()
    if not released:
        block = Alphabet(("X",), tuple((str(x),) for x in range(table.shape[1])))
        return Joint(joint.secret, (block,), joint.cells, joint.counts)
    return Joint.from_records(table)


def solved(joint: Joint, notion: str, mechanism: str, epsilon: float):
    """The protection, or None where the mechanism rightly says that it has nothing to offer."""
    try:
        return protect(joint, made(notion, epsilon), named(mechanism), (1.0,))
    except SolverError as error:
        # Only an average, no chance at all, or perfect privacy may leave nothing; robust sets may be everything.
        assert error.code in {"nothing-to-release", "precision"}
        assert notion in {"perfect", "mutual-information", "rldp"} or joint.rows < 10
        return None


def worth(protection) -> float:
    """What the mechanism keeps most of: I(X;Y) in nats, or the share of records that keep their values."""
    as_they_are = protection.solved[0].totals is not None
    return share_unchanged(protection.joint, protection.protocols) if as_they_are else protection.kept


FOLLOWING = {
    "lip": lambda table: measure.lip(table).nats,
    "ldp": lambda table: measure.ldp(table).nats,
    "pml": lambda table: measure.pml(table).nats,
    "mutual-information": mutual_information,
}
"""What can be told from a released table alone, by the notion that bounds it."""


def exactly_within(protection, epsilon: float) -> bool:
    """The notion's own bound; and, from the released table itself, every bound that it says follows."""
    notion, table = protection.notion, protection.channel.table
    implied = {name: least(notion, name) for name in FOLLOWING}
    assert notion.epsilon == epsilon
    return protection.holds and all(
        FOLLOWING[name](table) <= bound + 1e-9 for name, bound in implied.items() if bound is not None
    )


@pytest.mark.long
@pytest.mark.parametrize(("notion", "mechanism", "released"), CASES)
@given(joint=joints(most=3, secrets=3), epsilon=st.floats(0.05, 3))
@SETTINGS
def test_a_protocol_keeps_its_bound_and_no_more_than_there_is(notion, mechanism, released, joint, epsilon):
    owed(placed(joint, released), notion, mechanism, epsilon)


@pytest.mark.parametrize("table", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize(("notion", "mechanism", "released"), CASES)
def test_degenerate_tables(notion, mechanism, released, table):
    owed(placed(Joint.from_table(table), released), notion, mechanism, 0.7)


def owed(joint: Joint, notion: str, mechanism: str, epsilon: float) -> None:
    protection = solved(joint, notion, mechanism, epsilon)
    if protection is None:
        return
    (protocol,) = protection.protocols
    assert exactly_within(protection, 0 if NOTIONS[notion].exact_zero else epsilon)
    entropy = public_entropy(joint)
    assert -1e-9 <= protection.kept <= entropy + 1e-9
    if isinstance(protocol, Protocol):
        assert (protocol.weights.sum(axis=0) == 1 << protocol.bits).all()
    if mechanism in BEST:
        assert len(protocol.outputs) <= len(protocol.inputs)
        assert set(protocol.outputs.values) <= set(protocol.inputs.values)
    if protection.bound is not None:
        assert protection.kept <= protection.bound + 1e-9


@pytest.mark.parametrize(
    ("notion", "mechanism", "released"), [case for case in CASES if case[0] != "perfect"]
)
@given(joint=joints(most=3, secrets=3), low=st.floats(0.1, 1), more=st.floats(0.2, 1))
@settings(SETTINGS, max_examples=max(EXAMPLES // 3, 1))
def test_a_larger_epsilon_keeps_at_least_as_much(notion, mechanism, released, joint, low, more):
    table = placed(joint, released)
    first, second = (solved(table, notion, mechanism, epsilon) for epsilon in (low, low + more))
    if first is not None:
        assert second is not None
        assert worth(second) >= worth(first) * (1 - 2e-3) - 1e-9


@pytest.mark.parametrize(("notion", "mechanism"), SEARCHED)
@given(data=st.data(), epsilon=st.floats(0.1, 2))
@settings(SETTINGS, max_examples=max(EXAMPLES // 3, 1))
def test_relabelling_changes_nothing(notion, mechanism, data, epsilon):
    """Counts are large and all different: where they tie, or are few, rounding and merging may go either way."""
    counts = data.draw(st.lists(st.integers(50, 5_000), min_size=6, max_size=6, unique=True))
    table = np.array(counts).reshape(2, 3)
    rows, columns = data.draw(st.permutations(range(2))), data.draw(st.permutations(range(3)))
    pair = [placed(Joint.from_table(one), False) for one in (table, table[np.ix_(rows, columns)])]
    if MECHANISMS[mechanism].needs_numbers:
        order = Alphabet(("X",), tuple((str(x),) for x in columns))
        cells = pair[1].cells
        pair[1] = Joint(pair[1].secret, (order,), cells, pair[1].counts)
    found = [solved(one, notion, mechanism, epsilon) for one in pair]
    assert (found[0] is None) == (found[1] is None)
    if found[0] is not None:
        assert worth(found[0]) == pytest.approx(worth(found[1]), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize(
    ("notion", "mechanism"), [case for case in HIDDEN if NOTIONS[case[0]].linear and case[1] != "optimal"]
)
@given(joint=joints(most=3, secrets=3), epsilon=st.floats(0.1, 2))
@settings(SETTINGS, max_examples=max(EXAMPLES // 2, 1))
def test_nothing_that_reads_x_alone_exceeds_the_bound_of_the_optimum(notion, mechanism, joint, epsilon):
    table = placed(joint, False)
    best, other = solved(table, notion, "optimal", epsilon), solved(table, notion, mechanism, epsilon)
    if best is None or other is None:
        return
    assert best.bound is not None
    if not other.protocols[0].reads_secret:
        assert other.kept <= best.bound + 1e-9


@pytest.mark.parametrize(
    ("notion", "mechanism"), [case for case in HIDDEN if case[0] not in {"ldp-x", "perfect", "rldp"}]
)
def test_above_what_x_itself_gives_away_x_is_released_as_it_is(notion, mechanism):
    joint = placed(Joint.from_table([[30, 20, 50], [25, 25, 40]]), False)
    protection = solved(joint, notion, mechanism, 3.0)
    assert protection.kept == pytest.approx(public_entropy(joint))
    assert np.array_equal(protection.protocols[0].probabilities()[:, 0], np.eye(3))


@pytest.mark.parametrize(
    ("notion", "mechanism"),
    [
        case
        for case in HIDDEN
        if case[0] not in {"perfect", "rldp"} and not MECHANISMS[case[1]].one_block(NOTIONS[case[0]])
    ],
)
@given(joint=many_block_joints(), epsilon=st.floats(0.2, 2), data=st.data())
@settings(SETTINGS, max_examples=max(EXAMPLES // 3, 1))
def test_the_product_of_the_blocks_keeps_the_bound(notion, mechanism, joint, epsilon, data):
    """Also where the composition theorem's budgets would not: the product is what is measured."""
    weights = data.draw(st.lists(st.integers(1, 5), min_size=len(joint.blocks), max_size=len(joint.blocks)))
    shares = [weight / sum(weights) for weight in weights]
    numbered = tuple(
        Alphabet(block.columns, tuple((str(x),) for x in range(len(block)))) for block in joint.blocks
    )
    joint = Joint(joint.secret, numbered, joint.cells, joint.counts)
    if MECHANISMS[mechanism].needs_numbers and min(map(len, joint.blocks)) < 2:
        return  # a column of one value is refused, which test_funnels shows
    try:
        protection = protect(joint, made(notion, epsilon), named(mechanism), shares)
    except SolverError as error:
        # Even with a random secret, conditional reporting of a second column tells on the first; and merging, or
        # the least noise, may leave a constant.
        assert error.code == "nothing-to-release"
        assert mechanism in {"conditional-reporting", "greedy-funnel", "gaussian-funnel"}
        return
    assert protection.holds
    assert exactly_within(protection, epsilon)


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
    assert [alone[j].kept for j in range(2)] == [pytest.approx(np.log(2))] * 2
    assert measure.lip(released_table(joint, [one.protocols[0] for one in alone])).ratio > 1
    together = protect(joint, made("perfect", 0), OPTIMAL, (0.5, 0.5))
    assert measure.lip(together.channel.table).ratio == 1
    assert together.kept == pytest.approx(np.log(2))


@pytest.mark.parametrize(("notion", "mechanism"), [case for case in HIDDEN if MECHANISMS[case[1]].plain])
def test_cells_are_values_like_any_other(notion, mechanism):
    """Every answer is a cell, so that every mechanism that answers with values can be filled in."""
    if MECHANISMS[mechanism].needs_numbers:
        return  # a wide block is refused there, which the policy language shows
    made = make("person", mixed(3, 600), most=5, minimum=80, support=10, seed=bytes(32))
    secret = (made.codes[4] + np.arange(600) % 3 == 3).astype(np.int64)
    table = np.zeros((2, len(made.cells)), np.int64)
    np.add.at(table, (secret, made.labels), 1)
    cells = Alphabet(("person",), tuple((label,) for label in made.cells.labels()))
    counted = Joint.from_table(table)
    joint = Joint(counted.secret, (cells,), counted.cells, counted.counts)
    owed(joint, notion, mechanism, 0.7)
    protection = solved(joint, notion, mechanism, 0.7)
    if protection is not None:
        (protocol,) = protection.protocols
        drawn = np.arange(protocol.size)
        table = released_file([protocol], (), (), drawn[:, None], np.full(len(drawn), 7), cells=[made.cells])
        columns = filled([protocol], table, [made.cells], locked=False)
        assert [one.name for one in columns][:5] == ["age", "wage", "town", "since", "trade"]
        assert {len(one.codes) for one in columns} == {7 * len(drawn)}
