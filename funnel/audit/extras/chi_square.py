"""Chances of χ², by the series and the continued fraction of the incomplete gamma function.

Abramowitz and Stegun, Handbook of Mathematical Functions, 6.5.29 and 6.5.31. SciPy has them, too: importing it takes
longer than the audit of a plain release, and with millions of degrees of freedom it errs by several per cent.
"""

from __future__ import annotations

import math

_ENOUGH = 1e-16
"""Relative to the sum so far: what adds less is left out."""
_LEAST = 1e-300
"""Stands for zero in a denominator."""


def tails(degrees: float, statistic: float) -> tuple[float, float]:
    """The chance that χ² of so many degrees of freedom is at most the statistic, and that it is at least that.

    The smaller one has a relative error of 10^-14 times the degrees at most, or of 10^-12.
    """
    shape, point = degrees / 2, statistic / 2
    if point <= 0:
        return 0.0, 1.0
    if not point < math.inf:
        return 1.0, 0.0
    density = math.exp(shape * math.log(point) - point - math.lgamma(shape))
    if point < shape + 1:
        below = min(density * _series(shape, point), 1.0)
        return below, 1 - below
    above = min(density * _fraction(shape, point), 1.0)
    return 1 - above, above


def _series(shape: float, point: float) -> float:
    """Σ x^n / (a (a+1) … (a+n)) over n = 0, 1, …"""
    term = total = 1 / shape
    while term > total * _ENOUGH:
        shape += 1
        term *= point / shape
        total += term
    return total


def _fraction(shape: float, point: float) -> float:
    """1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- …))), by Lentz's method."""
    step, width = 0, point + 1 - shape
    above, below = 1 / _LEAST, 1 / width
    found, change = below, 2.0
    while abs(change - 1) > _ENOUGH * 10:
        step += 1
        part, width = step * (shape - step), width + 2
        below = 1 / (part * below + width or _LEAST)
        above = width + part / above or _LEAST
        change = above * below
        found *= change
    return found
