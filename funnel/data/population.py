"""Everybody in the source, whoever is in a release: who is left out is told by every table that leaves somebody out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.data.alphabet import Alphabet, Label
from funnel.data.finer import added_up
from funnel.data.joint import IntArray, Joint

Flags = npt.NDArray[np.bool_]
MOST_CLASSES = 16
"""Different predicates of one folder that are evaluated; with more of them nothing is known of who is where."""
NO_LABEL = -1
"""The code of a public value that tonight's rules have no label for."""


@dataclass(frozen=True, eq=False)
class Population:
    """Records of the whole source by the secret, by tonight's labels of the public blocks, and by where they are.

    `classes` are predicates over the source's columns, as releases of the folder have them. Rows are distinct:
    `cells` (m, 1+k) codes, NO_LABEL where a value has none; `present` (m, classes) says which predicates hold;
    `counts` (m,) are positive. Every value of every alphabet occurs, in a release or not.
    """

    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    classes: tuple[str, ...]
    cells: IntArray
    present: Flags
    counts: IntArray

    def __post_init__(self) -> None:
        rows = len(self.counts)
        if self.cells.shape != (rows, 1 + len(self.blocks)) or self.present.shape != (rows, len(self.classes)):
            raise ValueError("cells, classes and counts of a population do not match")

    @property
    def rows(self) -> int:
        """Number of records, in a release or not."""
        return int(self.counts.sum())

    def holds(self, predicate: str | None) -> Flags | None:
        """Which rows (m,) a predicate lets in, None letting in all; None where it is not known of them."""
        if predicate is None:
            return np.ones(len(self.counts), bool)
        return self.present[:, self.classes.index(predicate)] if predicate in self.classes else None

    def named(self, blocks: Sequence[Alphabet]) -> Flags:
        """Which rows (m,) have a value of `blocks` in each block: under a lock, those that are drawn for."""
        known: list[Flags] = [
            np.array([value in set(block.values) for value in own.values] + [False], bool)[codes]
            for own, block, codes in zip(self.blocks, blocks, self.cells[:, 1:].T, strict=True)
        ]
        named: Flags = np.logical_and.reduce(known)
        return named

    def labels(self) -> list[tuple[Label | None, ...]]:
        """The labels of each row's secret and blocks (m)."""
        alphabets = (self.secret, *self.blocks)
        return [
            tuple(
                None if code == NO_LABEL else one.values[code]
                for one, code in zip(alphabets, row, strict=True)
            )
            for row in self.cells.tolist()
        ]

    def over(self, blocks: Sequence[Alphabet], values: Sequence[Sequence[Label | None]]) -> Population:
        """The same records with other labels: for each of `blocks` one label a row (m), None where it has none.

        Values of `blocks` that somebody has come first and in their order, others behind them.
        """
        codes, alphabets = [self.cells[:, 0]], list[Alphabet]()
        for block, own in zip(blocks, values, strict=True):
            seen = {value for value in own if value is not None}
            first = [value for value in block.values if value in seen]
            others = Alphabet.of(block.columns, list(seen - set(first))).values
            alphabet = Alphabet(block.columns, (*first, *others))
            place = {value: code for code, value in enumerate(alphabet.values)}
            codes.append(np.array([NO_LABEL if value is None else place[value] for value in own], np.int64))
            alphabets.append(alphabet)
        return _added_up(replace(self, blocks=tuple(alphabets), cells=np.column_stack(codes)))

    def among(self, rows: Flags, blocks: Sequence[Alphabet] | None = None) -> Joint:
        """The joint distribution of some rows (m,), all of which have labels; over `blocks`, or those that occur.

        The secret has all its values. Raises ValueError where a value is not among `blocks`.
        """
        cells, alphabets = self.cells[rows], list[Alphabet]()
        for axis, own in enumerate(self.blocks, start=1):
            seen = np.unique(cells[:, axis])
            asked = None if blocks is None else blocks[axis - 1]
            alphabet = asked or Alphabet(own.columns, tuple(own.values[code] for code in seen.tolist()))
            place = {value: code for code, value in enumerate(alphabet.values)}
            moved = np.full(len(own), NO_LABEL, np.int64)
            moved[seen] = [place.get(own.values[code], NO_LABEL) for code in seen.tolist()]
            cells = np.column_stack([cells[:, :axis], moved[cells[:, axis]], cells[:, axis + 1 :]])
            alphabets.append(alphabet)
        if (cells < 0).any():
            raise ValueError("some record has no label")
        return Joint(self.secret, tuple(alphabets), *added_up(cells, self.counts[rows]), complete=False)


def _added_up(one: Population) -> Population:
    """With rows that have become alike put together."""
    distinct, counts = added_up(np.column_stack([one.cells, one.present.astype(np.int64)]), one.counts)
    width = one.cells.shape[1]
    return replace(one, cells=distinct[:, :width], present=distinct[:, width:].astype(bool), counts=counts)
