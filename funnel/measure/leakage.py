"""What a released table tells about the secret, measured exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray
from funnel.data.sending import ExactArray
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.measure.exact import log_above

_NEAR = 1e-9
"""Relative width around the floating-point maximum in which ratios are compared exactly; floats err by 1e-15."""


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
