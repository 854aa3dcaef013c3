"""Leakage against brute force in rationals, and the theorems that relate its measures."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from funnel.data import Joint
from funnel.measure import leakage as measure
from funnel.measure.information import entropy, mutual_information
from tests.support.strategies import tables


def brute(table: np.ndarray) -> tuple[Fraction | None, Fraction | None]:
    """LIP and LDP by the definitions, one Fraction at a time."""
    total, lip, ldp = int(table.sum()), Fraction(1), Fraction(1)
    for y in range(table.shape[1]):
        column = int(table[:, y].sum())
        if column == 0:
            continue
        chances = [Fraction(int(table[s, y]), int(table[s].sum())) for s in range(len(table))]
        if 0 in chances:
            return None, None
        mean = Fraction(column, total)
        lip = max([lip, *(max(chance / mean, mean / chance) for chance in chances)])
        ldp = max(ldp, max(chances) / min(chances))
    return lip, ldp


@given(tables())
def test_measures_are_the_definitions(table):
    lip, ldp = brute(table)
    assert measure.lip(table).ratio == lip
    assert measure.ldp(table).ratio == ldp


@given(tables())
def test_python_integers_and_machine_integers_agree(table):
    wide = table.astype(object) * 2**70
    assert measure.lip(wide).ratio == measure.lip(table).ratio
    assert measure.ldp(wide).ratio == measure.ldp(table).ratio


@given(tables())
def test_lemma_1_of_ds(table):
    """ε-LDP implies ε-LIP; ε-LIP implies 2ε-LDP and I(S;Y) <= ε."""
    lip, ldp = measure.lip(table), measure.ldp(table)
    assert lip.nats <= ldp.nats
    assert ldp.nats <= 2 * lip.nats + 1e-11
    assert mutual_information(table) <= lip.nats + 1e-12


@given(tables())
def test_independence_is_no_leakage(table):
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    assert measure.lip(product).ratio == 1
    assert measure.ldp(product).nats == 0
    assert mutual_information(product) == pytest.approx(0, abs=1e-12)


@given(tables())
def test_merging_outputs_never_leaks_more(table):
    merged = table.sum(axis=1, keepdims=True)
    halves = np.hstack([table[:, :1], table[:, 1:].sum(axis=1, keepdims=True)])
    assert measure.lip(merged).nats == 0
    assert measure.lip(halves).nats <= measure.lip(table).nats
    assert mutual_information(halves) <= mutual_information(table) + 1e-12


def test_ratios_closer_than_floats_can_tell_are_compared_exactly():
    big = 10**17
    table = np.array([[3 * big, 3 * big + 1], [big, big]], dtype=object)
    assert measure.lip(table).ratio == brute(table)[0]


def test_entropy_and_information_by_hand():
    assert entropy([1, 1, 1, 1]) == pytest.approx(math.log(4))
    assert entropy([5, 0]) == 0
    assert mutual_information([[2, 0], [0, 2]]) == pytest.approx(math.log(2))


def test_a_joint_refuses_values_that_never_occur():
    with pytest.raises(ValueError, match="never occurs"):
        Joint.from_table([[1, 0], [2, 0]])
