"""What the process of one part does: DuckDB over the part's batches, as they come from Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import duckdb

from funnel.engine.base import Kernel
from funnel.engine.scratch import Scratch
from funnel.engine.sql import identifier

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "part binary, trouble string, said string"
"""Of what comes back: batches as one Arrow stream, or what DuckDB complained of."""
INCOMING = "incoming"
"""The name under which a part's rows are known to its DuckDB."""


@dataclass(frozen=True)
class Task:
    """A statement for the rows of each part, and what it needs to be known: `script` in its order, small `tables`.

    `tables` are Arrow streams by name. A part without rows has no answer; what DuckDB complains of is one, for it would
    be the same again. Everything else that goes wrong is Spark's to try again. `plain`: the statement's own columns
    are those that come back.
    """

    script: tuple[str, ...]
    tables: tuple[tuple[str, bytes], ...]
    statement: str
    rows: int
    memory: str
    kernel: Kernel | None = None
    plain: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The answer for one part."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        try:
            yield from self._answers(chain([first], batches), first.schema)
        except duckdb.Error as error:
            yield _row(None, type(error).__name__, str(error))

    def _answers(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context, scratch = TaskContext.get(), Scratch()
        part = 0 if context is None else context.partitionId()
        config: dict[str, Any] = {"threads": 1, "memory_limit": self.memory, "temp_directory": str(scratch.path)}
        try:
            with duckdb.connect(":memory:", config=config) as connection:
                for name, content in self.tables:
                    connection.register(name, pa.ipc.open_stream(content).read_all())
                connection.register(INCOMING, pa.RecordBatchReader.from_batches(schema, batches))
                for line in self.script:
                    connection.execute(line)
                found = iter(connection.sql(self.statement).to_arrow_reader(self.rows))
                if self.plain:
                    yield from found
                    return
                for batch in found if self.kernel is None else self.kernel(part, found):
                    yield _row(packed([batch], batch.schema), None, None)
        finally:
            scratch.remove()


def _row(part: bytes | None, trouble: str | None, said: str | None) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [pa.array([part], pa.binary()), pa.array([trouble], pa.string()), pa.array([said], pa.string())]
    return pa.RecordBatch.from_arrays(columns, names=["part", "trouble", "said"])


def packed(batches: list[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Batches as one Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def view(columns: dict[str, str], arriving: list[str], name: str) -> str:
    """The statement that makes a table of these columns and types of what arrives; what nobody reads is missing."""
    read = (
        f"CAST({identifier(column) if column in arriving else 'NULL'} AS {kind}) AS {identifier(column)}"
        for column, kind in columns.items()
    )
    return f"CREATE TEMP VIEW {name} AS SELECT {', '.join(read)} FROM {INCOMING}"
