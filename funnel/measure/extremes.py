"""Worst distributions in a ball of Rényi divergence, in floating point: a guide for what is then proved.

Least mean of a gap. Let z >= 0 and D_α(P||R) <= D. Hölder's inequality, applied to
Σ P z^r = Σ (P^α R^{1-α})^{1/α} (R z)^r with r = (α-1)/α (reversed for α < 1, a limit for α = 1), gives

    R·z >= e^{-D} M_r(z; P),    M_r the power mean with weights P (the geometric mean at α = 1),

with equality at R ∝ P z^{-1/α}. For a gap g >= 0 (top - v, or v - bottom) and any τ >= 0 take z = g + τ:
R·g >= e^{-D} M_r(g + τ; P) - τ, equal to the minimum at the best τ, where D_α(P||R) = D for R ∝ P (g+τ)^{-1/α};
when already τ = 0 has less divergence, what is left of R lies on values with g = 0 and P = 0.

Pairs. With h(D) = (e^{rD}-1)/r the conditionals of two secrets, with chances w1 and w2, occur together in
F exactly when w1 h(D1) + w2 h(D2) <= h(B): fix R1, R2, keep P̂ for all other secrets, and choose the masses of
the secrets best, γ_s ∝ w_s e^{r D_s} (for α = 2: w1 √χ1 + w2 √χ2 + 1 - w1 - w2 <= e^{B/2}). For α >= 1/2 the
function E(h) = e^{-D} is convex and that set of pairs too, so that the worst pair is found by dividing h(B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.measure.ball import Ball, RowExtremes
from funnel.measure.uncertainty import divergence_at

_FLOOR = 1e-30
"""The smallest τ, as a share of the largest gap; a smaller one changes no mean that floats can tell."""
_NOTHING = 1e-50
"""A mean gap below this is that of a row without one."""
_NEWTON = 60
_CLOSE = 1e-9
"""Relative accuracy of a divergence that is solved for; means err by its square."""
_DIVISIONS = 40
_EDGE = 14.0
"""Largest ln tan φ, where the two secrets get the shares sin²φ and cos²φ of the budget."""
_EVEN = 1e-8
"""Accuracy of ln of the quotient of marginal gains; ratios err by its square."""
FARTHEST = 40.0
"""Divergence, in nats, beyond which distributions are taken to be free: what is left is below e^-40."""
Halves = tuple[FloatArray, FloatArray]
CHUNK = 1 << 16
"""About so many numbers per array are searched at a time: they stay in the cache."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Candidates (k,) for the worst y, s = `first` and s' = `second`.

    `divergences`, `shifts` τ and `means` M_r(g+τ) have one array for s and one for s'. `ratio` is R1·v_s / R2·v_s' at
    the extremes R1, R2 that these describe.
    """

    y: IntArray
    first: IntArray
    second: IntArray
    divergences: Halves
    shifts: Halves
    means: Halves
    ratio: FloatArray


@dataclass(frozen=True, eq=False)
class Moments:
    """Of R = `tilted` ∝ P (g+τ)^{-1/α}: divergence D_α(P||R), its derivative in ln τ, and M_r(g+τ; P)/τ."""

    divergence: FloatArray
    slope: FloatArray
    mean: FloatArray
    tilted: FloatArray


def moments(order: float, chances: FloatArray, gaps: FloatArray, shift: FloatArray) -> Moments:
    """For P (k, m), gaps (k, m), τ (k,) and z = 1+g/τ: D = ln ΣP z^{-1/α} + ln ΣP z^r / (α-1) and M = (ΣP z^r)^{1/r}.

    Both are evaluated so that a divergence near zero keeps its relative accuracy: what cancels is left out.
    """
    scaled = gaps / shift[:, None]
    if order == 2:
        root = np.sqrt(1 + scaled)
        tilted = chances / root
        t, q = tilted.sum(axis=1), (chances * root).sum(axis=1)
        excess = (tilted * (root - q[:, None]) ** 2).sum(axis=1) / q
        tilted /= t[:, None]
        return Moments(np.log1p(excess), _slope(order, tilted, scaled), q * q, tilted)
    logs = np.log1p(scaled)
    centre = (chances * logs).sum(axis=1)
    spread, exponent = logs - centre[:, None], (order - 1) / order
    divergence, tilted = _log_mean(chances, -spread / order)
    slope = _slope(order, tilted, scaled)
    if exponent == 0:
        return Moments(divergence, slope, np.exp(centre), tilted)
    raised, _ = _log_mean(chances, exponent * spread)
    return Moments(divergence + raised / (order - 1), slope, np.exp(centre + raised / exponent), tilted)


def _slope(order: float, tilted: FloatArray, scaled: FloatArray) -> FloatArray:
    """dD/d ln τ = (1/(R·z) - R·(1/z))/α at R = tilted and z = 1 + scaled, written as one sum without cancellation."""
    mean = (tilted * scaled).sum(axis=1)[:, None]
    return np.asarray(-(tilted * ((scaled - mean) / (1 + mean)) ** 2 / (1 + scaled)).sum(axis=1) / order)


def _log_mean(chances: FloatArray, exponents: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln Σ P e^x (k,) for x (k, m) with Σ P x = 0, and the distributions ∝ P e^x (k, m)."""
    largest = exponents.max(axis=1)
    tilted = chances * np.exp(exponents - largest[:, None])
    total = np.maximum(tilted.sum(axis=1), 1e-300)
    small = np.clip(exponents, -0.5, 0.5)
    curved = np.where(
        abs(small) < 1e-3, small**2 * (1 / 2 + small / 6 + small**2 / 24), np.expm1(small) - small
    )
    direct = largest + np.log(total)
    near = abs(exponents).max(axis=1) < 0.5
    return np.where(near, np.log1p((chances * curved).sum(axis=1)), direct), tilted / total[:, None]


