"""How far a released value is from the true one, as the policy asks, in whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from math import lcm

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import ExactArray
from funnel.audit.kernel.verdict import Broken
from funnel.data import alphabet
from funnel.format.fields import Alphabet
from funnel.policy.groups import climb

Ways = Callable[[str], tuple[str, ...]]
"""From a value to what holds it, outermost first."""


def distances(opened: Release, index: int) -> tuple[ExactArray, int]:
    """d(y, x) in whole numbers (a, a), and what they are divided by: as the policy asks. Raises Broken."""
    block, asked = opened.alphabets[index], opened.terms.mechanism.get("distance", "match")
    if asked == "match":
        return np.asarray(1 - np.eye(len(block.values), dtype=np.int64), object), 1
    rules = [asked if isinstance(asked, str) else asked.get(name, "match") if isinstance(asked, dict) else "none"
             for name in block.columns]  # fmt: skip
    parts = [_of_column(block, place, rule, _ways(opened, name))
             for place, (name, rule) in enumerate(zip(block.columns, rules, strict=True))]  # fmt: skip
    shared = lcm(*(most for _, most in parts))
    return sum((part * (shared // most) for part, most in parts), np.zeros(1, object)), shared * len(parts)


def _of_column(block: Alphabet, place: int, rule: str, ways: Ways | None) -> tuple[ExactArray, int]:
    """The distance of one column, in whole numbers, and the largest there is; `ways` lead to values from a root.

    Raises Broken for other rules.
    """
    values = [value[place] for value in block.values]
    differ = np.array([[int(y != x) for x in values] for y in values], object)
    if rule == "match":
        return differ, 1
    if rule != "order":
        raise Broken("terms.json", "this distance is unknown", "match or order", rule)
    if ways is not None:
        return _in_tree([() if value is None else (*ways(value), value) for value in values])
    ranks = alphabet.Alphabet(block.columns, block.values).ranks(place)
    most = max(len({rank for rank in ranks if rank is not None}) - 1, 1)
    numbers = np.array([-1 if rank is None else rank for rank in ranks], object)
    both = np.logical_and.outer(numbers >= 0, numbers >= 0)
    return np.where(both, abs(np.subtract.outer(numbers, numbers)), differ * most), most


def _in_tree(ways: Sequence[tuple[str, ...]]) -> tuple[ExactArray, int]:
    """The part of the longer way from the root that two values do not have in common."""
    most = lcm(*(len(way) or 1 for way in ways))
    apart = [[0 if y == x else most - most * _shared(y, x) // max(len(y), len(x)) for x in ways] for y in ways]
    return np.array(apart, object), most


def _shared(one: Sequence[str], two: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def _ways(opened: Release, column: str) -> Ways | None:
    """From a value to the groups above it, or the nodes of its cell, outermost first; None where nothing holds it."""
    for cells in opened.wide:
        if cells.name == column:
            return cells.ways().__getitem__
    for one in (one for block in opened.terms.public for one in block):
        if one.name == column and len(levels := one.groups or ()) > 1:
            return lambda value: tuple(reversed(climb(value, levels[1:])))
    return None
