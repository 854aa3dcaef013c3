"""The columns of a wide block: distinct texts, and the codes of every combination of them with its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from funnel.cells.columns import Codes, SourceColumn
from funnel.data.joint import IntArray
from funnel.engine.base import Engine
from funnel.errors import PlanError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 17
_WAITING = 1 << 20
"""Rows that wait at least before equal ones among them become one."""
MOST_CODES = 1 << 28
"""Combinations times columns that cells are made of, or rows times columns that are filled in at once.

All are in memory then, at about 20 bytes each."""


def check_size(engine: Engine, name: str, statement: str, columns: int, records: int) -> None:
    """The combinations of a block's columns can all be held; they are counted where the records could not.

    Raises PlanError, SourceError.
    """
    most = MOST_CODES // columns
    if records > most and (found := engine.distinct(statement)) > most:
        raise PlanError(
            "cells-size",
            f"the {columns} columns of block {name!r} take {found:,} combinations; cells are made of {most:,} at most",
            advice="Round numbers, merge values (`groups`, `top`), or leave the columns out that have most values.",
        )


def read_columns(
    engine: Engine,
    statement: str,
    names: Sequence[str],
    types: Sequence[str],
    ordered: Sequence[bool],
) -> tuple[SourceColumn, ...]:
    """The columns of a query for texts and, behind them, the records of each combination, under these names and types.

    Raises SourceError.
    """
    columns = Columns(len(names))
    for batch in engine.stream(statement, _BATCH):
        *texts, records = batch.columns
        columns.add(texts, records.to_numpy())
    return columns.found(names, types, ordered)


class Columns:
    """So many columns of texts, batch by batch; codes take four bytes a combination and column."""

    def __init__(self, number: int) -> None:
        self._texts = [_Texts() for _ in range(number)]
        self._records = [np.zeros(0, np.int64)]
        self._known = self._waiting = 0

    def add(self, batch: Iterable[pa.Array], records: IntArray | None = None) -> None:
        """Take in the rows of a batch: combinations, none of them twice, with their `records`; else one record each."""
        if self.are_too_many:
            return
        rows = [column.add(texts) for column, texts in zip(self._texts, batch, strict=True)]
        self._records.append(np.ones(rows[0], np.int64) if records is None else records)
        self._waiting += 0 if records is not None else rows[0]
        if self._waiting > max(_WAITING, self._known):
            self._merge()

    @property
    def are_too_many(self) -> bool:
        """Whether there are more combinations than can be held, of which the rest was left where it is."""
        return self._known > MOST_CODES // len(self._texts)

    @property
    def values(self) -> list[set[str | None]]:
        """The texts of each."""
        return [set(column.codes) for column in self._texts]

    def found(
        self, names: Sequence[str], types: Sequence[str], ordered: Sequence[bool]
    ) -> tuple[SourceColumn, ...]:
        """What they hold, under these names and types.

        Values are in the order of their texts, combinations in that of their values, whatever order rows came in and
        however the table is divided.
        """
        if self._waiting:
            self._merge()
        records, several = np.concatenate(self._records), [column.whole() for column in self._texts]
        order = np.lexsort([codes for _, codes in reversed(several)])
        own = None if (records == 1).all() else records[order]
        return tuple(
            SourceColumn(name, kind, flag, values, codes[order], own)
            for name, kind, flag, (values, codes) in zip(names, types, ordered, several, strict=True)
        )

    def _merge(self) -> None:
        """Let equal rows become one."""
        import pyarrow as pa

        names = [str(place) for place in range(len(self._texts))]
        rows = [*(np.concatenate(column.parts) for column in self._texts), np.concatenate(self._records)]
        found = pa.table([pa.array(one) for one in rows], [*names, "n"]).group_by(names).aggregate([("n", "sum")])
        for name, column in zip(names, self._texts, strict=True):
            column.parts = [found[name].to_numpy()]
        self._records, self._known, self._waiting = [found["n_sum"].to_numpy()], len(found), 0


class _Texts:
    """One column so far: the code of each distinct text, and the codes of the rows, batch by batch."""

    def __init__(self) -> None:
        self.codes: dict[str | None, int] = {}
        self.parts = [np.zeros(0, np.int32)]

    def add(self, texts: pa.Array) -> int:
        """Take in the rows of a batch; how many there are."""
        encoded = texts.dictionary_encode(null_encoding="encode")
        own = [self.codes.setdefault(text, len(self.codes)) for text in encoded.dictionary.to_pylist()]
        self.parts.append(np.array(own, np.int32)[encoded.indices.to_numpy()])
        return len(texts)

    def whole(self) -> tuple[tuple[str | None, ...], Codes]:
        """The texts in order, the missing one last, and the codes (n,) of all rows."""
        values = sorted(self.codes, key=lambda text: (text is None, text or ""))
        place = np.zeros(len(values), np.int32)
        place[[self.codes[text] for text in values]] = np.arange(len(values))
        return tuple(values), place[np.concatenate(self.parts)]
