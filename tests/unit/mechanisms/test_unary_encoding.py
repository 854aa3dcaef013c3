"""Unary encoding: measured on sets that are never listed, calibrated, and as the printed numbers say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, UnaryProtocol
from funnel.data.channel import Channel
from funnel.data.subsets import Subsets
from funnel.errors import PlanError
from funnel.measure import leakage as measure
from funnel.measure.information import (
    mutual_information,
    public_entropy,
    public_information,
    released_information,
    secret_information,
)
from funnel.mechanisms import RandomisedResponse, UnaryEncoding
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS, Lip
from tests.support.census import census
from tests.support.strategies import joints, many_block_joints

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
OUE = UnaryEncoding(kind="unary-encoding")
PRINTED = {0.5: 0.0248940676, 1: 0.0949792839, 2: 0.3193486076, 4: 0.7518236599}
BASELINE = {
    ("occupation", "relationship"): (0.052, 0.138, 0.292),
    ("marital_status", "relationship"): (0.033, 0.103, 0.269),
    ("marital_status", "education"): (0.083, 0.182, 0.321),
}


@st.composite
def coins(draw: st.DrawFn, joint: Joint) -> UnaryProtocol:
    """Any unary protocol of a block, with odd chances too."""
    bits = draw(st.integers(2, 12))
    present = draw(st.integers(2, (1 << bits) - 1))
    return UnaryProtocol(joint.blocks[0], bits, present, draw(st.integers(1, present - 1)))


def listed(joint: Joint, protocol: UnaryProtocol) -> np.ndarray:
    """T[s, y] over all sets, from the coins themselves, in Python integers."""
    a, whole = len(protocol.inputs), 1 << protocol.bits
    chances = [[protocol.present if x == bit else protocol.absent for bit in range(a)] for x in range(a)]
    columns = []
    for y in range(1 << a):
        held = [y >> (a - 1 - bit) & 1 for bit in range(a)]
        of_x = [
            math.prod(one if bit else whole - one for one, bit in zip(row, held, strict=True))
            for row in chances
        ]
        columns.append(joint.table().astype(object) @ np.array(of_x, object))
    return np.stack(columns, axis=1)


@given(joint=joints(most=6), data=st.data())
@SETTINGS
def test_leakage_over_sets_is_that_of_the_list_of_all_sets(joint, data):
    protocol = data.draw(coins(joint))
    table, channel = listed(joint, protocol), Channel(joint, [protocol])
    assert measure.lip(channel.table) == measure.lip(table)
    assert measure.ldp(channel.table) == measure.ldp(table)
    worst = max(Fraction(int(max(of_y)), int(min(of_y))) for of_y in of_each(protocol).T)
    assert NOTIONS["ldp-x"](notion="ldp-x", epsilon=1.0).leakage(channel).ratio == worst


def of_each(protocol: UnaryProtocol) -> np.ndarray:
    """The chance of every set for every value, (a, 2^a), in integers."""
    return listed(Joint.from_table(np.eye(len(protocol.inputs), dtype=np.int64)), protocol)


@given(joint=joints(most=6), data=st.data())
@SETTINGS
def test_information_lies_between_its_bounds(joint, data):
    protocol = data.draw(coins(joint))
    table = listed(joint, protocol).astype(float)
    shares = joint.table() / joint.rows
    for bounds, exact in (
        (secret_information(shares, *protocol.shares), mutual_information(table)),
        (public_information(shares.sum(axis=0), *protocol.shares), kept_by_list(joint, protocol)),
    ):
        assert bounds.low - 1e-9 <= exact <= bounds.high + 1e-9
        assert bounds.high - bounds.low <= 2e-6


def kept_by_list(joint: Joint, protocol: UnaryProtocol) -> float:
    """I(X;Y) from the list of all sets."""
    prior = joint.table().sum(axis=0)
    return mutual_information((prior[:, None] * of_each(protocol)).astype(float))


@given(joint=many_block_joints(blocks=1, most=4), data=st.data())
@SETTINGS
def test_side_knowledge_is_measured_on_every_condition(joint, data):
    """A block of two columns: who knows one of them looks at the sets with the records that share it."""
    a = joint.shape[1]
    width = data.draw(st.integers(1, a))
    values = tuple((f"u{x % width}", f"v{x // width}") for x in range(a))
    paired = Joint(joint.secret, (Alphabet(("u", "v"), values),), joint.cells, joint.counts)
    protocol = data.draw(coins(paired))
    ratios = [measure.lip(listed(paired, protocol)).ratio]
    for part in range(2):
        for known in {value[part] for value in values}:
            counts = paired.table() * np.array([value[part] == known for value in values])
            ratios.append(measure.lip(counts.astype(object) @ of_each(protocol)).ratio)
    srlip = NOTIONS["srlip"](notion="srlip", epsilon=1.0)
    assert srlip.leakage(Channel(paired, [protocol])).ratio == max(ratios)


def test_the_information_to_the_printed_digits():
    joint = census("marital_status", "education")
    prior = joint.table().sum(axis=0) / joint.rows
    for alpha, printed in PRINTED.items():
        found = public_information(prior, 0.5, 1 / (math.exp(alpha) + 1))
        assert found.low - 1e-10 <= printed <= found.high + 1e-10
        assert found.high - found.low < 1e-8


@pytest.mark.parametrize("pair", BASELINE, ids="-".join)
def test_the_baseline_to_the_printed_digits(pair):
    joint = census(*pair)
    for epsilon, printed in zip((0.5, 1.0, 2.0), BASELINE[pair], strict=True):
        notion = Lip(notion="lip", epsilon=epsilon)
        protocol = OUE.solve(joint, notion.demand(joint, {}, 0)).protocol
        channel = Channel(joint, [protocol])
        assert notion.holds(channel)
        assert notion.leakage(channel).nats > epsilon * 0.999
        kept = released_information(joint, [protocol], channel.table) / public_entropy(joint)
        assert kept == pytest.approx(printed, abs=5.1e-4)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_of_two_values_half_of_what_randomised_response_keeps(epsilon):
    """The empty and the full set say nothing, and one of them is released every other time."""
    joint = census("occupation", "sex")
    demand = Lip(notion="lip", epsilon=epsilon).demand(joint, {}, 0)
    kept = [
        released_information(joint, [protocol], Channel(joint, [protocol]).table)
        for protocol in (
            OUE.solve(joint, demand).protocol,
            RandomisedResponse(kind="randomised-response").solve(joint, demand).protocol,
        )
    ]
    assert kept[0] == pytest.approx(kept[1] / 2, rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("notion", ["lip", "ldp", "srlip", "ldp-x"])
@given(joint=joints(), epsilon=st.floats(0.05, 4))
@SETTINGS
def test_as_strong_as_the_bound_allows(notion, joint, epsilon):
    made = NOTIONS[notion](notion=notion, epsilon=epsilon)
    found = protect(joint, made, OUE, (1.0,))
    assert found.holds
    (protocol,) = found.protocols
    if isinstance(protocol, UnaryProtocol):
        assert 2 * protocol.present == 1 << protocol.bits
        if protocol.absent > 1:
            bolder = UnaryProtocol(protocol.inputs, protocol.bits, protocol.present, protocol.absent - 1)
            assert not found.notion.holds(Channel(found.joint, [bolder]))
    else:
        assert "released as they are" in found.solved[0].how


def test_the_usual_ldp_is_alpha_itself():
    joint = Joint.from_table([[30, 20, 50], [25, 25, 40]])
    made = NOTIONS["ldp-x"](notion="ldp-x", epsilon=1.5)
    (protocol,) = protect(joint, made, OUE, (1.0,)).protocols
    assert protocol.alpha == pytest.approx(1.5, abs=1e-2)
    assert protocol.alpha <= 1.5


def test_many_values_are_quick_and_too_many_are_refused():
    table = np.random.default_rng(3).integers(1, 200, (20, 62))
    wide = Joint.from_table(table)
    found = protect(wide, Lip(notion="lip", epsilon=0.3), OUE, (1.0,))
    assert found.holds
    assert 0 < found.kept <= public_entropy(wide)
    wider = Joint.from_table(np.hstack([table, table]))
    with pytest.raises(PlanError) as caught:
        protect(wider, Lip(notion="lip", epsilon=0.3), OUE, (1.0,))
    assert caught.value.code == "alphabet-too-large"
    assert "`groups`" in caught.value.advice


def test_what_two_blocks_tell_is_that_of_all_pairs_of_sets():
    """Sets beside sets are written out: the same ratios and information as from the coins one by one."""
    cells = np.array([[s, x, z] for s in range(2) for x in range(3) for z in range(2)])
    counts = np.array([30, 5, 12, 9, 4, 20, 6, 14, 25, 3, 18, 7])
    joint = Joint(
        Alphabet(("s",), (("0",), ("1",))),
        (Alphabet(("x",), (("0",), ("1",), ("2",))), Alphabet(("z",), (("0",), ("1",)))),
        cells,
        counts,
    )
    protocols = [UnaryProtocol(joint.blocks[0], 5, 16, 6), UnaryProtocol(joint.blocks[1], 4, 8, 3)]
    of_x, of_z = map(of_each, protocols)
    table = np.einsum("sxz,xy,zw->syw", joint.dense().astype(object), of_x, of_z)
    channel = Channel(joint, protocols)
    assert measure.lip(channel.table) == measure.lip(table)
    assert measure.ldp(channel.table) == measure.ldp(table)
    assert mutual_information(channel.table) == pytest.approx(mutual_information(table))
    noise = np.einsum("xz,xy,zw->xzyw", joint.dense().sum(axis=0), of_x, of_z).astype(float)
    exact = mutual_information(noise.reshape(6, -1))
    assert released_information(joint, protocols, channel.table) == pytest.approx(exact)


def test_the_extremes_of_belief_are_those_of_the_list():
    joint = Joint.from_table([[40, 10, 25, 3], [12, 30, 9, 8], [5, 5, 5, 60]])
    protocol = UnaryProtocol(joint.blocks[0], 8, 128, 40)
    table = listed(joint, protocol).astype(float)
    ratio = table / table.sum(axis=0) * (table.sum() / table.sum(axis=1, keepdims=True))
    low, high = Subsets(joint.table(), protocol).changes()
    assert low == pytest.approx(ratio.min(axis=1))
    assert high == pytest.approx(ratio.max(axis=1))
