"""What somebody may know of a person beforehand, as known.json tells it, and the records that agree on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from funnel.audit.kernel.exact import IntArray
from funnel.format.known import Level


@dataclass(frozen=True, eq=False)
class Known:
    """Records by s and x (m, 1+k) and by the values (m, l) of each level, 0 where few share it; `number` of each (m,).

    Somebody may know `knows` columns together, whichever they are, or those that it names; any x_J that at least
    `minimum` records share.
    """

    levels: tuple[Level, ...]
    codes: IntArray
    values: IntArray
    number: IntArray
    knows: int | tuple[str, ...]
    minimum: int

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Every set J of levels, one of a column at most; the empty one first."""
        columns = list(dict.fromkeys(level.column for level in self.levels))
        if not isinstance(self.knows, int):
            columns = [column for column in columns if column in self.knows]
        for size in range((self.knows if isinstance(self.knows, int) else len(columns)) + 1):
            for chosen in combinations(columns, size):
                yield from product(*([i for i, one in enumerate(self.levels) if one.column == name] for name in chosen))

    def groups(self) -> Iterator[IntArray]:
        """The rows of `codes` that agree on x_J, for every J and every x_J that enough records share."""
        return (rows for places in self.sets() for rows in self.agreeing(places))

    def agreeing(self, places: tuple[int, ...]) -> Iterator[IntArray]:
        """The same for one J."""
        told = np.flatnonzero((self.values[:, places] > 0).all(axis=1))
        order = told[np.lexsort(self.values[told][:, places].T)] if places else told
        seen = self.values[order][:, places]
        for rows in np.split(order, np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1):
            if self.number[rows].sum() >= self.minimum:
                yield rows

    def uncovered(self) -> tuple[int, int, int]:
        """People with an x_J that too few share, columns by their finest levels; pairs of person and J; how many J."""
        finest = {*{level.column: place for place, level in reversed([*enumerate(self.levels)])}.values()}
        missed = np.zeros(len(self.number), np.int64)
        sets = [places for places in self.sets() if finest >= {*places}]
        for places in sets:
            missed += 1
            for rows in self.agreeing(places):
                missed[rows] -= 1
        return int(self.number[missed > 0].sum()), int(missed @ self.number), len(sets)
