"""Side knowledge: Definition 3 measured on the product, and the composition theorem that does not hold."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.arrange import together
from funnel.data.channel import Channel
from funnel.data.sending import sent
from funnel.errors import PlanError
from funnel.measure import leakage as measures
from funnel.measure.information import released_information
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import Lip, Srlip
from tests.support.strategies import many_block_joints, protocols

OPTIMAL = MECHANISMS["optimal"](kind="optimal")
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def srlip(epsilon: float = 1.0, **options) -> Srlip:
    return Srlip(notion="srlip", epsilon=epsilon, **options)


def joint_of(table) -> Joint:
    """A joint of one-column blocks from counts N[s, x1, x2, …]."""
    counts = np.asarray(table, np.int64)
    cells = np.argwhere(counts > 0)
    alphabets = [
        Alphabet((f"c{axis}",), tuple((f"v{i}",) for i in range(size)))
        for axis, size in enumerate(counts.shape)
    ]
    return Joint(alphabets[0], tuple(alphabets[1:]), cells, counts[counts > 0])


def binary(joint: Joint, block: int, first_row, bits: int = 0) -> Protocol:
    """A protocol with two outputs: the weights of the first one."""
    top = np.asarray(first_row, np.int64)
    weights = np.stack([top, (1 << bits) - top])[:, None, :]
    inputs = joint.blocks[block]
    return Protocol(inputs, Alphabet(inputs.columns, (("y0",), ("y1",))), bits, weights)


def percent(joint: Joint, block: int, first_row) -> Protocol:
    """A protocol with two outputs, from percentages of the first."""
    return binary(joint, block, [round(share * (1 << 40) / 100) for share in first_row], bits=40)


def by_definition(channel: Channel) -> Fraction | None:
    """[DS] Definition 3, written out: every J, x_J, s and y by sums over the cells."""
    joint, worst = channel.joint, Fraction(1)
    k = len(joint.blocks)
    cells = [tuple(map(int, (*cell, n))) for cell, n in zip(joint.cells, joint.counts, strict=True)]
    outputs = list(itertools.product(*(range(len(p.outputs)) for p in channel.protocols)))

    def chance(cell, y):
        weights = [
            int(p.weights[y[j], cell[0] if p.reads_secret else 0, cell[1 + j]])
            for j, p in enumerate(channel.protocols)
        ]
        return cell[-1] * math.prod(weights)

    for size in range(k + 1):
        for known in itertools.combinations(range(k), size):
            for values in {tuple(cell[1 + j] for j in known) for cell in cells}:
                inside = [cell for cell in cells if tuple(cell[1 + j] for j in known) == values]
                total = sum(cell[-1] for cell in inside)
                for y in outputs:
                    overall = sum(chance(cell, y) for cell in inside)
                    for s in {cell[0] for cell in inside}:
                        mine = [cell for cell in inside if cell[0] == s]
                        given_s = sum(chance(cell, y) for cell in mine)
                        if overall == 0:
                            continue
                        if given_s == 0:
                            return None
                        ratio = Fraction(given_s * total, overall * sum(cell[-1] for cell in mine))
                        worst = max(worst, ratio, 1 / ratio)
    return worst


@given(joint=many_block_joints(), data=st.data())
@SETTINGS
def test_the_measure_is_definition_3(joint, data):
    chosen = [data.draw(protocols(joint, index, bits=3)) for index in range(len(joint.blocks))]
    channel = Channel(joint, chosen)
    assert srlip().leakage(channel).ratio == by_definition(channel)


@given(joint=many_block_joints(), data=st.data())
@SETTINGS
def test_side_knowledge_only_adds_to_what_is_learnt(joint, data):
    chosen = [data.draw(protocols(joint, index, bits=3)) for index in range(len(joint.blocks))]
    channel = Channel(joint, chosen)
    plain, side = measures.lip(channel.table).ratio, srlip().leakage(channel).ratio
    assert side is None or (plain is not None and side >= plain)


def test_columns_are_attributes_even_inside_one_block():
    """Whoever knows one column of a block must not learn more than allowed from what the block releases."""
    apart = joint_of([[[9, 1], [1, 9]], [[1, 9], [9, 1]]])
    whole = together(apart)
    inputs = whole.blocks[0]
    first = np.array([[1 if value[0] == "v0" else 0 for value in inputs.values]])
    weights = np.vstack([first, 1 - first])[:, None, :]
    protocol = Protocol(inputs, Alphabet(inputs.columns, (("y0", "y0"), ("y1", "y1"))), 0, weights)
    channel = Channel(whole, [protocol])
    assert Lip(notion="lip", epsilon=1).leakage(channel).ratio == 1
    assert srlip().leakage(channel).ratio == 5


def test_who_knows_a_finer_value_than_the_table_has_is_not_covered():
    """Sex is released as it is beside one band of two ages: s is the sex of those of one age, and not of the others."""
    by_age = np.array([[[9, 1], [1, 9]], [[1, 9], [9, 1]]])  # N[age, s, sex]
    joint = joint_of(by_age.sum(axis=0)[:, :, None])
    channel = Channel(joint, [binary(joint, 0, [1, 0]), binary(joint, 1, [1])])
    assert srlip().leakage(channel).ratio == 1  # whatever is known of sex and band
    for known in by_age:
        assert max(known[:, 0]) / known[:, 0].sum() == 0.9 != known[0].sum() / known.sum()


def test_first_counterexample_to_the_composition_theorem():
    """A, B fair bits, both columns (A, B), S = A xor B: each released bit is harmless, both give S away."""
    cells = np.array([[a ^ b, 2 * a + b, 2 * a + b] for a in range(2) for b in range(2)])
    pair = tuple((f"{a}{b}",) for a in range(2) for b in range(2))
    joint = Joint(
        Alphabet(("s",), (("0",), ("1",))),
        (Alphabet(("x1",), pair), Alphabet(("x2",), pair)),
        cells,
        np.full(4, 25),
    )
    one, two = binary(joint, 0, [1, 1, 0, 0]), binary(joint, 1, [1, 0, 1, 0])
    alone = srlip(solve="per-attribute")
    for index, protocol in enumerate((one, two)):
        assert alone.at(0.001).demand(joint, {}, index).keeps(protocol.weights)
    assert not srlip().holds(Channel(joint, [one, two]))
    assert srlip().leakage(Channel(joint, [one, two])).ratio is None


def test_second_counterexample_with_full_support():
    """The theorem's sum of budgets is 1.168498; already plain LIP of the product is 1.576446."""
    joint = joint_of([[[21, 1], [1, 14]], [[60, 1], [1, 1]]])
    one, two = percent(joint, 0, [92, 37]), percent(joint, 1, [94, 51])
    alone = srlip(solve="per-attribute")
    budgets = [
        max(
            measures.lip(sent(table, protocol.weights)).nats
            for table in alone.demand(joint, {}, index).each_table()
        )
        for index, protocol in enumerate((one, two))
    ]
    assert sum(budgets) == pytest.approx(1.168498, abs=1e-6)
    channel = Channel(joint, [one, two])
    assert Lip(notion="lip", epsilon=1).leakage(channel).nats == pytest.approx(1.576446, abs=1e-6)
    assert srlip().leakage(channel).ratio >= measures.lip(channel.table).ratio


