"""A wide block's alphabet: its columns, the tree of its cells, what their rows look like. All of it is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.cells.columns import Codes, Vocabulary
from funnel.cells.profile import Profile
from funnel.cells.tree import Tree
from funnel.data.joint import IntArray


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells 0 … m-1 of the block `name`; as labels they are texts that count from 1.

    `shares` (m,) are weights of the cells in the table that they were made from, of sum 2^bits.
    `seed` is what rows are filled from.
    """

    name: str
    columns: tuple[Vocabulary, ...]
    tree: Tree
    profiles: tuple[Profile, ...]
    shares: IntArray
    seed: bytes

    def __len__(self) -> int:
        return len(self.tree)

    def labels(self) -> list[str]:
        """The names of the cells, as the block's alphabet has them."""
        return [str(cell + 1) for cell in range(len(self))]

    def ways(self) -> dict[str, tuple[str, ...]]:
        """The nodes on the way to each cell, by its label, outermost first; the root, which holds all, left out."""
        parents, found = self.tree.parents.tolist(), list[tuple[str, ...]]()
        for leaf in self.tree.leaves.tolist():
            way, node = list[str](), parents[leaf]
            while node > 0:
                way, node = [str(node), *way], parents[node]
            found.append(tuple(way))
        return dict(zip(self.labels(), found, strict=True))

    def assign(self, codes: Sequence[Codes]) -> IntArray:
        """The cell (n,) of every row, by the codes (n,) of its columns."""
        return self.tree.assign(codes)

    def texts(self, codes: Sequence[Codes]) -> list[list[str | None]]:
        """The values of filled rows as texts, column by column."""
        return [
            np.array(column.values, object)[code].tolist()
            for column, code in zip(self.columns, codes, strict=True)
        ]
