"""The counts that claims are about, and the records drawn for: over the protocols' inputs, as many as were released.

All functions raise Broken where that is not so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.audit.kernel.exact import MOST_CELLS, IntArray
from funnel.audit.kernel.files import array, labels, table
from funnel.audit.kernel.protocol import Block, by_axis
from funnel.audit.kernel.verdict import Broken, agree
from funnel.format import counts
from funnel.format.fields import Alphabet
from funnel.format.manifest import Manifest

MOST_NOISY = 1 << 40
"""Of a count or its noise under a private estimate, so that no sum of them overflows a word."""


@dataclass(frozen=True, eq=False)
class Joint:
    """Counts N[s, x_1, …, x_k]: `cells` (m, 1+k) of codes, `number` (m,) of records, over alphabets S, X_1, …, X_k."""

    alphabets: tuple[Alphabet, ...]
    cells: IntArray
    number: IntArray

    def __post_init__(self) -> None:
        """A column that is both secret and public has one value in a cell. Raises Broken."""
        secret = self.alphabets[0]
        for axis, block in enumerate(self.alphabets[1:], start=1):
            for name in set(block.columns) & set(secret.columns):
                if (column(secret, name)[self.cells[:, 0]] != column(block, name)[self.cells[:, axis]]).any():
                    raise Broken(counts.NAME, f"{name} has two values in one cell", "one value", "two")

    @property
    def rows(self) -> int:
        """Records in all."""
        return sum(self.number.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        """(c, a_1, …, a_k)."""
        return tuple(len(one.values) for one in self.alphabets)

    def dense(self) -> IntArray:
        """N as an array of its shape, of at most MOST_CELLS."""
        if prod(self.shape) > MOST_CELLS:
            raise Broken(counts.NAME, "too many cells to be measured: nothing is proven", MOST_CELLS, self.shape)
        table = np.zeros(self.shape, np.int64)
        table[tuple(self.cells.T)] = self.number
        return table

    def of_axis(self, axis: int) -> IntArray:
        """Records of each value of S (axis 0) or of a block."""
        found = np.zeros(self.shape[axis], np.int64)
        np.add.at(found, self.cells[:, axis], self.number)
        return found

    def possible(self) -> npt.NDArray[np.bool_]:
        """Which values x of the first block can occur with which s (c, a): all, unless x = (s, u) holds all of s."""
        (names, secrets), (columns, values) = ((one.columns, one.values) for one in self.alphabets[:2])
        own = [columns.index(name) for name in names] if set(names) <= set(columns) else []
        return np.array([[not own or tuple(x[i] for i in own) == s for x in values] for s in secrets])


def column(alphabet: Alphabet, name: str) -> npt.NDArray[Any]:
    """What every value says of one column."""
    return np.array([value[alphabet.columns.index(name)] for value in alphabet.values], object)


def joint(file: counts.CountsFile, blocks: tuple[Block, ...], manifest: Manifest) -> Joint:
    """The counts that claims are about, over the secret and the protocols' inputs."""
    alphabets = (file.secret, *file.blocks)
    for one in alphabets:
        labels(counts.NAME, one.columns, one.values)
    agree(counts.NAME, [
        ("secret", (manifest.sensitive, manifest.alphabet.sensitive), (file.secret.columns, len(file.secret.values))),
        ("secret that is read", {file.secret}, {one.secret for one in blocks if one.secret} or {file.secret}),
        ("inputs", [(one.columns, one.inputs) for one, *_ in by_axis(blocks)],
         [(one.columns, one.values) for one in file.blocks]),
        ("kind of estimate", manifest.estimate.kind == "private", file.private is not None),
    ])  # fmt: skip
    rows = table(counts.NAME, file.cells, (len(one.values) for one in alphabets))
    return Joint(alphabets, rows[:, :-1], rows[:, -1])


def records(file: counts.CountsFile, joint: Joint, manifest: Manifest) -> Joint:
    """The records themselves, as many as were released: the counts, or what stands beside those of an estimate."""
    found = joint
    if file.private:
        cells = array(counts.NAME, file.private.cells, (len(file.private.cells), len(joint.shape) + 3))
        number, codes = array(counts.NAME, file.private.records, (len(cells),)), cells[:, :-3]
        if cells[:, -3:].max(initial=0) >= MOST_NOISY:
            raise Broken(counts.NAME, "a noisy count is too large to be honest", f"below {MOST_NOISY}", "more")
        if (codes >= np.array(joint.shape)).any() or len(np.unique(codes, axis=0)) < len(codes):
            raise Broken(counts.NAME, "noisy cells are not distinct ones of the alphabets", joint.shape, "others")
        found = replace(Joint(joint.alphabets, codes, number), cells=codes[number > 0], number=number[number > 0])
    if found.rows != manifest.rows:
        raise Broken(counts.NAME, "counts are not of as many records as were released", manifest.rows, found.rows)
    return found
