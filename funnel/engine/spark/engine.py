"""The engine: statements over the rows go to their parts, all others to the DuckDB of this process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb

from funnel.data import Alphabet
from funnel.engine.base import Kernel, Parts, R, T
from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import TROUBLE, unreadable
from funnel.engine.spark import split
from funnel.engine.spark.session import kind_of, session, told_by
from funnel.engine.spark.table import ROWS, Parted
from funnel.engine.spark.task import SCHEMA, Every, Gathered, Task, packed
from funnel.engine.sql import PART, identifier, listed, part_of
from funnel.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_WAVE = 64
"""Parts whose answers wait in this process at a time, or two for every core that there is, if these are more."""
_SENT = 1 << 16
"""Rows of a batch that a part sends back."""


class Spark:
    """One run over a table in parts; a context manager.

    The DuckDB of this process has the table's columns without rows, all views, and the small tables. Spark reads,
    divides and tries again; what SQL means, the DuckDB of each part says.
    """

    def __init__(
        self, source: Parted, *, memory: str = "2GB", threads: int | None = None, scratch: Path | None = None
    ) -> None:
        self._table, self._memory, self._known = source, memory, split.Known()
        self._session = session(source.settings, threads)
        self._here = DuckDB(source, memory=memory, threads=threads, scratch=scratch)
        try:
            with self._reading():
                self._pieces = source.pieces(self._session)
                self._frame = source.frame(self._session, None if self._pieces is None else len(self._pieces))
                self._parts = self._frame.rdd.getNumPartitions()
                self._wave = max(_WAVE, 2 * self._session.sparkContext.defaultParallelism)
        except BaseException:
            self._here.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._here.__exit__(kind, error, trace)

    def schema(self, *, texts: bool = False) -> dict[str, str]:
        """Column names and types of the source, as DuckDB finds them. Raises SourceError."""
        return self._here.schema(texts=texts)

    def fetch(self, columns: Sequence[str]) -> None:
        """Rows are read where they are."""

    def provide(self, name: str, alphabet: Alphabet) -> None:
        """Offer an alphabet as a table of columns v0, v1, … and code."""
        self._here.provide(name, alphabet)

    def row(self, statement: str) -> tuple[Any, ...]:
        """The single row of a query. Raises SourceError."""
        return self.rows(statement)[0]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what goes wrong inside, here or in Spark, into an error of the source."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except TROUBLE as error:
            raise unreadable(self._table, error) from None
        except (PySparkException, Py4JError) as error:
            self._table.check_unchanged()
            raise SourceError(
                "source-unreadable",
                f"Spark cannot read the table, or its processes cannot work on it ({kind_of(error)})",
                where=self._table.name,
                values=told_by(error),
                advice="Check the files, the memory of its processes, and that they have funnel and its packages.",
            ) from None

    def prepare(self, statements: tuple[str, ...]) -> None:
        """Run statements that name or build temporary tables. Raises SourceError."""
        for statement in statements:
            found = split.definition(statement)
            if found is None or found.kind != "TABLE" or not self._in_parts(found.body):
                self._here.prepare((statement,))
            else:
                self._here.prepare((f"CREATE TEMP TABLE {identifier(found.name)} AS {self._whole(found.body)}",))
            if found is not None and found.kind == "VIEW":
                self._known.views[found.name] = found.body
            elif found is None or found.kind == "MACRO":
                self._known.settings.append(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a small result. Raises SourceError."""
        return self._here.rows(self._whole(statement) if self._in_parts(statement) else statement)

    def variables(self, **values: int) -> None:
        """Set variables that statements read with getvariable."""
        self._here.variables(**values)
        for name, value in values.items():
            self._known.settings.append(f"SET VARIABLE {name} = CAST({int(value)} AS BIGINT)")

    def distinct(self, listing: str) -> int:
        """How many different rows a query has: Spark brings equal ones together. Raises SourceError."""
        if not self._in_parts(listing):
            return self._here.distinct(listing)
        number = min(max(self._parts, self._session.sparkContext.defaultParallelism), 1 << 14)
        rows = f"SELECT t.*, CAST(hash(t) % {number} AS INTEGER) AS {PART} FROM ({listing}) t"
        return sum(one.column(0)[0].as_py() for one in self._gathered(rows, _SENT, None, _different, (), number))

    def stream(self, statement: str, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query as batches of at most `rows` rows. Raises SourceError."""
        if not self._in_parts(statement):
            yield from self._here.stream(statement, rows)
        elif split.parse(statement).counts:
            yield from self._here.stream(self._whole(statement), rows)
        else:
            yield from self._mapped(statement, rows, None)

    def map(self, statement: str, rows: int, kernel: Kernel) -> Iterator[pa.RecordBatch]:
        """What a kernel makes of the rows of a query, where these are. Raises SourceError."""
        if self._in_parts(statement):
            yield from self._mapped(statement, rows, kernel)
        else:
            yield from self._here.map(statement, rows, kernel)

    def gather(
        self, statement: str, rows: int, kernel: Kernel, sink: Kernel, keys: tuple[str, ...], parts: Parts | None
    ) -> Iterator[pa.RecordBatch]:
        """What a sink makes of the rows of each part of a release, by whoever has them. Raises SourceError."""
        names = list(map(identifier, keys))
        if parts is None:
            yield from sink(0, self.map(f"{statement} ORDER BY {listed(names)}", rows, kernel))
            return
        number = parts()
        placed = f"SELECT t.*, {part_of(names, str(number))} AS {PART} FROM ({statement}) t"
        yield from self._gathered(placed, rows, kernel, sink, keys, number)

    def _gathered(
        self, statement: str, rows: int, kernel: Kernel | None, sink: Kernel, keys: tuple[str, ...], parts: int
    ) -> Iterator[pa.RecordBatch]:
        with self._reading():
            asked = self._asked(statement, rows, kernel, apart=True).repartition(parts, "place")
            yield from _opened(asked.mapInArrow(Gathered(sink, keys), SCHEMA).collect())

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """What is made of each item, by whoever is free. Raises SourceError."""
        with self._reading():
            several = tuple(items)
            numbers = self._session.range(0, len(several), 1, max(1, len(several)))
            told = numbers.mapInArrow(Every(work, several), SCHEMA).collect()
        yield from (pickle.loads(one.part) for one in sorted(told, key=lambda one: int(one.place)))  # noqa: S301

    def _mapped(self, statement: str, rows: int, kernel: Kernel | None) -> Iterator[pa.RecordBatch]:
        query = split.parse(statement)
        if not query.ordered:
            yield from self._answers(statement, rows, kernel)
            return
        found = self._answers(split.without_order(query), rows, kernel)
        self._collect("in_parts", None, found)
        yield from self._here.stream(split.in_order(query, "in_parts"), rows)
        self._here.prepare(("DROP TABLE in_parts",))

    def _in_parts(self, statement: str) -> bool:
        """Whether a query reads the rows."""
        return ROWS in self._known.reached(statement)

    def _whole(self, statement: str) -> str:
        """A query over tables of this process with the same answer as one over the rows."""
        query = split.parse(statement)
        if not query.counts and (inner := query.inner) is not None:
            body = split.inside(inner)
            self._here.prepare((f"CREATE OR REPLACE TEMP TABLE together AS {self._whole(body)}",))
            return split.over(query, "together")
        self._collect("parts", statement, self._answers(statement, _SENT, None))
        columns = self._here.rows("DESCRIBE parts")
        return split.combined(query, [str(one[0]) for one in columns], [str(one[1]) for one in columns])

    def _collect(self, table: str, statement: str | None, batches: Iterator[pa.RecordBatch]) -> None:
        """A table of what comes; with a statement, of its types, and what it has to say of no rows at all."""
        import pyarrow as pa

        if statement is not None:
            self._here.prepare((f"CREATE OR REPLACE TEMP TABLE {table} AS {statement}",))
        made = statement is not None
        for batch in batches:
            with self._reading():
                self._here.connection.register("coming", pa.Table.from_batches([batch]))
            verb = f"INSERT INTO {table}" if made else f"CREATE OR REPLACE TEMP TABLE {table} AS"
            self._here.prepare((f"{verb} SELECT * FROM coming",))
            made = True

    def _answers(self, statement: str, rows: int, kernel: Kernel | None) -> Iterator[pa.RecordBatch]:
        """What the parts answer, a wave of them at a time."""
        for rows_back in self._waves(self._asked(statement, rows, kernel)):
            with self._reading():
                answers = _opened(rows_back)
            yield from answers

    def _waves(self, asked: DataFrame) -> Iterator[list[Any]]:
        """The rows that Spark gives back, of so many parts at a time that this process can hold them."""
        with self._reading():
            several = None if self._parts <= self._wave else asked.rdd
            number = 1 if several is None else several.getNumPartitions()
        for start in range(0, number, self._wave):
            with self._reading():
                if several is None:
                    found = asked.collect()
                else:
                    wave = list(range(start, min(start + self._wave, number)))
                    found = self._session.sparkContext.runJob(several, list, wave)
            yield found

    def _asked(
        self, statement: str, rows: int = _SENT, kernel: Kernel | None = None, *, apart: bool = False
    ) -> DataFrame:
        """What Spark is to do: a statement, asked of every part. `apart`: its rows belong to parts of a release."""
        columns = self._read_by(statement)
        task = Task(
            ROWS,
            tuple(self._table.arriving.items()),
            (*self._known.settings, *self._views(statement)),
            tuple((name, self._small(name)) for name in self._tables(statement)),
            statement,
            rows,
            self._memory,
            kernel,
            apart,
            self._pieces,
        )
        if self._pieces is not None:
            return self._frame.mapInArrow(task, SCHEMA)
        chosen = self._frame.select(*(f"`{name.replace('`', '``')}`" for name in columns))
        return chosen.mapInArrow(task, SCHEMA)

    def _read_by(self, statement: str) -> list[str]:
        """The columns that a query reads of the rows, at least one; as DuckDB's plan has it."""
        ((_, plan),) = self._here.rows(f"EXPLAIN (FORMAT json) {statement}")
        found = set(_projected(json.loads(plan)))
        every = list(self._table.arriving)
        return [name for name in every if name in found] or every[:1]

    def _views(self, statement: str) -> list[str]:
        """The views that a query reads, in the order in which they were made."""
        reached = self._known.reached(statement)
        return [
            f"CREATE TEMP VIEW {identifier(name)} AS {body}"
            for name, body in self._known.views.items()
            if name in reached
        ]

    def _tables(self, statement: str) -> list[str]:
        """The small tables that a query reads."""
        reached = self._known.reached(statement)
        return sorted(reached - {ROWS} - set(self._known.views))

    def _small(self, name: str) -> bytes:
        with self._reading():
            reader = self._here.connection.sql(f"SELECT * FROM {identifier(name)}").to_arrow_reader(_SENT)
            return packed(list(reader), reader.schema)


def _opened(answers: Iterable[Any]) -> list[pa.RecordBatch]:
    """The batches of answers. Raises what the DuckDB of a part raised."""
    import pyarrow as pa

    found = list[Any]()
    for one in answers:
        if one.trouble is not None:
            raise getattr(duckdb, one.trouble, duckdb.Error)(one.said)
        found += pa.ipc.open_stream(one.part)
    return found


def _different(_: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many different rows some rows are."""
    import pyarrow as pa

    rows = pa.Table.from_batches(batches)
    told = rows.group_by(rows.column_names).aggregate([]).num_rows
    yield pa.record_batch({"rows": pa.array([told])})


def _projected(plan: Any) -> Iterator[str]:
    """The columns that a plan reads of the rows."""
    for node in plan if isinstance(plan, list) else [plan]:
        told = node["extra_info"]
        if node["name"].strip() == "SEQ_SCAN" and ROWS in told.get("Table", ""):
            found = told.get("Projections", [])
            yield from [found] if isinstance(found, str) else found
        yield from _projected(node["children"])
