"""Tests of fit: how likely chance alone is to stray so far."""

from __future__ import annotations

import math

import numpy as np

from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.verdict import Broken
from funnel.format import draws

FALSE_ALARM = 1e-9
"""Chance with which an honest release may fail a test of fit."""
TOO_EVEN = 1e-12
"""The same for draws that follow the chances too closely to have been drawn at all."""
_EXPECTED = 10.0
"""Cells with a smaller expected count are pooled."""
_CORRECTION = 0.25
"""Over E: by how much G exceeds its chi-square; 1/6 in mean (Williams 1976), 0.22 in spread at E = 10."""
_DEGREES_EVEN = 30


def beyond(degrees: float, value: float) -> float:
    """P(χ² > value), the upper incomplete gamma function Q(degrees/2, value/2); within 10^-9 of itself.

    By the series of P below the mean, and above it by Lentz's continued fraction of Q (Press et al., Numerical Recipes,
    section 6.2).
    """
    a, x = degrees / 2, value / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        while term > total * 1e-17:
            a += 1
            term *= x / a
            total += term
        return 1 - front * total
    b = x + 1 - a
    c, d = 1e300, 1 / b
    fraction, step, n = d, 0.0, 0
    while abs(step - 1) > 1e-15:
        n += 1
        b += 2
        d = 1 / (b - n * (n - a) * d)
        c = b - n * (n - a) / c
        step = c * d
        fraction *= step
    return front * fraction


class Fit:
    """A G test (likelihood ratio) summed over groups of cells, each group with a given total."""

    def __init__(self) -> None:
        self.statistic, self.degrees, self._excess = 0.0, 0, 0.0

    def add(self, expected: FloatArray, observed: IntArray) -> None:
        """One group: expected and observed counts (m,) with equal sums; cells below 10 are joined into one."""
        order = np.argsort(expected, kind="stable")
        means, counts = expected[order], observed[order]
        small = int(np.searchsorted(means, _EXPECTED))
        if 0 < small < len(means) and means[:small].sum() < _EXPECTED:
            small += 1
        if small:
            means, counts = (np.append(one[:small].sum(), one[small:]) for one in (means, counts))
        if len(means) > 1:
            seen = counts > 0
            self.statistic += 2 * float((counts[seen] * np.log(counts[seen] / means[seen])).sum())
            self.degrees += len(means) - 1
            self._excess += _CORRECTION * float((1 / means).sum())

    def refuse(self, what: str, *, even: bool) -> float:
        """The chance of a fit this bad. Raises Broken where that is tiny; with `even`, also for a fit too good.

        Nothing that is no number passes: hence `not worse >=`.
        """
        if not self.degrees:
            return 1.0
        worse = beyond(self.degrees, self.statistic / (1 + self._excess / self.degrees))
        better = 1 - beyond(self.degrees, self.statistic)
        if not worse >= FALSE_ALARM:
            raise Broken(draws.NAME, f"{what} does not follow its chances", f"p >= {FALSE_ALARM}", f"p = {worse:.2g}")
        if even and self.degrees >= _DEGREES_EVEN and not better >= TOO_EVEN:
            raise Broken(draws.NAME, f"{what} is too even to be random", f"p >= {TOO_EVEN}", f"p = {better:.2g}")
        return worse
