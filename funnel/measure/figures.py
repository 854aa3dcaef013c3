"""Figures for publication: four decimals or fewer, rounded to the side that claims no more than is so."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from funnel.format.manifest import DECIMALS
from funnel.measure.exact import Epsilon, log_above


def round_up(value: float, decimals: int = DECIMALS) -> float:
    """The smallest decimal fraction at or above the decimal that is printed for `value`."""
    return _rounded(value, decimals, ROUND_CEILING)


def round_to(value: float, decimals: int = DECIMALS) -> float:
    """The nearest decimal fraction, ties to even."""
    return _rounded(value, decimals, ROUND_HALF_EVEN)


def spelt(figure: float, decimals: int = DECIMALS) -> str:
    """A stated figure with so many decimals, or all that it has: where ε itself is stated, that may be more."""
    written = Decimal(repr(float(figure)))
    own = format(written, "f").partition(".")[2].rstrip("0")
    return f"{written:.{max(decimals, len(own))}f}"


def leakage_figure(
    ratio: Fraction | None, epsilon: float | None = None, decimals: int = DECIMALS
) -> float | None:
    """ln(ratio) in nats for publication: an upper bound with so many decimals, None for an infinite ratio.

    It is `epsilon` itself where rounding up would pass an epsilon that the exact ratio does not pass.
    """
    if ratio is None:
        return None
    figure = round_up(log_above(ratio), decimals)
    if epsilon is not None and figure > epsilon and ratio <= Epsilon.of(epsilon).ratio_below():
        return float(epsilon)
    return figure


def _rounded(value: float, decimals: int, direction: str) -> float:
    return float(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding=direction))
