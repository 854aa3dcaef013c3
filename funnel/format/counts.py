"""counts.json: the integer counts N[s, x] that every claim is about; of a private estimate the true ones and the noise.

Private: nobody but the publisher and its auditor may see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Alphabet, Positive, Text
from funnel.format.schema import Grid

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


@dataclass(frozen=True)
class CountsFile:
    """Rows [s, x_1, …, x_k, count], each cell once and only where the count is positive, in the order of their codes.

    `secret` and `blocks` give the codes their meaning. `private`: the counts are noisy ones. `locked`: records of each
    value of each block on the night when the lock was made, None where no lock holds or nobody knows.
    """

    format: Literal["funnel-counts/1"]
    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    cells: Grid
    private: Private | None
    locked: tuple[Grid, ...] | None
