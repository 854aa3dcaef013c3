"""What a published report may say about groups of people: nothing about a group below the minimum.

A figure about a group is withheld when the group is smaller than `estimate.minimum` records, and so are as
many more as it takes that the withheld ones cannot be had by subtracting what is shown from a total.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray

Mask = npt.NDArray[np.bool_]


def withheld(counts: npt.ArrayLike, minimum: float) -> Mask:
    """Which of the groups that make up one whole, of `counts` (m,) records, are not told apart."""
    sizes = np.asarray(counts, float)
    return _cover(sizes, np.zeros(sizes.shape, bool), minimum)


def withheld_cells(expected: FloatArray, rows: Mask, minimum: float) -> Mask:
    """Cells of a table (c, b) of expected records of which nothing is told.

    `rows` (c,) are withheld as a whole. In every row and every column the withheld cells are none, or at
    least two that hold `minimum` records together, or all: no line of the table has a single unknown, so
    subtracting from totals leads nowhere, however often it is done.
    """
    hidden = np.repeat(rows[:, None], expected.shape[1], axis=1)
    while True:
        grown = _cover(expected, hidden, minimum)
        grown = _cover(expected.T, grown.T, minimum).T
        if (grown == hidden).all():
            return hidden
        hidden = grown


def _cover(sizes: FloatArray, hidden: Mask, minimum: float) -> Mask:
    """Along the last axis: hide what is small, then the smallest of the rest until two or more suffice."""
    hidden = hidden | (sizes < minimum)
    order = np.argsort(np.where(hidden, -1.0, sizes), axis=-1, kind="stable")
    ranked, chosen = np.take_along_axis(sizes, order, -1), np.take_along_axis(hidden, order, -1)
    total_before = np.cumsum(ranked, axis=-1) - ranked
    too_little = (total_before < minimum) | (np.arange(sizes.shape[-1]) < 2)
    chosen |= chosen.any(axis=-1, keepdims=True) & too_little
    covered = np.empty_like(hidden)
    np.put_along_axis(covered, order, chosen, -1)
    return covered
