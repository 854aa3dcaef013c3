"""The chance of every output for each secret value by itself, over all distributions near the estimate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from funnel.audit.ends import depth, lowest
from funnel.audit.fields import IntArray
from funnel.audit.protocols import Block
from funnel.audit.uncertainty import Uncertainty

_BITS = 160

Triple = tuple[int, int, int]
"""An output y and two places in the list of secret values."""


@dataclass(frozen=True, eq=False)
class Apart:
    """Every secret value by itself: certified ends of 2^bits P(y|s) in parts of 2^-160."""

    block: Block
    uncertainty: Uncertainty

    @cached_property
    def rows(self) -> list[IntArray]:
        """W[y, x] over the inputs that can occur with each s, (b, m_s)."""
        reads = self.block.secret is not None
        return [
            self.block.weights[:, one.secret if reads else 0, one.places] for one in self.uncertainty.seen
        ]

    @cached_property
    def lows(self) -> list[list[int]]:
        """At or below P(y|s), by s and y."""
        return [self._lowest(s, rows) for s, rows in enumerate(self.rows)]

    @cached_property
    def highs(self) -> list[list[int]]:
        """At or above P(y|s), by s and y."""
        return [[-low for low in self._lowest(s, -rows)] for s, rows in enumerate(self.rows)]

    def _lowest(self, s: int, rows: IntArray) -> list[int]:
        seen, order = self.uncertainty.seen[s], self.uncertainty.order
        far = depth(rows.astype(float), seen.chances, np.array(float(seen.shrink)), float(order))
        found = (lowest(row, seen, one, order) for row, one in zip(rows, far.tolist(), strict=True))
        return [(low.numerator << _BITS) // low.denominator for low in found]

    def largest(self) -> Fraction | None:
        """The largest quotient of a high and another low; None where a low is zero."""
        worst = Fraction(1)
        for y in range(len(self.block.outputs)):
            highs, lows = [of[y] for of in self.highs], [of[y] for of in self.lows]
            for s, high in enumerate(highs):
                low = min((low for other, low in enumerate(lows) if other != s), default=high)
                if low <= 0 < high:
                    return None
                if high * worst.denominator > worst.numerator * low:
                    worst = Fraction(high, low)
        return worst

    def above(self, ratio: Fraction) -> list[Triple]:
        """(y, s, s') whose quotient is above `ratio`, the largest first; no quotient is infinite.

        The quotients are floats within 10^-15, so none that is left out for being 10^-12 below can be above.
        """
        highs, lows = (np.array(ends, float).T for ends in (self.highs, self.lows))
        quotients = highs[:, :, None] / np.where(lows > 0, lows, np.inf)[:, None, :]
        quotients[:, np.arange(highs.shape[1]), np.arange(highs.shape[1])] = 0
        near = np.argwhere(quotients > float(ratio) * (1 - 1e-12))
        near = near[np.argsort(-quotients[tuple(near.T)], kind="stable")]
        return [
            (y, s, other)
            for y, s, other in near.tolist()
            if self.highs[s][y] * ratio.denominator > ratio.numerator * self.lows[other][y]
        ]
