"""What a released table tells about the secret, measured exactly.

Mutual information has a proof, too: a rational that it does not exceed, from exact integers.
I(S;Y) = (Σ T ln T - Σ R ln R - Σ C ln C + n ln n) / n, with R and C the sums of T[s, y] over y and over s. It is zero
where T n = R C in every cell, and irrational everywhere else: e^(n I) is rational, and e^r is transcendental for
every rational r ≠ 0 (Lindemann). So it never meets a decimal, and enough digits always tell on which side it lies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray
from funnel.data.sending import ExactArray
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.measure.exact import ends, log_above

_NEAR = 1e-9
"""Relative width around the floating-point maximum in which ratios are compared exactly; floats err by 1e-15."""
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


@dataclass(frozen=True)
class Leakage:
    """An exact worst-case ratio of probabilities; None where it is infinite."""

    ratio: Fraction | None

    @property
    def nats(self) -> float:
        """ln(ratio), rounded up."""
        return log_above(self.ratio)

    def within(self, bound: Fraction) -> bool:
        """Whether the ratio is at most `bound`."""
        return self.ratio is not None and self.ratio <= bound


@dataclass(frozen=True)
class Average:
    """An upper bound of I(S;Y) in nats, certified: what is learnt on average over the records."""

    exact: Fraction

    @property
    def nats(self) -> float:
        """The bound, rounded up at the 12th decimal."""
        steps = -(-self.exact.numerator * 10**12 // self.exact.denominator)
        return steps / 10**12

    def within(self, bound: Fraction) -> bool:
        """Whether it is at most `bound`, in nats."""
        return self.exact <= bound


AnyLeakage = Leakage | Average


def worst(found: Iterable[Leakage]) -> Leakage:
    """The largest of several leakages; no leakage at all of none."""
    ratio = Fraction(1)
    for one in found:
        if one.ratio is None:
            return one
        ratio = max(ratio, one.ratio)
    return Leakage(ratio)


def lip(table: ReleasedTable) -> Leakage:
    """max over s, y of P(s|y)/P(s) or its inverse ([DS] Definition 2), from T[s, y…] in integers."""
    told = _told(table)
    fall = told.loss_ratio()
    return Leakage(None if fall is None else max(told.pml_ratio(), fall))


def pml(table: ReleasedTable) -> Leakage:
    """max over s, y of P(s|y)/P(s): pointwise maximal leakage about S, the upper half of LIP; never infinite."""
    return Leakage(_told(table).pml_ratio())


def ldp(table: ReleasedTable) -> Leakage:
    """max over s, s', y of P(y|s)/P(y|s') ([DS] Definition 1), from T[s, y…] in integers."""
    return Leakage(_told(table).ldp_ratio())


class _Ratios(Protocol):
    """The exact worst ratios of a released table, however it is kept; None where infinite."""

    def pml_ratio(self) -> Fraction:
        """max P(s|y)/P(s)."""

    def loss_ratio(self) -> Fraction | None:
        """max P(s)/P(s|y)."""

    def ldp_ratio(self) -> Fraction | None:
        """max P(y|s)/P(y|s')."""


def _told(table: ReleasedTable) -> _Ratios:
    return table if isinstance(table, Subsets) else _Listed.of(table)


@dataclass(frozen=True, eq=False)
class _Listed:
    """T[s, y] (c, b) of what occurs, with its marginals: floats find where exact fractions are needed."""

    table: ExactArray
    by_secret: ExactArray
    by_output: ExactArray

    @classmethod
    def of(cls, table: ExactArray) -> _Listed:
        """Of a released table T[s, y…]; outputs and secret values that never occur are left out."""
        flat = table.reshape(len(table), -1)
        flat = flat[flat.any(axis=1)]
        flat = flat[:, flat.any(axis=0)]
        return cls(flat, flat.sum(axis=1), flat.sum(axis=0))

    @cached_property
    def given(self) -> FloatArray:
        """P(y|s) as floats."""
        return np.asarray(self.table.astype(float) / self.by_secret.astype(float)[:, None])

    @cached_property
    def gain(self) -> FloatArray:
        """P(s|y)/P(s) as floats."""
        total = float(self.by_secret.sum())
        return np.asarray(self.given * (total / self.by_output.astype(float)))

    @property
    def ruled_out(self) -> bool:
        """Whether some output never occurs with some secret value."""
        return bool((self.table == 0).any())

    def pml_ratio(self) -> Fraction:
        """max P(s|y)/P(s)."""
        return max(self._exact(s, y) for s, y in np.argwhere(_near(self.gain)))

    def loss_ratio(self) -> Fraction | None:
        """max P(s)/P(s|y)."""
        if self.ruled_out:
            return None
        return max(1 / self._exact(s, y) for s, y in np.argwhere(_near(1 / self.gain)))

    def ldp_ratio(self) -> Fraction | None:
        """max P(y|s)/P(y|s')."""
        if self.ruled_out:
            return None
        best = Fraction(1)
        for y in np.flatnonzero(_near(self.given.max(axis=0) / self.given.min(axis=0))):
            column = [
                Fraction(int(n), int(mass)) for n, mass in zip(self.table[:, y], self.by_secret, strict=True)
            ]
            best = max(best, max(column) / min(column))
        return best

    def _exact(self, s: int, y: int) -> Fraction:
        """P(s|y)/P(s)."""
        total = int(self.by_secret.sum())
        return Fraction(int(self.table[s, y]) * total, int(self.by_secret[s]) * int(self.by_output[y]))


def _near(ratio: FloatArray) -> npt.NDArray[np.bool_]:
    """Where a ratio is so close to the largest that only exact arithmetic can tell."""
    return np.asarray(ratio >= ratio.max() * (1 - _NEAR))


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
