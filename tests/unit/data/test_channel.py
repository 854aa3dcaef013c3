"""The product of the blocks, measured as one channel; both counterexamples to composition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import MAX_CELLS, released_table
from funnel.errors import PlanError
from funnel.measure import leakage as measure
from funnel.measure.information import entropy, mutual_information, public_entropy, released_information
from tests.support.strategies import joints, many_block_joints, protocols


def brute_table(joint: Joint, chosen: list[Protocol]) -> np.ndarray:
    """T[s, y_1, …, y_k] record by record."""
    table = np.zeros((len(joint.secret), *(len(p.outputs) for p in chosen)), dtype=object)
    for cell, count in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        for outputs in itertools.product(*(range(len(p.outputs)) for p in chosen)):
            weight = count
            for j, y in enumerate(outputs):
                s = cell[0] if chosen[j].reads_secret else 0
                weight *= int(chosen[j].weights[y, s, cell[1 + j]])
            table[(cell[0], *outputs)] += weight
    return table


def brute_information(joint: Joint, chosen: list[Protocol]) -> float:
    """I(X;Y) from the full joint of X and Y."""
    values = sorted({tuple(cell[1:]) for cell in joint.cells.tolist()})
    rows = []
    for value in values:
        keep = [i for i, cell in enumerate(joint.cells.tolist()) if tuple(cell[1:]) == value]
        part = brute_table_part(joint, chosen, keep)
        rows.append(part.ravel().astype(float))
    return mutual_information(np.array(rows))


def brute_table_part(joint: Joint, chosen: list[Protocol], keep: list[int]) -> np.ndarray:
    total = np.zeros(tuple(len(p.outputs) for p in chosen), dtype=object)
    for i in keep:
        cell, count = joint.cells[i].tolist(), int(joint.counts[i])
        for outputs in itertools.product(*(range(len(p.outputs)) for p in chosen)):
            weight = count
            for j, y in enumerate(outputs):
                s = cell[0] if chosen[j].reads_secret else 0
                weight *= int(chosen[j].weights[y, s, cell[1 + j]])
            total[outputs] += weight
    return total


@given(st.data())
def test_the_released_table_is_the_sum_over_records(data):
    joint = data.draw(many_block_joints())
    chosen = [data.draw(protocols(joint, j)) for j in range(len(joint.blocks))]
    table = released_table(joint, chosen)
    assert (table == brute_table(joint, chosen)).all()
    assert table.sum() == joint.rows << sum(p.bits for p in chosen)


@given(st.data())
def test_wide_weights_stay_exact(data):
    joint = data.draw(many_block_joints(blocks=2))
    chosen = [data.draw(protocols(joint, j, bits=60)) for j in range(len(joint.blocks))]
    assert (released_table(joint, chosen) == brute_table(joint, chosen)).all()


@given(st.data())
def test_information_of_the_product_is_that_of_the_full_joint(data):
    joint = data.draw(many_block_joints(blocks=2))
    chosen = [data.draw(protocols(joint, j)) for j in range(len(joint.blocks))]
    kept = released_information(joint, chosen, released_table(joint, chosen))
    assert kept == pytest.approx(brute_information(joint, chosen), abs=1e-9)
    assert -1e-12 <= kept <= public_entropy(joint) + 1e-9


@given(st.data())
def test_data_processing(data):
    """What Y says of S is at most what X says of S, unless the mechanism reads S."""
    joint = data.draw(joints())
    protocol = data.draw(protocols(joint))
    table = released_table(joint, [protocol])
    if not protocol.reads_secret:
        assert mutual_information(table) <= mutual_information(joint.table()) + 1e-9
        ceiling = measure.lip(joint.table())
        assert measure.lip(table).nats <= ceiling.nats + 1e-11


def test_counterexample_of_two_fair_bits():
    """A and B fair and independent, X¹ = X² = (A, B), S = A xor B: each report alone says nothing, both say all."""
    alphabet = Alphabet(("ab",), tuple((f"{a}{b}",) for a in "01" for b in "01"))
    cells = np.array([[(a + b) % 2, 2 * a + b, 2 * a + b] for a in range(2) for b in range(2)])
    joint = Joint(Alphabet(("s",), (("0",), ("1",))), (alphabet, alphabet), cells, np.full(4, 25))
    bit = Alphabet(("ab",), (("0",), ("1",)))
    reports_a = Protocol(alphabet, bit, 0, np.array([[1, 1, 0, 0], [0, 0, 1, 1]])[:, None, :])
    reports_b = Protocol(alphabet, bit, 0, np.array([[1, 0, 1, 0], [0, 1, 0, 1]])[:, None, :])
    for index, protocol in enumerate((reports_a, reports_b)):
        assert measure.lip(released_table(joint.block(index), [protocol])).nats == 0
    assert measure.lip(released_table(joint, [reports_a, reports_b])).nats == math.inf


def test_counterexample_with_full_support():
    """Two digits, ε_1 + ε_2 = 1.168498 by the theorem's conditions; the released pair leaks 1.576446."""
    table = np.array([[[21, 1], [1, 14]], [[60, 1], [1, 1]]])
    alphabet = Alphabet(("x",), (("0",), ("1",)))
    joint = Joint(
        Alphabet(("s",), (("0",), ("1",))),
        (alphabet, alphabet),
        np.argwhere(table > 0).astype(np.int64),
        table[table > 0],
    )
    first = hundredths([[92, 37], [8, 63]], alphabet)
    second = hundredths([[94, 51], [6, 49]], alphabet)
    claimed = sum(
        conditional_leakage(table if j == 0 else table.swapaxes(1, 2), q)
        for j, q in enumerate((first, second))
    )
    assert claimed == pytest.approx(1.168498, abs=1e-6)
    assert exact_product(table, first, second).nats == pytest.approx(1.576446, abs=1e-6)
    measured = measure.lip(released_table(joint, [rounded(first, alphabet), rounded(second, alphabet)])).nats
    assert measured == pytest.approx(1.576446, abs=1e-4)


