"""Logarithms and powers on a fixed point of 160 bits: rationals on a stated side of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

from funnel.audit.exact import ExactArray, exp_below

_POINT = 160
_ONE = 1 << _POINT
_STEPS = 8
"""Bits of the tables that logarithms and powers start from."""
_MARGIN = Fraction(1, 1 << 110)
"""Relative; what `_log` and `_power` err by is below 2^-130 for numbers of up to 10^5 bits."""
_WIDE = Fraction(1, 10**89)
"""How far `exp_below` may lie below, and a little more."""
_CONTEXT = Context(prec=80)


def information_above(table: ExactArray) -> Fraction:
    """A rational at or above I(S;Y) in nats, by less than 10^-30, from T[s, y…] of sum n.

    n·I = Σ T ln T + n ln n - Σ_s T_s ln T_s - Σ_y T_y ln T_y, so an error of a logarithm counts by its share of n.
    """
    flat = table.reshape(len(table), -1).astype(object)
    by_secret, by_output = flat.sum(axis=1).tolist(), flat.sum(axis=0).tolist()
    total = sum(by_secret)
    gained = _weighted_logs(flat.ravel().tolist()) + _weighted_logs([total])
    lost = _weighted_logs(by_secret) + _weighted_logs(by_output)
    return max(Fraction(gained - lost, total << _POINT) + _MARGIN, Fraction(0))


def _weighted_logs(masses: Sequence[int]) -> int:
    """Σ m ln m, zero masses left out."""
    return sum(mass * _log(mass) for mass in masses if mass)


def exp_above(exponent: Fraction) -> Fraction:
    """A rational at or above e^exponent (exponent >= 0), within a factor 1 + 10^-88."""
    return exp_below(exponent) * (1 + _WIDE)


def power_below(base: Fraction, exponent: Fraction) -> Fraction:
    """A rational at or below base^exponent, within a factor 1 - 2^-109; base > 0, |exponent| <= 1000."""
    return _power(log(base) * exponent) * (1 - _MARGIN)


def power_above(base: Fraction, exponent: Fraction) -> Fraction:
    """The same at or above."""
    return _power(log(base) * exponent) * (1 + _MARGIN)


def exp_below_any(exponent: Fraction) -> Fraction:
    """A rational at or below e^exponent, within a factor 1 - 2^-109, also below zero."""
    return _power(exponent) * (1 - _MARGIN)


def log(number: Fraction) -> Fraction:
    """ln(number) within 2^-130, number > 0."""
    return Fraction(_log(number.numerator) - _log(number.denominator), _ONE)


def _log(number: int) -> int:
    """ln(number)·2^160 for a whole number > 0: a power of two, a table, and 2·artanh of what is left."""
    power = number.bit_length() - 1
    mantissa = (number << _POINT) >> power
    start = mantissa >> (_POINT - _STEPS)
    left = (mantissa << _STEPS) // start
    term = ((left - _ONE) << _POINT) // (left + _ONE)
    square, total, order = term * term >> _POINT, term, 3
    while term := term * square >> _POINT:
        total += term // order
        order += 2
    return power * _log_two() + _logs()[start - (1 << _STEPS)] + 2 * total


def _power(exponent: Fraction) -> Fraction:
    """e^exponent: a power of two, a table, and Taylor's series of what is left."""
    fixed = (exponent.numerator << _POINT) // exponent.denominator
    power, rest = divmod(fixed, _log_two())
    start = rest >> (_POINT - _STEPS)
    rest -= start << (_POINT - _STEPS)
    total = term = _ONE
    order = 1
    while term := (term * rest >> _POINT) // order:
        total += term
        order += 1
    mantissa = total * _powers()[start] >> _POINT
    return Fraction(mantissa << power, _ONE) if power >= 0 else Fraction(mantissa, _ONE << -power)


@cache
def _log_two() -> int:
    return _fixed(_CONTEXT.ln(Decimal(2)))


@cache
def _logs() -> list[int]:
    """ln(1 + j/256)."""
    steps = Decimal(1 << _STEPS)
    return [_fixed(_CONTEXT.ln(1 + j / steps)) for j in range(1 << _STEPS)]


@cache
def _powers() -> list[int]:
    """e^(j/256)."""
    steps = Decimal(1 << _STEPS)
    return [_fixed(_CONTEXT.exp(j / steps)) for j in range(1 << _STEPS)]


def _fixed(number: Decimal) -> int:
    return int(_CONTEXT.multiply(number, Decimal(_ONE)))
