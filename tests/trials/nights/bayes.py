"""Bayes' rule over one night's table, in whole numbers; floating point only says which answers to work out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tests.trials.nights.table import Truth

_CANDIDATES = 6
"""Of the answers that float arithmetic finds worst, how many are worked out exactly."""


@dataclass(frozen=True)
class Joint:
    """N[s, x1, x2], whole numbers, with the values of both blocks."""

    values: tuple[tuple[str, ...], tuple[str, ...]]
    counts: np.ndarray

    @classmethod
    def of(cls, truth: Truth) -> Joint:
        """Tonight's table."""
        found = Counter((s, *values) for s, values in truth.values())
        names = [sorted({cell[i] for cell in found}) for i in range(3)]
        counts = np.zeros([len(one) for one in names], np.int64)
        for cell, many in found.items():
            counts[tuple(names[i].index(part) for i, part in enumerate(cell))] = many
        return cls((tuple(names[1]), tuple(names[2])), counts)

    def worst_of(self, pairs: Sequence[tuple[Sequence[Fraction], Sequence[Fraction]]]) -> float:
        """max |ln P(s|y)/P(s)| over answers y, each by its chances given the values of the two blocks."""
        one, two = (np.array([[float(chance) for chance in pair[i]] for pair in pairs]) for i in (0, 1))
        moved = self._moved(np.einsum("ya,sab,yb->ys", _scaled(one), self.counts, _scaled(two)))
        first = np.argsort(-moved)[:_CANDIDATES]
        return max(self._exactly(*pairs[int(i)]) for i in first)

    def worst_of_all(self, ones: Sequence[Sequence[Fraction]], twos: Sequence[Sequence[Fraction]]) -> float:
        """The same over every answer of the first block beside every answer of the second."""
        one, two = (np.array([[float(part) for part in row] for row in rows]) for rows in (ones, twos))
        weights = np.einsum("ya,sab,zb->yzs", one, self.counts, two)
        moved = self._moved(weights.reshape(-1, weights.shape[-1]))
        first = [
            divmod(int(i), len(two))
            for i in np.argpartition(-moved, min(_CANDIDATES, len(moved) - 1))[:_CANDIDATES]
        ]
        return max(self._exactly(ones[i], twos[j]) for i, j in first)

    def _moved(self, weights: np.ndarray) -> np.ndarray:
        """Nats for the unnormalised posteriors (y, s); nothing for answers that tonight's table rules out."""
        whole = weights.sum(axis=1)
        prior = self.counts.sum(axis=(1, 2)) / self.counts.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.abs(np.log(weights / (whole[:, None] * prior))).max(axis=1)
        return np.where(whole > 0, moved, 0.0)

    def _exactly(self, one: Sequence[Fraction], two: Sequence[Fraction]) -> float:
        """Bayes' rule in whole numbers, for one answer."""
        weights = [
            sum((int(n) * p * q for row, p in zip(table, one, strict=True) for n, q in zip(row, two, strict=True) if n),
                Fraction(0))
            for table in self.counts
        ]  # fmt: skip
        whole, rows = sum(weights), int(self.counts.sum())
        if whole == 0:
            return 0.0
        if not all(weights):
            return math.inf
        moved = [
            weight / whole * Fraction(rows, int(table.sum()))
            for weight, table in zip(weights, self.counts, strict=True)
        ]
        return max(abs(log(one)) for one in moved)


def _scaled(rows: np.ndarray) -> np.ndarray:
    """Each row by its largest part: chances of many answers together are small."""
    tops = rows.max(axis=1, keepdims=True)
    return rows / np.where(tops > 0, tops, 1.0)


def log(ratio: Fraction) -> float:
    """Nats."""
    return math.log(ratio.numerator) - math.log(ratio.denominator)
