"""Beliefs P(s|x) and totals of X rounded outward to steps, for protocols whose weights are not to tell counts.

A table is put down as the steps that its beliefs and totals lie in; every table in the same steps gives the same
protocol, and the protocol keeps its bound for all of them. Steps of beliefs are 2/(2m+1) wide, so that no whole number
of them makes one: lower ends never add up to one, and beliefs that do never lie in a corner of their steps alone. Each
has half a step to move in, and steps are no finer than makes `minimum` records of that: so no N[s, x] follows from the
steps of a table and the totals of X more closely than that (tests/property/test_beliefs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Masses = npt.NDArray[Any]
"""Fractions, (c + 1, …): of each secret value, and last of everybody."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Ends `least` <= N[s, x_1, …] <= `most` of all tables in the same steps; the last s stands for their totals.

    `centre` (c, x_1, …) are whole numbers amid them, for what has to be weighed by some distribution.
    """

    least: Masses
    most: Masses
    centre: IntArray


def rounded(table: IntArray, step: Fraction, minimum: int, *, exact: bool) -> Beliefs:
    """The steps that N[s, x_1, …] (c, …) lies in. `exact`: totals of X are what they are.

    Of combinations with fewer than `minimum` records it is only known that they are so few.
    """
    columns = table.reshape(len(table), -1).T.tolist()
    each = cache(lambda counts: _column(counts, step, minimum, exact=exact))
    found = [each(tuple(counts)) for counts in columns]

    def arrayed(place: int, kind: type) -> Any:
        return np.array([one[place] for one in found], kind).T.reshape(-1, *table.shape[1:])

    return Beliefs(arrayed(0, object), arrayed(1, object), arrayed(2, np.int64))


def steps_in_one(step: Fraction, minimum: int, secret: int, total: int) -> int:
    """m: beliefs of a value with so many records are rounded to steps of 2/(2m + 1); 0 where nothing is known of them.

    Half a step is `minimum` records at least, and one for each of c = `secret` values that whole records take from it.
    """
    widest = max(step, Fraction(2 * (minimum + secret), max(total, 1)))
    return max((1 / widest - Fraction(1, 2)).__floor__(), 0)


def total_within(total: int, step: Fraction) -> tuple[int, int]:
    """The least and the largest total that rounds as this one: as many binary digits as make steps of `step` or more.
    """
    digits = max((1 / step).__floor__().bit_length() - 1, 0)
    unit = 1 << max(total.bit_length() - 1 - digits, 0)
    least = total // unit * unit
    return least, least + unit - 1


def _column(
    counts: Sequence[int], step: Fraction, minimum: int, *, exact: bool
) -> tuple[list[Fraction], list[Fraction], list[int]]:
    """Least and most of every secret value and of everybody, and the centre, for one value of X."""
    total = sum(counts)
    if total < minimum:
        low, high, parts = 0, minimum - 1, 0
    else:
        low, high = (total, total) if exact else total_within(total, step)
        parts = steps_in_one(step, minimum, len(counts), low)
    below, above = _ends(counts, total, parts)
    middle = low if exact and low == high else low + high
    least = [*(low * end for end in below), Fraction(low)]
    most = [*(high * end for end in above), Fraction(high)]
    return least, most, _whole(below, above, middle)


def _ends(counts: Sequence[int], total: int, parts: int) -> tuple[list[Fraction], list[Fraction]]:
    """Between which ends the beliefs lie, given that they add up to one."""
    if not parts:
        return [Fraction(0)] * len(counts), [Fraction(1)] * len(counts)
    step = Fraction(2, 2 * parts + 1)
    below = [step * (count * (2 * parts + 1) // (2 * total)) for count in counts]
    above = [min(one + step, Fraction(1)) for one in below]
    under, over = sum(below), sum(above)
    return (
        [max(low, 1 - (over - high)) for low, high in zip(below, above, strict=True)],
        [min(high, 1 - (under - low)) for low, high in zip(below, above, strict=True)],
    )


def _whole(below: Sequence[Fraction], above: Sequence[Fraction], total: int) -> list[int]:
    """So many records shared out amid the ends: largest remainders, the first of those that are alike."""
    room = sum(above) - sum(below)
    share = (1 - sum(below)) / room if room else Fraction(0)
    wanted = [total * (low + share * (high - low)) for low, high in zip(below, above, strict=True)]
    found = [one.__floor__() for one in wanted]
    order = sorted(range(len(found)), key=lambda s: found[s] - wanted[s])
    for s in order[: total - sum(found)]:
        found[s] += 1
    return found