def shifts(
    order: float,
    chances: FloatArray,
    gaps: FloatArray,
    divergence: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray:
    """The τ (k,) at which R ∝ P (g+τ)^{-1/α} has the divergence given, for P (k, m), gaps (k, m), divergences (k,).

    The smallest τ where every one has less. D falls with τ; Newton on ln D over ln τ, halving when it leaves
    the bracket. D <= ln(1 + g_max/τ)/α gives an upper end.
    """
    largest = np.maximum(gaps.max(axis=1), _FLOOR)
    low = np.log(largest) + np.log(_FLOOR)
    with np.errstate(over="ignore"):
        high = np.log(largest) - np.log(np.maximum(np.expm1(np.minimum(order * divergence, 60.0)), 1e-200))
    high = np.maximum(high, low)
    at = high.copy() if start is None else np.clip(np.log(start), low, high)
    active = np.flatnonzero(
        (moments(order, chances, gaps, np.exp(low)).divergence > divergence) & (divergence > 0)
    )
    settled = np.where((divergence > 0), low, high)
    for _ in range(_NEWTON):
        if not active.size:
            break
        now = moments(order, chances[active], gaps[active], np.exp(at[active]))
        wanted, found = divergence[active], np.maximum(now.divergence, 1e-300)
        beyond = found > wanted
        low[active] = np.where(beyond, at[active], low[active])
        high[active] = np.where(beyond, high[active], at[active])
        step = at[active] - np.log(found / wanted) * found / np.minimum(now.slope, -1e-300)
        inside = (step > low[active]) & (step < high[active])
        settled[active] = at[active]
        at[active] = np.where(inside, step, (low[active] + high[active]) / 2)
        active = active[(abs(found - wanted) > _CLOSE * wanted) & (high[active] - low[active] > 1e-13)]
    return np.asarray(np.exp(settled))


def paired(ball: Ball, rows: RowExtremes, y: IntArray, first: IntArray, second: IntArray) -> Pairs:
    """For each (y, s, s') the pair of F that maximises R1·v_s / R2·v_s', up to second order in the search's error.

    For α < 1/2 both take the whole budget, which is more than they can have together.
    """
    one, two = _Spending(ball, rows.above, y, first), _Spending(ball, rows.below, y, second)
    start, base = rows.peak[y, first], rows.base[y, second]
    if 2 * ball.order < 1:
        one.spend(np.ones(len(y)))
        two.spend(np.ones(len(y)))
    else:
        _divide(one, two, start, base)
    ratio = (start - one.least) / np.maximum(base + two.least, 1e-300)
    halves = (one.divergence, two.divergence), (one.shift, two.shift), (one.mean, two.mean)
    return Pairs(y, first, second, *halves, ratio)


def whole(ball: Ball, rows: RowExtremes) -> list[tuple[FloatArray, FloatArray]]:
    """Shifts and means, (b, c) each, for gaps above and below when a secret has the whole radius to itself."""
    shape = rows.top.shape
    y, s = (np.ravel(index) for index in np.indices(shape))
    sides = [_Spending(ball, gaps, y, s) for gaps in (rows.above, rows.below)]
    for side in sides:
        side.spend(np.ones(len(y)))
    return [(side.shift.reshape(shape), side.mean.reshape(shape)) for side in sides]


class _Spending:
    """One secret's half of many pairs: the least mean gap it reaches with a share of the budget."""

    def __init__(self, ball: Ball, gaps: FloatArray, y: IntArray, s: IntArray) -> None:
        self.order, self.exponent = float(ball.order), ball.exponent
        self.chances, self.gaps = ball.given[s], gaps[y, s]
        self.whole = ball.spendable[s]
        self.share = ball.shares[s]
        self.divergence, self.shift = np.zeros(len(y)), np.full(len(y), np.nan)
        self.mean, self.least, self.gain = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y))

    def spend(self, part: FloatArray, where: Any = slice(None)) -> None:
        """Set h to these parts (k,) of the whole budget and find the extreme for them."""
        spent = self.whole[where] * part
        divergence = np.minimum(divergence_at(spent, self.exponent), FARTHEST)
        chances, gaps, known = self.chances[where], self.gaps[where], self.shift[where]
        start = None if np.isnan(known).any() else known
        shift = shifts(self.order, chances, gaps, divergence, start)
        mean = shift * moments(self.order, chances, gaps, shift).mean
        self.divergence[where], self.shift[where], self.mean[where] = divergence, shift, mean
        self.least[where] = np.maximum(mean * np.exp(-divergence) - shift, 0.0)
        gain = np.log(np.maximum(mean / self.share[where], 1e-300)) - (1 + self.exponent) * divergence
        useful = (self.exponent * spent > -1) & (mean > _NOTHING)  # h cannot be more, the row is not constant
        self.gain[where] = np.where(useful, gain, -2000.0)


