"""What the process of one part does: DuckDB over the part's batches, as they come from Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import duckdb

from funnel.engine.base import Kernel
from funnel.engine.parts import apart
from funnel.engine.scratch import Scratch
from funnel.engine.sql import IN_UTC, identifier

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "place bigint, part binary, trouble string, said string"
"""Of what comes back: batches as one Arrow stream, and to which part of a release they belong; or what DuckDB
complained of."""
INCOMING = "incoming"
"""The name under which a part's rows are known to its DuckDB."""
_WAITING = 1 << 22
"""Rows that wait in the process of a part until they go where they belong."""


@dataclass(frozen=True)
class Task:
    """A statement for the rows of each part, and what it needs to be known: `script` in its order, small `tables`.

    The rows are a `table` of `columns` with their types, missing where nobody reads them. `tables` are Arrow streams by
    name. A part without rows has no answer; what DuckDB complains of is one, for it would be the same again. Everything
    else that goes wrong is Spark's to try again. `apart`: rows go to the parts of a release that they belong to.
    `pieces`: what comes is the number of the part, and here is how each is read.
    """

    table: str
    columns: tuple[tuple[str, str], ...]
    script: tuple[str, ...]
    tables: tuple[tuple[str, bytes], ...]
    statement: str
    rows: int
    memory: str
    kernel: Kernel | None = None
    apart: bool = False
    pieces: tuple[str, ...] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The answer for one part."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        try:
            yield from self._answers(chain([first], batches), first.schema)
        except duckdb.Error as error:
            yield _row(None, type(error).__name__, str(error))
        for _ in batches:  # a process that leaves some of its input is not used again, and starting one takes seconds
            pass

    def _answers(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context, scratch = TaskContext.get(), Scratch()
        part = 0 if context is None else context.partitionId()
        config: dict[str, Any] = {"threads": 1, "memory_limit": self.memory, "temp_directory": str(scratch.path)}
        try:
            with duckdb.connect(":memory:", config=config) as connection:
                connection.execute(IN_UTC)
                for name, content in self.tables:
                    connection.register(name, pa.ipc.open_stream(content).read_all())
                if self.pieces is None:
                    connection.register(INCOMING, pa.RecordBatchReader.from_batches(schema, batches))
                else:
                    piece = self.pieces[next(batches).column(0)[0].as_py()]
                    connection.execute(f"CREATE TEMP VIEW {INCOMING} AS {piece}")
                for line in self._script(connection):
                    connection.execute(line)
                found = iter(connection.sql(self.statement).to_arrow_reader(self.rows))
                made = found if self.kernel is None else self.kernel(part, found)
                yield from _sorted_out(made) if self.apart else (_row(packed([one], one.schema)) for one in made)
        finally:
            scratch.remove()

    def _script(self, connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
        """What to define first: the table, of the columns that its files have here, and then all else."""
        there = {str(row[0]).casefold() for row in connection.execute(f"DESCRIBE {INCOMING}").fetchall()}
        read = (
            f"CAST({identifier(name) if name.casefold() in there else 'NULL'} AS {kind}) AS {identifier(name)}"
            for name, kind in self.columns
        )
        return f"CREATE TEMP VIEW {self.table} AS SELECT {', '.join(read)} FROM {INCOMING}", *self.script


@dataclass(frozen=True)
class Gathered:
    """What a sink makes of each part of a release, whose rows come from wherever they were, in order of their keys."""

    sink: Kernel
    keys: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The answers for some parts."""
        import pyarrow as pa

        found = dict[int, list[pa.Table]]()
        for batch in batches:
            for place, part, trouble, said in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if trouble is not None:
                    yield _row(None, trouble, said)
                    return
                found.setdefault(place, []).append(pa.ipc.open_stream(part).read_all())
        for place in sorted(found):
            table = pa.concat_tables(found.pop(place)).combine_chunks()
            own = table.sort_by([(key, "ascending") for key in self.keys]) if self.keys else table
            yield from (_row(packed([one], one.schema)) for one in self.sink(place, iter(own.to_batches(_WAITING))))


@dataclass(frozen=True)
class Every:
    """Some work for each of some items, of which the numbers come."""

    work: Callable[[Any], Any]
    items: tuple[Any, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What came of it, pickled."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _row(pickle.dumps(self.work(self.items[number])), place=number)


def _sorted_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows by the parts of a release that they belong to, a few millions at a time."""
    import pyarrow as pa

    waiting, rows = list[pa.RecordBatch](), 0
    for batch in chain(batches, [None]):
        if waiting and (batch is None or rows + batch.num_rows > _WAITING):
            for place, own in apart(pa.Table.from_batches(waiting)):
                yield _row(packed(own.combine_chunks().to_batches(), own.schema), place=place)
            waiting, rows = [], 0
        if batch is not None:
            waiting.append(batch)
            rows += batch.num_rows


def _row(part: bytes | None, trouble: str | None = None, said: str | None = None, place: int = 0) -> pa.RecordBatch:
    import pyarrow as pa

    told = {"place": pa.array([place], pa.int64()), "part": pa.array([part], pa.binary())}
    return pa.record_batch(told | {"trouble": pa.array([trouble], pa.string()), "said": pa.array([said], pa.string())})


def packed(batches: list[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Batches as one Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
