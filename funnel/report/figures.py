"""Numbers as they are read: how far a report rounds, and how a number becomes text.

Rounding is done once, when the content is composed, so that report.json never says more than report.html.
"""

from __future__ import annotations

import math
from datetime import datetime

FLOOR = 0.001
"""Published beliefs below this (or above 1 - FLOOR) are not told apart."""

Figure = float | None
"""None stands for a figure that is unbounded or may not be told."""


def belief(probability: float, published: bool) -> float:
    """A probability as the content holds it.

    Published: whole percents, tenths below 10 % and above 90 %, 0 or 1 beyond the floor. Full: six decimals.
    """
    if not published:
        return round(probability, 6)
    if probability < FLOOR or probability > 1 - FLOOR:
        return float(round(probability))
    return round(probability, 2 if 0.1 <= probability <= 0.9 else 3)


def around(low: float, high: float, published: bool) -> list[float]:
    """An interval of probabilities rounded outwards, so that what is promised is not overstated."""
    digits = 3 if published else 6
    step = 10**digits
    return [math.floor(low * step + 1e-9) / step, min(math.ceil(high * step - 1e-9) / step, 1.0)]


def share(fraction: float, published: bool) -> float:
    """A share of records: published to 0.1 %, in full to six decimals."""
    return round(fraction, 3 if published else 6)


def nats(information: float) -> float:
    """An amount of information or a leakage at four decimals, rounded up (a leakage is never understated)."""
    return math.ceil(information * 1e4 - 1e-6) / 1e4 + 0.0


def finite(value: object) -> Figure:
    """A number of the manifest; None where it is absent, null or infinite (also when written as text)."""
    if value is None:
        return None
    number = float(str(value))
    return number if math.isfinite(number) else None


def belief_text(value: float, published: bool) -> str:
    """`46%`, `3.1%`; published figures at the floor are `below 0.1%` or `above 99.9%`."""
    if published and not FLOOR <= value <= 1 - FLOOR:
        return "below 0.1%" if value < 0.5 else "above 99.9%"
    digits = (0 if 0.1 <= value <= 0.9 else 1) if published else 2
    return f"{100 * value:.{digits}f}%"


def share_text(value: float) -> str:
    """`12.3%`."""
    return f"{100 * value:.1f}%"


def nats_text(value: Figure) -> str:
    """`0.9994`, `0`, or `unbounded`."""
    if value is None:
        return "unbounded"
    return f"{value:.4f}" if value else "0"


def epsilon_text(value: float) -> str:
    """ε as it was written: `1`, `0.5`."""
    return f"{value:g}"


def factor_text(exponent: float) -> str:
    """e^exponent rounded up to three significant digits: `2.72` for 1, so that `at most` stays true."""
    factor = math.exp(min(exponent, 700.0))
    if factor >= 1e6:
        return f"{factor:.1e}".replace("e+", " × 10^")
    step = 10.0 ** (2 - math.floor(math.log10(factor)))
    rounded = math.ceil(factor * step - 1e-9) / step
    return f"{rounded:,.2f}" if rounded < 10 else f"{rounded:,.1f}" if rounded < 100 else f"{rounded:,.0f}"


def power_text(bits: int) -> str:
    """`2¹⁶`."""
    return "2" + str(bits).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def count_text(number: int) -> str:
    """`32,561`."""
    return f"{number:,}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 value`, `16 values`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def date_text(created: str) -> str:
    """`21 November 2026, 11:20 UTC` from ISO time, whatever the locale."""
    moment = datetime.fromisoformat(created.replace("Z", "+00:00"))
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC"
