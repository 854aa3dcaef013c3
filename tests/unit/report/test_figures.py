"""Numbers that are said to be the most or the least are rounded to the side on which that is true."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from funnel.report.figures import epsilon, factor, least, nearest, no_less, no_more, part, share
from funnel.text import number, portion

SIZES = st.floats(1e-12, 1e12)


@given(SIZES)
def test_what_is_the_most_is_not_shown_as_less(value: float) -> None:
    shown, own = Fraction(no_less(value, 2).replace(",", "")), Fraction(repr(value))
    assert own <= shown <= own * Fraction(11, 10)


@given(SIZES)
def test_what_is_the_least_is_not_shown_as_more(value: float) -> None:
    shown, own = Fraction(no_more(value, 6)), Fraction(repr(value))
    assert own - Fraction(1, 10**6) < shown <= own


@given(st.floats(1e-6, 1.0))
def test_a_part_at_most_is_not_shown_as_less(ratio: float) -> None:
    assert Fraction(repr(ratio)) - Fraction(1, 10**12) <= Fraction(part(ratio)[:-1]) / 100 < ratio + 0.001
    assert ratio - 0.001 < Fraction(least(ratio)[:-1]) / 100 <= Fraction(repr(ratio)) + Fraction(1, 10**12)


@given(st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 1e-5), st.floats(0.99999, 1.0)), st.integers(2, 6))
def test_only_nothing_is_told_as_nothing_and_all_as_all(value: float, decimals: int) -> None:
    """However often it was rounded: a chance of 0 or of 100 % is another thing than one near it."""
    told = nearest(value, decimals)
    assert abs(told - value) <= 0.5 * 10.0**-decimals + 1e-12
    for written in (share(told), portion(told)):
        if value in (0.0, 1.0):
            assert float(written.strip("%")) == 100 * value
        else:
            assert written.startswith(("below", "above")) or 0 < float(written.strip("%")) < 100
    assert nearest(0.0, decimals) == 0.0 and nearest(1.0, decimals) == 1.0


@given(st.floats(0.0, 1e300))
def test_an_epsilon_is_told_with_all_its_digits(value: float) -> None:
    assert float(epsilon(value)) == float(number(value)) == value
    assert "e" not in number(value) and epsilon(1.0) == "1"


@given(st.floats(1e-15, 5.0))
def test_a_factor_of_what_moves_is_above_one(exponent: float) -> None:
    assert float(factor(exponent).replace(",", "")) > 1
    assert factor(0.0) == "1.00"


def test_they_are_short() -> None:
    assert (no_less(0.0123, 2), no_less(0.0, 2), no_less(387.2, 2)) == ("0.013", "0", "390")
    assert (no_more(0.1234569, 6), no_more(0.0, 6)) == ("0.123456", "0.000000")
