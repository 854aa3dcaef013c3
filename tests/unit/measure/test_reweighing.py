"""Weights that undo what a fixed protocol does to the totals of another table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from funnel.data import Alphabet, Protocol
from funnel.measure.reweighing import reweighed
from funnel.mechanisms import Invariant
from funnel.notions import Lip
from tests.support.census import census


def binary(table: list[list[int]], bits: int = 3) -> Protocol:
    values = Alphabet(("x",), tuple((str(x),) for x in range(len(table))))
    return Protocol(values, values, bits, np.array(table, np.int64)[:, None, :])


def test_expected_rows_get_back_the_true_totals_exactly():
    protocol, true = binary([[6, 1, 0], [1, 6, 2], [1, 1, 6]]), np.array([800, 160, 240])
    seen = protocol.weights[:, 0] @ true // 8
    found = reweighed(protocol, seen)
    assert found is not None
    assert [one * int(count) for one, count in zip(found, seen, strict=True)] == true.tolist()


def test_all_rows_together_count_as_many_as_they_are_and_none_counts_against():
    found = reweighed(binary([[6, 2], [2, 6]]), np.array([950, 50]))
    assert found == (Fraction(1000, 950), 0)
    assert reweighed(binary([[6, 2], [2, 6]]), np.array([1000, 0])) == (1, 1)


@pytest.mark.parametrize("seen", [[512, 388, 100], [600, 400, 0]], ids=["a negative one", "one that no row shows"])
def test_what_counts_as_none_leaves_the_others_in_proportion(seen):
    table = [[6, 1, 1], [1, 6, 1], [1, 1, 6]]
    own = np.linalg.solve(np.array(table) / 8, seen)
    found = reweighed(binary(table), np.array(seen))
    assert found is not None
    totals = [float(one * count) for one, count in zip(found, seen, strict=True)]
    assert totals == pytest.approx([*(own[:2] * sum(seen) / own[:2].sum()), 0])


def test_there_are_none_where_totals_do_not_follow():
    assert reweighed(binary([[4, 4], [4, 4]]), np.array([5, 5])) is None
    values = Alphabet(("x",), (("0",), ("1",)))
    merged = Protocol(values, Alphabet(("x",), (("0",),)), 0, np.ones((1, 1, 2), np.int64))
    assert reweighed(merged, np.array([10])) is None


@pytest.mark.parametrize("moved", [0.8, 1.25])
def test_under_a_lock_weighted_rows_are_right_on_average_where_raw_ones_are_not(moved):
    joint = census("occupation", "relationship")
    counts = joint.table().sum(axis=0)
    lock = Invariant(kind="invariant").solve(joint, Lip(notion="lip", epsilon=1.0).demand(joint, {}, 0)).protocol
    tonight = counts.copy()
    tonight[0] = int(tonight[0] * moved)
    draws, chances = np.random.default_rng(3), lock.probabilities()[:, 0]
    raw, weighted = [], []
    for _ in range(300):
        seen = sum(draws.multinomial(n, chances[:, x]) for x, n in enumerate(tonight))
        raw.append(seen)
        weighted.append([float(one) * count for one, count in zip(reweighed(lock, seen), seen, strict=True)])
    spread = np.std(weighted, axis=0) / np.sqrt(300)
    assert (np.abs(np.mean(weighted, axis=0) - tonight) <= 4.5 * spread + 1).all()
    assert abs(np.mean(raw, axis=0)[0] - tonight[0]) > 10 * spread[0]
