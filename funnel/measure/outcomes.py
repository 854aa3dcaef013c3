"""What is expected of the draws given all released totals, from the chances of every outcome.

    E[K_xy | M] = N_x Q(y|x) Z(N - e_x, M - e_y) / Z(N, M),   Z(N, M) = P(M | N)    (mathematics, section 9)

Z is a coefficient of Π_x (Σ_y Q(y|x) t_y)^N_x: one record after another is multiplied in, from both ends, so that the
product without one record of x is a sum over what came before and what comes after. All terms are positive: of the
rounding errors of floats a share of n(b+2) 2^-51 is left, and what falls below their range is below 1e-300 in all.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from funnel.data.joint import FloatArray, IntArray

MOST = 50_000_000
"""Most steps, products of two floats, that are taken."""
_LEAST = 1e-200
"""P(M | N) below which what floats cannot hold might count."""


def expected(counts: IntArray, chances: FloatArray, seen: IntArray) -> FloatArray | None:
    """E[K_xy | M] (b, a) for records N_x (a,), Q(y|x) (b, a) and totals M_y (b,), to a relative 1e-9.

    None where there are too many outcomes, or this one is too rare for floats. A report and its audit ask the same.
    """
    return _expected(np.int64(counts).tobytes(), np.float64(chances).tobytes(), np.int64(seen).tobytes())


@lru_cache(maxsize=2)
def _expected(records: bytes, shares: bytes, totals: bytes) -> FloatArray | None:
    counts, seen = np.frombuffer(records, np.int64), np.frombuffer(totals, np.int64)
    chances = np.frombuffer(shares).reshape(len(seen), len(counts))
    told = np.flatnonzero(seen)
    pivot = told[np.argmax(seen[told])]
    others = [y for y in told.tolist() if y != pivot]
    shape = tuple((seen[others] + 1).tolist())
    kinds, rows = len(counts), int(counts.sum())
    if math.prod(shape) * (2 * rows + kinds) * len(told) > MOST:
        return None
    q = chances[[pivot, *others]]
    start = np.zeros(shape)
    start[(0,) * len(others)] = 1.0
    before = [start]
    for x in range(kinds - 1):
        before.append(_times(before[-1], q[:, x], int(counts[x])))
    after, found = start, np.zeros(chances.shape)
    for x in reversed(range(kinds)):
        after = _times(after, q[:, x], int(counts[x]) - 1)
        for place, y in enumerate([int(pivot), *others]):
            found[y, x] = counts[x] * q[place, x] * _met(before[x], after, place)
        after = _times(after, q[:, x], 1)
    total = float(after[(-1,) * len(others)])
    return found / total if total > _LEAST else None


def _times(sums: FloatArray, chances: FloatArray, records: int) -> FloatArray:
    """The product with so many records that answer y with chance q_y, the pivot's first; as far as M goes."""
    for _ in range(records):
        found = sums * chances[0]
        for axis, chance in enumerate(chances[1:].tolist()):
            if chance:
                found[_after(axis, sums.ndim)] += sums[_before(axis, sums.ndim)] * chance
        sums = found
    return sums


def _met(before: FloatArray, after: FloatArray, place: int) -> float:
    """The coefficient of M - e_y in the product of both; place 0 is the pivot's, whose number follows from the rest."""
    if place:
        cut = _before(place - 1, before.ndim)
        before, after = before[cut], after[cut]
    return float((before * np.flip(after)).sum())


def _after(axis: int, dimensions: int) -> tuple[slice, ...]:
    return tuple(slice(1, None) if place == axis else slice(None) for place in range(dimensions))


def _before(axis: int, dimensions: int) -> tuple[slice, ...]:
    return tuple(slice(None, -1) if place == axis else slice(None) for place in range(dimensions))
