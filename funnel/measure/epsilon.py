"""One exact ε: the decimal that was written, and e^ε from below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from funnel.measure.exact import exp_below, rational


@dataclass(frozen=True, order=True)
class Epsilon:
    """A bound ε >= 0 in nats, exactly: 0.1 is one tenth, not the double next to it.

    Whatever decides anything compares rationals with `ratio_below()`. Floats are for searches, whose finds are
    measured afterwards.
    """

    nats: Fraction

    def __post_init__(self) -> None:
        if self.nats < 0:
            raise ValueError("a bound of fewer than zero nats")

    @classmethod
    def of(cls, written: float) -> Epsilon:
        """The ε that a policy or a file writes as this number."""
        return cls(rational(written))

    def ratio_below(self) -> Fraction:
        """A rational at or below e^ε, within a factor 1 - 10^-50: a ratio held to it keeps ε."""
        return exp_below(self.nats)

    def factor(self) -> float:
        """e^ε as a double, for a search alone: it may lie on either side."""
        return math.exp(self.nats)
