"""The joint distribution of the secret and the public blocks, as integer counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.data.alphabet import Alphabet
from funnel.data.beliefs import Beliefs, rounded
from funnel.data.finer import Finer, finer
from funnel.format.known import RELEASED, Level

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Joint:
    """Counts N[s, x_1, …, x_k] of records, kept sparse: `cells` (m, 1+k) codes and `counts` (m,) rows.

    S is one alphabet, X is k blocks, each sanitised as one alphabet. Every value of every alphabet
    occurs at least once, so no marginal is zero; only where they are not `complete`, because a lock fixed
    them on another night or a policy declares them, may a value have no records. With `beliefs` it stands for all
    tables that round as these do: the counts are amid them, and are nobody's.
    """

    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    cells: IntArray
    counts: IntArray
    complete: bool = True
    finer: Finer | None = None
    beliefs: Beliefs | None = None

    def __post_init__(self) -> None:
        if self.cells.shape != (len(self.counts), 1 + len(self.blocks)):
            raise ValueError("cells and counts of a joint distribution do not match")
        if len(self.counts) == 0 or self.counts.min() <= 0:
            raise ValueError("a joint distribution lists only cells that occur")
        for axis, alphabet in enumerate((self.secret, *self.blocks)):
            seen, every = set(self.cells[:, axis].tolist()), set(range(len(alphabet)))
            if seen != every and (self.complete or not seen < every):
                raise ValueError(f"some value of {alphabet.columns} never occurs")

    @property
    def rows(self) -> int:
        """Number of records n."""
        return int(self.counts.sum())

    @property
    def shape(self) -> tuple[int, ...]:
        """(c, a_1, …, a_k): sizes of the alphabets."""
        return (len(self.secret), *(len(block) for block in self.blocks))

    def block(self, index: int) -> Joint:
        """The joint distribution of S and one block alone."""
        table = self.table(index)
        cells = np.argwhere(table > 0)
        counts = table[table > 0]
        return Joint(self.secret, (self.blocks[index],), cells.astype(np.int64), counts, self.complete)

    def table(self, index: int = 0) -> IntArray:
        """Dense counts N[s, x] of one block, shape (c, a_index)."""
        table = np.zeros((len(self.secret), len(self.blocks[index])), np.int64)
        np.add.at(table, (self.cells[:, 0], self.cells[:, 1 + index]), self.counts)
        return table

    def dense(self) -> IntArray:
        """Dense counts N[s, x_1, …, x_k]; the caller bounds the size."""
        table = np.zeros(self.shape, np.int64)
        table[tuple(self.cells.T)] = self.counts
        return table

    def believed(self, step: Fraction, minimum: int, *, exact: bool) -> Joint:
        """What is left of the table where beliefs are rounded outward to such steps, and totals unless `exact`."""
        found = rounded(self.dense(), step, minimum, exact=exact)
        cells = np.argwhere(found.centre > 0).astype(np.int64)
        counts = found.centre[found.centre > 0]
        return Joint(self.secret, self.blocks, cells, counts, complete=False, beliefs=found)

    def known(self) -> Finer:
        """What somebody may know of the records: as counted for it, else every released column, whoever shares it."""
        return self.released(1) if self.finer is None else self.finer

    def released(self, minimum: int) -> Finer:
        """The records by their released columns alone."""
        every = [(j, column) for j, block in enumerate(self.blocks) for column in block.columns]
        read = [self.column(j, column) for j, column in every]
        levels = [Level(column, RELEASED, values) for (_, column), (values, _) in zip(every, read, strict=True)]
        codes = np.column_stack([code[self.cells[:, 1 + j]] for (j, _), (_, code) in zip(every, read, strict=True)])
        return finer(self.cells, self.counts, levels, codes, minimum)

    def column(self, index: int, name: str) -> tuple[tuple[str | None, ...], IntArray]:
        """The values that one column of a block takes, and the place (a,) among them of each value of the block."""
        place = self.blocks[index].columns.index(name)
        values = tuple(dict.fromkeys(value[place] for value in self.blocks[index].values))
        code = {value: number for number, value in enumerate(values)}
        return values, np.array([code[value[place]] for value in self.blocks[index].values], np.int64)

    @classmethod
    def from_records(cls, table: npt.ArrayLike, hidden: str = "S", public: str = "U") -> Joint:
        """A joint whose public value is the whole record x = (s, u), from counts N[s, u] (c, a2)."""
        counts = np.asarray(table, np.int64)
        cells = np.argwhere(counts > 0).astype(np.int64)
        values = tuple((f"s{s + 1}", f"u{u + 1}") for s, u in cells)
        return cls(
            Alphabet((hidden,), tuple((f"s{s + 1}",) for s in range(counts.shape[0]))),
            (Alphabet((hidden, public), values),),
            np.column_stack([cells[:, 0], np.arange(len(cells))]),
            counts[counts > 0],
        )

    @classmethod
    def from_table(cls, table: npt.ArrayLike, hidden: str = "S", public: str = "X") -> Joint:
        """A joint of one secret and one block from a dense table N[s, x] (c, a); values are named s1…, x1…."""
        counts = np.asarray(table, np.int64)
        cells = np.argwhere(counts > 0).astype(np.int64)
        return cls(
            Alphabet((hidden,), tuple((f"s{i + 1}",) for i in range(counts.shape[0]))),
            (Alphabet((public,), tuple((f"x{i + 1}",) for i in range(counts.shape[1]))),),
            cells,
            counts[counts > 0],
        )
