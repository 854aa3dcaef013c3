"""Fine values of each block that a question names, how its answers are undone, and functions of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from funnel.analyst.domain import Factor
from funnel.data.alphabet import Label
from funnel.data.joint import FloatArray, IntArray
from funnel.errors import ReleaseError
from funnel.measure.functionals import along
from funnel.measure.recovery import Inverse, choices
from funnel.release.reading import Reading

CLASSES = 2_000
"""Groups of people whom key columns may tell apart."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Fine values (z) of one block, or of keys: the group that each is in, and how its answers are undone.

    `lift` (z, a): the chance of each among records with each value of the block, where that is not 0 or 1; else the
    inverse is one for fine values. `codes` are those of the answers (m,).
    """

    part: Factor
    inverse: Inverse
    codes: IntArray
    lift: FloatArray | None
    group: IntArray
    labels: tuple[Label, ...]


@dataclass(frozen=True, eq=False)
class Measure:
    """What is added up over fine values, and over what it is divided."""

    name: str
    above: FloatArray
    below: FloatArray | None = None

    @property
    def span(self) -> float:
        """How far apart what is divided can be of two records; endless where nothing is."""
        if self.below is None or not (some := self.below > 0).any():
            return math.inf
        each = np.divide(self.above, self.below, out=np.zeros(self.above.shape), where=some)[some]
        return float(each.max() - each.min())


def axis_of(block: Reading, part: Factor, seen: IntArray, chances: FloatArray, by: Sequence[str]) -> Axis:
    """Fine values of a block with their `chances` (z, a), undone from the answers (m,) that were `seen`."""
    codes = block.told(seen)
    inverse, lift = block.inverse(codes), None
    if np.isin(chances, (0, 1)).all() and block.face is None:
        rest = None if inverse.residual is None else chances @ inverse.residual
        inverse = replace(inverse, matrix=inverse.matrix @ chances.T, residual=rest)
    else:
        lift = chances
    return Axis(part, inverse, codes, lift, *_grouped(part, by))


def _grouped(part: Factor, by: Sequence[str]) -> tuple[IntArray, tuple[Label, ...]]:
    """The group (z,) of each value by the columns asked for, and what the groups are called."""
    places = [place for place, name in enumerate(part.columns) if name in by]
    labels = [tuple(value[place] for place in places) for value in part.values]
    codes = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    return np.array([codes[label] for label in labels], np.int64), tuple(codes)


def only(inverse: Inverse, inside: IntArray) -> Inverse:
    """The inverse for functions that are zero but for some values."""
    rest = None if inverse.residual is None else inverse.residual[inside]
    return replace(inverse, matrix=inverse.matrix[:, inside], residual=rest)


def lifted(function: FloatArray, lifts: Sequence[FloatArray | None]) -> FloatArray:
    """A function of fine values as its mean given the values of blocks."""
    sizes = function.shape
    return along(function, [np.eye(size) if lift is None else lift.T for lift, size in zip(lifts, sizes, strict=True)])


def keyed(part: Factor, measures: Sequence[Measure], by: Sequence[str]) -> tuple[Axis, list[Measure], IntArray]:
    """Keys, the first part of measures, as an axis of those whom a question tells apart; and which each key is of.

    Raises ReleaseError (question).
    """
    group, labels = _grouped(part, by)
    told = [one.reshape(len(part.values), -1) for measure in measures
            for one in (measure.above, measure.below) if one is not None]  # fmt: skip
    first, code = np.unique(np.column_stack([group, *told]), axis=0, return_index=True, return_inverse=True)[1:]
    if len(first) > CLASSES:
        raise ReleaseError(
            "question", f"{', '.join(part.columns)} tell {len(first):,} groups apart; at most {CLASSES:,} can be",
            where="by", advice="Ask for a condition on them, or join the table by its key.",
        )  # fmt: skip
    kept = [Measure(one.name, one.above[first], None if one.below is None else one.below[first]) for one in measures]
    own = Factor(part.columns, tuple(part.values[place] for place in first), part.types)
    inverse = Inverse(len(first), 1.0, np.arange(len(first)), np.eye(len(first)), choices(np.eye(len(first)) > 0))
    return Axis(own, inverse, np.arange(len(first)), None, group[first], labels), kept, code.reshape(-1)
