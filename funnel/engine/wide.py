"""The columns of a wide block, read once: distinct texts, and for every record their codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from funnel.cells.columns import Codes, SourceColumn
from funnel.engine.base import Engine

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 17


def read_columns(
    engine: Engine,
    statement: str,
    names: Sequence[str],
    types: Sequence[str],
    ordered: Sequence[bool],
) -> tuple[SourceColumn, ...]:
    """The columns of a query for texts, under these names and types. Raises SourceError."""
    columns = Columns(len(names))
    for batch in engine.stream(statement, _BATCH):
        columns.add(batch.columns)
    return columns.found(names, types, ordered)


class Columns:
    """So many columns of texts, batch by batch; codes take four bytes a record and column."""

    def __init__(self, number: int) -> None:
        self._texts = [_Texts() for _ in range(number)]

    def add(self, batch: Iterable[pa.Array]) -> None:
        """Take in the records of a batch."""
        for column, texts in zip(self._texts, batch, strict=True):
            column.add(texts)

    @property
    def values(self) -> list[set[str | None]]:
        """The texts of each."""
        return [set(column.codes) for column in self._texts]

    def found(
        self, names: Sequence[str], types: Sequence[str], ordered: Sequence[bool]
    ) -> tuple[SourceColumn, ...]:
        """What they hold, under these names and types."""
        return tuple(
            SourceColumn(name, kind, flag, tuple(column.codes), column.whole())
            for name, kind, flag, column in zip(names, types, ordered, self._texts, strict=True)
        )


class _Texts:
    """One column so far: the code of each distinct text, and the codes of the records, batch by batch."""

    def __init__(self) -> None:
        self.codes: dict[str | None, int] = {}
        self.parts: list[Codes] = []

    def add(self, texts: pa.Array) -> None:
        """Take in the records of a batch."""
        encoded = texts.dictionary_encode(null_encoding="encode")
        own = [self.codes.setdefault(text, len(self.codes)) for text in encoded.dictionary.to_pylist()]
        self.parts.append(np.array(own, np.int32)[encoded.indices.to_numpy()])

    def whole(self) -> Codes:
        """The codes of all records (n,)."""
        return np.concatenate(self.parts) if self.parts else np.zeros(0, np.int32)
