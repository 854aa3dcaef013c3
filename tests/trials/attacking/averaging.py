"""Whoever reads what commands print, however often, and averages it: nothing is won where noise is drawn once.

A program prints the entropy of a public column of two values, to a few digits. Each print gives back the smaller count,
and the mean over all prints is better than one by the root of their number, if each has noise of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

_STEPS = 60


@dataclass(frozen=True)
class Averaged:
    """The smaller of two counts, as far as anybody can tell from what was printed, and its standard error."""

    count: float
    error: float


def averaged(entropies: Sequence[float], rows: int) -> Averaged:
    """From the entropies H(X) in nats that commands printed of a column of two values, over so many rows."""
    found = [rows * smaller(entropy) for entropy in entropies]
    error = stdev(found) / math.sqrt(len(found)) if len(found) > 1 else 0.0
    return Averaged(fmean(found), error)


def smaller(entropy: float) -> float:
    """The p <= 1/2 with -p ln p - (1-p) ln(1-p) = entropy, by bisection; 1/2 where rounding leaves none."""
    low, high = 0.0, 0.5
    for _ in range(_STEPS):
        p = (low + high) / 2
        low, high = (p, high) if p > 0 and _entropy(p) < entropy else (low, p)
    return (low + high) / 2


def _entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)
