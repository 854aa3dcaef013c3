"""What a released table tells about the secret, measured exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

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

    def as_text(self) -> str:
        """`num/den`, or `inf`."""
        return "inf" if self.ratio is None else f"{self.ratio.numerator}/{self.ratio.denominator}"

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

    def as_text(self) -> str:
        """`num/den`."""
        return f"{self.exact.numerator}/{self.exact.denominator}"

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
    if isinstance(table, Subsets):
        return Leakage(max(table.pml_ratio(), table.loss_ratio()))
    beliefs = _Beliefs.of(table)
    return Leakage(None if beliefs.ruled_out else max(beliefs.gain(), beliefs.loss()))


def pml(table: ReleasedTable) -> Leakage:
    """max over s, y of P(s|y)/P(s): pointwise maximal leakage about S, the upper half of LIP; never infinite."""
    return Leakage(table.pml_ratio() if isinstance(table, Subsets) else _Beliefs.of(table).gain())


def ldp(table: ReleasedTable) -> Leakage:
    """max over s, s', y of P(y|s)/P(y|s') ([DS] Definition 1), from T[s, y…] in integers."""
    if isinstance(table, Subsets):
        return Leakage(table.ldp_ratio())
    flat, by_secret = _flatten(table)
    if (flat == 0).any():
        return Leakage(None)
    chance = flat.astype(float) / by_secret.astype(float)[:, None]
    best = Fraction(1)
    for y in np.flatnonzero(_near(chance.max(axis=0) / chance.min(axis=0))):
        column = [_ratio(flat[s, y], 1, by_secret[s], 1) for s in range(len(flat))]
        best = max(best, max(column) / min(column))
    return Leakage(best)


@dataclass(frozen=True, eq=False)
class _Beliefs:
    """T[s, y] (c, b) of what occurs, its marginals, and P(s|y)/P(s) as floats, to find where exactness is needed."""

    table: ExactArray
    by_secret: ExactArray
    by_output: ExactArray
    ratio: FloatArray

    @classmethod
    def of(cls, table: ExactArray) -> _Beliefs:
        """Of a released table T[s, y…]."""
        flat, by_secret = _flatten(table)
        by_output, total = flat.sum(axis=0), float(by_secret.sum())
        given = flat.astype(float) / by_secret.astype(float)[:, None]
        return cls(flat, by_secret, by_output, np.asarray(given * (total / by_output.astype(float))))

    @property
    def ruled_out(self) -> bool:
        """Whether some output never occurs with some secret value."""
        return bool((self.table == 0).any())

    def gain(self) -> Fraction:
        """max P(s|y)/P(s)."""
        return _largest(self.ratio, self._exact)

    def loss(self) -> Fraction:
        """max P(s)/P(s|y), where no value is ruled out."""
        return _largest(1 / self.ratio, lambda s, y: 1 / self._exact(s, y))

    def _exact(self, s: int, y: int) -> Fraction:
        """P(s|y)/P(s)."""
        total = int(self.by_secret.sum())
        return _ratio(self.table[s, y], total, self.by_secret[s], self.by_output[y])


def _flatten(table: ExactArray) -> tuple[ExactArray, ExactArray]:
    """(c, b) without outputs and secret values that never occur, and the marginal of s."""
    flat = table.reshape(len(table), -1)
    flat = flat[flat.any(axis=1)]
    return flat[:, flat.any(axis=0)], flat.sum(axis=1)


def _near(ratio: FloatArray) -> npt.NDArray[np.bool_]:
    """Where a ratio is so close to the largest that only exact arithmetic can tell."""
    return np.asarray(ratio >= ratio.max() * (1 - _NEAR))


def _largest(ratio: FloatArray, exact: Callable[[int, int], Fraction]) -> Fraction:
    """The exact maximum among the candidates that floats cannot tell apart."""
    return max(exact(s, y) for s, y in np.argwhere(_near(ratio)))


def _ratio(a: int, b: int, c: int, d: int) -> Fraction:
    """(a·b)/(c·d) in Python integers."""
    return Fraction(int(a) * int(b), int(c) * int(d))
