"""Whole numbers and fractions between the counts and the verdict; where e or a logarithm comes in, from a named side.

CPython's `decimal` rounds exp and ln correctly, so that 100 digits err by less than a relative 10^-99.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.audit.kernel.verdict import Broken

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
ExactArray = npt.NDArray[Any]
"""int64 where that cannot overflow, else Python's integers."""

MOST_CELLS = 8_000_000
"""Combinations of secret and outputs beyond which nothing is measured, and so nothing is proven."""
_DIGITS = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ERROR = Fraction(1, 10**50)
_LARGEST = Fraction(10_000)
"""Of exponents: e to it has 4,343 digits, and far beyond it no power would ever be worked out."""


def rational(number: float) -> Fraction:
    """The decimal that was written, as a fraction: 0.1 is one tenth, and not the double next to it."""
    return Fraction(repr(number))


def exp(exponent: Fraction) -> Fraction:
    """e^exponent to 90 digits or more. Raises Broken where the exponent is so large that nobody meant it."""
    if abs(exponent) > _LARGEST:
        raise Broken("the files", "a number is too large to raise e to it", f"at most {_LARGEST}", float(exponent))
    return Fraction(_DIGITS.exp(_DIGITS.divide(*map(Decimal, exponent.as_integer_ratio()))))


def log(number: Fraction) -> Fraction:
    """ln(number) to 90 digits or more, number > 0."""
    return Fraction(_DIGITS.ln(_DIGITS.divide(*map(Decimal, number.as_integer_ratio()))))


def exp_below(exponent: Fraction) -> Fraction:
    """A fraction at or below e^exponent, within a factor 1 - 2·10^-50 where the exponent is at most 10^4 in size."""
    if exponent < -_LARGEST:
        return Fraction(0)
    return exp(min(exponent, _LARGEST)) * (1 - _ERROR) if exponent else Fraction(1)


def weighted_logs(masses: Iterable[int]) -> Fraction:
    """Σ m ln m over positive whole numbers, within 10^-48 for every unit of Σ m."""
    return sum(mass * int(_DIGITS.ln(Decimal(mass)).scaleb(50, _DIGITS)) for mass in masses if mass) * _ERROR
