"""Numbers that are said to be the most or the least are rounded to the side on which that is true."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from funnel.report.figures import no_less, no_more, part

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


def test_they_are_short() -> None:
    assert (no_less(0.0123, 2), no_less(0.0, 2), no_less(387.2, 2)) == ("0.013", "0", "390")
    assert (no_more(0.1234569, 6), no_more(0.0, 6)) == ("0.123456", "0.000000")
