"""What unary encoding tells, in nats: sums over 2^a sets, done on a grid with a certified error.

Let bits be 1 with chance q each, whatever x. Seen against these, the chance of a set y given a distribution p of
values is r0 + (r1 - r0) W with W the probability of the values that y holds, r1 = present/q and
r0 = (1 - present)/(1 - q). So both informations are differences of means of ψ(t) = t ln t. Splitting each step of W
between the two next grid points keeps every mean and spreads W, so that the mean of the convex ψ can only rise:
each is computed from above, and by at most ½ max ψ'' (r1 - r0)² times the variance added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray

_ERROR = 1e-9
"""Nats of error that a grid aims at."""
_FINEST = 1 << 20
_COARSEST = 1 << 10
_WORK = 1 << 30
"""Most steps of all grids together."""


@dataclass(frozen=True)
class Between:
    """A number of nats between two proven bounds."""

    low: float
    high: float


def public_information(prior: FloatArray, present: float, absent: float) -> Between:
    """I(X;Y) for P(x) = prior (a,), bits that are 1 with chance `present` at x and `absent` elsewhere."""
    inside, outside = present / absent, (1 - present) / (1 - absent)
    noise = present * math.log(inside) + (1 - present) * math.log(outside)
    above, error = _mean(prior, absent, inside, outside, _cells(len(prior), 1, absent, inside, outside))
    return Between(max(noise - above, 0.0), max(noise - above + error, 0.0))


def secret_information(shares: FloatArray, present: float, absent: float) -> Between:
    """I(S;Y) for the joint distribution `shares` (c, a) of S and X."""
    inside, outside = present / absent, (1 - present) / (1 - absent)
    cells = _cells(shares.shape[1], len(shares) + 1, absent, inside, outside)
    by_secret = shares.sum(axis=1)
    whole, spare = _mean(shares.sum(axis=0), absent, inside, outside, cells)
    parts = [_mean(row / row.sum(), absent, inside, outside, cells) for row in shares]
    above = float(by_secret @ np.array([mean for mean, _ in parts]))
    error = float(by_secret @ np.array([error for _, error in parts]))
    return Between(max(above - error - whole, 0.0), max(above - whole + spare, 0.0))


def _mean(p: FloatArray, q: float, inside: float, outside: float, cells: int) -> tuple[float, float]:
    """E[ψ] from above, for values with probabilities p (a,), and how far above it may be."""
    gain, places = inside - outside, p[p > 0] * cells
    chances = np.zeros(cells + len(places) + 2)
    chances[0] = 1.0
    added = 0.0
    for place in places.tolist():
        step = int(place)
        part = place - step
        moved = (1 - q) * chances
        moved[step:] += q * (1 - part) * chances[: len(chances) - step]
        moved[step + 1 :] += q * part * chances[: len(chances) - step - 1]
        chances, added = moved, added + q * part * (1 - part)
    likelihood = outside + gain * np.arange(len(chances)) / cells
    error = 0.5 * gain**2 / min(inside, outside) * added / cells**2
    return float(chances @ (likelihood * np.log(likelihood))), error


def _cells(values: int, grids: int, q: float, inside: float, outside: float) -> int:
    """Grid points that keep the error small, as far as the work allows: each value adds at most q/4 cells²."""
    curve = (inside - outside) ** 2 / min(inside, outside) * q * values / 8
    wanted = 1 << max(math.ceil(math.log2(max(curve / _ERROR, 1.0)) / 2), 0)
    return int(min(max(wanted, _COARSEST), _FINEST, max(_WORK // (values * grids), _COARSEST)))
