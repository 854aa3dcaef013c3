"""Exact numbers: one ε, its bound e^ε, rationals, and logarithms that name the side they round to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

_DIGITS = 60
_MARGIN = Fraction(1, 10**50)
"""Relative: more than the error of 60 digits, which are read from an exponent cut at as many."""


def rational(number: float) -> Fraction:
    """The decimal that was written, as a rational: 0.1 is one tenth, not the double next to it."""
    return Fraction(repr(float(number)))


def added(*nats: float) -> float:
    """The sum of decimals, and not of the doubles nearest to them; rounded up where no double is it."""
    total = sum(map(rational, nats), Fraction(0))
    nearest = float(total)
    return nearest if rational(nearest) >= total else math.nextafter(nearest, math.inf)


@lru_cache(maxsize=256)
def exp_below(exponent: Fraction) -> Fraction:
    """A rational at or just under e^exponent (exponent >= 0), within a factor 1 - 10^-50.

    Comparing a measured ratio with this instead of e^ε errs on the side of privacy.
    """
    if exponent == 0:
        return Fraction(1)
    context = Context(prec=_DIGITS)
    power = context.exp(context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))
    return Fraction(power) * (1 - _MARGIN)


def log_above(ratio: Fraction | None) -> float:
    """ln(ratio) in nats, rounded up at the 12th decimal; None stands for an infinite ratio."""
    if ratio is None:
        return math.inf
    if ratio == 1:
        return 0.0
    context = Context(prec=_DIGITS)
    value = context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    return float(value.quantize(Decimal("1e-12"), rounding=ROUND_CEILING))


def ends(ball: Any) -> tuple[Fraction, Fraction]:
    """The ends of an enclosure (`flint.arb`), exactly."""
    found = []
    for end in (ball.lower(), ball.upper()):
        mantissa, exponent = map(int, end.man_exp())
        found.append(Fraction(mantissa) * Fraction(2) ** exponent)
    return found[0], found[1]


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
