"""Published figures never understate a leakage."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from funnel.format.manifest import decimals
from funnel.measure.exact import added, log_above
from funnel.measure.figures import leakage_figure, round_to, round_up, spelt


@given(st.floats(0, 1e6))
def test_rounding_up_gives_an_upper_bound_within_one_unit(value: float) -> None:
    rounded = round_up(value)
    assert value <= rounded <= value + 0.0001 * (1 + 1e-9) + 1e-9
    assert round_up(rounded) == rounded
    assert abs(round_to(value) - value) <= 0.00005 * (1 + 1e-6)


@example(5.960464477539063e-08)  # a double that lies in the midst of two decimals of its length
@given(st.floats(0, 100))
def test_a_figure_is_never_written_as_less_than_is_stated(figure: float) -> None:
    """An epsilon of more than four decimals is stated as it is, where the leakage is near it."""
    assert Fraction(spelt(figure)) == Fraction(repr(figure))
    assert (spelt(0.3), spelt(0.12344), spelt(1e-7), spelt(2)) == ("0.3000", "0.12344", "0.0000001", "2.0000")


@pytest.mark.parametrize(
    ("value", "up"),
    [(0.0, 0.0), (0.1, 0.1), (0.9994, 0.9994), (0.99940000001, 0.9995), (1e-12, 0.0001), (2.0, 2.0)],
)
def test_rounding_up_reads_the_decimal_that_is_printed(value: float, up: float) -> None:
    """0.9994 is not rounded to 0.9995 for what binary adds behind the sixteenth digit."""
    assert round_up(value) == up


@given(st.fractions(1, 50), st.decimals("0.0001", 4, places=6))
def test_a_figure_bounds_the_leakage_and_keeps_to_an_epsilon_that_holds(
    ratio: Fraction, epsilon_: object
) -> None:
    epsilon = float(str(epsilon_))
    figure = leakage_figure(ratio, epsilon)
    assert figure is not None
    assert figure >= math.log(ratio) - 1e-15
    assert figure <= log_above(ratio) + 0.0001 + 1e-12
    if math.log(ratio) < epsilon - 1e-9:
        assert figure <= epsilon
    if math.log(ratio) > epsilon + 1e-9:
        assert figure > epsilon, "a bound that is passed must show"


@given(st.lists(st.decimals(0, 100, places=4, allow_nan=False), min_size=1, max_size=3))
def test_a_sum_of_decimals_is_that_of_decimals(nats: list[Decimal]) -> None:
    found, total = added(*map(float, nats)), sum(map(Fraction, nats))
    assert total <= Fraction(repr(found)) <= total + Fraction(1, 10**12)
    assert added(0.1, 0.2) == 0.3 and added(0.3, 0.6) == 0.9


def test_an_epsilon_between_the_decimals() -> None:
    ratio = Fraction("1.00004")
    assert leakage_figure(ratio) == 0.0001
    assert leakage_figure(ratio, 0.00005) == 0.00005
    assert leakage_figure(ratio, 0.00003) == 0.0001


def test_perfect_and_infinite() -> None:
    assert leakage_figure(Fraction(1), 0.0) == 0.0
    assert leakage_figure(None, 1.0) is None


@given(st.integers(1, 10**9), st.integers(1, 10**5))
def test_a_step_of_a_figure_is_at_least_twice_the_share_of_the_smallest_group_that_is_told(
    rows: int, minimum: int
) -> None:
    """And no finer than four decimals; one digit more would be."""
    digits = decimals(rows, minimum)
    assert 0 <= digits <= 4
    assert digits == 0 or Fraction(1, 10**digits) >= Fraction(2 * minimum, rows)
    assert digits == 4 or Fraction(1, 10 ** (digits + 1)) < Fraction(2 * minimum, rows)


@pytest.mark.parametrize(("digits", "figure"), [(4, 0.6932), (3, 0.694), (1, 0.7), (0, 1.0)])
def test_fewer_digits_are_still_an_upper_bound(digits: int, figure: float) -> None:
    assert leakage_figure(Fraction(2), None, digits) == figure
    assert leakage_figure(Fraction(2), 0.6932, digits) == 0.6932
