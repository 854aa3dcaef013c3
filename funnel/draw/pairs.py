"""Did the coins of unary encoding fall as they should: each by its chance, and no two of them together?"""

from __future__ import annotations

import math

import numpy as np

from funnel.data import UnaryProtocol
from funnel.data.joint import FloatArray, IntArray
from funnel.draw.goodness import Fit, g_test

_PART = 1 << 14
"""Sets that are taken apart at a time."""


def each_coin(table: IntArray, protocol: UnaryProtocol) -> Fit:
    """Ones M[x, x'] (a, a + 1; the last column: records) against N[x] times the chance of a 1, all x and x' together.

    The bits of one record are independent, so each (x, x') is a stratum of its own.
    """
    chances, records = protocol.chances(), table[:, -1:]
    return _ones_and_zeros(table[:, :-1], chances, np.broadcast_to(records, chances.shape))


def each_column(table: IntArray, protocol: UnaryProtocol) -> Fit:
    """For every x', the ones of all records with another value: sums that show what single cells are too small for."""
    a = len(protocol.inputs)
    others = ~np.eye(a, dtype=bool)
    ones = np.where(others, table[:, :-1], 0).sum(axis=0)
    records = np.where(others, table[:, -1:], 0).sum(axis=0)
    return _ones_and_zeros(ones, np.full(a, protocol.shares[1]), records)


def worst_pair(
    codes: IntArray, counts: IntArray, table: IntArray, protocol: UnaryProtocol
) -> tuple[float, str]:
    """The chance of the strongest tie between two bits if there is none, over all pairs; and which two.

    For bits i and j the sum over records of (b_i - p_xi)(b_j - p_xj) has mean 0, variance Σ_x N_x v_xi v_xj, and
    terms below one. Bernstein's inequality bounds its tail, and the number of pairs multiplies it: an honest draw
    fails with no larger chance than that. `codes` (m,) and `counts` (m,) are the sets that occur.
    """
    a = len(protocol.inputs)
    if a < 2:
        return 1.0, ""
    sums, variances = _products(_together(codes, counts, protocol), table, protocol)
    above = np.triu_indices(a, 1)
    exponents = sums[above] ** 2 / (2 * (variances[above] + np.abs(sums[above]) / 3))
    worst = int(exponents.argmax())
    names = protocol.inputs.names()
    chance = min(2.0 * len(exponents) * math.exp(-float(exponents[worst])), 1.0)
    return chance, f"{names[above[0][worst]]} and {names[above[1][worst]]}"


def _together(codes: IntArray, counts: IntArray, protocol: UnaryProtocol) -> FloatArray:
    """How often two bits are 1 at once, (a, a); sums of counts, which floats hold exactly."""
    a = len(protocol.inputs)
    together = np.zeros((a, a))
    for start in range(0, len(codes), _PART):
        part, times = codes[start : start + _PART], counts[start : start + _PART]
        bits = np.stack([protocol.outputs.holds(part, x) for x in range(a)]).astype(float)
        together += (bits * times) @ bits.T
    return together


def _products(
    together: FloatArray, table: IntArray, protocol: UnaryProtocol
) -> tuple[FloatArray, FloatArray]:
    """Σ (b_i - p_xi)(b_j - p_xj) and its variance, (a, a), from how often two bits are 1 at once."""
    chances, ones, records = protocol.chances(), table[:, :-1].astype(float), table[:, -1].astype(float)
    crossed = ones.T @ chances
    expected = (chances * records[:, None]).T @ chances
    spread = chances * (1 - chances)
    return together - crossed - crossed.T + expected, (spread * records[:, None]).T @ spread


def _ones_and_zeros(ones: IntArray, chances: FloatArray, records: IntArray) -> Fit:
    """A G test of ones among `records`, every cell a stratum."""
    observed = np.stack([ones, records - ones], axis=-1)
    expected = np.stack([records * chances, records * (1 - chances)], axis=-1)
    stratum = np.repeat(np.arange(ones.size), 2)
    drawn = expected.ravel() > 0
    return g_test(observed.ravel()[drawn], expected.ravel()[drawn], stratum[drawn])
