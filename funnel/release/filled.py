"""Rows of a release with wide blocks: labels filled in from cells.json, every value an index into a vocabulary.

A function of published files: protocol.json, released.json, cells.json. Filling knows labels and a seed, and no record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from funnel.cells.cells import Cells
from funnel.cells.columns import Codes
from funnel.cells.fill import fill
from funnel.data import Protocol
from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol
from funnel.errors import InternalError
from funnel.format.released import ReleasedFile
from funnel.release.export import BATCH, connected, typed, write_table
from funnel.release.weights import decimal, weights


@dataclass(frozen=True, eq=False)
class Filled:
    """A column of the table: the texts that it can hold (None: missing), and for every row the place of its own."""

    name: str
    type: str
    values: tuple[str | None, ...]
    codes: IntArray | Codes


def filled(
    protocols: Sequence[AnyProtocol], released: ReleasedFile, blocks: Sequence[Cells]
) -> tuple[Filled, ...]:
    """The columns of the table, row by row, in the order of their values."""
    rows = np.array(released.rows, np.int64)
    codes = np.repeat(rows[:, :-1], rows[:, -1], axis=0)
    wide = {one.name: one for one in blocks}
    parts = [
        part for protocol, own in zip(protocols, codes.T, strict=True) for part in _parts(protocol, own, wide)
    ]
    named = zip(released.columns, released.types, parts, strict=True)
    columns = [Filled(name, kind, values, own) for (name, kind, (values, own)) in named]
    order = np.lexsort([column.codes for column in reversed(columns)])
    return tuple(Filled(one.name, one.type, one.values, one.codes[order]) for one in columns)


def export_filled(
    protocols: Sequence[AnyProtocol], released: ReleasedFile, blocks: Sequence[Cells], form: str, target: Path
) -> None:
    """Write the table of a release with wide blocks as parquet or csv. Raises ReleaseError."""
    columns = filled(protocols, released, blocks)
    with connected(target) as connection:
        values = [
            typed(connection, pa.table({"v0": pa.array(one.values, pa.string())}), [one.name], [one.type])[0]
            for one in columns
        ]
        schema = pa.schema([(one.name, kind.type) for one, kind in zip(columns, values, strict=True)])
        write_table(connection, protocols, schema, _batches(columns, values, schema), form, target)


def _batches(
    columns: Sequence[Filled], values: Sequence[pa.Array], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(columns[0].codes), BATCH):
        parts = [
            kind.take(pa.array(one.codes[start : start + BATCH]))
            for one, kind in zip(columns, values, strict=True)
        ]
        yield pa.record_batch(parts, schema=schema)


_Part = tuple[tuple[str | None, ...], IntArray | Codes]


def _parts(protocol: AnyProtocol, codes: IntArray, wide: dict[str, Cells]) -> Iterator[_Part]:
    """Values and codes (n,) of the columns of one block, for rows with these outputs."""
    if not isinstance(protocol, Protocol):
        raise InternalError("sets are no labels of cells")
    for place, name in enumerate(protocol.outputs.columns):
        texts = [value[place] for value in protocol.outputs.values]
        if name in wide:
            yield from _columns(wide[name], np.array([int(text or 0) - 1 for text in texts])[codes])
            if (weight := weights(wide[name], protocol)) is not None:
                yield _texts(list(map(decimal, weight)), codes)
        else:
            yield _texts(texts, codes)


def _columns(cells: Cells, labels: IntArray) -> Iterator[_Part]:
    """Of rows with these labels (n,)."""
    for column, codes in zip(cells.columns, fill(cells.profiles, labels, cells.seed), strict=True):
        yield column.values, codes


def _texts(texts: Sequence[str | None], codes: IntArray) -> _Part:
    """Texts that may stand there twice as distinct ones, in the order of their first place."""
    distinct = tuple(dict.fromkeys(texts))
    place = {text: code for code, text in enumerate(distinct)}
    return distinct, np.array([place[text] for text in texts])[codes]
