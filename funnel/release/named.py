"""Rows that have names: kept aside with their answers, in the order of their keys, and written as a table.

The table is a function of these rows and protocol.json alone, so that whoever reads it back can write its bytes again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa

from funnel.data.joint import IntArray
from funnel.data.unary import AnyProtocol, Sets
from funnel.engine.scratch import SORT_MEMORY, Scratch
from funnel.engine.sql import identifier, listed, literal, part_of
from funnel.errors import SourceError
from funnel.files import writing
from funnel.format.manifest import Key
from funnel.format.released import ReleasedFile
from funnel.release.export import (
    BATCH,
    Engine,
    Target,
    connected,
    set_columns,
    text_columns,
    typed,
    write_table,
)
from funnel.release.folders import ranks
from funnel.release.formulas import formulas_among

if TYPE_CHECKING:
    import duckdb

Shown = Callable[[IntArray], list[pa.Array]]
"""From output codes (rows,) of a block to the columns that show them."""


class Order:
    """Whether rows that come in batches each have a key above that of the row before, and none lacks a part of it.

    Text goes by its bytes in UTF-8, as the engine sorts it.
    """

    def __init__(self) -> None:
        self._last: Sequence[pa.Array] = ()

    def holds(self, keys: Sequence[pa.Array]) -> bool:
        """Whether this is so of the next rows; their key columns, (rows,) each."""
        if any(column.null_count for column in keys):
            return False
        last = self._last or [column.slice(0, 0) for column in keys]
        both = [pa.concat_arrays(pair) for pair in zip(last, keys, strict=True)]
        self._last = [column.slice(max(len(column) - 1, 0)) for column in both]
        return _ascending(both)


def places(keys: Sequence[pa.Array], parts: int) -> pa.Array:
    """In which of so many parts of a table rows with these key columns (rows,) are (rows,)."""
    import duckdb

    names = [f"k{index}" for index in range(len(keys))]
    with duckdb.connect(":memory:") as connection:
        connection.register("keys", pa.table(list(keys), names))
        found = connection.sql(f"SELECT {part_of(names, str(parts))} AS part FROM keys").to_arrow_table()
    return found.column(0).combine_chunks()


def _ascending(keys: Sequence[pa.Array]) -> bool:
    """Whether every row is above the one before: by the first column, where that is equal by the next, and so on."""
    import pyarrow.compute as pc

    def above(rest: pa.Array, column: pa.Array) -> pa.Array:
        low, high = column.slice(0, len(column) - 1), column.slice(1)
        return pc.or_(pc.less(low, high), pc.and_(pc.equal(low, high), rest))

    if len(keys[0]) < 2:
        return True
    return bool(pc.all(reduce(above, reversed(keys), pa.scalar(False))).as_py())


def digest(batches: Iterable[Sequence[pa.Array]]) -> tuple[int, str]:
    """How many keys there are in batches of key columns, and a SHA-256 of them in order, however they are cut."""
    rows, found = 0, hashlib.sha256()
    for keys in batches:
        for row in zip(*(column.cast(pa.string()).to_pylist() for column in keys), strict=True):
            found.update(json.dumps(row).encode())
        rows += len(keys[0])
    return rows, found.hexdigest()


@dataclass(frozen=True)
class Aside:
    """A sink of an engine: the rows of a part with their answers go to a file of a private `folder`, by their `keys`.

    Every trial of a part has a file of its own, which counts when it is told; what is left of others nobody reads.
    """

    folder: Path
    keys: tuple[str, ...]
    protocols: tuple[AnyProtocol, ...]

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The tally of the part, and beside it the name of its file, its formulas, and whether keys are in order."""
        import pyarrow.parquet as pq

        from funnel.draw.drawing import answers_in  # readers of a release draw nothing
        from funnel.draw.tally import Tally

        tally, order, formulas, holds = Tally(self.protocols), Order(), 0, True
        name, writer = f"{part}-{uuid4().hex}.parquet", None
        for batch in batches:
            keys, answers = [batch.column(key) for key in self.keys], answers_in(batch)
            holds = holds and order.holds(keys)
            tally.add(batch, answers)
            formulas += sum(map(formulas_among, keys))
            rows = pa.record_batch([*keys, *answers.columns], names=[*self.keys, *answers.schema.names])
            with writing(self.folder):
                writer = writer or pq.ParquetWriter(self.folder / name, rows.schema, compression="zstd")
                writer.write_batch(rows)
        if writer is not None:
            with writing(self.folder):
                writer.close()
        told = {"part": part, "file": name, "formulas": formulas, "holds": int(holds)}
        yield tally.batch().replace_schema_metadata({key: str(value) for key, value in told.items()})


@dataclass(frozen=True)
class RowFile:
    """Rows in a file, in order; whoever iterates opens it."""

    path: Path

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(BATCH)


@dataclass
class Kept:
    """Rows that wait in files until the table can be written: the `parts` of it, and `formulas` among their keys.

    They are `named` where each has a key, and no two of them the same.
    """

    folder: Path
    parts: dict[int, RowFile] = field(default_factory=dict)
    formulas: int = 0
    named: bool = True

    def add(self, told: pa.RecordBatch) -> None:
        """What `Aside` tells of a part."""
        said = {key.decode(): value.decode() for key, value in told.schema.metadata.items()}
        self.parts[int(said["part"])] = RowFile(self.folder / said["file"])
        self.formulas += int(said["formulas"])
        self.named = self.named and said["holds"] == "1"

    def check(self) -> None:
        """Raises SourceError where keys are not those that were looked at."""
        if not self.named:
            raise SourceError(
                "source-changed",
                "the source changed between counting and drawing: its keys are not those that were looked at",
                advice="Nothing was published. Run again when the table is at rest, or read from a snapshot.",
            )


