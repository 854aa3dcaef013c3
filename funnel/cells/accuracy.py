"""How often a filled row shows a person's own value: from the cells that are answered, and what is told of each.

A law of labels (m, m) is the chance that a record is in cell t and answered with cell u. Three are told: every record
keeps its cell; the release; and a table of as many rows in every cell that are drawn for nobody, at ε = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.cells.profile import BITS, Profile, drawing_order
from funnel.data import Protocol
from funnel.data.joint import FloatArray, IntArray


@dataclass(frozen=True)
class Accuracy:
    """The share of records that show their own value of a column: with the true cell, in the release, at ε = 0."""

    label: float
    own: float
    at_zero: float


def chances(profiles: Sequence[Profile]) -> list[FloatArray]:
    """The chances (m, v) of every column's values in each cell."""
    top, found = len(profiles), list[FloatArray]([np.empty(0)] * len(profiles))
    groups: dict[int, FloatArray] = {top: np.ones((len(profiles[0].values), 1))}
    for column in drawing_order(profiles):
        one = profiles[column]
        above = groups[top if one.parent < 0 else one.parent]
        groups[column] = np.einsum("tg,tgh->th", above, one.links / (1 << BITS))
        found[column] = groups[column][:, one.groups] * (one.values / (1 << BITS))
    return found


def accuracies(law: FloatArray, true: Sequence[FloatArray], filled: Sequence[FloatArray]) -> list[Accuracy]:
    """Of every column, by the law of labels and the chances of its values in each cell (m, v): true, and as filled."""
    told = law.sum(axis=1)
    return [
        Accuracy(
            float((told[:, None] * own * shown).sum()),
            float((own * (law @ shown)).sum()),
            float((told @ own) @ (told @ shown)),
        )
        for own, shown in zip(true, filled, strict=True)
    ]


def law_of_labels(name: str, size: int, protocol: Protocol, counts: IntArray) -> FloatArray:
    """The law of a wide block's labels where a protocol is used on counts N[s, x] (c, a) of its inputs."""
    drawn = protocol.probabilities()
    records = counts if protocol.reads_secret else counts.sum(axis=0, keepdims=True)
    joint = np.einsum("sx,ysx->xy", records / counts.sum(), drawn)
    place = protocol.inputs.columns.index(name)
    cells, answers = (
        np.array([int(value[place] or 0) - 1 for value in one.values])
        for one in (protocol.inputs, protocol.outputs)
    )
    found = np.zeros((size, size))
    np.add.at(found, (cells[:, None], answers[None, :]), joint)
    return found
