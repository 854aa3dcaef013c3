"""Exact numbers round to the side of privacy."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.measure.exact import exp_below, log_above, rational

epsilons = st.floats(1e-6, 30, allow_nan=False)


def test_a_decimal_is_the_decimal_that_was_written():
    assert rational(0.1) == Fraction(1, 10)
    assert rational(1e-3) == Fraction(1, 1000)
    assert rational(2) == 2


@given(epsilons)
def test_the_bound_lies_below_the_exponential_and_close_to_it(epsilon):
    bound = exp_below(rational(epsilon))
    with localcontext() as context:
        context.prec = 90
        exact = Fraction(
            (Decimal(rational(epsilon).numerator) / Decimal(rational(epsilon).denominator)).exp()
        )
    assert bound < exact
    assert (exact - bound) / exact < Fraction(1, 10**45)


def test_no_leakage_is_exactly_no_leakage():
    assert exp_below(Fraction(0)) == 1
    assert log_above(Fraction(1)) == 0.0
    assert log_above(None) == math.inf


@given(st.fractions(min_value=1, max_value=10**9))
def test_a_logarithm_is_never_understated(ratio):
    stated = log_above(ratio)
    assert stated >= math.log(ratio) - 1e-14
    assert stated == pytest.approx(math.log(ratio), abs=2e-12)


@given(epsilons, st.integers(1, 10**40))
def test_a_ratio_under_the_bound_states_at_most_epsilon_to_twelve_decimals(epsilon, step):
    ratio = exp_below(rational(epsilon)) - Fraction(1, step + 10**40)
    assert log_above(ratio) <= epsilon + 1e-12
