"""srlip with `knows`: at most so many columns, or named ones, by their own values and as coarse as they are grouped."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import Channel
from funnel.data.convert import finer_of, known_file
from funnel.errors import PlanError
from funnel.format.known import OWN, RELEASED
from funnel.measure.side import Knowledge, uncovered
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import Lip, Srlip
from funnel.notions.implications import implied
from tests.support.knowing import by_definition, known_joint, known_records, sets_of

OPTIMAL = MECHANISMS["optimal"](kind="optimal")
SETTINGS = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
KNOWS = st.sampled_from([1, 2, 3, ("age",), ("sex", "age"), ("town",)])


def srlip(epsilon: float = 1.0, **options) -> Srlip:
    return Srlip(notion="srlip", epsilon=epsilon, **options)


def protocol(block: Alphabet, weights: np.ndarray, bits: int) -> Protocol:
    labels = Alphabet(block.columns, tuple((f"y{y}",) * len(block.columns) for y in range(len(weights))))
    return Protocol(block, labels, bits, np.asarray(weights, np.int64)[:, None, :])


def identity(joint: Joint, index: int = 0) -> Protocol:
    return protocol(joint.blocks[index], np.eye(len(joint.blocks[index]), dtype=np.int64), 0)


def constant(joint: Joint, index: int = 0) -> Protocol:
    return protocol(joint.blocks[index], np.ones((1, len(joint.blocks[index])), np.int64), 0)


def any_weights(data: st.DataObject, size: int, bits: int = 3) -> np.ndarray:
    top = np.array([data.draw(st.integers(0, 1 << bits)) for _ in range(size)])
    return np.stack([top, (1 << bits) - top])


@given(made=known_records(), knows=KNOWS, minimum=st.sampled_from([1, 4, 9]), data=st.data())
@SETTINGS
def test_the_measure_is_the_definition(made, knows, minimum, data):
    records, columns = made
    joint = known_joint(records, columns, minimum)
    weights = [any_weights(data, len(block)) for block in joint.blocks]
    channel = Channel(joint, [protocol(block, one, 3) for block, one in zip(joint.blocks, weights, strict=True)])
    expected = by_definition(records, columns, weights, knows, minimum)
    assert srlip(knows=knows).leakage(channel).ratio == expected


@given(made=known_records(), knows=KNOWS, data=st.data())
@SETTINGS
def test_what_is_known_survives_its_file(made, knows, data):
    records, columns = made
    joint = known_joint(records, columns, 3)
    back = finer_of(known_file(joint.finer), 3)
    assert back.levels == joint.finer.levels
    assert (back.cells == joint.finer.cells).all() and (back.counts == joint.finer.counts).all()


@given(made=known_records(blocks=1), knows=KNOWS, minimum=st.sampled_from([1, 5]))
@SETTINGS
def test_who_is_not_covered_is_counted(made, knows, minimum):
    records, columns = made
    width = len(next(iter(records))) - len(columns)
    finest = [place for place, (_, level) in enumerate(columns) if level == OWN]
    people, pairs, sets = 0, 0, [one for one in sets_of(columns, knows) if set(one) <= set(finest)]
    for row, number in records.items():
        alike = [
            sum(n for other, n in records.items() if all(other[width + p] == row[width + p] for p in places))
            for places in sets
            if places
        ]
        people += number * any(n < minimum for n in alike)
        pairs += number * sum(n < minimum for n in alike)
    seen = known_joint(records, columns, minimum).finer
    assert uncovered(seen, Knowledge.of(knows)) == (people, pairs, len(sets))


@pytest.mark.long
@pytest.mark.parametrize("way", ["joint", "sequential", "per-attribute"])
@given(made=known_records(), knows=st.sampled_from([1, 2, ("sex", "age")]))
@settings(SETTINGS, max_examples=6)
def test_every_way_keeps_the_definition(way, made, knows):
    records, columns = made
    joint = known_joint(records, columns, 2)
    blocks = len(joint.blocks)
    found = protect(joint, srlip(0.7, knows=knows, solve=way), OPTIMAL, (1 / blocks,) * blocks)
    assert found.leakage.within(found.notion.bound)
    weights = [one.weights[:, 0, :] for one in found.protocols]
    if found.joint is joint:
        assert by_definition(records, columns, weights, knows, 2) <= found.notion.bound
    assert found.bound is None or found.kept >= found.bound * (1 - 1e-3) - 1e-9


@given(made=known_records(blocks=1), data=st.data())
@SETTINGS
def test_rows_of_the_cone_are_those_that_keep_the_bound(made, data):
    records, columns = made
    joint, notion = known_joint(records, columns, 2), srlip(0.8, knows=2)
    demand = notion.demand(joint, {}, 0)
    weights = any_weights(data, len(joint.blocks[0]), 6)
    worst = demand.cone().violation(weights / 64).max()
    if abs(worst) > 1e-9:
        assert demand.keeps(weights[:, None, :]) == (worst <= 0)


# The counterexamples that the definition was made for.


def test_smaller_sets_do_not_follow_from_larger_ones():
    """S = X1 = X2: whoever knows either column learns nothing more; whoever knows none learns all."""
    joint = known_joint(Counter({(0, 0, 0, 0): 50, (1, 1, 1, 1): 50}), [("x1", OWN), ("x2", OWN)])
    assert srlip(knows=1).leakage(Channel(joint, [identity(joint)])).ratio is None
    assert srlip(knows=1).leakage(Channel(joint, [constant(joint)])).ratio == 1


def test_the_sum_of_two_columns_in_two_blocks_is_certainty():
    """S = A xor B: A as it is tells nothing, but with B, which is another block's column, everything."""
    rows = Counter({(a ^ b, a, b, a, b): 25 for a in range(2) for b in range(2)})
    joint = known_joint(rows, [("a", OWN), ("b", OWN)])
    released = Channel(joint, [identity(joint, 0), constant(joint, 1)])
    assert Lip(notion="lip", epsilon=1).leakage(released).ratio == 1
    assert srlip(knows=1).leakage(released).ratio is None
    assert srlip(knows=("a",)).leakage(released).ratio == 1
    assert srlip(knows=("b",)).leakage(released).ratio is None


