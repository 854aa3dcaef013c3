"""Counts of codes, alone and with one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.data.joint import IntArray

AnyCodes = npt.NDArray[np.signedinteger]


def tallied(column: AnyCodes, size: int, records: IntArray | None = None) -> IntArray:
    """How often every value occurs (v,), where rows stand for so many `records` (n,); None: for one each."""
    return np.bincount(column, records, size).astype(np.int64, copy=False)  # sums below 2^53, which floats hold


def counted(
    column: AnyCodes, size: int, cells: AnyCodes, number: int, records: IntArray | None = None
) -> IntArray:
    """How often every value occurs in every cell (m, v)."""
    place = np.multiply(cells, size, dtype=np.int64)
    place += column
    return tallied(place, number * size, records).reshape(number, size)


def direction(joint: IntArray) -> IntArray:
    """Values in the order of the first principal component of what goes with them: their counts (v, others).

    For two classes the best subset is a prefix of such an order (Breiman et al., Classification and Regression Trees,
    section 9.4); for several this is the heuristic of Coppersmith, Hong and Hosking, DMKD 3, 1999.
    """
    totals = np.maximum(joint.sum(axis=1), 1)
    profile = joint / totals[:, None]
    centred = (profile - totals @ profile / totals.sum()) * np.sqrt(totals)[:, None]
    vector = np.linalg.eigh(centred @ centred.T)[1][:, -1] / np.sqrt(totals)
    return np.argsort(vector.round(9), kind="stable")


def met(columns: Sequence[AnyCodes], widths: Sequence[int], records: IntArray | None = None) -> list[IntArray]:
    """How often every value of each column meets every value of all columns, side by side (v, Σ widths), itself too."""
    ends = np.cumsum(widths)
    found = np.zeros((ends[-1], ends[-1]), np.int64)
    places = [slice(end - width, end) for end, width in zip(ends.tolist(), widths, strict=True)]
    for a, (column, place) in enumerate(zip(columns, places, strict=True)):
        for b in range(a + 1):
            table = counted(columns[b], widths[b], column, widths[a], records)
            found[place, places[b]], found[places[b], place] = table, table.T
    return [found[place] for place in places]
