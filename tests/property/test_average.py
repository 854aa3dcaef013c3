"""A stated mutual information is never below the true one, and never 10^-12 nats above it."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from funnel.measure import leakage
from funnel.measure.information import mutual_information
from funnel.measure.leakage import STEP, information_above, information_within
from tests.support.strategies import tables

NEVER = Fraction(1, 10**60)
FLIP = np.array([[3, 1], [1, 3]])


def true_information(table):
    """I(S;Y) to some eighty digits, term by term."""
    table = np.asarray(table, object).reshape(len(table), -1)
    total = table.sum()
    with localcontext() as context:
        context.prec = 100
        terms = [
            Decimal(t) / total * (Decimal(t * total) / Decimal(r * c)).ln()
            for (t, r, c) in (
                (table[s, y], table[s].sum(), table[:, y].sum()) for s, y in np.argwhere(table > 0)
            )
        ]
        return Fraction(sum(terms, Decimal(0)))


@st.composite
def wide_tables(draw):
    """Counts times weights: integers of any size, far beyond a machine's."""
    table = draw(tables()).astype(object)
    factors = [draw(st.integers(1, 2 ** draw(st.sampled_from([1, 20, 60, 700])))) for _ in range(table.size)]
    return table * np.array(factors, object).reshape(table.shape)


@given(wide_tables())
def test_the_figure_is_the_true_one_rounded_up_at_the_twelfth_decimal(table):
    true = true_information(table)
    stated = information_above(table)
    assert (stated / STEP).denominator == 1
    assert true - NEVER <= stated < true + STEP


@given(wide_tables())
def test_every_enclosure_holds_the_truth_and_they_tighten(table):
    true = true_information(table)
    widths = []
    for low, high in itertools.islice(leakage._enclosures(table), 3):
        assert low - NEVER <= true <= high + NEVER
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < Fraction(1, 10**40)


@given(tables())
def test_a_table_of_machine_integers_is_a_table_of_any_integers(table):
    assert information_above(table) == information_above(table.astype(object))
    assert float(information_above(table)) == pytest.approx(mutual_information(table), abs=1e-11)


@given(tables(), st.integers(1, 2**80))
@example(np.array([[2**26, 2**26 - 1], [2**26 - 1, 2**26]]), 2**70)
def test_only_proportions_count(table, factor):
    assert information_above(table) == information_above(table.astype(object) * factor)


@given(st.lists(st.integers(1, 10**30), min_size=1, max_size=5), st.lists(st.integers(0, 10**30), min_size=1))
def test_independence_is_exactly_nothing(rows, columns):
    assume(any(columns))
    table = np.multiply.outer(np.array(rows, object), np.array(columns, object))
    assert information_above(table) == 0
    assert information_within(table, Fraction(0))


@given(st.integers(1, 200))
def test_the_least_dependence_is_something(bits):
    table = np.array([[2**bits, 2**bits], [2**bits, 2**bits + 1]], object)
    assert information_above(table) > 0
    assert not information_within(table, Fraction(0))


@given(wide_tables(), st.integers(-3, 3))
def test_the_decision_agrees_with_the_figure_on_the_edge(table, steps):
    stated = information_above(table)
    for bound in (stated + steps * STEP, stated + (steps + Fraction(1, 3)) * STEP):
        assert information_within(table, bound) == (stated <= bound)


def test_a_bound_between_float_and_truth_is_decided_by_the_truth(monkeypatch):
    """Floats say nothing here: their interval holds the bound on either side."""
    seen = []
    monkeypatch.setattr(leakage, "STEP", Fraction(1, 10**25))
    monkeypatch.setattr(leakage, "_weighted", _counted(leakage._weighted, seen))
    true = true_information(FLIP)
    assert information_within(FLIP, true + 2 * leakage.STEP)
    assert not information_within(FLIP, true - leakage.STEP)
    assert seen


def test_far_from_the_bound_floats_decide_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(leakage, "_weighted", _counted(leakage._weighted, seen))
    true = true_information(FLIP)
    assert information_within(FLIP, true + Fraction(1, 10**9))
    assert not information_within(FLIP, true - Fraction(1, 10**9))
    assert not seen


def test_several_outputs_are_one():
    table = np.arange(1, 25).reshape(2, 3, 4)
    assert information_above(table) == information_above(table.reshape(2, 12))


def test_a_secret_told_outright():
    assert (
        information_above(np.eye(4, dtype=np.int64))
        == math.ceil(true_information(np.eye(4, dtype=np.int64)) / STEP) * STEP
    )
    assert float(information_above(np.eye(4, dtype=np.int64))) == pytest.approx(math.log(4), abs=2e-12)


def _counted(function, seen):
    """The function, noting each call."""

    def counted(*arguments):
        seen.append(arguments)
        return function(*arguments)

    return counted
