"""A release as an analyst opens it: from its published folder alone, read by the formats of its files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.folder import release_folder
from funnel.audit.kernel.verdict import Broken
from funnel.data import AnyProtocol, Label
from funnel.data.convert import protocols_of
from funnel.data.joint import IntArray
from funnel.engine.sql import identifier, listed
from funnel.errors import ReleaseError
from funnel.format import cells, protocol, released
from funnel.format.manifest import Manifest
from funnel.release.reading import Reading, readings

if TYPE_CHECKING:
    import pyarrow as pa

_READ = (protocol.NAME, released.NAME, cells.NAME)


class Data:
    """The files of a release. Everything raises ReleaseError (`release-unreadable`) where they do not hold together."""

    def __init__(self, path: Path) -> None:
        from funnel.audit.extras.export import distinct_rows

        self._opened = Release(release_folder(path))
        try:
            self.manifest: Manifest = self._opened.manifest
            self._unchanged(*_READ)
            self._answers: IntArray = distinct_rows(self._opened)
            _ = self._opened.answers  # an answer that no input could have had is refused
            self.protocols: tuple[AnyProtocol, ...] = protocols_of(self._opened.protocol)
            wide = self._opened.wide
        except (Broken, ValueError) as error:
            raise self._unreadable(error) from error
        self.wide = frozenset(one.name for one in wide)
        self.blocks: tuple[Reading, ...] = readings(self.manifest, self.protocols, self._opened.released, wide)

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self._opened.release

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that are published untouched."""
        return tuple(key.name for key in self.manifest.identify)

    @property
    def columns(self) -> tuple[str, ...]:
        """All that can be asked for."""
        return (*self.keys, *(name for block in self.blocks for name in block.columns))

    def weighted(self, keys: Sequence[str] = ()) -> tuple[list[Label], IntArray]:
        """The released rows: values of some key columns, each once, and rows [key, y_1, …, y_k, count] (m, k+2).

        The one place where rows are read. Without keys they are those of released.json, and the first column is 0.
        """
        if not keys:
            return [()], np.column_stack([np.zeros(len(self._answers), np.int64), self._answers])
        whole = self._named()
        columns = [whole.column(f"k{self.keys.index(key)}").to_pylist() for key in keys]
        labels = [tuple(map(str, one)) for one in zip(*columns, strict=True)]
        codes = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        answers = [whole.column(f"y{block}").to_numpy() for block in range(len(self.blocks))]
        rows = np.column_stack([[codes[label] for label in labels], *answers]).astype(np.int64)
        distinct, counts = np.unique(rows, axis=0, return_counts=True)
        return list(codes), np.column_stack([distinct, counts])

    @property
    def counted(self) -> bool:
        """Whether the table has every distinct row once, with a count."""
        return self.manifest.rows_of_data == "counts"

    @property
    def answers(self) -> IntArray:
        """Codes (rows of the table, k) of the blocks' answers."""
        if self.keys:
            whole = self._named()
            return np.column_stack([whole.column(f"y{block}").to_numpy() for block in range(len(self.blocks))])
        codes, times = self._answers[:, :-1], self._answers[:, -1]
        return codes if self.counted else np.repeat(codes, times, axis=0)

    @property
    def times(self) -> IntArray:
        """How often (rows of the table,) each of them was given."""
        return self._answers[:, -1] if self.counted else np.ones(len(self.table), np.int64)

    @cached_property
    def table(self) -> pa.Table:
        """The released table, in its types."""
        import duckdb
        import pyarrow as pa

        from funnel.audit.extras.reading import read_table

        try:
            self._unchanged(*self.manifest.tables)
            names, batches = read_table(self._opened, by_file=True)
            texts = pa.Table.from_batches(list(batches))
        except Broken as broken:
            raise self._unreadable(broken) from broken
        if self.manifest.format_of_data == "parquet":
            return texts
        told = self._opened.released
        kinds = {key.name: key.type for key in self.manifest.identify}
        kinds |= dict(zip(told.columns, told.types, strict=True))
        read = [f"CAST({identifier(name)} AS {kinds.get(name, 'BIGINT')}) AS {identifier(name)}" for name in names]
        with duckdb.connect(":memory:") as connection:
            connection.register("texts", texts)
            return connection.sql(f"SELECT {listed(read)} FROM texts").to_arrow_table()

    def _named(self) -> pa.Table:
        """Rows with their keys and the codes of their answers."""
        import pyarrow as pa

        from funnel.audit.extras.export import answered

        try:
            self._unchanged(*self.manifest.tables)
            return pa.Table.from_batches(answered(self._opened, self.folder / self.manifest.data))
        except Broken as broken:
            raise self._unreadable(broken) from broken

    def _unchanged(self, *names: str) -> None:
        files = self.manifest.files
        self._opened.unchanged(self.folder, {name: files[name] for name in names if name in files})

    def _unreadable(self, error: Exception) -> ReleaseError:
        return ReleaseError(
            "release-unreadable", str(error), where=str(self._opened.release),
            advice="Fetch the release anew; `funnel audit` says all that is wrong with it.",
        )  # fmt: skip