def test_two_blocks_tell_more_together_than_the_sum_of_both():
    table = np.array([[[203, 92], [45, 167]], [[29, 5], [45, 287]]])
    rows = Counter({(s, a, b, a, b): int(table[s, a, b]) for s, a, b in np.ndindex(2, 2, 2)})
    joint = known_joint(rows, [("a", OWN), ("b", OWN)])
    alone = [Lip(notion="lip", epsilon=1).leakage(Channel(joint.block(j), [identity(joint, j)])).nats for j in range(2)]
    assert alone == pytest.approx([1.4004, 0.6012], abs=1e-4)
    both = Channel(joint, [identity(joint, 0), identity(joint, 1)])
    assert srlip(knows=1).leakage(both).nats == pytest.approx(2.3303, abs=1e-4)


def test_coarse_knowledge_is_not_implied_by_fine():
    """Each of two ages in one half tells little of the secret, the half much; the other half is turned about."""
    table = np.array([[[34, 14], [32, 1]], [[1, 30], [1, 1]]])
    rows = Counter({(s, x, a, 0): int(table[s, x, a]) for s, x, a in np.ndindex(2, 2, 2)})
    rows += Counter({(1 - s, x, a + 2, 1): number for (s, x, a, _), number in rows.items()})
    grouped = known_joint(rows, [("age", OWN), ("age", RELEASED)])
    alone = known_joint(Counter({row[:-1]: number for row, number in rows.items()}), [("age", OWN)])
    told = {level: srlip(knows=1).leakage(Channel(joint, [identity(joint)])).nats
            for level, joint in (("own", alone), ("grouped", grouped))}  # fmt: skip
    assert told == pytest.approx({"own": 0.4274, "grouped": 1.6225}, abs=1e-4)


# What policies, diffs and other notions make of it.


@pytest.mark.parametrize("knows", [0, -1, 65, [], [""], "age", 1.5, True])
def test_knowledge_is_a_number_or_columns(knows):
    with pytest.raises(ValidationError):
        srlip(knows=knows)


@pytest.mark.parametrize(("old", "new", "verdict"), [
    (2, 1, "weaker"), (1, 2, "stronger"), (None, 2, "weaker"), (2, None, "stronger"),
    (["age"], ["age", "sex"], "stronger"),
    (["age"], ["sex"], "incomparable"), (["age", "sex"], 2, "stronger"), (["age", "sex"], 1, "incomparable"),
    (2, ["age"], "weaker"), (["sex", "age"], ["age", "sex"], "unchanged"), (1, ["age", "sex"], "incomparable"),
])  # fmt: skip
def test_who_may_know_more_is_promised_more(old, new, verdict):
    judged, _ = srlip(knows=old).changed("knows", srlip(knows=new))
    assert judged == verdict
    back, _ = srlip(knows=new).changed("knows", srlip(knows=old))
    assert back == {"weaker": "stronger", "stronger": "weaker"}.get(verdict, verdict)


@pytest.mark.parametrize(("given", "asked", "follows"), [
    (2, 1, True), (1, 2, False), (None, 3, True), (2, None, False), (2, ["age", "sex"], True),
    (1, ["age", "sex"], False), (["age", "sex"], ["age"], True), (["age"], 1, False),
])  # fmt: skip
def test_more_that_may_be_known_implies_less(given, asked, follows):
    assert (implied(srlip(knows=given), srlip(knows=asked)) is not None) == follows
    assert implied(srlip(knows=given), Lip(notion="lip", epsilon=1.0)) is not None


def test_knowledge_of_very_many_columns_is_refused():
    size = 30
    rows = Counter({(s, x, *(v for _ in range(size))): 10 for s in range(2) for x in range(2) for v in range(2)})
    joint = known_joint(rows, [(f"c{i}", OWN) for i in range(size)])
    with pytest.raises(PlanError) as refused:
        srlip(knows=8).arrange(joint, 1)
    assert "knows: 2" in (refused.value.advice or "")
    assert srlip(knows=2).arrange(joint, 1).notion.knows == 2


def test_the_number_of_conditions_is_that_of_the_sets():
    sizes = [3, 4, 2]
    assert Knowledge.of(None).conditions(sizes) == math.prod(size + 1 for size in sizes)
    assert Knowledge.of(1).conditions(sizes) == 1 + sum(sizes)
    assert Knowledge.of(2).conditions(sizes) == 1 + sum(sizes) + 12 + 6 + 8
