"""What a release leaves as it is: expectations, held against a table of every possible answer; and ε = 0."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from funnel.data import Alphabet, AnyProtocol, Joint, Protocol, UnaryProtocol
from funnel.measure.faithful import (
    Faithful,
    at_zero,
    column_accuracy,
    estimation_error,
    faithful,
    share_unchanged,
    told,
    told_at_zero,
)
from tests.support.samples import joint_of, protocol, random_protocol


def _identity(block: Alphabet) -> Protocol:
    return Protocol(block, block, 0, np.eye(len(block), dtype=np.int64)[:, None, :])


def _listed(joint: Joint, protocols: list[Protocol]) -> float:
    """The share unchanged, answer by answer."""
    total = 0.0
    for (s, *xs), count in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        for answer in product(*(range(len(one.outputs)) for one in protocols)):
            same = all(
                one.outputs.values[y] == one.inputs.values[x]
                for one, y, x in zip(protocols, answer, xs, strict=True)
            )
            chance = [
                one.probabilities()[y, s if one.reads_secret else 0, x]
                for one, y, x in zip(protocols, answer, xs, strict=True)
            ]
            total += count * same * float(np.prod(chance))
    return total / joint.rows


def test_the_share_unchanged_is_that_of_every_answer_listed() -> None:
    rng = np.random.default_rng(5)
    joint = joint_of(rng.integers(0, 2, 400), rng.integers(0, 3, 400), rng.integers(0, 4, 400))
    reading = protocol("z", np.array([[3, 1, 2, 2], [1, 1, 1, 5]] * 4).tolist(), joint.secret)
    found = [random_protocol(1, "x", 3, 3, 6), reading]
    assert share_unchanged(joint, found) == pytest.approx(_listed(joint, found))


def test_what_is_released_as_it_is_is_unchanged_and_has_no_error() -> None:
    joint = Joint.from_table([[5, 3, 2], [1, 4, 9]])
    told = faithful(joint, [_identity(joint.blocks[0])])
    assert (told.unchanged, told.accuracy, told.error) == (1.0, {"X": 1.0}, 0.0)


def test_a_column_agrees_where_its_part_of_the_value_does() -> None:
    block = Alphabet(("a", "b"), (("1", "x"), ("1", "y"), ("2", "x")))
    joint = Joint(Alphabet(("s",), (("0",), ("1",))), (block,), np.array([[0, 0], [0, 1], [1, 2]]), np.array([1, 2, 1]))
    weights = np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]], np.int64)[:, None, :]
    found = [Protocol(block, block, 2, weights)]
    assert column_accuracy(joint, found) == pytest.approx({"a": 11 / 16, "b": 10 / 16})
    assert share_unchanged(joint, found) == pytest.approx(1 / 2)


def test_at_zero_is_what_a_protocol_that_answers_for_nobody_in_particular_gives() -> None:
    """p in eighths is a protocol exactly."""
    block = Alphabet(("a", "b"), (("1", "x"), ("1", None), ("2", "x")))
    other = Alphabet(("c",), (("u",), ("v",)))
    joint = Joint(
        Alphabet(("s",), (("0",), ("1",))),
        (block, other),
        np.array([[0, 0, 0], [0, 1, 1], [1, 2, 0]]),
        np.array([4, 2, 2]),
    )
    weights = [np.array([4, 2, 2]), np.array([6, 2])]
    nobody: list[AnyProtocol] = [
        Protocol(one, one, 3, np.repeat(row[:, None, None], len(one), axis=2))
        for one, row in zip(joint.blocks, weights, strict=True)
    ]
    _same(at_zero(joint), faithful(joint, nobody))
    assert at_zero(joint.block(0)).unchanged == pytest.approx((16 + 4 + 4) / 64)


def test_raw_totals_are_off_by_their_bias_and_their_noise() -> None:
    """Three of four records stay, one goes to the other value: 12 and 4 are released as 10 and 6 on average."""
    joint = Joint.from_table([[12, 4]])
    told = faithful(joint, [Protocol(joint.blocks[0], joint.blocks[0], 2, np.array([[[3, 1]], [[1, 3]]]))])
    assert told.biases[0] == pytest.approx([-2, 2])
    assert told.errors[0] == pytest.approx([np.sqrt(3), np.sqrt(3)])
    assert told.error == pytest.approx(np.sqrt(4 + 3))


def test_the_total_of_a_value_that_is_never_released_is_off_by_all_of_it() -> None:
    block = Alphabet(("x",), (("a",), ("b",)))
    joint = Joint.from_table([[12, 4]])
    joint = Joint(joint.secret, (block,), joint.cells, joint.counts)
    told = faithful(joint, [Protocol(block, Alphabet(("x",), (("a",),)), 0, np.array([[[1, 1]]]))])
    assert told.biases[0] == pytest.approx([4, -4])
    assert told.error == pytest.approx(4)


def test_a_set_shows_the_value_where_it_holds_no_other() -> None:
    joint = Joint.from_table([[5, 3], [1, 4]])
    coins = UnaryProtocol(joint.blocks[0], 2, 2, 1)
    assert share_unchanged(joint, [coins]) == pytest.approx(1 / 2 * 3 / 4)
    assert faithful(joint, [coins]).errors[0] == pytest.approx(
        [np.sqrt(6 / 4 + 7 * 3 / 16), np.sqrt(7 / 4 + 6 * 3 / 16)]
    )


def test_an_estimate_of_two_values_pays_for_the_slope() -> None:
    """M = a N + b (n - N) is undone by dividing by a - b."""
    joint = Joint.from_table([[400, 100], [200, 300]])
    weights = np.array([[6, 3], [2, 5]], np.int64)[:, None, :]
    found = estimation_error(joint, [Protocol(joint.blocks[0], joint.blocks[0], 3, weights)])
    assert found == pytest.approx(np.sqrt(600 * 6 / 8 * 2 / 8 + 400 * 3 / 8 * 5 / 8) / (6 / 8 - 3 / 8), rel=1e-6)


def test_there_is_no_error_where_there_is_no_estimate() -> None:
    joint = Joint.from_table([[400, 100], [200, 300]])
    alike = Protocol(joint.blocks[0], joint.blocks[0], 1, np.ones((2, 1, 2), np.int64))
    assert estimation_error(joint, [alike]) is None
    assert told(joint, [_identity(joint.blocks[0])]).estimated == 0.0
    assert told_at_zero(joint).face == told_at_zero(joint).estimated


def _same(found: Faithful, expected: Faithful) -> None:
    assert found.unchanged == pytest.approx(expected.unchanged)
    assert found.accuracy == pytest.approx(expected.accuracy)
    for one, other in zip((*found.errors, *found.biases), (*expected.errors, *expected.biases), strict=True):
        assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("rare", [1, 10, 40])
def test_answers_that_hardly_anybody_is_expected_to_give_weigh_in_an_estimate(rare: int) -> None:
    """Against Q⁻¹ Cov(M) Q⁻ᵀ: an answer of a third of a record bears the largest of the inverse's numbers."""
    true = np.array([900, 80, 20])
    weights = np.array([[4096 - 2 * rare, 2048, 3072], [rare, 2048 - rare, 1024 - 2 * rare], [rare, rare, 2 * rare]])
    chances = weights / 4096
    spread = sum(n * (np.diag(q) - np.outer(q, q)) for n, q in zip(true, chances.T, strict=True))
    inverse = np.linalg.inv(chances)
    exact = np.sqrt(np.mean(np.diag(inverse @ spread @ inverse.T)))
    joint = Joint.from_table([true.tolist()])
    found = Protocol(joint.blocks[0], joint.blocks[0], 12, weights[:, None, :].astype(np.int64))
    assert estimation_error(joint, [found]) == pytest.approx(exact, rel=1e-6)