@pytest.mark.long
@pytest.mark.parametrize("way", ["joint", "sequential", "per-attribute"])
@given(joint=many_block_joints(blocks=2), epsilon=st.floats(0.1, 2))
@settings(SETTINGS, max_examples=15)
def test_every_way_keeps_definition_3(way, joint, epsilon):
    protection = protect(
        joint, srlip(epsilon, solve=way), OPTIMAL, (1 / len(joint.blocks),) * len(joint.blocks)
    )
    assert by_definition(protection.channel) <= protection.notion.bound


@pytest.mark.long
@given(joint=many_block_joints(blocks=2), epsilon=st.floats(0.2, 1.5))
@settings(SETTINGS, max_examples=15)
def test_one_alphabet_keeps_at_least_as_much_as_a_sequence_and_that_as_blocks_alone(joint, epsilon):
    shares = (1 / len(joint.blocks),) * len(joint.blocks)
    found = {
        way: protect(joint, srlip(epsilon, solve=way), OPTIMAL, shares)
        for way in ("joint", "sequential", "per-attribute")
    }
    kept = {
        way: released_information(one.joint, one.protocols, one.channel.table) for way, one in found.items()
    }
    assert found["joint"].bound is not None
    assert kept["joint"] >= found["joint"].bound * (1 - 1e-3) - 1e-9
    assert max(kept["sequential"], kept["per-attribute"]) <= found["joint"].bound + 1e-9


def test_the_way_is_chosen_by_size():
    small = joint_of(np.full((2, 3, 3), 20))
    assert small.shape == (2, 3, 3)
    assert srlip().arrange(small, 10).notion.solve == "joint"
    assert len(srlip().arrange(small, 10).joint.blocks) == 1
    rare = srlip().arrange(small, 50)
    assert rare.notion.solve == "sequential"
    assert "a count below 50" in rare.why
    large = joint_of(np.full((2, 40, 40, 15), 1))
    assert srlip().arrange(large, 1).notion.solve == "per-attribute"
    assert srlip(solve="joint").arrange(small, 50).notion.solve == "joint"


def test_what_may_be_known_is_counted_over_columns_before_anything_is_solved():
    wide = joint_of(np.full((2,) * 13, 1))
    with pytest.raises(PlanError) as caught:
        srlip().arrange(wide, 1)
    assert caught.value.code == "alphabet-too-large"
    with pytest.raises(PlanError):
        srlip(solve="joint").arrange(together(wide), 1)
    narrow = joint_of(np.full((2,) * 11, 1))
    assert len(srlip(solve="sequential").arrange(narrow, 1).joint.blocks) == 10
