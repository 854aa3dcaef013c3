"""The price Σ w ln w - linear·w at every vertex of a slice whose vertices are known: no search, no solver.

The price is convex, so on the slice {w in the cone : Σ w = 1} it is largest at a vertex.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
MOST_LISTED = 20
"""Values up to which all rows of two different entries are looked at."""
MOST_PAIRED = 20_000
"""Values up to which all pairs of them are looked at."""
_AT_ONCE = 1 << 20
_EDGE = 1e-12


def highest_of_two(told: FloatArray, low: float, high: float, linear: FloatArray) -> tuple[float, int]:
    """The largest price where low <= told·w <= high, `told` (a,) being P(s|x) for one of two secret values.

    Its vertices are the values x inside, and on either end the pairs of a value below and one above. Also their number.
    """
    inside = (told >= low - _EDGE) & (told <= high + _EDGE)
    best, count = float((-linear[inside]).max(initial=-np.inf)), int(inside.sum())
    for end in {low, high}:
        below, above = np.flatnonzero(told < end), np.flatnonzero(told > end)
        if not len(below) or not len(above):
            continue
        step = max(1, _AT_ONCE // len(above))
        for start in range(0, len(below), step):
            part = below[start : start + step, None]
            share = (told[above] - end) / (told[above] - told[part])
            price = _xlogx(share) + _xlogx(1 - share) - share * linear[part] - (1 - share) * linear[above]
            best, count = max(best, float(price.max())), count + price.size
    return best, count


def highest_of_odds(prior: FloatArray, ratio: float, linear: FloatArray) -> tuple[float, int]:
    """The largest price where no two entries of a row v = w/prior differ by more than a factor `ratio`.

    Vertices have entries in {1, ratio} only (Kairouz, Oh and Viswanath). Also their number, 2^a.
    """
    size, best = len(prior), -math.inf
    step = max(1, _AT_ONCE // size)
    for start in range(0, 1 << size, step):
        chosen = np.arange(start, min(start + step, 1 << size))[:, None] >> np.arange(size) & 1
        mass = np.where(chosen == 1, ratio, 1.0) * prior
        mass /= mass.sum(axis=1, keepdims=True)
        best = max(best, float((_xlogx(mass) - mass * linear).sum(axis=1).max()))
    return best, 1 << size


def _xlogx(values: FloatArray) -> FloatArray:
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))
