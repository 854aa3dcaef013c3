"""Whole numbers and fractions between the counts and the verdict; where e or a logarithm comes in, from a named side.

CPython's `decimal` rounds exp and ln correctly, so that 100 digits err by less than a relative 10^-99.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
_SCALE = 10**50
_WORD = 1 << 62
_LARGEST = 10_000
"""Of exponents: e to it has 4,343 digits, and far beyond it no power would ever be worked out."""


def rational(number: float) -> Fraction:
    """The decimal that was written, as a fraction: 0.1 is one tenth, and not the double next to it."""
    return Fraction(repr(number))


def exp(exponent: Fraction) -> Fraction:
    """e^exponent to 90 digits or more. Raises Broken where the exponent is so large that nobody meant it."""
    if abs(exponent) > _LARGEST:
        raise Broken("the files", "a number is too large to raise e to it", f"at most {_LARGEST}", float(exponent))
    return Fraction(_DIGITS.exp(_decimal(exponent)))


def log(number: Fraction) -> Fraction:
    """ln(number) to 90 digits or more, number > 0."""
    return Fraction(_DIGITS.ln(_decimal(number)))


def exp_below(exponent: Fraction) -> Fraction:
    """A fraction at or below e^exponent, within a factor 1 - 2·10^-50 where the exponent is at most 10^4 in size."""
    if exponent < -_LARGEST:
        return Fraction(0)
    return exp(min(exponent, Fraction(_LARGEST))) * (1 - _ERROR) if exponent else Fraction(1)


def at_most_exp(ratio: Fraction, exponent: Fraction) -> bool:
    """Whether ratio <= e^exponent; in doubt, within a factor 1 - 10^-49, the answer is no."""
    # e^x grows, so an exponent may be cut beyond ln(ratio) without turning a no into a yes.
    return ratio <= exp_below(min(exponent, Fraction(max(ratio.numerator.bit_length(), 1))))


def weighted_logs(masses: Iterable[int]) -> Fraction:
    """Σ m ln m over positive whole numbers, within 10^-48 for every unit of Σ m."""
    logs = ((mass, _DIGITS.ln(Decimal(mass))) for mass in masses if mass)
    return Fraction(sum(mass * int(_DIGITS.multiply(log, _SCALE)) for mass, log in logs), _SCALE)


def nats(ratio: Fraction | None) -> str:
    """ln(ratio) for a reader; None: infinite."""
    return "infinite" if ratio is None else f"{float(log(ratio)):.6f}"


def _decimal(number: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))


def released_table(counts: ExactArray, weights: Sequence[ExactArray]) -> ExactArray:
    """T[s, y_1, …, y_k] = Σ_x N[s, x_1, …, x_k] Π_j W_j[y_j, s, x_j], exactly.

    `counts` is N, (c, a_1, …, a_k); weights W_j are (b_j, c or 1, a_j), with columns that sum to one power of two. No
    sum exceeds all records times these powers, so where that fits a word nothing can overflow.
    """
    most = math.prod([sum(counts.ravel().tolist()), *(int(one.sum(axis=0).max()) for one in weights)])
    kind = np.int64 if most < _WORD else object
    table = counts.astype(kind)
    for one in weights:  # x_j, by now the first axis beside s, gives way to y_j, which becomes the last
        rows, moved = one.astype(kind), np.moveaxis(table, 1, -1)
        table = np.stack([part @ rows[:, s % one.shape[1]].T for s, part in enumerate(moved)])
    return table
