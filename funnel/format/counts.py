"""counts.json: the integer counts N[s, x] that every claim is about; of a private estimate the true ones and the noise.

Private: nobody but the publisher and its auditor may see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Literal

from funnel.format.fields import Alphabet, Positive, Text
from funnel.format.schema import Flaws, Grid, Rows, outside

NAME = "counts.json"


@dataclass(frozen=True)
class Private:
    """A private estimate: every cell of its domain, counted and with its discrete Laplace noise of rate ε_est/2.

    `name` is that of its entry in the ledger. `cells` are rows [s, x_1, …, x_k, counted, added, taken]: the noise is
    added - taken, and what was counted is of the hour when it was drawn. `records` says how many records each cell has
    in this release.
    """

    name: Text
    epsilon: Positive
    cells: Grid
    records: Grid

    def flaws(self) -> Flaws:
        """Cells are distinct, with a number of records each; no sum of what was counted overflows."""
        if len({*map(len, self.cells)}) != 1 or len(self.records) != len(self.cells):
            yield "cells", "rows of one length, each with its records", len(self.records)
        if len({row[:-3] for row in self.cells}) < len(self.cells):
            yield "cells", "each cell once", "others"
        if sum(map(sum, self.cells)) >= 1 << 62 or not 0 < sum(self.records) < 1 << 62:
            yield "cells", "numbers below 2^62 together", "others"


@dataclass(frozen=True)
class CountsFile:
    """Rows [s, x_1, …, x_k, count]: only cells where the count is positive.

    `secret` and `blocks` give the codes their meaning. `private`: the counts are noisy ones. `locked`: records of each
    value of each block when a lock's protocol was made, None where no lock holds or nobody knows.
    """

    format: Literal["funnel-counts/1"]
    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    cells: Rows
    private: Private | None
    locked: tuple[Grid, ...] | None

    def flaws(self) -> Flaws:
        """Codes are of the alphabets; a column that is both secret and public has one value in a cell."""
        sizes = [len(one.values) for one in (self.secret, *self.blocks)]
        if outside(self.cells, sizes):
            yield "cells", f"codes below {sizes}, and a count", "others"
        if self.private and outside(self.private.cells, sizes, 3):
            yield "private.cells", f"codes below {sizes}, counted, added, taken", "others"
        for axis, block in enumerate(self.blocks, start=1):
            for name in {*block.columns} & {*self.secret.columns}:
                shown, hidden = block.columns.index(name), self.secret.columns.index(name)
                every = chain(self.cells, self.private.cells if self.private else ())
                if any(block.values[row[axis]][shown] != self.secret.values[row[0]][hidden] for row in every):
                    yield "cells", f"one value of {name} in a cell", "two values"
