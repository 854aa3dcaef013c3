"""Bounds on Σ t ln t over boxes: the chords that lie above it, and linear functions over a box of the simplex."""

from __future__ import annotations

import numpy as np

from funnel.model.joint import FloatArray

_FLAT = 1e-13
"""Intervals narrower than this are taken for points."""


def xlogx(values: FloatArray) -> FloatArray:
    """t ln t, zero at zero."""
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


def chords(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, float]:
    """Slopes (a,) of the chords of t ln t over intervals, and the sum of what they take at zero."""
    width, low = upper - lower, xlogx(lower)
    flat = width < _FLAT
    rise = (xlogx(upper) - low) / np.where(flat, 1.0, width)
    slope = np.where(flat, 1 + np.log(np.maximum(upper, _FLAT)), rise)
    return slope, float((low - slope * lower).sum())


def filled(rest: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[float, float]:
    """max rest·w over the box and Σ w = 1, and the multiplier of Σ w = 1.

    Coordinates are filled up, best first; the last one to be filled sets the level. Whether or not the box and
    the simplex meet, the bound is level + Σ max((rest - level)·lower, (rest - level)·upper), true for any level.
    """
    order = np.argsort(-rest)
    width = (upper - lower)[order]
    full = width.cumsum()
    room = 1.0 - float(lower.sum())
    last = min(int(np.searchsorted(full, room)), len(rest) - 1)
    level = float(rest[order[last]])
    over = (rest[order[:last]] - level) @ width[:last]
    return float(rest @ lower) + level * room + float(over), level


def capped(rest: FloatArray, level: float, lower: FloatArray, upper: FloatArray) -> float:
    """A bound on rest·w over the box and Σ w = 1, by a given multiplier of the latter."""
    rate = rest - level
    return level + float(np.maximum(rate * lower, rate * upper).sum())
