"""How low and how high a mean R·v can lie for R near P̂: searched in floats, certified in rationals.

For z >= 0 and D_α(P̂ || R) <= b, Hölder's inequality gives R·z >= e^-b M(z), M the power mean (Σ P̂ z^r)^(1/r)
with r = (α-1)/α, the geometric mean at α = 1. So R·v >= t + e^-b M(v - t) for every t <= min v: any t proves a
bound, and the best t, by convex duality, proves the tightest. The highest mean is the lowest of -v, negated.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

from funnel.audit.fields import IntArray
from funnel.audit.logarithms import exp_below_any, log, power_above, power_below
from funnel.audit.uncertainty import Seen

FloatArray = npt.NDArray[np.float64]
POINT = 96
"""Bits behind the point of t."""
_ROOT = 64
HALVINGS = 56
"""Beyond which the logarithm of t's depth is known to 10^-15."""
_FARTHEST = 1e13
_NEAREST = 1e-28


@np.errstate(all="ignore")
def depth(
    rows: FloatArray, chances: FloatArray, shrink: FloatArray, order: float, halvings: int = HALVINGS
) -> FloatArray:
    """How far below min v the best t lies, (m,): for rows v (m, a), P̂ (m, a) or (a,), and e^-b (m,) or ().

    g(d) = -d + e^-b M(v - min v + d) is concave; the logarithm of d is bisected on the sign of g'.
    """
    above = rows - rows.min(axis=1, keepdims=True)
    spread = above.max(axis=1)
    low = np.log(np.where(spread > 0, spread, 1.0)) + np.log(_NEAREST)
    high = low + np.log(_FARTHEST / _NEAREST)
    for _ in range(halvings):
        middle = (low + high) / 2
        rising = shrink * slope(above + np.exp(middle)[:, None], chances, order) > 1
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.asarray(np.where(spread > 0, np.exp((low + high) / 2), 0.0))


@np.errstate(all="ignore")
def slope(z: FloatArray, chances: FloatArray, order: float) -> FloatArray:
    """M'(z + d) at d = 0: M^(1-r) Σ P̂ z^(r-1)."""
    if order == 2:
        roots = np.sqrt(z)
        return np.asarray((chances * roots).sum(axis=1) * (chances / roots).sum(axis=1))
    r = (order - 1) / order
    if r == 0:
        return np.asarray(np.exp((chances * np.log(z)).sum(axis=1)) * (chances / z).sum(axis=1))
    summed = (chances * z**r).sum(axis=1)
    return np.asarray(summed ** (1 / r - 1) * (chances * z ** (r - 1)).sum(axis=1))


@np.errstate(all="ignore")
def power_mean(z: FloatArray, chances: FloatArray, order: float) -> FloatArray:
    """M(z), (m,), for z >= 0 (m, a); a mean of zero and nothing at orders up to 1 is zero."""
    r = (order - 1) / order
    safe = np.where((chances > 0) & (z > 0), z, 1.0)
    if r == 0:
        found = np.exp((chances * np.log(safe)).sum(axis=1))
    else:
        found = (np.where(z > 0, chances, 0.0) * safe**r).sum(axis=1) ** (1 / r)
    lost = ((chances > 0) & (z <= 0)).any(axis=1) if r <= 0 else np.zeros(len(z), bool)
    return np.asarray(np.where(lost, 0.0, found))


def lowest(row: IntArray, seen: Seen, far: float, order: Fraction) -> Fraction:
    """A rational at or below R·v for every R within reach of s; `far` is where t is tried below min v."""
    least = int(row.min())
    if far == 0 or least == int(row.max()):
        return Fraction(least)
    if seen.shrink == 1:
        return Fraction(sum(n * v for n, v in _pairs(seen, row)), seen.records)
    t = below(least, far)
    return max(Fraction(t, 1 << POINT) + seen.shrink * mean_below(row, t, seen, order), Fraction(least))


def below(least: int, far: float) -> int:
    """The t a distance `far` below a whole number, in parts of 2^POINT, rounded down."""
    distance = Fraction(far)
    return (least << POINT) - -(-(distance.numerator << POINT) // distance.denominator)


def mean_below(row: IntArray, t: int, seen: Seen, order: Fraction) -> Fraction:
    """A rational at or below M(v - t), for t <= min v in parts of 2^POINT."""
    if order == 2:
        return _half_mean_below(row, t, seen) ** 2
    gaps = [(n, (v << POINT) - t) for n, v in _pairs(seen, row)]
    if any(z == 0 for _, z in gaps) and order <= 1:
        return Fraction(0)
    parts = [(Fraction(n, seen.records), Fraction(z, 1 << POINT)) for n, z in gaps if z]
    if order == 1:
        return exp_below_any(sum((p * log(z) for p, z in parts), Fraction(0)))
    power = (order - 1) / order
    side = power_below if power > 0 else power_above
    summed = sum((p * side(z, power) for p, z in parts), Fraction(0))
    return power_below(summed, 1 / power) if summed else Fraction(0)


def _half_mean_below(row: IntArray, t: int, seen: Seen) -> Fraction:
    """A rational at or below Σ P̂ sqrt(v - t), the root of M at order 2."""
    summed = sum(n * isqrt((v << POINT) - t << 2 * _ROOT) for n, v in _pairs(seen, row))
    return Fraction(summed, seen.records << (POINT // 2 + _ROOT))


def _pairs(seen: Seen, row: IntArray) -> list[tuple[int, int]]:
    """(records, v) of the inputs that occur with s."""
    return [(n, v) for n, v in zip(seen.counts.tolist(), row.tolist(), strict=True) if n]
