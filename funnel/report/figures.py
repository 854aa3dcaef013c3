"""Numbers as they are read.

Rounding is done once, when a content is composed, so that report.json never says more than report.html.
"""

from __future__ import annotations

import math
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from funnel.format.manifest import DECIMALS
from funnel.measure.figures import round_up, spelt
from funnel.text import number

Figure = float | None
"""None stands for a figure that is unbounded."""


def nats(value: Figure, decimals: int = DECIMALS) -> str:
    """`0.9994`, `0`, or `unbounded`; of a stated figure all that it has: an ε may have more than its `decimals`."""
    if value is None:
        return "unbounded"
    return spelt(value, decimals) if value else "0"


def leaked(value: Figure) -> str:
    """A leakage as it was measured, in nats rounded up."""
    return nats(None if value is None else round_up(value))


def radius(value: float) -> str:
    """Six digits, rounded down, so that a set of this size lies within the one that the bound is for."""
    return f"{Context(prec=6, rounding=ROUND_FLOOR).create_decimal(repr(value)):.6g}"


def no_less(value: float, digits: int) -> str:
    """So many digits, rounded up, for what is said to be the most."""
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))):,.10g}"


def no_more(value: float, decimals: int) -> str:
    """So many decimals, rounded down, for what is said to be the least."""
    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_FLOOR):.{decimals}f}"


def unit(value: float) -> str:
    """ε or a multiple of it: `1 nat`, `0.5 nats`."""
    return f"{epsilon(value)} {'nat' if value == 1 else 'nats'}"


def epsilon(value: float) -> str:
    """ε as it was written: `1`, `0.5`."""
    return number(value)


def nearest(value: float, decimals: int) -> float:
    """The nearest with so many decimals, but for what is not quite 0 or 1, which `share` and `portion` say of it."""
    rounded = round(float(value), decimals) + 0.0
    if rounded not in (0.0, 1.0) or rounded == value:
        return rounded
    edge = 10.0 ** -(decimals + 1)
    return round(1 - edge if rounded else edge, decimals + 1) if 0 < value < 1 else rounded


def share(value: float, decimals: int = 3) -> str:
    """`12.3%`, but never 0 or 100 for what is not quite that; `12%` or `10%` of what has two decimals or one."""
    if decimals < 3:
        return f"about {100 * value:.0f}%"
    if 0 < value < 0.0005 or 0.9995 <= value < 1:
        return "below 0.1%" if value < 0.5 else "above 99.9%"
    return f"{100 * value:.1f}%"


def percent(fraction: float) -> str:
    """`0.1%`, `5%`."""
    return f"{100 * fraction:.4g}%"


def most(value: float) -> str:
    """`12.3%`, rounded up, so that `no more than` stays true of a figure that was rounded at four decimals."""
    return f"{min(math.ceil(1000 * (value + 5e-5) - 1e-9) / 10, 100.0):.1f}%"


def part(ratio: float) -> str:
    """`12.3%`, rounded up, so that `at most` is true of what was measured."""
    return f"{math.ceil(1000 * ratio - 1e-9) / 10:.1f}%"


def least(ratio: float) -> str:
    """`12.3%`, rounded down, so that `at least` is true of what was measured."""
    return f"{math.floor(1000 * ratio + 1e-9) / 10:.1f}%"


def points(difference: float) -> str:
    """A difference of two shares, rounded up: `2.1 percentage points`."""
    return f"{math.ceil(1000 * difference - 1e-9) / 10:.1f} percentage points"


def factor(exponent: float) -> str:
    """e^exponent rounded up to three significant digits: `2.72` for 1, so that `at most` stays true."""
    number = math.exp(min(exponent, 700.0))
    size = math.floor(math.log10(number))
    if size >= 6:
        return f"{math.ceil(number / 10.0 ** (size - 1)) / 10:.1f} × 10^{size}"
    step = 10.0 ** (2 - size)
    rounded = max(math.ceil(number * step - 1e-9) / step, 1 + (exponent > 0) / step)
    return f"{rounded:,.2f}" if rounded < 10 else f"{rounded:,.1f}" if rounded < 100 else f"{rounded:,.0f}"


def power(bits: int) -> str:
    """`2¹⁶`."""
    return "2" + str(bits).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def date(created: str) -> str:
    """`21 November 2026, 11:20 UTC` from ISO time, whatever the locale."""
    moment = datetime.fromisoformat(created.replace("Z", "+00:00"))
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC"
