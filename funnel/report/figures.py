"""Numbers as they are read: how far a report rounds, and how a number becomes text.

Rounding is done once, when the content is composed, so that report.json never says more than report.html.
"""

from __future__ import annotations

import math
from datetime import datetime

FLOOR = 0.001
"""Published beliefs below this (or above 1 - FLOOR) are not told apart."""

STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Steps to which published shares and beliefs are rounded."""

EXACT = 1e-6
"""The step of a full report."""

Figure = float | None
"""None stands for a figure that is unbounded or may not be told."""


def step(minimum: int, rows: int) -> float:
    """The step of published shares of `rows` records: one step is `minimum` records or more, and 0.1 % or more."""
    return next((one for one in STEPS if one * rows >= minimum), STEPS[-1])


def belief(probability: float, published: bool, step: float = FLOOR) -> float:
    """A probability as the content holds it.

    Published: whole percents, tenths below 10 % and above 90 %, coarser where `step` is, and 0 or 1 within a
    step of either. Full: six decimals.
    """
    if not published:
        return round(probability, 6)
    if probability < step:
        return 0.0
    if probability > 1 - step:
        return 1.0
    return share(probability, max(step, 0.01 if 0.1 <= probability <= 0.9 else FLOOR))


def around(low: float, high: float, step: float) -> list[float]:
    """An interval of probabilities rounded outwards, so that what is promised is not overstated."""
    least, most = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return [round(least, 6), min(round(most, 6), 1.0)]


def share(fraction: float, step: float) -> float:
    """A share of records to the nearest multiple of `step`."""
    return round(round(fraction / step) * step, 6) + 0.0


def nats(information: float, grain: float = 1e-4) -> float:
    """Information or leakage as a multiple of `grain`, rounded up (a leakage is never understated)."""
    return round(math.ceil(information / grain - 1e-6) * grain, 6) + 0.0


def finite(value: object) -> Figure:
    """A number of the manifest; None where it is absent, null or infinite (also when written as text)."""
    if value is None:
        return None
    number = float(str(value))
    return number if math.isfinite(number) else None


def belief_text(value: float, published: bool, step: float = FLOOR) -> str:
    """`46%`, `3.1%`; published figures within a step of 0 or 1 are `below 0.1%` or `above 99.9%`."""
    if published and value in (0.0, 1.0):
        return f"above {percent_text(1 - step)}" if value else f"below {percent_text(step)}"
    digits = (0 if step >= 0.01 or 0.1 <= value <= 0.9 else 1) if published else 2
    return f"{100 * value:.{digits}f}%"


def percent_text(fraction: float) -> str:
    """`0.1%`, `5%`."""
    return f"{100 * fraction:.4g}%"


def least_text(value: float, step: float = FLOOR) -> str:
    """`12.3%`, but `below 0.1%` for what is less than a step: a positive share is never called 0."""
    return f"below {percent_text(step)}" if value < step - 1e-9 else share_text(value)


def most_text(value: float) -> str:
    """`12.3%`, rounded up, so that `no more than` stays true of a figure that was rounded at four decimals."""
    return share_text(min(math.ceil(1000 * (value + 5e-5) - 1e-9) / 1000, 1.0))


def points_text(difference: float) -> str:
    """A difference of two shares: `2.1 percentage points`."""
    return f"{100 * difference:.1f} percentage points"


def nats_unit(value: float) -> str:
    """ε or a multiple of it: `1 nat`, `0.5 nats`."""
    return f"{epsilon_text(value)} {'nat' if value == 1 else 'nats'}"


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
