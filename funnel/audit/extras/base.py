"""What extras have in common: the release as the kernel opened it, and what else only they ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from funnel.audit.kernel.exact import ExactArray, FloatArray, IntArray
from funnel.audit.kernel.opened import Opened, file_of
from funnel.audit.kernel.records import Joint
from funnel.audit.kernel.verdict import Broken
from funnel.cells.cells import Cells
from funnel.cells.record import opened
from funnel.format import population, solution, terms
from funnel.format.cells import NAME
from funnel.format.fields import Alphabet, Label
from funnel.format.protocol import Weights
from funnel.format.reported import Published

if TYPE_CHECKING:
    from funnel.release.written import Each

Recount = Callable[["Release"], Any]
"""From a release to what its source holds, as its policy counts it: see `table`."""


class Release(Opened):
    """A release with its evidence; and what its auditor brings: a public key (32 bytes), a way to count the source.

    `asked` is the folder as it was given, which may be `latest`; `each` does some work for each of several items.
    """

    has_table = True
    """Whether the table is there, which may have been taken away on purpose."""
    terms = file_of("folder", terms.TermsFile, terms.NAME)
    population = file_of("folder", population.PopulationFile, population.NAME)
    solution = file_of("folder", solution.SolutionFile, solution.NAME)

    def __init__(self, release: Path, private: Path | None = None, *, staged: bool = False,
                 public_key: bytes | None = None, recount: Recount | None = None,
                 asked: Path | None = None, each: Each = map) -> None:  # fmt: skip
        super().__init__(release, private, staged=staged)
        self.public_key, self.recount, self.asked, self.each = public_key, recount, asked or release, each

    @property
    def published(self) -> Published:
        """The published files that the others are functions of. Raises Broken."""
        return Published(self.manifest, self.protocol, self.released, self.cells if self.partitioned else None)

    @property
    def root(self) -> Path:
        """The private folder of all releases of the ledger."""
        return self.folder.parent

    @property
    def secret(self) -> Alphabet:
        """The secret's columns and values."""
        return self.joint.alphabets[0]

    @property
    def alphabets(self) -> tuple[Alphabet, ...]:
        """Columns and values of every block."""
        return self.joint.alphabets[1:]

    @cached_property
    def wide(self) -> tuple[Cells, ...]:
        """The cells of the wide blocks. Raises Broken."""
        try:
            return tuple(map(opened, self.partitioned))
        except ValueError as error:
            raise Broken(NAME, "these are no cells", "cells", str(error)) from None

    @cached_property
    def table(self) -> IntArray:
        """N[s, x_1, …, x_k] that claims are about."""
        return self.joint.dense()

    def by_label(self) -> Counter[tuple[Label, ...]]:
        """How many records were released for each value of S and of every block."""
        return self.cells_of(self.records)

    @staticmethod
    def cells_of(joint: Joint) -> Counter[tuple[Label, ...]]:
        """Counts by the values of S and of every block."""
        found = Counter[tuple[Label, ...]]()
        for codes, number in zip(joint.cells.tolist(), joint.number.tolist(), strict=True):
            found[tuple(one.values[code] for one, code in zip(joint.alphabets, codes, strict=True))] += number
        return found

    def by_block(self, index: int) -> IntArray:
        """N[s, x] (c, a) that claims are about, of one block."""
        found = np.zeros((len(self.secret.values), len(self.alphabets[index].values)), np.int64)
        np.add.at(found, (self.joint.cells[:, 0], self.joint.cells[:, index + 1]), self.joint.number)
        return found

    def read(self, name: str) -> bytes:
        """A private file of this release. Raises Broken."""
        return self.content(self.folder / name)


def array(block: Weights) -> ExactArray:
    """W[y, s, x] (b, c or 1, a)."""
    weights = np.array(block.weights)
    return weights if block.secret else weights[:, None, :]



def entropy(masses: FloatArray) -> float:
    """-Σ p ln p in nats, of non-negative masses, normalised first."""
    p = masses[masses > 0] / masses.sum()
    return float(0.0 - (p * np.log(p)).sum())
