"""The columns inside wide blocks, on their way past a reading that counts and draws by the cells of a lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from funnel.engine import Kernel
from funnel.engine.wide import Columns
from funnel.plan import stages
from funnel.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

    from funnel.cells.cells import Cells
    from funnel.plan.partition import Partition


class Passing:
    """A kernel that keeps the columns inside wide blocks for itself, and gives all others to the next one."""

    def __init__(self, blocks: Sequence[stages.WideBlock], kernel: Kernel) -> None:
        self._blocks, self._kernel = blocks, kernel
        self._columns = [Columns(len(wide.keys)) for wide in blocks]

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the next kernel makes of the rows of a part."""
        return self._kernel(part, map(self._taken, batches) if self._blocks else batches)

    def _taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
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
