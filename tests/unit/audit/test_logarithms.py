"""Logarithms, powers and mutual information lie where they say they do."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.audit.logarithms import exp_above, exp_below_any, information_above, log, power_above, power_below

POSITIVE = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12, max_denominator=10**15)
EXPONENTS = st.fractions(min_value=-40, max_value=40, max_denominator=10**6)


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


@given(POSITIVE)
def test_a_logarithm_is_near_the_true_one(number: Fraction) -> None:
    with localcontext(prec=80):
        assert abs(decimal(log(number)) - decimal(number).ln()) < Decimal(2) ** -130


@given(POSITIVE, EXPONENTS)
def test_powers_lie_on_their_side_and_close(base: Fraction, exponent: Fraction) -> None:
    with localcontext(prec=80):
        exact = (decimal(base).ln() * decimal(exponent)).exp()
        low, high = decimal(power_below(base, exponent)) / exact, decimal(power_above(base, exponent)) / exact
        near = Decimal(2) ** -108
        assert 1 - near < low < 1 < high < 1 + near


@given(EXPONENTS)
def test_exponentials_lie_on_their_side_and_close(exponent: Fraction) -> None:
    with localcontext(prec=110):
        exact = decimal(exponent).exp()
        assert 1 - Decimal(2) ** -108 < decimal(exp_below_any(exponent)) / exact < 1
        if exponent >= 0:
            assert 1 < decimal(exp_above(exponent)) / exact < 1 + Decimal(10) ** -88


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=3, max_size=3), min_size=2, max_size=4))
def test_mutual_information_is_never_below_the_true_one_and_close(rows: list[list[int]]) -> None:
    table = np.array(rows)
    if not table.any():
        return
    with localcontext(prec=80):
        total = Decimal(int(table.sum()))
        exact = sum(
            (
                (n / total) * (n * total / (Decimal(sum(row)) * Decimal(int(table[:, y].sum())))).ln()
                for row in rows
                for y, n in enumerate(map(Decimal, row))
                if n
            ),
            Decimal(0),
        )
        assert exact < decimal(information_above(table)) < exact + Decimal(10) ** -30


@pytest.mark.parametrize("factor", [1, 3, 10**30])
def test_what_says_nothing_has_next_to_no_information(factor: int) -> None:
    table = np.array([[2, 4, 6], [3, 6, 9]], object) * factor
    assert 0 < information_above(table) < Fraction(1, 10**30)
