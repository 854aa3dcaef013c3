"""Rows that belong to parts of a table which is to be written: which is told by a column beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa

from funnel.engine.sql import PART


def by_part(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """The rows of each part, of batches in which the rows of a part come one after another."""
    cut = (one for batch in batches for one in apart(batch))
    for part, own in groupby(cut, key=itemgetter(0)):
        yield part, (batch for _, table in own for batch in table.to_batches())


def apart(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each part that occurs, in order of parts, without the column; those of one part as they came.

    Rows without the column are those of part 0; there are fewer than 65,536 parts.
    """
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    if PART not in table.column_names:
        yield 0, table
        return
    numbers = table.column(PART).to_numpy().astype(np.uint16)  # short numbers are sorted without comparing
    sorted_ = table.drop_columns([PART]).take(pa.array(np.argsort(numbers, kind="stable")))
    ends = np.cumsum(np.bincount(numbers)).tolist()
    for number, (start, stop) in enumerate(pairwise([0, *ends])):
        if stop > start:
            yield number, sorted_.slice(start, stop - start)
