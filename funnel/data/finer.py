"""Records seen as finely as somebody may know them: columns by their own values, and as coarse as they are grouped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.format.known import Level

IntArray = npt.NDArray[np.int64]

RARE = -1
"""The code of a value that too few records share to be asked about."""


@dataclass(frozen=True, eq=False)
class Finer:
    """The records of a joint distribution counted over (s, x_1, …, x_k) and every level of every column.

    `cells` (m, 1+k+l) hold the joint's codes and one of each level, RARE for values that fewer than `minimum` records
    share; `counts` (m,) are positive, and no cell stands there twice. The finest level of a column is the first named.
    """

    levels: tuple[Level, ...]
    cells: IntArray
    counts: IntArray
    minimum: int

    def __post_init__(self) -> None:
        if self.cells.ndim != 2 or len(self.cells) != len(self.counts) or self.cells.shape[1] <= len(self.levels):
            raise ValueError("cells, counts and levels of finer records do not match")

    @property
    def known(self) -> IntArray:
        """Codes (m, l) of the levels."""
        return self.cells[:, self.cells.shape[1] - len(self.levels) :]

    @property
    def placed(self) -> IntArray:
        """Codes (m, 1+k) of the joint distribution."""
        return self.cells[:, : self.cells.shape[1] - len(self.levels)]

    def columns(self) -> dict[str, list[int]]:
        """The places of each column's levels, the finest first."""
        found: dict[str, list[int]] = {}
        for place, level in enumerate(self.levels):
            found.setdefault(level.column, []).append(place)
        return found

    def sizes(self) -> tuple[int, ...]:
        """How many values of each column may be known, over all its levels."""
        return tuple(sum(len(self.levels[place].values) for place in one) for one in self.columns().values())

    def moved(self, placed: IntArray, kept: npt.NDArray[np.bool_] | None = None) -> Finer:
        """The same records under other codes (m, 1+k) of a joint distribution; those not `kept` are left out."""
        cells, counts = np.column_stack([placed, self.known]), self.counts
        if kept is not None:
            cells, counts = cells[kept], counts[kept]
        return Finer(self.levels, *added_up(cells, counts), self.minimum)


def finer(
    placed: IntArray, counts: IntArray, levels: Sequence[Level], codes: IntArray, minimum: int
) -> Finer:
    """Records at codes (m, 1+k) and (m, l) of each level's values, RARE for none; those too few share become RARE."""
    common, known = list[Level](), np.array(codes, np.int64)
    for place, level in enumerate(levels):
        told = codes[:, place] != RARE
        shared = np.bincount(codes[told, place], weights=counts[told], minlength=len(level.values)) >= minimum
        renamed = np.where(shared, np.cumsum(shared) - 1, RARE)
        known[told, place] = renamed[codes[told, place]]
        values = tuple(value for value, enough in zip(level.values, shared, strict=True) if enough)
        common.append(Level(level.column, level.level, values))
    return Finer(tuple(common), *added_up(np.column_stack([placed, known]), counts), minimum)


def added_up(cells: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Each distinct row of codes (m, w) once, in order, with the counts (m,) of all that are alike."""
    if len(cells) == 0:
        return cells.astype(np.int64), counts.astype(np.int64)
    order = np.lexsort(cells.T[::-1])
    ordered = cells[order]
    first = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    return np.ascontiguousarray(ordered[first], np.int64), np.add.reduceat(counts[order], first)
