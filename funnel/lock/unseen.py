"""What the cells of a lock do not know: texts, and missing values, that appear only tonight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from funnel.cells.cells import Cells
from funnel.cells.columns import SourceColumn, Vocabulary
from funnel.data.alphabet import readable
from funnel.errors import SourceError
from funnel.policy import Block
from funnel.text import counted, some

LEFT_OUT = 0
"""The cell of a row that is left out; cells count from 1."""
_SHOWN = 8


def check_seen(block: Block, cells: Cells, sources: Sequence[SourceColumn]) -> None:
    """Every value is one that the cells know, or the policy says that its rows are left out. Raises SourceError.

    A number lies in some cell whatever it is, and a column that has `other` puts every text there that it does not
    list: rare ones, which are nowhere named, and new ones are the same to it.
    """
    for column, source, attribute in zip(cells.columns, sources, block.attributes, strict=True):
        unknown = list(_unknown(column, source))
        if unknown and attribute.unseen != "drop":
            shown = some([f"{readable((value,))!r} ({rows:,})" for value, rows in unknown], _SHOWN)
            raise SourceError(
                "unseen-value",
                f"the lock does not know {counted(len(unknown), 'value')} of {column.name}",
                values=shown,
                advice="Nothing was published. Where nothing was released under the lock yet, write `unseen: drop` at "
                "the column, which leaves such rows out, and make a new lock with `funnel lock --force`, or make one "
                "that knows them. Later its cells stay, so leave such rows out of the source.",
            )


def _unknown(column: Vocabulary, source: SourceColumn) -> Iterator[tuple[str | None, int]]:
    """Values that the column has no place for, with their records."""
    known = set(column.values)
    for value, rows in zip(source.values, source.counts.tolist(), strict=True):
        new = column.missing is None if value is None else _listed(column) and value not in known
        if new and rows:
            yield value, rows


def _listed(column: Vocabulary) -> bool:
    """Whether only the values that are listed have a place."""
    return not column.ordered and column.other is None
