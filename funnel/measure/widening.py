"""How far the truth may lie from noisy counts: the ball of order 2 that holds it in spite of sampling and noise.

P are the true chances of m cells, P̂ = N/n those counted, P̃ the shares of the noisy counts that are kept. With chance
1-β/2 each: χ²(P̂, P) = Σ (P̂-P)²/P <= r² = q/n, q the quantile of chi-square with m-1 degrees of freedom ([RLDP] eq. 9);
and no noise exceeds t in size. Noisy counts below 2t become zero, so that kept cells K have t true records or more.
In the norm |v|² = Σ v²/P, term by term where both hold:
- (P̂_i - P_i)² <= r² P_i puts P_i at or above the lower root of x² - (2P̂_i + r²)x + P̂_i², which rises with P̂_i, and
  P̂_i >= (Ñ_i - t)/n; so |P̃ - P̂| over K is at most e, with |P̃_i - P̂_i| at an end of P̂_i in (Ñ_i ± t)/n;
- over K, |P̃ - P| <= |P̂ - P| + |P̃ - P̂| <= r + e (Minkowski);
- over the cells Z that became zero, Σ P_i²/P_i = P(Z), and P(Z) <= P̂(Z) + r √P(Z) (Cauchy and Schwarz).
So χ²(P̃, P) <= (r + e)² + P(Z), and D_2(P̃ || P) = ln(1 + χ²).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from funnel.data.joint import IntArray

_DECIMALS = 10**12
_ROUNDING = 1e-9
"""Relative; far more than floats lose."""


def noise_width(rate: Fraction, cells: int, confidence: float) -> int:
    """t: what no noise on any cell exceeds in size, with half of the chance that the confidence leaves."""
    return widest(rate, cells, (1 - confidence) / 2)


def widest(rate: Fraction, cells: int, chance: float) -> int:
    """A t that none of `cells` draws of discrete Laplace noise exceeds in size but with this chance, 0 < chance < 1.

    P(|Z| > t) = 2p^(t+1)/(1+p) with p = e^-rate, added up over the cells, and 1 + p > 1. One draw more than needed
    leaves room for the rounding of the logarithm.
    """
    return math.ceil(math.log(2 * cells / chance) / float(rate)) + 1


def kept(noisy: IntArray, width: int) -> IntArray:
    """The noisy counts (m,) that stay, and zero for those below 2t."""
    return np.where(noisy >= 2 * width, noisy, 0)


def widened(noisy: IntArray, width: int, rows: int, confidence: float) -> float:
    """B in nats such that {P : D_2(P̃ || P) <= B} holds the true distribution with this confidence.

    `noisy` (m,) are all noisy counts of n = `rows` records, `width` is t; P̃ are the shares of `kept`. Infinite
    where nothing is kept. Asymptotic in n as the radius without noise is; rounded up at the 12th decimal.
    """
    from scipy.special import chdtri

    stay = kept(noisy, width)
    total = int(stay.sum())
    if not total or rows < 1:
        return math.inf
    spread = float(chdtri(len(noisy) - 1, (1 - confidence) / 2)) / rows if len(noisy) > 1 else 0.0
    root, there = math.sqrt(spread), stay > 0
    counts = stay[there].astype(float)
    low, high = (counts - width) / rows, (counts + width) / rows
    least = (2 * low + spread - root * np.sqrt(spread + 4 * low)) / 2
    apart = np.maximum(np.abs(counts / total - low), np.abs(counts / total - high))
    if not (least > 0).all():
        return math.inf
    noise = math.sqrt(float((apart**2 / least).sum()))
    lost = min(float(np.maximum(noisy[~there] + width, 0).sum()) / rows, 1.0)
    gone = (root + math.sqrt(spread + 4 * lost)) / 2
    exact = math.log1p((root + noise) ** 2 + min(gone**2, 1.0)) * (1 + _ROUNDING)
    return math.ceil(exact * _DECIMALS) / _DECIMALS
