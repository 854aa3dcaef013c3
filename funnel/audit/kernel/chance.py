"""How likely chance alone is to stray so far: one bound, true of every finite number of draws.

T = Σ K ln(K/E) over outcomes, K how often each was drawn and E how often it is expected, both of one sum.
Theorem 2 (Agrawal, Finite-Sample Concentration of the Multinomial in Relative Entropy, IEEE Transactions on Information
    Theory 2020). Of draws that are independent and alike, E e^(λT) <= (1-λ)^-d for 0 <= λ < 1, d one less than there
    are outcomes. Independent tables multiply, so d adds up; and λ = 1 - d/t shows P(T >= t) <= e^(d-t) (t/d)^d, t > d.
Lemma 4. The same holds of independent draws that are not alike, with the sum of their chances as E: two draws' chances
    replaced by their mean do not lower E e^(λT). For given the rest, e^(λT) is, up to a factor, h_i h_j where the two
    draws fall on i ≠ j, and at least h_i² where both fall on i, since k ln(k/E) is convex in k; so it is a positive
    semidefinite form, by whose value at half the difference of the chances the mean exceeds.
Which outcomes count as one may depend on E, never on K.
"""

from __future__ import annotations

import math

import numpy as np

from funnel.audit.kernel.exact import FloatArray, IntArray

FALSE_ALARM = 1e-9
"""Chance with which an honest release may fail a claim, at most. What is no number passes none: `not chance >=`.

In an audit that a person asks for. A run goes on, or what it publishes would be drawn from a law that is cut off."""
_POOLED = 5.0
"""Outcomes of one row that are expected less often count as one, or the many would hide what happens to the few."""


def strays(expected: FloatArray, observed: IntArray) -> tuple[float, int]:
    """A bound of the chance to stray so far, and d. Rows are independent tables, (m, b), each sums as expected."""
    small = (expected > 0) & (expected < _POOLED)
    means, seen = (
        np.column_stack([np.where(small, 0, one), np.where(small, one, 0).sum(axis=1)])
        for one in (expected, observed)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        strayed = float((seen[seen > 0] * np.log(seen[seen > 0] / means[seen > 0])).sum())
    degrees = int((means > 0).sum() - (means > 0).any(axis=1).sum())
    return bound(strayed, degrees), degrees


def bound(strayed: float, degrees: int) -> float:
    """Theorem 2; 0 only where an outcome without chance was seen: the smallest float bounds what is rarer."""
    if math.isinf(strayed):
        return 0.0
    if strayed <= degrees:
        return 1.0
    least = math.exp(degrees - strayed + (degrees * math.log(strayed / degrees) if degrees else 0))
    return max(least, math.ulp(0.0))
