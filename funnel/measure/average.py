"""Mutual information with a proof: a rational that it does not exceed, from exact integers.

I(S;Y) = (Σ T ln T - Σ R ln R - Σ C ln C + n ln n) / n, with R and C the sums of T[s, y] over y and over s. It is zero
where T n = R C in every cell, and irrational everywhere else: e^(n I) is rational, and e^r is transcendental for
every rational r ≠ 0 (Lindemann). So it never meets a decimal, and enough digits always tell on which side it lies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from funnel.data.sending import ExactArray

STEP = Fraction(1, 10**12)
"""Nats to which a mutual information is stated."""
_ROUNDING = 16 * 2.0**-53
"""Error of a floating-point sum of p ln(p/(p_s p_y)) for each nat of Σ p (1 + |ln(p/(p_s p_y))|).

The p have three roundings each, the quotient eleven, and a logarithm errs by at most four units in the last place.
"""
_MOST_BITS = 450
"""Bits of n up to which no product of two probabilities leaves the range of floats."""
_FIRST_BITS = 96
_INDEX = 7
"""Leading bits of a number after its first one that choose the tabulated logarithm next to it."""
_UNITS = 1 << 16
"""Error of a fixed-point logarithm in units of the last place: a few roundings per term and bit of the number."""
_CHUNK = 1 << 16


def information_above(table: ExactArray) -> Fraction:
    """The least multiple of 10^-12 nats that is not below I(S;Y), from T[s, y…] (c, b…) in integers of any size.

    Zero if and only if S and Y are independent in the table.
    """
    for low, high in _enclosures(table):
        if math.ceil(low / STEP) == math.ceil(high / STEP):
            return math.ceil(high / STEP) * STEP
    raise AssertionError("enclosures are endless")


def information_within(table: ExactArray, bound: Fraction) -> bool:
    """Whether `information_above(table) <= bound`, decided exactly and as a rule by floats alone."""
    limit = math.floor(bound / STEP) * STEP
    for low, high in _enclosures(table):
        if high <= limit:
            return True
        if low > limit:
            return False
    raise AssertionError("enclosures are endless")


def _enclosures(table: ExactArray) -> Iterator[tuple[Fraction, Fraction]]:
    """Ever narrower intervals that hold I(S;Y): from floats, then from fixed-point numbers of more and more bits."""
    flat = table.reshape(len(table), -1)
    flat = flat[flat.any(axis=1)]
    flat = flat[:, flat.any(axis=0)]
    total = int(flat.sum(dtype=object))
    if total.bit_length() <= _MOST_BITS:
        yield _by_floats(flat)
    exact = flat.astype(object)
    by_secret, by_output = exact.sum(axis=1), exact.sum(axis=0)
    if (exact * total == np.multiply.outer(by_secret, by_output)).all():
        while True:
            yield Fraction(0), Fraction(0)
    for doubled in itertools.count():
        bits = _FIRST_BITS << doubled
        weight = _weighted(exact.ravel(), bits) - _weighted(by_secret, bits) - _weighted(by_output, bits)
        weight += total * int(_logarithms(np.array([total], object), bits)[0])
        # Each of the four sums is one of logarithms with weights n in all.
        middle, error = Fraction(weight, total << bits), Fraction(4 * _UNITS, 1 << bits)
        yield middle - error, middle + error


def _by_floats(flat: ExactArray) -> tuple[Fraction, Fraction]:
    """An interval that holds I of counts (c, b) without empty rows or columns."""
    mass = flat.astype(float)
    total = float(int(flat.sum(dtype=object)))
    by_secret, by_output = (flat.sum(axis=axis, dtype=object).astype(float) / total for axis in (1, 0))
    s, y = mass.nonzero()
    p = mass[s, y] / total
    terms = p * np.log(p / (by_secret[s] * by_output[y]))
    value, error = math.fsum(terms), _ROUNDING * (1 + math.fsum(np.abs(terms)))
    return Fraction(value) - Fraction(error), Fraction(value) + Fraction(error)


def _weighted(numbers: Any, bits: int) -> int:
    """Σ t ln t of non-negative integers (m,), in units of 2^-bits; off by at most _UNITS for each of their sum."""
    numbers = numbers[numbers > 1]
    parts = (numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK))
    return sum(int((part * _logarithms(part, bits)).sum()) for part in parts)


def _logarithms(numbers: Any, bits: int) -> Any:
    """ln t of positive integers (m,) in units of 2^-bits, off by at most _UNITS.

    t = 2^e m with m in [1, 2), k/2^7 the seven bits of m after the point, and ln m = ln(k/2^7) + 2 artanh u with
    u = (m - k/2^7) / (m + k/2^7) < 2^-8.
    """
    exponent = np.array([number.bit_length() - 1 for number in numbers], object)
    # A number of more bits than are kept is cut: two shifts, as neither may be negative.
    mantissa = (numbers << np.maximum(bits - exponent, 0)) >> np.maximum(exponent - bits, 0)
    leading = mantissa >> (bits - _INDEX)
    near = leading << (bits - _INDEX)
    argument = ((mantissa - near) << bits) // (mantissa + near)
    square = (argument * argument) >> bits
    term, series = argument, argument
    for odd in range(3, bits // (_INDEX + 1) + 3, 2):
        term = (term * square) >> bits
        series = series + term // odd
    table = _tabulated(bits)
    return exponent * table[-1] + table[leading.astype(int) - (1 << _INDEX)] + 2 * series


@cache
def _tabulated(bits: int) -> Any:
    """ln(k/2^7) for k = 2^7 … 2^8, in units of 2^-bits, rounded down; the last one is ln 2."""
    context = Context(prec=bits // 3 + 20)
    scale, first = Decimal(1 << bits), 1 << _INDEX
    ratios = (context.divide(Decimal(k), Decimal(first)) for k in range(first, 2 * first + 1))
    return np.array([int(context.multiply(context.ln(ratio), scale)) for ratio in ratios], object)
