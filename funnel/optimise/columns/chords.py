"""Bounds on Σ t ln t over boxes: the chords that lie above it, and linear functions over a box of the simplex.

All searches over boxes share these bounds, and the tolerances that keep rounding errors out of them.
"""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray, IntArray

WIDTH = 1e-13
"""Intervals narrower than this are taken for points, and not split any further."""
KEPT = 0.9
"""Points worth less than one minus this share of the best so far are not worth keeping."""
SAFETY = 1e-9
"""Margin, relative and absolute, for rounding errors where boxes shrink."""
APART = 1e-9
"""By how much a box must miss Σ w = 1, at least, for rounding errors not to matter."""
MISSED = 1e-12
"""By how much it must miss constraints, as a share of their multipliers."""
TOWARDS = 0.75
"""Where boxes are cut: this share of the way from where a chord is farthest off to the point it likes best."""


def xlogx(values: FloatArray) -> FloatArray:
    """t ln t, zero at zero."""
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


def chords(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes (..., a) of the chords of t ln t over intervals, and the sums (...) of what they take at zero."""
    width, low = upper - lower, xlogx(lower)
    flat = width < WIDTH
    rise = (xlogx(upper) - low) / np.where(flat, 1.0, width)
    slope = np.where(flat, 1 + np.log(np.maximum(upper, WIDTH)), rise)
    return slope, np.asarray((low - slope * lower).sum(axis=-1))


def filled(rest: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """max rest·w over boxes and Σ w = 1 (N,), the multipliers of Σ w = 1 (N,), the coordinates filled last (N,).

    Coordinates are filled up, best first; the last one to be filled sets the level. Whether or not a box and the
    simplex meet, the bound is level + Σ max((rest - level)·lower, (rest - level)·upper), true for any level.
    """
    order = np.argsort(-rest, axis=1)
    width, ranked = np.take_along_axis(upper - lower, order, 1), np.take_along_axis(rest, order, 1)
    room, own = 1.0 - lower.sum(axis=1), np.arange(len(rest))
    last = np.minimum((width.cumsum(axis=1) < room[:, None]).sum(axis=1), rest.shape[1] - 1)
    level = ranked[own, last]
    over = (np.maximum(ranked - level[:, None], 0.0) * width).sum(axis=1)
    return (rest * lower).sum(axis=1) + level * room + over, level, order[own, last]


def capped(rest: FloatArray, level: FloatArray | float, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Bounds (...) on rest·w over boxes (..., a) and Σ w = 1, by given multipliers (...) of the latter."""
    rate = rest - np.asarray(level)[..., None]
    return np.asarray(level + np.maximum(rate * lower, rate * upper).sum(axis=-1))