def hundredths(weights: list[list[int]], alphabet: Alphabet) -> np.ndarray:
    assert (np.sum(weights, axis=0) == 100).all()
    return np.array(weights)


def rounded(weights: np.ndarray, alphabet: Alphabet) -> Protocol:
    """The same protocol on 2^40 parts."""
    first = weights[0] * (1 << 40) // 100
    return Protocol(alphabet, alphabet, 40, np.stack([first, (1 << 40) - first])[:, None, :])


def exact_product(table: np.ndarray, first: np.ndarray, second: np.ndarray) -> measure.Leakage:
    return measure.lip(np.einsum("sxz,yx,wz->syw", table, first, second))


def conditional_leakage(table: np.ndarray, weights: np.ndarray) -> float:
    """LIP of one digit's protocol, alone and given each value of the other digit."""
    alone = [measure.lip(table.sum(axis=2) @ weights.T).nats]
    return max(alone + [measure.lip(table[:, :, z] @ weights.T).nats for z in range(2)])


def test_two_perfectly_private_releases_of_one_record_give_everything_away():
    """[mathematics, section 4]: LIP 0 once; 1.2528 when the same record is drawn twice afresh."""
    counts = np.array([[30, 10, 10], [5, 30, 15]]) * 20
    weights = np.array([[8, 10, 0], [2, 0, 10]])
    assert measure.lip(counts @ weights.T).nats == 0
    twice = np.einsum("sx,yx,wx->syw", counts, weights, weights)
    assert measure.lip(twice).nats == pytest.approx(1.2528, abs=5e-5)
    assert measure.lip(counts).nats == pytest.approx(1.2528, abs=5e-5)


def test_a_product_too_large_to_measure_is_refused():
    values = tuple((str(i),) for i in range(1100))
    cells = np.array([[i % 2, i, (i * 7) % 1100] for i in range(1100)])
    joint = Joint(
        Alphabet(("s",), (("0",), ("1",))),
        (Alphabet(("a",), values), Alphabet(("b",), values)),
        cells,
        np.ones(1100, np.int64),
    )
    identity = [Protocol(block, block, 0, np.eye(1100, dtype=np.int64)[:, None, :]) for block in joint.blocks]
    assert MAX_CELLS < 2 * 1100**2
    with pytest.raises(PlanError) as caught:
        released_table(joint, identity)
    assert caught.value.code == "alphabet-too-large"


def test_entropy_of_the_public_columns_counts_tuples():
    joint = Joint(
        Alphabet(("s",), (("0",), ("1",))),
        (Alphabet(("a",), (("0",), ("1",))),) * 2,
        np.array([[0, 0, 0], [1, 1, 1]]),
        np.array([5, 5]),
    )
    assert public_entropy(joint) == pytest.approx(entropy([1, 1]))
