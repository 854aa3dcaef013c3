"""Averages of a row under masses known between ends: the worst, and the cone of rows that keep limits for all of them.

A side has masses m_x between l_x and h_x and sees a row v as Σ m v / Σ m. The largest such average has m at h on the x
of largest v and at l elsewhere, the smallest the other way round: prefixes of an order are all there is to try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.data.beliefs import Masses
from funnel.data.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Compared:
    """Pairs of sides (k,) of which the one may see a row as `ratio` times what the other does, at most."""

    high: IntArray
    low: IntArray
    ratio: float


class Worst:
    """The convex cone of rows whose averages keep every limit, whatever masses lie between `least` and `most`.

    Masses (k, g, a) are of g sides under each of k conditions; a limit is between sides under one condition. A side
    with no mass at all under a condition takes no part in it.
    """

    def __init__(self, least: FloatArray, most: FloatArray, limits: Sequence[Compared]) -> None:
        self.least, self.most, self.limits = least, most, limits
        self._there = np.asarray(most.max(axis=2) > 0)

    def worst(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much rows (k, a) exceed inequalities (k, q), and these (k, q, a): the worst masses of each limit."""
        high, low = self._extremes(rows)
        found = []
        for one in self.limits:
            both = self._there[:, one.high] & self._there[:, one.low]
            asked = (high[:, :, one.high] - one.ratio * low[:, :, one.low]) / (one.ratio - 1)
            found.append(asked[:, both])
        known = np.concatenate(found, axis=1)
        return np.einsum("kqa,ka->kq", known, rows), known

    def ends(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The largest and the smallest average (b, k, g) of every row (b, a); 0 and infinity for sides without mass."""
        high, low = (np.einsum("bkga,ba->bkg", one, rows) for one in self._extremes(rows))
        return np.where(self._there, high, 0.0), np.where(self._there, low, np.inf)

    def _extremes(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Masses, normalised (b, k, g, a), of the largest and the smallest averages."""
        order = np.argsort(-rows, axis=1, kind="stable")
        return self._towards(rows, order), self._towards(-rows, order[:, ::-1])

    def _towards(self, rows: FloatArray, order: IntArray) -> FloatArray:
        """Masses that raise the averages, from orders (b, a) of falling values."""
        values = np.take_along_axis(rows, order, axis=1)[:, None, None]
        low, more = (np.moveaxis(one[:, :, order], 2, 0) for one in (self.least, self.most - self.least))
        whole = low.sum(axis=3, keepdims=True) + np.cumsum(more, axis=3)
        seen = (low * values).sum(axis=3, keepdims=True) + np.cumsum(more * values, axis=3)
        average = np.divide(seen, whole, out=np.full_like(seen, -np.inf), where=whole > 0)
        raised = np.arange(rows.shape[1]) <= average.argmax(axis=3)[..., None]
        masses = np.where(raised, low + more, low)
        masses /= np.maximum(masses.sum(axis=3, keepdims=True), np.finfo(float).tiny)
        found = np.empty_like(masses)
        np.put_along_axis(found, np.broadcast_to(order[:, None, None], masses.shape), masses, axis=3)
        return found


def highest(least: Masses, most: Masses, values: Sequence[int]) -> Fraction:
    """The largest average of values (a,), exactly; 0 where there is no mass."""
    order = sorted(range(len(values)), key=lambda x: -values[x])
    whole, seen = sum(least), sum(low * value for low, value in zip(least, values, strict=True))
    best = Fraction(0)
    for x in order:
        whole, seen = whole + most[x] - least[x], seen + (most[x] - least[x]) * values[x]
        if whole:
            best = max(best, Fraction(seen, whole))
    return best


def lowest(least: Masses, most: Masses, values: Sequence[int]) -> Fraction:
    """The smallest average of values (a,) that are not negative, exactly. ValueError where there is no mass."""
    if not any(most):
        raise ValueError("an average of nothing")
    top = max(values)
    return top - highest(least, most, [top - value for value in values])
