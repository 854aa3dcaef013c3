"""What comes by on the way to a reading that counts and draws at once, and is no part of a row that is drawn for.

These are the columns inside wide blocks, and rows that lack a value and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from funnel.draw.once import Reading
from funnel.engine.wide import Columns
from funnel.plan import stages
from funnel.plan.names import THERE
from funnel.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

    from funnel.cells.cells import Cells
    from funnel.plan.partition import Partition

class Passing:
    """A kernel that keeps the columns inside wide blocks for itself, and gives the others to a reading."""

    def __init__(self, blocks: Sequence[stages.WideBlock], reading: Reading) -> None:
        self._blocks, self._reading = blocks, reading
        self._columns = [Columns(len(wide.keys)) for wide in blocks]

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
        return batch.drop_columns([key for wide in self._blocks for key in wide.keys])

    def partitions(
        self, policy: Policy, pinned: Sequence[Cells], refused: Sequence[tuple[str, str]]
    ) -> tuple[Partition, ...] | None:
        """All rows that came, in the cells of a lock; `refused` are columns with labels for which they have no use.

        None where there is such a label, or a column of nothing but missing values. Raises SourceError where a column
        is not what cells are made of, or holds what these do not know.
        """
        from funnel.plan.partition import in_cells

        kept, found, wrong = {one.name: one for one in pinned}, [], set(refused)
        for block, wide, columns in zip(policy.wide, self._blocks, self._columns, strict=True):
            sources = columns.found(wide.columns, wide.types, wide.ordered)
            if any(set(one.values) <= {None} or wrong & {(one.name, text) for text in one.values} for one in sources):
                return None
            found.append(in_cells(block, wide, kept[wide.name], sources))
        return tuple(found)
