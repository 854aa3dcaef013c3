"""Rows that a kernel makes are sorted once they are made, and go to the part that their keys belong to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import find
from funnel.engine.sql import part_of

ROWS = 3_000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDB]:
    """On a table of keys in no order."""
    path = tmp_path / "keys.parquet"
    duckdb.sql(f"SELECT 'k' || i AS k0, i % 7 AS k1 FROM range({ROWS}) t(i) ORDER BY hash(i)").write_parquet(str(path))
    with DuckDB(find(path), memory="100MB") as one:
        one.prepare((f"CREATE TEMP VIEW people AS SELECT * FROM {one.source.reading()}",))
        yield one


class Doubling:
    """A kernel that counts what it saw."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch.append_column("y0", pa.array([2 * k for k in batch.column("k1").to_pylist()]))


def told(part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A sink that says what came, and of which part."""
    for batch in batches:
        yield batch.append_column("of", pa.array([part] * batch.num_rows))


def test_rows_come_to_the_sink_in_order_of_their_keys_with_what_the_kernel_made(engine: DuckDB) -> None:
    for _ in range(2):  # nothing is left of the first time
        found = pa.Table.from_batches(engine.gather("FROM people", 100, Doubling(), told, ("k0", "k1"), None))
        assert found.column_names == ["k0", "k1", "y0", "of"]
        keys = found.column("k0").to_pylist()
        assert keys == sorted(f"k{i}" for i in range(ROWS))
        assert found.column("y0").to_pylist() == [2 * (int(key[1:]) % 7) for key in keys]
        assert set(found.column("of").to_pylist()) == {0}


def test_how_many_parts_there_are_is_asked_when_all_rows_were_made(engine: DuckDB) -> None:
    kernel = Doubling()
    gathered = engine.gather("FROM people", 100, kernel, told, ("k1", "k0"), lambda: kernel.rows // 1000)
    found = pa.Table.from_batches(gathered)
    wanted = duckdb.sql(f"SELECT {part_of(['k1', 'k0'], '3')} AS part, k1, k0 FROM found ORDER BY ALL").fetchall()
    assert list(zip(*(found.column(name).to_pylist() for name in ("of", "k1", "k0")), strict=True)) == wanted
    assert len({part for part, _, _ in wanted}) == 3


def test_a_kernel_that_makes_nothing_leaves_nothing_to_the_sink(engine: DuckDB) -> None:
    assert list(engine.gather("FROM people", 100, lambda *_: iter(()), told, ("k0",), None)) == []
