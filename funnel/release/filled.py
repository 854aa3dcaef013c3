"""Rows of a release with wide blocks: labels filled in from cells.json, every value an index into a vocabulary.

A function of published files: protocol.json, released.json, cells.json. Filling knows labels and a seed, and no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from funnel.cells.cells import Cells
from funnel.cells.columns import Codes
from funnel.cells.fill import fill, fill_in_order
from funnel.data import Protocol
from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol
from funnel.errors import InternalError
from funnel.format.manifest import Key
from funnel.format.released import ReleasedFile
from funnel.release.export import BATCH, Target, Window, connected, places, typed, write_table
from funnel.release.folders import ranks
from funnel.release.named import key_types
from funnel.release.weights import Weights, decimal, row_weights


@dataclass(frozen=True, eq=False)
class Filled:
    """A column of the table: the texts that it can hold (None: missing), and for every row the place of its own."""

    name: str
    type: str
    values: tuple[str | None, ...]
    codes: IntArray | Codes


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that have names: their `keys`, a column (n,) each, in order; and `codes` (n, k) of the blocks' outputs."""

    keys: tuple[pa.ChunkedArray, ...]
    codes: IntArray

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], keys: int) -> Rows:
        """From batches of so many key columns, and then codes."""
        whole = pa.Table.from_batches(batches)
        codes = [column.to_numpy() for column in whole.columns[keys:]]
        return cls(tuple(whole.columns[:keys]), np.column_stack(codes).astype(np.int64))

    @cached_property
    def names(self) -> list[str]:
        """One text for each row, by which it is filled in."""
        parts = zip(*(column.cast(pa.string()).to_pylist() for column in self.keys), strict=True)
        return ["\x1f".join(part) for part in parts]


def filled(
    protocols: Sequence[AnyProtocol],
    released: ReleasedFile,
    blocks: Sequence[Cells],
    rows: Rows | None = None,
    *,
    locked: bool,
    window: Window | None = None,
) -> tuple[Filled, ...]:
    """The columns of the table behind its keys, row by row: in the order of `rows`, else in that of their values.

    A window is of rows that are nobody's, in the order of their labels.
    """
    told = np.array(released.rows, np.int64)
    weighed = row_weights(blocks, protocols, told, locked=locked)
    ends = np.cumsum(told[:, -1])
    codes = told[places(ends, *(window or (0, int(ends[-1])))), :-1] if rows is None else rows.codes
    wide = {one.name: one for one in blocks}
    parts = [part for protocol, own in zip(protocols, codes.T, strict=True)
             for part in _parts(protocol, own, wide, rows, weighed)]  # fmt: skip
    named = zip(released.columns, released.types, parts, strict=True)
    columns = tuple(Filled(name, kind, values, own) for (name, kind, (values, own)) in named)
    if rows is not None:
        return columns
    order = np.lexsort([column.codes for column in reversed(columns)])
    return tuple(Filled(one.name, one.type, one.values, one.codes[order]) for one in columns)


def export_filled(
    protocols: Sequence[AnyProtocol],
    released: ReleasedFile,
    blocks: Sequence[Cells],
    target: Target,
    keys: Sequence[Key] = (),
    rows: Rows | None = None,
    *,
    locked: bool,
    window: Window | None = None,
) -> None:
    """Write the table of a release with wide blocks, as `export` does; `rows` hold its `keys`. Raises ReleaseError."""
    columns = filled(protocols, released, blocks, rows, locked=locked, window=window)
    with connected(target.path) as engine:
        kinds = key_types(engine(), keys) if keys else []
        own = [column.cast(kind) for column, kind in zip(rows.keys if rows else (), kinds, strict=True)]
        values = [
            typed(engine, pa.table({"v0": pa.array(one.values, pa.string())}), [one.name], [one.type])[0]
            for one in columns
        ]
        if target.folders is not None:
            place = next(i for i, one in enumerate(columns) if one.name == target.folders[0])
            order = ranks(values[place])[columns[place].codes].argsort(kind="stable")
            own = [column.take(pa.array(order)) for column in own]
            columns = tuple(replace(one, codes=one.codes[order]) for one in columns)
        fields = [(key.name, kind) for key, kind in zip(keys, kinds, strict=True)]
        fields += [(one.name, kind.type) for one, kind in zip(columns, values, strict=True)]
        batches = _batches(own, columns, values, pa.schema(fields))
        write_table(engine, protocols, pa.schema(fields), batches, target)


def _batches(
    keys: Sequence[pa.ChunkedArray], columns: Sequence[Filled], values: Sequence[pa.Array], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(columns[0].codes), BATCH):
        named = [key.slice(start, BATCH).combine_chunks() for key in keys]
        parts = [
            kind.take(pa.array(one.codes[start : start + BATCH]))
            for one, kind in zip(columns, values, strict=True)
        ]
        yield pa.record_batch([*named, *parts], schema=schema)


_Part = tuple[tuple[str | None, ...], IntArray | Codes]


def _parts(
    protocol: AnyProtocol,
    codes: IntArray,
    wide: dict[str, Cells],
    rows: Rows | None,
    weighed: dict[str, Weights],
) -> Iterator[_Part]:
    """Values and codes (n,) of the columns of one block, for rows with these outputs."""
    if not isinstance(protocol, Protocol):
        raise InternalError("sets are no labels of cells")
    for place, name in enumerate(protocol.outputs.columns):
        texts = [value[place] for value in protocol.outputs.values]
        if name in wide:
            if rows is not None:
                yield _texts(texts, codes)
            yield from _columns(wide[name], np.array([int(text or 0) - 1 for text in texts])[codes], rows)
            if name in weighed:
                yield _texts(list(map(decimal, weighed[name])), codes)
        else:
            yield _texts(texts, codes)


def _columns(cells: Cells, labels: IntArray, rows: Rows | None) -> Iterator[_Part]:
    """Of rows with these labels (n,): those of a label in the order in which they stand, or of a hash of names."""
    if rows is None:
        found = fill(cells.profiles, labels, cells.seed)
    else:
        found = fill_in_order(cells.profiles, labels, rows.names, cells.seed)
    yield from zip((column.values for column in cells.columns), found, strict=True)


def _texts(texts: Sequence[str | None], codes: IntArray) -> _Part:
    """Texts that may stand there twice as distinct ones, in the order of their first place."""
    distinct = tuple(dict.fromkeys(texts))
    place = {text: code for code, text in enumerate(distinct)}
    return distinct, np.array([place[text] for text in texts])[codes]
