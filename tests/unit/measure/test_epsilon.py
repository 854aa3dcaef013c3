"""One exact ε: the decimal that was written, and e^ε from below."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.measure.exact import Epsilon

written = st.floats(0, 100, allow_nan=False)


@given(written)
def test_the_ratio_lies_just_below_the_truth(number):
    epsilon = Epsilon.of(number)
    with localcontext() as context:
        context.prec = 120
        exact = Fraction((Decimal(epsilon.nats.numerator) / Decimal(epsilon.nats.denominator)).exp())
    assert exact * (1 - Fraction(1, 10**45)) < epsilon.ratio_below() <= exact
    assert epsilon.factor() == pytest.approx(float(exact), rel=1e-14)


def test_it_is_the_decimal_that_was_written():
    assert Epsilon.of(0.1).nats == Fraction(1, 10)
    assert Epsilon.of(1).factor() == math.e


def test_zero_is_exactly_one():
    assert Epsilon.of(0).ratio_below() == 1


def test_a_bound_is_never_negative():
    with pytest.raises(ValueError, match="fewer than zero"):
        Epsilon.of(-0.5)


@given(written, written)
def test_they_are_ordered_as_their_nats_are(one, other):
    assert (Epsilon.of(one) < Epsilon.of(other)) == (one < other)
