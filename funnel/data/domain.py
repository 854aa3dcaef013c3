"""Every combination that a record can take by the policy alone: what is counted, whatever the table holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from funnel.data.alphabet import Alphabet, Label
from funnel.data.joint import IntArray, Joint

MOST_CELLS = 1 << 16
"""Combinations that noise is added to one by one."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Alphabets of S and of each block, and `cells` (m, 1+k): the codes of all combinations, no matter which occur.

    A column that is both secret and public takes one value in a combination.
    """

    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    cells: IntArray

    @classmethod
    def of(
        cls,
        values: Mapping[str, Sequence[str | None]],
        secret: Sequence[str],
        blocks: Sequence[Sequence[str]],
    ) -> Domain:
        """From the values of every column; ValueError beyond MOST_CELLS combinations."""
        names = list(dict.fromkeys([*secret, *(column for block in blocks for column in block)]))
        if prod(len(values[name]) for name in names) > MOST_CELLS:
            raise ValueError(f"more than {MOST_CELLS} combinations of declared values")
        rows = list(product(*(values[name] for name in names)))
        alphabets, codes = [], []
        for group in (secret, *blocks):
            places = [names.index(name) for name in group]
            labels = [tuple(row[place] for place in places) for row in rows]
            alphabet = Alphabet.of(group, labels)
            index = {value: code for code, value in enumerate(alphabet.values)}
            alphabets.append(alphabet)
            codes.append([index[label] for label in labels])
        cells = np.array(codes, np.int64).T
        order = np.lexsort(cells.T[::-1])
        return cls(alphabets[0], tuple(alphabets[1:]), cells[order])

    @cached_property
    def place(self) -> dict[tuple[Label, ...], int]:
        """The row of `cells` of a combination of labels, that of S first."""
        alphabets = (self.secret, *self.blocks)
        return {
            tuple(one.values[code] for one, code in zip(alphabets, row, strict=True)): index
            for index, row in enumerate(self.cells.tolist())
        }

    def joint(self, counts: IntArray, *, complete: bool = True) -> Joint:
        """Counts (m,) over these alphabets; cells without records are left out."""
        there = counts > 0
        return Joint(self.secret, self.blocks, self.cells[there], counts[there], complete)
