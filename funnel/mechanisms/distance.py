"""How far one value of a block is from another: what a protocol may charge for answering y instead of x."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import numpy as np

from funnel.data.alphabet import Alphabet
from funnel.data.joint import FloatArray
from funnel.errors import PlanError

Rule = Literal["match", "order"]
"""match: 0 or 1. order: places between two numbers, as a share of the most there can be; 1 to what is no number."""


def distances(block: Alphabet, rule: Rule | Mapping[str, Rule]) -> FloatArray:
    """d(y, x) (a, a) in [0, 1]: `match` of whole values, or else the mean over the block's columns, each by its rule.

    Raises PlanError where a column has no order.
    """
    if rule == "match":
        return np.asarray(1.0 - np.eye(len(block)))
    asked = {column: rule if isinstance(rule, str) else rule.get(column, "match") for column in block.columns}
    parts = [_of_column(block, place, one) for place, one in enumerate(asked.values())]
    return np.asarray(np.mean(parts, axis=0))


def _of_column(block: Alphabet, place: int, rule: Rule) -> FloatArray:
    """d(y, x) of one column alone."""
    values = [value[place] for value in block.values]
    if rule == "match":
        return np.array([[float(y != x) for x in values] for y in values])
    ranks = block.ranks(place)
    most = len({rank for rank in ranks if rank is not None}) - 1
    if most < 1:
        raise PlanError(
            "column-type",
            f"{block.columns[place]} holds fewer than two numbers, so its values have no order",
            advice="Use `bins` or `round` on a numeric column, or `distance: match`.",
        )
    return np.array([[float(between(y, x, most)) for x in zip(values, ranks, strict=True)]
                     for y in zip(values, ranks, strict=True)])  # fmt: skip


def between(one: tuple[str | None, int | None], two: tuple[str | None, int | None], most: int) -> Fraction:
    """Of two parts with their ranks."""
    if one[1] is None or two[1] is None:
        return Fraction(one[0] != two[0])
    return Fraction(abs(one[1] - two[1]), most)
