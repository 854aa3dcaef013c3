"""Parts of a table, read and written: together they are the table, each row once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from funnel.engine.parts import apart, by_part
from funnel.engine.sources import Dialect
from funnel.engine.spark.table import _pieces, parted
from funnel.engine.spark.task import Task
from funnel.engine.sql import part_of


def test_rows_of_a_part_stand_together_in_the_order_in_which_they_came() -> None:
    rows = pa.table({"k": range(7), "part": pa.array([2, 0, 2, 5, 0, 2, 2], pa.int32())})
    found = {number: own.column("k").to_pylist() for number, own in apart(rows)}
    assert found == {0: [1, 4], 2: [0, 2, 5, 6], 5: [3]}
    assert [own.column_names for _, own in apart(rows)] == [["k"]] * 3


def test_rows_without_the_column_are_one_part_and_parts_go_on_over_batches() -> None:
    plain = pa.table({"k": range(3)})
    assert [(number, own.num_rows) for number, own in apart(plain)] == [(0, 3)]
    batches = pa.table({"k": range(6), "part": pa.array([0, 0, 0, 1, 1, 3])}).to_batches(max_chunksize=2)
    found = [(number, sum(batch.num_rows for batch in own)) for number, own in by_part(batches)]
    assert found == [(0, 3), (1, 2), (3, 1)]


def test_the_part_of_a_key_is_its_hash_wherever_that_is_asked() -> None:
    asked = f"SELECT {part_of(['k', 't'], '7')} FROM (VALUES (1, 'a'), (2, NULL)) s(k, t)"
    assert duckdb.sql(asked).fetchall() == [(_part("1\x1fa"),), (_part("2"),)]


def _part(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % 7


@pytest.mark.parametrize(("most", "cost"), [(10, 1), (100, 4), (1000, 400), (1 << 30, 1)])
def test_pieces_are_every_row_of_every_file_once(tmp_path: Path, most: int, cost: int) -> None:
    files = []
    for number, rows in enumerate([5, 0, 300, 7]):
        path = tmp_path / f"a[{number}]*.parquet"  # no character of a name stands for others
        duckdb.sql(f"SELECT {number} AS f, i FROM range({rows}) t(i)").write_parquet(str(path))
        files.append((path, rows * 3, rows))
    found = [duckdb.sql(f"SELECT f, i FROM ({piece})").fetchall() for piece in _pieces(files, most, cost)]
    assert sorted(row for part in found for row in part) == [(n, i) for n, (_, _, rows) in enumerate(files)
                                                             for i in range(rows)]  # fmt: skip
    assert len(found) == {10: 95, 100: 11, 1000: 3, 1 << 30: 1}[most]


def test_a_part_has_the_columns_and_types_of_the_whole_table(tmp_path: Path) -> None:
    """Whatever its own files lack, and whatever type a folder's name would have by itself."""
    pytest.importorskip("pyspark")
    for folder, query in {"g=007": "SELECT 1::TINYINT AS a", "g=x": "SELECT 300 AS a, 'b' AS B"}.items():
        (tmp_path / folder).mkdir()
        duckdb.sql(query).write_parquet(str(tmp_path / folder / "one.parquet"))
    table = parted(str(tmp_path), tmp_path, Dialect(), {})
    whole = duckdb.sql(f"SELECT a, b, g FROM {table.inner.reading()} ORDER BY a").to_arrow_table()
    parts = []
    for piece in _pieces([(file, 1, 1) for file in table.files], 1, 1):
        task = Task("arrived", tuple(table.arriving.items()), (), (), "SELECT a, b, g FROM arrived", 9, "1GB", None,
                    False, (piece,))  # fmt: skip
        (told,) = task(iter([pa.record_batch({"id": pa.array([0])})]))
        parts.append(pa.ipc.open_stream(told.column("part")[0].as_py()).read_all())
    assert pa.concat_tables(parts).sort_by("a").to_pylist() == whole.to_pylist()
    assert parts[0].schema.types == whole.schema.types
