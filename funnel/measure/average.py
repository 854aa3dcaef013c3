"""Mutual information with a proof: a rational that it does not exceed, from exact integers.

I(S;Y) = (Σ T ln T - Σ R ln R - Σ C ln C + n ln n) / n, with R and C the sums of T[s, y] over y and over s. It is zero
where T n = R C in every cell, and irrational everywhere else: e^(n I) is rational, and e^r is transcendental for
every rational r ≠ 0 (Lindemann). So it never meets a decimal, and enough digits always tell on which side it lies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from funnel.data.sending import ExactArray
from funnel.measure.exact import ends

STEP = Fraction(1, 10**12)
"""Nats to which a mutual information is stated."""
_ROUNDING = 16 * 2.0**-53
"""Error of a floating-point sum of p ln(p/(p_s p_y)) for each nat of Σ p (1 + |ln(p/(p_s p_y))|).

The p have three roundings each, the quotient eleven, and a logarithm errs by at most four units in the last place.
"""
_MOST_BITS = 450
"""Bits of n up to which no product of two probabilities leaves the range of floats."""
_FIRST_BITS = 128
"""Binary digits of the first balls."""


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
    """Ever narrower intervals that hold I(S;Y): from floats, then from balls of more and more binary digits."""
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
    from flint import ctx

    for doubled in itertools.count():
        with ctx.workprec(total.bit_length() + (_FIRST_BITS << doubled)):
            weight = _weighted(exact.ravel()) - _weighted(by_secret) - _weighted(by_output)
            yield ends((weight + _weighted([total])) / total)


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


def _weighted(numbers: Any) -> Any:
    """Σ t ln t of non-negative integers (m,), as a ball."""
    from flint import arb

    return sum((t * arb(t).log() for t in map(int, numbers) if t > 1), arb(0))
