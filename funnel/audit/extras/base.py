"""What extras have in common: the release as the kernel opened it, and what else only they ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from funnel.audit.kernel.exact import ExactArray, IntArray
from funnel.audit.kernel.opened import Opened, private_file
from funnel.audit.kernel.verdict import Broken
from funnel.cells.cells import Cells
from funnel.cells.record import opened
from funnel.format import population, solution, terms
from funnel.format.cells import NAME
from funnel.format.fields import Alphabet
from funnel.format.protocol import Weights

Recount = Callable[["Release"], Any]
"""From a release to what its source holds, as its policy counts it: see `table`."""


class Release(Opened):
    """A release with its evidence; and what its auditor brings: a public key (32 bytes), a way to count the source."""

    terms = private_file(terms.TermsFile, terms.NAME)
    population = private_file(population.PopulationFile, population.NAME)
    solution = private_file(solution.SolutionFile, solution.NAME)

    def __init__(self, release: Path, private: Path | None = None, *, staged: bool = False,
                 public_key: bytes | None = None, recount: Recount | None = None) -> None:  # fmt: skip
        super().__init__(release, private, staged=staged)
        self.public_key, self.recount = public_key, recount

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

