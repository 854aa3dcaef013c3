"""The figure that a ledger states is never below what an attacker learns who sees all releases and knows everything."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import Channel
from funnel.format.journal import Together
from funnel.ledger.composition import together
from funnel.ledger.records import DrawRecord
from funnel.ledger.stated import own_figure
from funnel.measure.composition import identity
from funnel.notions import LdpX, Lip, Notion, Srlip
from tests.support.composing import NOTIONS, OF_ANOTHER, learnt
from tests.support.ledger import TOGETHER
from tests.support.strategies import joints, protocols


def drawn(
    protocol: Protocol | None, key: str = "k", meaning: str = "m", entity: str = "id", columns=("X",)
) -> DrawRecord:
    secret = protocol.secret.columns if protocol and protocol.secret else None
    meanings = (meaning,) * len(columns)
    return DrawRecord(columns, meanings, meanings, secret, key, entity, protocol)


def looked_at(notion: Notion, joint: Joint, own: DrawRecord, *earlier: DrawRecord) -> Together:
    assert own.protocol is not None
    alone = notion.leakage(Channel(joint, [own.protocol]))
    return together(notion, joint, [own], earlier, alone, [OF_ANOTHER] * len(earlier))


def law(protocol: Protocol, s: int, x: int) -> list[Fraction]:
    weights = protocol.weights[:, s if protocol.reads_secret else 0, x]
    return [Fraction(int(weight), 1 << protocol.bits) for weight in weights]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), notion=st.sampled_from(NOTIONS))
def test_releases_of_other_columns_tell_no_more_than_is_stated(data: st.DataObject, notion: Notion) -> None:
    """x and x' of a person may go together in any way: here every joint distribution of (s, x, x') may come."""
    joint = data.draw(joints(most=3, secrets=3))
    own, other = (data.draw(protocols(joint, bits=2)) for _ in range(2))
    key = data.draw(st.sampled_from(["k", "other"]))
    found = looked_at(notion, joint, drawn(own), drawn(other, key, columns=("Z",)))
    size = len(joint.blocks[0])
    seen: dict = defaultdict(Fraction)
    for s, x in np.argwhere(joint.table() > 0).tolist():
        weights = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
        for z, weight in enumerate(weights):
            share = Fraction(int(joint.table()[s, x]) * weight, joint.rows * sum(weights))
            for (y, p), (v, q) in itertools.product(enumerate(law(own, s, x)), enumerate(law(other, s, z))):
                seen[s, (y, v)] += share * p * q
    assert found.how in ("sum", "ceiling")
    if found.figure is not None:
        assert learnt(seen, notion.measure) <= found.figure + 1e-9


def test_what_releases_tell_is_reckoned_with_the_last_distribution() -> None:
    """Two protocols of one key together tell much of the people of the first night, and nothing where x tells no s."""
    first, last = simple([[6, 2], [2, 6]]), simple([[2, 6], [6, 2]])
    lip, cells = Lip(notion="lip", epsilon=9.0), np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    secret = Alphabet(("S",), (("a",), ("b",)))
    then, now = (
        looked_at(lip, Joint(secret, (last.inputs,), cells, np.array(counts)), drawn(last), drawn(first))
        for counts in ([6, 2, 2, 6], [2, 2, 2, 2])
    )
    assert then.how == now.how == "exact"
    assert then.figure is not None
    assert then.figure > 0.3
    assert now.figure == 0


@settings(max_examples=40, deadline=None)
@given(data=st.data(), knows=st.sampled_from([None, 1, 2, ("Z",), ("X", "Z")]))
def test_who_knows_columns_of_other_releases_learns_no_more_than_is_stated(
    data: st.DataObject, knows: int | tuple[str, ...] | None
) -> None:
    """Whatever he knows of x and z, and however s, x and z go together; as no chance is zero, there is a bound."""
    size = 2
    table = data.draw(st.lists(st.lists(st.integers(1, 5), min_size=size, max_size=size), min_size=2, max_size=3))
    chances = st.lists(st.integers(1, 7), min_size=size, max_size=size)
    own, other = (simple([one, [8 - part for part in one]]) for one in (data.draw(chances), data.draw(chances)))
    notion = Srlip(notion="srlip", epsilon=9.0, knows=knows)
    found = looked_at(notion, Joint.from_table(table), drawn(own), drawn(other, columns=("Z",)))
    people = {
        (s, x, z): Fraction(table[s][x] * weight, sum(weights))
        for s, x in itertools.product(range(len(table)), range(size))
        for weights in [data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))]
        for z, weight in enumerate(weights)
    }
    named = [place for place, name in enumerate(("X", "Z"), start=1) if not isinstance(knows, tuple) or name in knows]
    most = knows if isinstance(knows, int) else len(named)
    real = 0.0
    for known in itertools.chain.from_iterable(itertools.combinations(named, many) for many in range(most + 1)):
        groups: dict = defaultdict(lambda: defaultdict(Fraction))
        for (s, x, z), many in people.items():
            for (y, p), (v, q) in itertools.product(enumerate(law(own, s, x)), enumerate(law(other, s, z))):
                if many:
                    groups[tuple((s, x, z)[place] for place in known)][s, (y, v)] += many * p * q
        real = max(real, *(learnt(scaled(seen), "srlip") for seen in groups.values()))
    assert found.how == "sum"
    assert found.figure is not None
    assert real <= found.figure + 1e-9


def scaled(seen: dict) -> dict:
    """To sum to one."""
    whole = sum(seen.values())
    return {key: part / whole for key, part in seen.items()}


@settings(max_examples=60, deadline=None)
@given(data=st.data(), notion=st.sampled_from(NOTIONS[:3]))
def test_the_ways_are_ordered(data: st.DataObject, notion: Notion) -> None:
    """Exact is no more than the ceiling, nor than the sum: what is stated where a copy is lost is no less."""
    joint = data.draw(joints(most=3, secrets=3))
    own, other = (data.draw(protocols(joint, bits=4)) for _ in range(2))
    exact = looked_at(notion, joint, drawn(own), drawn(other, "other"))
    lost = looked_at(notion, joint, drawn(own), drawn(None, "other"))
    assert exact.how == "exact" or notion.measure == "mutual_information"
    if lost.figure is not None and not other.reads_secret:
        assert exact.figure is not None
        assert exact.figure <= lost.figure
    if not own.reads_secret and not other.reads_secret:
        ceiling = own_figure(notion.leakage(Channel(joint, [identity(joint.blocks[0])])), notion)
        assert lost.figure == ceiling or ceiling is None or notion.measure == "mutual_information"


def simple(weights: list[list[int]], bits: int = 3) -> Protocol:
    inputs = Alphabet(("X",), tuple((f"x{i + 1}",) for i in range(len(weights[0]))))
    outputs = Alphabet(("X",), tuple((f"y{y}",) for y in range(len(weights))))
    return Protocol(inputs, outputs, bits, np.array(weights, np.int64)[:, None, :])


TABLE = Joint.from_table([[30, 10], [5, 30]])
MILD, STRONG = simple([[5, 3], [3, 5]]), simple([[6, 2], [2, 6]])


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda notion: notion.measure)
def test_another_meaning_of_the_same_labels_under_one_key_has_no_bound(notion: Notion) -> None:
    found = looked_at(notion, TABLE, drawn(MILD), drawn(STRONG, meaning="other"))
    assert found.varying is None
    assert (found.figure is None) == (notion.measure != "mutual_information")
    if found.figure is not None:
        assert found.how == "ceiling"
        assert found.figure == pytest.approx(-sum(p * math.log(p) for p in (40 / 75, 35 / 75)), abs=1e-4), (
            "on average nobody learns more than H(S)"
        )


def test_another_meaning_under_another_key_adds_its_usual_ldp() -> None:
    found = looked_at(NOTIONS[1], TABLE, drawn(MILD), drawn(STRONG, "other", meaning="other"))
    alone = looked_at(NOTIONS[1], TABLE, drawn(MILD))
    assert found.how == "sum"
    assert found.figure == pytest.approx(alone.figure + math.log(3), abs=2e-4)


def test_the_usual_ldp_is_summed_over_keys_and_shared_within() -> None:
    usual = LdpX(notion="ldp-x", epsilon=3.0)
    two = looked_at(usual, TABLE, drawn(MILD), drawn(STRONG, "other"))
    assert two.figure == pytest.approx(math.log(5), abs=1e-4)
    assert two.varying == two.figure
    assert looked_at(usual, TABLE, drawn(MILD), drawn(MILD)).figure == pytest.approx(
        math.log(5 / 3), abs=1e-4
    )


def test_a_new_value_of_the_secret_is_told_apart_by_draws_that_read_it() -> None:
    """Nobody with s2 was in the first release, so the sum of what the draws tell bounds nothing."""
    both = Alphabet(("S",), (("s1",), ("s2",)))
    reading = [
        Protocol(MILD.inputs, MILD.outputs, 3, np.array(weights), secret)
        for weights, secret in (
            ([[[5, 3]], [[3, 5]]], Alphabet(("S",), (("s1",),))),
            ([[[5, 3], [4, 4]], [[3, 5], [4, 4]]], both),
        )
    ]
    old, new = (drawn(one, key) for one, key in zip(reading, "ab", strict=True))
    found = looked_at(NOTIONS[1], TABLE, new, old)
    assert found.figure is None
    assert found.varying is not None, "records of the same releases are compared"
    assert looked_at(NOTIONS[1], TABLE, new, drawn(reading[1], "c")).figure is not None


def test_the_figure_is_never_below_what_was_stated() -> None:
    alone = NOTIONS[1].leakage(Channel(TABLE, [MILD]))
    before = [replace(TOGETHER, measure="ldp", figure=2.5), None, replace(TOGETHER, measure="ldp", figure=1.0)]
    own = drawn(MILD)
    found = together(NOTIONS[1], TABLE, [own], [own], alone, before)
    assert (found.figure, found.releases) == (2.5, 4)
    assert found.measured == pytest.approx(alone.nats, abs=1e-4)
    infinite = together(NOTIONS[1], TABLE, [own], [own], alone, [replace(before[0], figure=None)])
    assert infinite.figure is None
    assert infinite.measured == found.measured
