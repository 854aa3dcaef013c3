"""What comes by on the way to a reading that counts and draws at once, and is no part of a row that is drawn for.

These are the columns inside wide blocks, rows that lack a value and are left out, and labels that may be rare.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from funnel.data import Alphabet
from funnel.draw.once import Reading
from funnel.engine import Engine
from funnel.engine.sql import identifier
from funnel.engine.wide import Columns
from funnel.plan.names import THERE
from funnel.plan.once import label_of
from funnel.plan.stages import Plan, Rare
from funnel.plan.tabulate import Merged
from funnel.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

    from funnel.cells.cells import Cells
    from funnel.plan.labelling import Labelling, Labels
    from funnel.plan.partition import Partition


class Passing:
    """A kernel that takes out of a table's rows what a reading does not know, and gives it the rest, as codes.

    `alphabets` are those of the blocks in a lock.
    """

    def __init__(self, plan: Plan, engine: Engine, alphabets: Sequence[Alphabet], reading: Reading) -> None:
        self._blocks = () if plan.cells is None else plan.cells.blocks
        self._columns = [Columns(len(wide.keys)) for wide in self._blocks]
        self._rare, self._reading = plan.count.rare, reading
        self._labelling = _labelling(self._rare, engine, alphabets) if self._rare else {}

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the reading makes of the rows of a part."""
        return self._reading(part, map(self._taken, batches))

    def _taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if THERE in batch.schema.names:
            there = batch.column(THERE)
            self._reading.leave_out(batch.filter(pc.invert(there)).column("entity"))
            batch = batch.filter(there).drop_columns([THERE])
        for wide, columns in zip(self._blocks, self._columns, strict=True):
            columns.add(batch.column(key) for key in wide.keys)
        for block, labelling in self._labelling.items():
            codes = labelling.codes([batch.column(label) for label in _labels(block, labelling)])
            batch = batch.append_column(f"x{block}", codes)
        passed = chain((key for wide in self._blocks for key in wide.keys), *starmap(_labels, self._labelling.items()))
        return batch.drop_columns(list(passed))

    def is_refused(self, refused: Sequence[tuple[str, str]]) -> bool:
        """Whether a column holds a label for which it has no use (`refused` has both), or no value at all.

        Or columns of a wide block hold more than can be held here: other readings say it all.
        """
        if any(own.are_too_many for own in self._columns):
            return True
        wide = (pair for block, own in zip(self._blocks, self._columns, strict=True)
                for pair in zip(block.columns, own.values, strict=True))  # fmt: skip
        rare = ((one.column, set(self._labels_of(one).become)) for one in self._rare)
        return any(texts <= {None} or texts & {label for name, label in refused if name == column}
                   for column, texts in chain(wide, rare))  # fmt: skip

    def partitions(self, policy: Policy, pinned: Sequence[Cells]) -> tuple[Partition, ...]:
        """All rows that came, in the cells of a lock.

        Raises SourceError where a column is not what cells are made of, or holds what these do not know.
        """
        kept, found = {one.name: one for one in pinned}, list["Partition"]()
        for block, wide, columns in zip(policy.wide, self._blocks, self._columns, strict=True):
            from funnel.plan.partition import in_cells

            sources = columns.found(wide.columns, wide.types, wide.ordered)
            found.append(in_cells(block, wide, kept[wide.name], sources))
        return tuple(found)

    def merged(self, engine: Engine) -> tuple[Merged, ...]:
        """What became of rare values; the engine gets the tables of it, for the statements that come behind."""
        found = []
        for rare in self._rare:
            labels = self._labels_of(rare)
            engine.provide(rare.name, Alphabet(("value", "label"), tuple(labels.become.items())))
            found.append(labels.merged(rare.column))
        return tuple(found)

    def _labels_of(self, rare: Rare) -> Labels:
        block, place = _place(rare)
        return self._labelling[block].columns[place]


def _place(rare: Rare) -> tuple[int, int]:
    """The block of a column with rare values, and its place there."""
    block, place = rare.name.removeprefix("rare_x").split("_")
    return int(block), int(place)


def _labelling(rare: Sequence[Rare], engine: Engine, alphabets: Sequence[Alphabet]) -> dict[int, Labelling]:
    """What labels the rows of each block that has rare values."""
    from funnel.plan.labelling import Labelling, Merging

    merging = dict[int, dict[int, Merging]]()
    for one in rare:
        block, place = _place(one)
        known = [row[0] for row in engine.rows(f"SELECT v0 FROM {identifier(str(one.known))}")]
        merging.setdefault(block, {})[place] = Merging(one, known)
    return {block: Labelling(alphabets[block], own) for block, own in merging.items()}


def _labels(block: int, labelling: Labelling) -> list[str]:
    """The columns of the labels of a block."""
    return [label_of(f"x{block}_{place}") for place in range(len(labelling.columns))]
