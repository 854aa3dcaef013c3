"""Discrete Laplace noise in exact whole-number arithmetic: P(k) = (1-p)/(1+p) p^|k| with p = e^-rate.

The sampler is that of Canonne, Kamath and Steinke (2020), Algorithms 1 and 2: Bernoulli(e^-x) from fair dice alone,
so that no rounding of a logarithm can show in the lowest digit of a count. The dice are an argument, so that its
distribution can be worked out; `funnel.draw.histogram` rolls those of the operating system, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count

Dice = Callable[[int], int]
"""A uniform whole number from 0 to n - 1, for n >= 1."""


def bernoulli_exp(exponent: Fraction, dice: Dice) -> bool:
    """True with chance e^-x, for 0 <= x <= 1 (Algorithm 1): the first k at which Bernoulli(x/k) fails is odd."""
    for k in count(1):
        if dice(exponent.denominator * k) >= exponent.numerator:
            return k % 2 == 1
    raise AssertionError


def discrete_laplace(rate: Fraction, dice: Dice) -> int:
    """One whole number with P(k) proportional to e^-rate|k|, rate > 0 (Algorithm 2)."""
    if rate <= 0:
        raise ValueError("discrete Laplace noise needs a positive rate")
    one = Fraction(1)
    while True:
        low = dice(rate.denominator)
        if not bernoulli_exp(Fraction(low, rate.denominator), dice):
            continue
        high = 0
        while bernoulli_exp(one, dice):
            high += 1
        size = (low + rate.denominator * high) // rate.numerator
        negative = dice(2) == 1
        if not (negative and size == 0):
            return -size if negative else size
