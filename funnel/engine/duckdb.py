"""DuckDB as the engine: bounded memory, streaming batches, and no reach beyond the folders of the run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
import numpy as np

from funnel.data import Alphabet
from funnel.engine.base import Kernel, Parts, R, T
from funnel.engine.scratch import Scratch
from funnel.engine.sources import TROUBLE, Source, describe, unreadable
from funnel.engine.sql import IN_UTC, PART, identifier, listed, literal, part_of

if TYPE_CHECKING:
    import pyarrow as pa

_WAITING = "waiting"
"""The table of rows that wait until all are there, so that they can be sorted."""


class DuckDB:
    """One connection for one run; a context manager.

    `memory` is DuckDB's limit (text such as 2GB); beyond it, data spills into `scratch`, a private folder that is
    made for the run where none is given.
    Files outside the source's folder cannot be read or written, and settings are locked.
    """

    def __init__(
        self, source: Source, *, memory: str = "2GB", threads: int | None = None, scratch: Path | None = None
    ) -> None:
        self.source = source
        self._fetched: list[Generator[pa.RecordBatch, None, None]] = []
        config: dict[str, Any] = {
            "memory_limit": memory,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        if threads is not None:
            config["threads"] = threads
        # DuckDB would spill people's data into the current folder, readable by all, and leave it there.
        self._scratch = Scratch() if scratch is None else None
        spill = self._scratch.path if self._scratch else scratch
        config["temp_directory"] = str(spill)
        try:
            self._connect(config)
        except BaseException:
            if self._scratch:
                self._scratch.remove()
            raise
        reachable = ", ".join(literal(str(folder)) for folder in (*source.folders, spill))
        self.connection.execute(f"SET allowed_directories = [{reachable}]")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    def _connect(self, config: dict[str, Any]) -> None:
        """Open the connection, and make the source known to it."""
        try:
            self.connection = duckdb.connect(":memory:", config=config)
            self.connection.execute(IN_UTC)
            self.source.attach(self.connection)
        except TROUBLE as error:
            raise unreadable(self.source, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for batches in self._fetched:  # an error may still hold on to one
            batches.close()
        self.connection.close()
        if self._scratch:
            self._scratch.remove()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what goes wrong inside into an error of the source."""
        try:
            yield
        except TROUBLE as error:
            raise unreadable(self.source, error) from None

    def schema(self, *, texts: bool = False) -> dict[str, str]:
        """Column names and types of the source; with `texts`, those of a CSV are texts. Raises SourceError."""
        return describe(self.connection, self.source, texts=texts)

    def fetch(self, columns: Sequence[str]) -> None:
        """Bring in the rows of these columns, where the source is not read in place. Raises SourceError."""
        with self._reading():
            self.source.fetch(self.connection, columns)

    def prepare(self, statements: tuple[str, ...]) -> None:
        """Run statements that name or build temporary tables. Raises SourceError."""
        for statement in statements:
            self.rows(statement)

    def row(self, statement: str) -> tuple[Any, ...]:
        """The single row of a query. Raises SourceError."""
        return self.rows(statement)[0]

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a small result. Raises SourceError."""
        with self._reading():
            return self.connection.execute(statement, list(parameters)).fetchall()

    def distinct(self, listing: str) -> int:
        """How many different rows a query has. Raises SourceError."""
        return int(self.row(f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({listing}))")[0])

    def variables(self, **values: int) -> None:
        """Set variables that statements read with getvariable."""
        for name, value in values.items():
            self.rows(f"SET VARIABLE {name} = CAST({int(value)} AS BIGINT)")

    def provide(self, name: str, alphabet: Alphabet) -> None:
        """Offer an alphabet as a table of text columns v0, v1, … and an integer code."""
        import pyarrow as pa

        columns = {
            f"v{i}": pa.array([value[i] for value in alphabet.values], pa.string())
            for i in range(len(alphabet.columns))
        }
        codes = pa.array(np.arange(len(alphabet), dtype=np.min_scalar_type(len(alphabet))))
        with self._reading():
            self.connection.register(name, pa.table(columns | {"code": codes}))

    def stream(self, statement: str, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query as batches of at most `rows` rows. Raises SourceError."""
        # An unfinished reader would keep the connection from all else: it is closed with what is yielded here.
        with (
            self._reading(),
            self.connection.sql(statement).to_arrow_reader(rows) as reader,
            self._fetching(reader) as batches,
        ):
            yield from batches

    @contextmanager
    def _fetching(self, reader: pa.RecordBatchReader) -> Iterator[Iterator[pa.RecordBatch]]:
        """The batches of a reader, fetched ahead for as long as the run wants them."""
        from funnel.engine.fetching import fetched

        batches = fetched(reader, self.connection.interrupt)
        self._fetched.append(batches)
        try:
            yield batches
        finally:
            batches.close()
            self._fetched.remove(batches)

    def map(self, statement: str, rows: int, kernel: Kernel) -> Iterator[pa.RecordBatch]:
        """What a kernel makes of the rows of a query, which are one part here. Raises SourceError."""
        yield from kernel(0, self.stream(statement, rows))

    def gather(
        self, statement: str, rows: int, kernel: Kernel, sink: Kernel, keys: tuple[str, ...], parts: Parts | None
    ) -> Iterator[pa.RecordBatch]:
        """What a sink makes of the rows of each part of a release: sorted once they are made. Raises SourceError."""
        from funnel.engine.parts import by_part

        if not self._waiting(self.map(statement, rows, kernel)):
            return
        names = list(map(identifier, keys))
        placed = [] if parts is None else [f"{part_of(names, str(parts()))} AS {PART}"]
        order = [PART, *names] if placed else names
        made = f"SELECT {listed(['*', *placed])} FROM {_WAITING} ORDER BY {listed(order)}"
        for part, own in by_part(self.stream(made, rows)):
            yield from sink(part, own)
        self.rows(f"DROP TABLE {_WAITING}")

    def _waiting(self, batches: Iterator[pa.RecordBatch]) -> bool:
        """Let rows wait in a table, which goes to disk where memory ends; whether there are any."""
        import pyarrow as pa

        verb = first = f"CREATE OR REPLACE TABLE {_WAITING} AS"
        with self.connection.cursor() as beside:  # rows are being read by the connection itself
            for batch in batches:
                with self._reading():
                    beside.register("coming", pa.Table.from_batches([batch]))
                    beside.execute(f"{verb} FROM coming")
                verb = f"INSERT INTO {_WAITING}"
        return verb != first

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """What is made of each item, one after another."""
        return map(work, items)
