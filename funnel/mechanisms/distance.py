"""How far one value of a block is from another: what a protocol may charge for answering y instead of x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, cast, get_args

import numpy as np
from pydantic_core import PydanticCustomError

from funnel.data.alphabet import Alphabet
from funnel.data.joint import FloatArray
from funnel.errors import PlanError

Rule = Literal["match", "order"]
"""match: 0 or 1. order: places between two numbers, as a share of the most there can be; 1 to what is no number. Of
values in groups in groups, or in a tree: what part of the way from the root the two do not have in common."""


RULES = get_args(Rule)
DISTANCE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"enum": [*RULES]},
        {"type": "object", "minProperties": 1, "additionalProperties": {"enum": [*RULES]}},
    ]
}


def as_distance(given: Any) -> Rule | dict[str, Rule]:
    """A rule, or one for each of some columns. Raises PydanticCustomError at the place."""
    told = given if isinstance(given, dict) and given else {(): given}
    for name, rule in told.items():
        if rule not in RULES:
            said = f"it must be one of {', '.join(RULES)}, or a mapping from columns to these"
            raise PydanticCustomError("wrong-value", "{said}", {"said": said, "at": (name,) if name else ()})
    return cast("Rule | dict[str, Rule]", given)


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
    values, name = [value[place] for value in block.values], block.columns[place]
    if rule == "match":
        return np.array([[float(y != x) for x in values] for y in values])
    if name in block.paths:
        return _in_tree(values, block.paths[name])
    ranks = block.ranks(place)
    most = len({rank for rank in ranks if rank is not None}) - 1
    if most < 1:
        raise PlanError(
            "column-type",
            f"{name} holds fewer than two numbers and no groups of several levels, so its values have no order",
            advice="Use `bins` or `round` on a numeric column, `groups` of several levels, or `distance: match`.",
        )
    return np.array([[float(between(y, x, most)) for x in zip(values, ranks, strict=True)]
                     for y in zip(values, ranks, strict=True)])  # fmt: skip


def between(one: tuple[str | None, int | None], two: tuple[str | None, int | None], most: int) -> Fraction:
    """Of two parts with their ranks."""
    if one[1] is None or two[1] is None:
        return Fraction(one[0] != two[0])
    return Fraction(abs(one[1] - two[1]), most)


def _in_tree(values: Sequence[str | None], paths: Mapping[str, tuple[str, ...]]) -> FloatArray:
    """1 - depth of the innermost group of both / depth of the deeper value; what is missing is alone."""
    ways = [() if value is None else (*paths.get(value, ()), value) for value in values]
    return np.array([[float(0 if y == x else apart(y, x)) for x in ways] for y in ways])


def apart(one: Sequence[str], two: Sequence[str]) -> Fraction:
    """Of two ways from the root to different values, these included."""
    both = enumerate(zip(one, two, strict=False))
    shared = next((depth for depth, (a, b) in both if a != b), min(len(one), len(two)))
    return 1 - Fraction(shared, max(len(one), len(two)))
