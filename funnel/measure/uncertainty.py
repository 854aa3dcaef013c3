"""How far the truth may lie from an estimated joint distribution: balls of Rényi divergence ([RLDP] sections 3 and 4).

The set is F = {P : D_α(P̂||P) <= B} over joint distributions of (S, X), with P̂ the shares of a table of counts.
Divergences are in nats. With r = (α-1)/α and h(D) = (e^{rD}-1)/r (h(D) = D for α = 1) everything below is one
formula for all orders; h(D) = 2(e^{D/2}-1) for α = 2.

For noisy counts it is the ball of order 2 that holds the truth in spite of sampling and noise. P are the true chances
of m cells, P̂ = N/n those counted, P̃ the shares of the noisy counts that are kept. With chance 1-β/2 each: χ²(P̂, P)
= Σ (P̂-P)²/P <= r² = q/n, q the quantile of chi-square with m-1 degrees of freedom ([RLDP] eq. 9); and no noise
exceeds t in size. Noisy counts below 2t become zero, so that kept cells K have t true records or more. In the norm
|v|² = Σ v²/P, term by term where both hold:
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
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray

_RAISED = 1e-9
"""Relative; far more than floats lose."""
_DECIMALS = 10**12
_ROUNDING = 1e-13
"""Relative width by which limits are moved outwards; a hundred times what floating point loses in them."""
_HALVINGS = 64
_GRID = 33
_REFINEMENTS = 6
_VANISHED = 740.0
"""ln(ρ/R) from which R is zero for every purpose."""
_CLOSE = 1e-9
"""Relative accuracy of `rad`, on the side of the larger."""
_SUBSETS = 20
"""Up to this many values every sum of a subset is looked at."""


def radius(confidence: float, order: float, rows: int, cells: int) -> float:
    """B in nats such that F holds the truth with this confidence, from n = rows records on a = cells cells.

    Order 2: D_2 = ln(1 + χ²/n) and χ² = n Σ (P̂-P)²/P is chi-square with a-1 degrees of freedom ([RLDP] eq. 9).
    Other orders: 2n D_α/α is chi-square with as many degrees in the limit of many records, and the two agree
    to first order in 1/n. Both are asymptotic statements. Rounded up at the 12th decimal. ValueError where
    the confidence is not in [0, 1) or the order not positive.
    """
    from scipy.special import chdtri, gammaincinv

    if not 0 <= confidence < 1 or not 0 < order < math.inf or rows < 1 or cells < 1:
        raise ValueError(
            "a radius needs a confidence in [0, 1), a positive order, and at least one row and cell"
        )
    # Whichever tail is the smaller one keeps its digits.
    if confidence < 0.5:
        whole = 2 * float(gammaincinv((cells - 1) / 2, confidence)) if cells > 1 else 0.0
    else:
        whole = float(chdtri(cells - 1, 1 - confidence)) if cells > 1 else 0.0
    quantile = whole / rows
    exact = math.log1p(quantile) if order == 2 else order / 2 * quantile
    return math.ceil(exact * _DECIMALS) / _DECIMALS


def project(radius: float, order: float, chances: npt.ArrayLike) -> FloatArray:
    """B_s such that P_{X|s} takes exactly the values {R : D_α(P̂_{X|s}||R) <= B_s} over F, for P̂_s = chances > 0.

    [RLDP] Theorem 1: h(B_s) = h(B)/P̂_s. For α < 1 it is infinite where h(B)/P̂_s reaches the limit 1/|r| of h:
    then nothing is known about P_{X|s}. Rounded up by a relative 1e-13.
    """
    shares, exponent = np.asarray(chances, float), (order - 1) / order
    if not (shares > 0).all() or radius < 0:
        raise ValueError("a projection needs positive chances and a radius that is not negative")
    return np.asarray(divergence_at(budget(radius, exponent) / shares, exponent) * (1 + _ROUNDING))


def budget(radius: npt.ArrayLike, exponent: float) -> FloatArray:
    """h(B) = (e^{rB}-1)/r in floats, of one B or several."""
    with np.errstate(over="ignore"):
        return np.asarray(
            np.expm1(exponent * np.asarray(radius, float)) / exponent if exponent else radius, float
        )


def divergence_at(spent: npt.ArrayLike, exponent: float) -> FloatArray:
    """The D with h(D) = spent, infinite where h stays below it; the inverse of `budget`."""
    amount = np.asarray(spent, float)
    if exponent == 0:
        return amount
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(np.maximum(exponent * amount, -1.0)) / exponent)


def limits(order: float, radius: npt.ArrayLike, chance: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """L and U: least and greatest R_u over {R : D_α(P̂||R) <= B_s} where P̂_u = chance; arrays broadcast.

    [RLDP] eqs. (26)-(29): the extremes move all other values by one common factor, so they solve
    d_α(ρ||R) = B_s between (ρ, 1-ρ) and (R, 1-R). Closed form for order 2, its smaller root written without
    cancellation; bisection otherwise. L is rounded down and U up, by a relative 1e-13.
    """
    bound, share = (np.array(part, float) for part in np.broadcast_arrays(radius, chance))
    lower = _lower_2(bound, share) if order == 2 else _lower(order, bound, share)
    upper = 1 - (_lower_2(bound, 1 - share) if order == 2 else _lower(order, bound, 1 - share))
    return lower * (1 - _ROUNDING), np.minimum(upper * (1 + _ROUNDING) + np.finfo(float).eps, 1.0)


def _lower_2(bound: FloatArray, share: FloatArray) -> FloatArray:
    """The smaller root R of e^B R² - (e^B+2ρ-1)R + ρ² = 0."""
    excess = np.expm1(np.minimum(bound, 300.0))
    root = np.sqrt(excess * (excess + 4 * share * (1 - share)))
    whole = np.maximum(excess + 2 * share + root, np.finfo(float).tiny)
    return np.asarray(np.where(bound < 300, 2 * share**2 / whole, 0.0))


def _lower(order: float, bound: FloatArray, share: FloatArray) -> FloatArray:
    """The smallest R with d_α(ρ||R) <= B, by bisection on ln(ρ/R)."""
    inside, outside = np.zeros(share.shape), np.full(share.shape, _VANISHED)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        fits = _binary(order, share, middle) <= bound
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    return np.asarray(np.where(inside > _VANISHED - 1, 0.0, share * np.exp(-outside)))


def _binary(order: float, share: FloatArray, lowered: FloatArray) -> FloatArray:
    """d_α(ρ||R) in nats between two-valued distributions, R = ρ e^{-lowered}."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        raised = np.where(share < 1, np.log1p(-share * np.exp(-lowered)) - np.log1p(-share), 0.0)
        if order == 1:
            return share * lowered - (1 - share) * raised
        step = order - 1
        inner = share * np.expm1(step * lowered) + (1 - share) * np.expm1(-step * raised)
        return np.asarray(np.log1p(np.maximum(inner, -1.0)) / step)


