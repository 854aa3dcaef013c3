"""Exact tails of the binomial distribution: what a count says, and which bias it would have shown.

A count of one outcome among independent draws is binomial, whatever the other outcomes are; so no test here rests on
a limit theorem. The tails are incomplete beta functions: P(X >= k) = I_p(k, n - k + 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, chdtrc, ndtri

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MISS = 1e-6
"""The chance with which a bias that counts as seen may still be overlooked."""


def shares(weights: Sequence[int]) -> Floats:
    """Integer weights as chances, each rounded once."""
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def at_most(count: npt.ArrayLike, draws: npt.ArrayLike, share: npt.ArrayLike) -> Floats:
    """P(X <= count)."""
    k, n, p = np.broadcast_arrays(
        np.asarray(count, float), np.asarray(draws, float), np.asarray(share, float)
    )
    inside = (k >= 0) & (k < n)
    tail = betaincc(np.where(inside, k + 1, 1.0), np.where(inside, n - k, 1.0), p)
    return np.where(inside, tail, (k >= n).astype(float))


def at_least(count: npt.ArrayLike, draws: npt.ArrayLike, share: npt.ArrayLike) -> Floats:
    """P(X >= count)."""
    k, n, p = np.broadcast_arrays(
        np.asarray(count, float), np.asarray(draws, float), np.asarray(share, float)
    )
    inside = (k > 0) & (k <= n)
    tail = betainc(np.where(inside, k, 1.0), np.where(inside, n - k + 1, 1.0), p)
    return np.where(inside, tail, (k <= 0).astype(float))


def two_sided(count: npt.ArrayLike, draws: npt.ArrayLike, share: npt.ArrayLike) -> Floats:
    """The chance of a count as far out, on either side: below `level` with chance `level` at most."""
    return np.minimum(1.0, 2 * np.minimum(at_most(count, draws, share), at_least(count, draws, share)))


def together(counts: Counts, weights: Sequence[int]) -> float:
    """One figure for all outcomes of a row, in the place of chi-square, whose tail is only a limit.

    Taken one after another, the heaviest first, each count is binomial among the draws that the earlier ones left.
    Minus twice the logarithms of their chances, summed, exceed chi-square of twice as many degrees no more often than
    it does itself (Fisher 1932; discrete chances only make it rarer).
    """
    order = sorted(range(len(weights)), key=lambda output: -weights[output])
    left, rest, taken, among, share = int(counts.sum()), sum(weights), [], [], []
    for output in order:
        if 0 < weights[output] < rest:
            taken.append(int(counts[output]))
            among.append(left)
            share.append(weights[output] / rest)
        left, rest = left - int(counts[output]), rest - weights[output]
    chances = two_sided(taken, among, share)
    return float(chdtrc(2 * len(chances), -2 * np.log(np.maximum(chances, 1e-300)).sum()))


def power(draws: npt.ArrayLike, share: npt.ArrayLike, level: float, truth: npt.ArrayLike) -> Floats:
    """The chance that a cell's test refuses its `share` at `level` where the draws follow `truth`."""
    low, high = limits(draws, share, level)
    return np.minimum(1.0, at_most(low, draws, truth) + at_least(high, draws, truth))


def limits(draws: npt.ArrayLike, share: npt.ArrayLike, level: float) -> tuple[Floats, Floats]:
    """The largest count that is refused as too small (-1 where there is none), and the smallest as too large."""
    n, p = np.broadcast_arrays(np.asarray(draws, float), np.asarray(share, float))
    low = _last(lambda k: at_most(k, n, p) < level / 2, n)
    return low, n - _last(lambda k: at_least(n - k, n, p) < level / 2, n)


def _last(refused: Callable[[Floats], npt.NDArray[np.bool_]], n: Floats) -> Floats:
    """For each cell the largest k in [-1, n] that is refused, where every smaller one is."""
    below, above = np.full(n.shape, -1.0), n + 1
    for _ in range(int(n.max()).bit_length() + 1):
        middle = np.floor((below + above) / 2)
        inside = (middle > below) & (middle < above)
        yes = refused(middle) & inside
        below, above = np.where(yes, middle, below), np.where(inside & ~yes, middle, above)
    return below


def shows(
    draws: npt.ArrayLike, share: npt.ArrayLike, level: float, bias: npt.ArrayLike
) -> npt.NDArray[np.bool_]:
    """Whether each cell's test overlooks such a bias, up or down, with chance `MISS` at most."""
    n, p, moved = np.broadcast_arrays(
        np.asarray(draws, float), np.asarray(share, float), np.asarray(bias, float)
    )
    return _shows(n, p, limits(n, p, level), moved)


def _shows(n: Floats, p: Floats, refused: tuple[Floats, Floats], bias: Floats) -> npt.NDArray[np.bool_]:
    """The same for counts that are refused already; a cell cannot lose more than it has, nor pass 1."""
    low, high = refused
    more, less = np.minimum(p + bias, 1.0), np.maximum(p - bias, 0.0)
    up = at_most(high - 1, n, more) - at_most(low, n, more) <= MISS
    down = at_least(low + 1, n, less) - at_least(high, n, less) <= MISS
    return (up | (p + bias > 1)) & (down | (p < bias))


def smallest(draws: npt.ArrayLike, share: npt.ArrayLike, level: float) -> Floats:
    """The smallest bias, up or down, that each cell's test overlooks with chance `MISS` at most; 1 where none."""
    n, p = np.broadcast_arrays(np.asarray(draws, float), np.asarray(share, float))
    refused = limits(n, p, level)
    below, above = np.full(p.shape, -12.0), np.zeros(p.shape)
    for _ in range(25):
        middle = (below + above) / 2
        yes = _shows(n, p, refused, 10.0**middle)
        below, above = np.where(yes, below, middle), np.where(yes, middle, above)
    return np.asarray(10.0**above)


def enough(share: npt.ArrayLike, level: float, bias: float) -> int:
    """Draws after which such a bias of any of these cells is overlooked with chance `MISS` at most.

    The normal law says about how many, and a few more are added until the exact tails agree.
    """
    p = np.unique(np.asarray(share, float))
    spread = np.sqrt(p * (1 - p)).max()
    draws = math.ceil(((ndtri(level / 2) + ndtri(MISS)) * spread / bias) ** 2 - math.log(MISS) / bias)
    while not shows(draws, p, level, bias).all():
        draws = math.ceil(draws * 1.01)
    return draws
