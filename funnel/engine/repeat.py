"""A released table from its distinct rows: each repeated as often as it was drawn, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from funnel.data.joint import IntArray
from funnel.data.unary import Sets
from funnel.engine.base import Released
from funnel.engine.sets import columns_of

BATCH = 1 << 18


def distinct_rows(released: Released) -> pa.Table:
    """The distinct rows as text columns v0, v1, …, in order; 0/1 columns for sets that are released as bits."""
    columns = []
    for block, alphabet in enumerate(released.outputs):
        codes = released.codes[:, block]
        if isinstance(alphabet, Sets):
            columns.extend(columns_of(alphabet, codes))
            continue
        for part in range(len(alphabet.columns)):
            values = pa.array([value[part] for value in alphabet.values], pa.string())
            columns.append(values.take(pa.array(codes)))
    return pa.table({f"v{i}": column for i, column in enumerate(columns)})


def repeated(rows: pa.Table, counts: IntArray) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Row i of `rows` (m,) counts[i] times, in order, as batches; texts stay dictionary-encoded."""
    columns = [column.combine_chunks() for column in rows.columns]
    columns = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column for column in columns
    ]
    schema = pa.schema([(name, column.type) for name, column in zip(rows.column_names, columns, strict=True)])
    return schema, _batches(columns, schema, np.cumsum(counts))


def _batches(columns: list[pa.Array], schema: pa.Schema, ends: IntArray) -> Iterator[pa.RecordBatch]:
    for start in range(0, int(ends[-1]), BATCH):
        index = pa.array(window(ends, start, min(start + BATCH, int(ends[-1]))))
        yield pa.record_batch([column.take(index) for column in columns], schema=schema)


def window(ends: IntArray, start: int, stop: int) -> IntArray:
    """Which row stands at each of the places start … stop-1, where row i ends before place ends[i]."""
    first, last = np.searchsorted(ends, [start, stop - 1], side="right")
    inside = np.clip(ends[first : last + 1], start, stop)
    return np.repeat(np.arange(first, last + 1), np.diff(inside, prepend=start))