def rad(order: float, radius: float, chances: npt.ArrayLike) -> float:
    """max ||P̂_{X|s} - R||_1 over {R : D_α(P̂_{X|s}||R) <= B_s}, for P̂_{X|s} = chances (a,) with B_s = radius.

    [RLDP] eq. (30): 2 max U(ρ) - ρ over the masses ρ of sets of values. Rényi divergence is jointly
    quasi-convex, so U(ρ) - ρ is concave and only the masses next to its peak matter; the peak is (1-√(e^{B_s}-1))/2
    for order 2. With more than 20 values the masses are taken to lie everywhere above the smallest one,
    which can only enlarge the result.
    """
    shares = np.asarray(chances, float)
    shares = shares[shares > 0] if (shares > 0).any() else shares
    least, free = float(shares.min()), len(np.atleast_1d(chances)) > len(shares)
    peak = _peak(order, radius)
    if len(shares) > _SUBSETS:
        masses = np.array([max(peak, 0.0 if free else least)])
    else:
        sums = np.zeros(1)
        for share in shares:
            sums = np.concatenate([sums, sums + share])
        sums = np.unique(np.minimum(sums, 1.0) if free else np.minimum(sums[1:], 1.0))
        place = int(np.searchsorted(sums, peak))
        masses = sums[max(place - 2, 0) : place + 2]
    return float(2 * (limits(order, radius, masses)[1] - masses).max()) * (1 + _CLOSE)


def _peak(order: float, radius: float) -> float:
    """The ρ in [0, 1] at which the concave U(ρ) - ρ is greatest."""
    if order == 2:
        return max((1 - math.sqrt(math.expm1(min(radius, 1.0)))) / 2, 0.0)
    low, high = 0.0, 1.0
    for _ in range(_REFINEMENTS):
        grid = np.linspace(low, high, _GRID)
        best = int((limits(order, radius, grid)[1] - grid).argmax())
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, _GRID - 1)])
    return (low + high) / 2


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
    exact = math.log1p((root + noise) ** 2 + min(gone**2, 1.0)) * (1 + _RAISED)
    return math.ceil(exact * _DECIMALS) / _DECIMALS
