"""population.json: everybody in the source, those too whom a release leaves out, by which releases they are in.

Private: nobody but the publisher and its auditor may see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Alphabet, Text
from funnel.format.schema import Flaws, Rows, outside

NAME = "population.json"


@dataclass(frozen=True)
class People:
    """Rows [s, x_1, …, x_k, p, count] over all values that anybody has.

    x_j is 0 for a value that the release has no label for, else the place in `blocks[j]`, from 1 on. Bit i of p says
    whether the i-th predicate holds.
    """

    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    cells: Rows

    def flaws(self) -> Flaws:
        """Codes are of the alphabets."""
        sizes = [len(self.secret.values), *(len(one.values) + 1 for one in self.blocks), 1 << 63]
        if outside(self.cells, sizes):
            yield "cells", f"codes below {sizes[:-1]}, predicates and a count", "others"


@dataclass(frozen=True)
class PopulationFile:
    """Everybody by each secret that is promised about, this release's first.

    `predicates` say who is in releases of the ledger, in SQL over the source's columns; `own` is that of this release,
    None where everybody is let in.
    """

    format: Literal["funnel-population/1"]
    own: Text | None
    predicates: tuple[Text, ...]
    people: tuple[People, ...]