def export_named(
    protocols: Sequence[AnyProtocol],
    released: ReleasedFile,
    keys: Sequence[Key],
    rows: Iterable[pa.RecordBatch],
    target: Target,
) -> None:
    """Write the table of a release whose rows have names, as `export` does. Raises ReleaseError.

    `rows` are at least one, in the order of their keys, in batches of any length: key columns, then output codes of
    each block.
    """
    with connected(target.path) as engine:
        kinds = key_types(engine(), keys)
        shown = [*_shown(engine, protocols, released)]
        names = [key.name for key in keys] + list(released.columns)
        if target.folders is not None:
            rows = _by_folder(rows, len(keys), *_folder_of(protocols, shown, target.folders[0]))
        batches = (_labelled(batch, kinds, shown, names) for batch in _cut(rows))
        first = next(batches)
        write_table(engine, protocols, first.schema, chain([first], batches), target)


def _folder_of(
    protocols: Sequence[AnyProtocol], shown: Sequence[Shown], folder: str
) -> tuple[int, IntArray]:
    """The block that the column of the folders is in, and the place of the folder of each of its outputs (m,)."""
    columns = [() if isinstance(one.outputs, Sets) else one.outputs.columns for one in protocols]
    block = next(place for place, own in enumerate(columns) if folder in own)
    every = np.arange(len(protocols[block].outputs))
    return block, ranks(shown[block](every)[columns[block].index(folder)])


def _by_folder(
    rows: Iterable[pa.RecordBatch], keys: int, block: int, folder: IntArray
) -> Iterator[pa.RecordBatch]:
    """The same rows, those of one folder together, in the order in which they come."""
    batches = iter(rows)
    first = next(batches)
    kept, place = first.schema.names, 0

    def placed() -> Iterator[pa.RecordBatch]:
        nonlocal place
        for batch in chain([first], batches):
            own = np.arange(place, place := place + batch.num_rows)
            ranked = pa.array(folder[batch.column(keys + block).to_numpy()])
            yield pa.record_batch([*batch.columns, ranked, pa.array(own)], names=[*kept, "folder", "place"])

    yield from in_order_of(placed(), kept, ["folder", "place"])


def in_order_of(
    rows: Iterator[pa.RecordBatch], columns: Sequence[str], order: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """These columns of rows, sorted by expressions in SQL, in little memory."""
    import duckdb

    first = next(rows, None)
    if first is None:
        return
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
    scratch = Scratch()
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"SET temp_directory = {literal(str(scratch.path))}; SET memory_limit = '{SORT_MEMORY}'")
            connection.register("rows", reader)
            wanted = listed(map(identifier, columns))
            yield from connection.sql(f"SELECT {wanted} FROM rows ORDER BY {listed(order)}").to_arrow_reader(BATCH)
    finally:
        scratch.remove()


def key_types(connection: duckdb.DuckDBPyConnection, keys: Sequence[Key]) -> list[pa.DataType]:
    """The types of key columns as Arrow knows them."""
    nothing = listed(f"CAST(NULL AS {key.type}) AS k{index}" for index, key in enumerate(keys))
    found: list[pa.DataType] = connection.sql(f"SELECT {nothing}").to_arrow_table().schema.types
    return found


def _shown(
    engine: Engine, protocols: Sequence[AnyProtocol], released: ReleasedFile
) -> Iterator[Shown]:
    """How the answers of each block are shown, in the types of the table."""
    columns = zip(released.columns, released.types, strict=True)
    for protocol in protocols:
        outputs = protocol.outputs
        if isinstance(outputs, Sets):
            own = [next(columns) for _ in outputs.names]
            yield partial(set_columns, outputs)
        else:
            own = [next(columns) for _ in outputs.columns]
            texts = pa.table({f"v{i}": part for i, part in enumerate(text_columns(outputs.values))})
            yield partial(_taken, typed(engine, texts, *zip(*own, strict=True)))


def _taken(values: Sequence[pa.Array], codes: IntArray) -> list[pa.Array]:
    return [column.take(pa.array(codes)) for column in values]


def _labelled(
    batch: pa.RecordBatch, kinds: Sequence[pa.DataType], shown: Sequence[Shown], names: Sequence[str]
) -> pa.RecordBatch:
    """Keys, and what is shown for the codes behind them."""
    keys = [column.cast(kind) for column, kind in zip(batch.columns, kinds, strict=False)]
    answers = zip(shown, batch.columns[len(kinds) :], strict=True)
    labels = chain.from_iterable(one(np.asarray(codes.to_numpy(), np.int64)) for one, codes in answers)
    return pa.record_batch([*keys, *labels], names=list(names))


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of BATCH, however they come; the last one may be shorter."""
    waiting, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= BATCH:
            whole = pa.concat_batches(waiting)
            yield whole.slice(0, BATCH)
            waiting, rows = [whole.slice(BATCH)], rows - BATCH
    if rows:
        yield pa.concat_batches(waiting)