def _divide(one: _Spending, two: _Spending, start: FloatArray, base: FloatArray) -> None:
    """Divide the budget between the two secrets so that both gain the same by a little more of it.

    The unknown is ψ = ln tan φ; the logarithm of the gains' quotient falls in ψ with a slope near -1, so a
    bracketed secant is quick. It is the derivative of a quasi-concave ratio.
    """
    active, psi = np.arange(len(start)), np.zeros(len(start))
    low, high = np.full(len(start), -_EDGE), np.full(len(start), _EDGE)
    slope, before, last = -np.ones(len(start)), np.full(len(start), np.nan), np.full(len(start), np.nan)
    for _ in range(_DIVISIONS):
        part = 1 / (1 + np.exp(-2 * psi[active]))
        one.spend(part, active)
        two.spend(1 / (1 + np.exp(2 * psi[active])), active)
        ratio = (start[active] - one.least[active]) / np.maximum(base[active] + two.least[active], 1e-300)
        gain = one.gain[active] - two.gain[active] - np.log(np.maximum(ratio, 1e-300))
        low[active] = np.where(gain > 0, psi[active], low[active])
        high[active] = np.where(gain > 0, high[active], psi[active])
        moved = psi[active] - before[active]
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (gain - last[active]) / moved
        slope[active] = np.where(
            np.isfinite(secant) & (secant < -0.05) & (secant > -20), secant, slope[active]
        )
        before[active], last[active] = psi[active], gain
        step = psi[active] - gain / slope[active]
        inside = (step > low[active]) & (step < high[active])
        following = np.where(inside, step, (low[active] + high[active]) / 2)
        go_on = (abs(gain) > _EVEN) & (high[active] - low[active] > 1e-9)
        psi[active] = following
        active = active[go_on]
        if not active.size:
            break
