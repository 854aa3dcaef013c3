"""Every kind of source holds the same table, and is read as the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import Dialect, find
from funnel.engine.spark.table import _pieces
from funnel.errors import SourceError

ROWS = (
    "SELECT i AS id, i * 1.5 AS height, ['red', 'blue', NULL][i % 3 + 1] AS colour, '0' || i AS code "
    "FROM range(9) t(i)"
)
Made = Callable[[Path], str]


def _copied(name: str, options: str = "") -> Made:
    def made(folder: Path) -> str:
        duckdb.sql(f"COPY ({ROWS}) TO '{folder / name}' {options}")
        return name

    return made


def _database(folder: Path) -> str:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute(f"CREATE SCHEMA city; CREATE TABLE city.people AS {ROWS}")
    return "people.duckdb#city.people"


def _partitioned(folder: Path) -> str:
    duckdb.sql(
        f"COPY ({ROWS}) TO '{folder / 'people'}' (FORMAT parquet, PARTITION_BY (colour), WRITE_PARTITION_COLUMNS)"
    )
    (folder / "people" / "_SUCCESS").touch()
    return "people"


KINDS: dict[str, Made] = {
    "Parquet": _copied("people.parquet"),
    "CSV": _copied("people.csv", "(HEADER)"),
    "CSV.gz": _copied("people.csv.gz", "(HEADER, COMPRESSION gzip)"),
    "CSV.zst": _copied("people.csv.zst", "(HEADER, COMPRESSION zstd)"),
    "JSON lines": _copied("people.jsonl", "(FORMAT json)"),
    "JSON lines.gz": _copied("people.ndjson.gz", "(FORMAT json, COMPRESSION gzip)"),
    "DuckDB": _database,
    "partitions": _partitioned,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_table_is_read_from_every_kind(tmp_path: Path, kind: str) -> None:
    with DuckDB(find(KINDS[kind](tmp_path), tmp_path)) as engine:
        assert list(engine.schema()) == ["id", "height", "colour", "code"]
        reader = engine.source.reading(["code"] if engine.source.is_text else [])
        found = engine.rows(f"SELECT id, CAST(height AS DOUBLE), colour, code FROM {reader} ORDER BY id")
        engine.source.check_unchanged()
    assert (
        found
        == duckdb.sql(f"SELECT id, CAST(height AS DOUBLE), colour, code FROM ({ROWS}) ORDER BY id").fetchall()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_notices_that_it_moves(tmp_path: Path, kind: str) -> None:
    source = find(KINDS[kind](tmp_path), tmp_path)
    source.files[0].write_bytes(source.files[0].read_bytes() + b"\n")
    with pytest.raises(SourceError) as caught:
        source.check_unchanged()
    assert caught.value.code == "source-changed"


@pytest.mark.parametrize("table", ["people.parquet", "people", "piece"])
@pytest.mark.parametrize("number", ["x", "-x", "CASE WHEN x > 20 THEN x END"])
def test_a_number_that_is_none_is_found_whatever_statistics_leave_out(tmp_path: Path, table: str, number: str) -> None:
    """Arrow writes the least and the greatest of all others; readers take them for those of all."""
    people = pa.table({"x": pa.array([15.0, float("nan"), 65.0, None] * 5)})
    (tmp_path / "people").mkdir()
    for name in ("people.parquet", "people/part.parquet"):
        pq.write_table(people, tmp_path / name)
    files = [(tmp_path / "people.parquet", 1, people.num_rows)]
    with DuckDB(find("people.parquet" if table == "piece" else table, tmp_path)) as engine:
        read = f"({_pieces(files, 1, 1)[0]})" if table == "piece" else engine.source.reading()
        assert engine.row(f"SELECT count(*) FROM {read} WHERE isnan({number})") == (5,)
        asked = f"SELECT DISTINCT CASE WHEN isnan({number}) THEN 0 ELSE x END AS v FROM {read} ORDER BY v"
        assert engine.rows(asked) == [(0.0,), (15.0,), (65.0,), (None,)]
        assert engine.row(f"SELECT count(*) FROM {read} WHERE x > 65") == (5,)  # it is the greatest to DuckDB


def test_texts_of_json_stay_as_they_stand_there(tmp_path: Path) -> None:
    lines = [
        {"day": "2020-01-05", "time": "2020-01-05T10:00:00", "n": 1},
        {"day": "2020-02-05", "time": "x", "n": 2.5},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    with DuckDB(find("a.jsonl", tmp_path)) as engine:
        assert engine.schema() == {"day": "VARCHAR", "time": "VARCHAR", "n": "DOUBLE"}
        assert engine.row(f"SELECT day, time FROM {engine.source.reading()} WHERE n = 1") == (
            "2020-01-05",
            "2020-01-05T10:00:00",
        )


def test_a_csv_is_read_as_the_policy_says(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,5;b\n2,5;c\n")
    dialect = Dialect(header=False, delimiter=";", decimal=",", names=("size", "kind"))
    with DuckDB(find("a.csv", tmp_path, dialect)) as engine:
        assert engine.schema() == {"size": "DOUBLE", "kind": "VARCHAR"}
        assert engine.rows(f"SELECT * FROM {engine.source.reading()}") == [(1.5, "b"), (2.5, "c")]
    (tmp_path / "b.csv").write_text("grösse;art\n1,5;b\n")
    with DuckDB(
        find("b.csv", tmp_path, Dialect(header=True, delimiter=";", decimal=",", names=("size", "kind")))
    ) as engine:
        assert engine.rows(f"SELECT size, kind FROM {engine.source.reading()}") == [(1.5, "b")]


def test_a_csv_without_a_header_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,b\n2,c\n")
    with DuckDB(find("a.csv", tmp_path)) as engine, pytest.raises(SourceError) as caught:
        engine.schema()
    assert (caught.value.code, "names: [...]" in str(caught.value)) == ("source-header", True)
    with DuckDB(find("a.csv", tmp_path, Dialect(header=True))) as engine:
        assert list(engine.schema()) == ["1", "b"]
    with (
        DuckDB(find("a.csv", tmp_path, Dialect(delimiter=",", names=("n",)))) as engine,
        pytest.raises(SourceError) as caught,
    ):
        engine.schema()
    assert "1 names are given (`source.csv.names`) and the first line has 2 fields" in str(caught.value)


def test_a_database_is_opened_for_reading_alone_and_reaches_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("x\nu\n")
    with DuckDB(find(_database(tmp_path), tmp_path)) as engine:
        for statement in ("DELETE FROM stored.city.people", f"FROM read_csv('{tmp_path}/secret.csv')"):
            with pytest.raises(SourceError):
                engine.rows(statement)


@pytest.mark.parametrize("inside", ["nobody", "city.nobody", "a.b.c.d", 'x"; DROP TABLE y'])
def test_a_table_that_is_not_in_the_database_is_one_error(tmp_path: Path, inside: str) -> None:
    _database(tmp_path)
    with pytest.raises(SourceError) as caught, DuckDB(find(f"people.duckdb#{inside}", tmp_path)) as engine:
        engine.schema()
    assert caught.value.code == "source-unreadable"
    with pytest.raises(SourceError) as caught:
        find("none.duckdb#t", tmp_path)
    assert caught.value.code == "source-missing"


@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_texts_that_a_database_takes_for_equal_are_two_values(tmp_path: Path, kind: str) -> None:
    """A collation is the database's own: what is counted, filtered and drawn for are the texts that stand there."""
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE rows (\"the name\" VARCHAR COLLATE NOCASE, id INTEGER)")
        connection.execute("INSERT INTO rows VALUES ('Ann', 1), ('ANN', 2), ('Ann', 3)")
        connection.execute(f"CREATE {kind} people AS SELECT * FROM rows")
    with DuckDB(find("people.duckdb#people", tmp_path)) as engine:
        assert engine.schema() == {"the name": "VARCHAR", "id": "INTEGER"}
        counted = f'SELECT "the name", count(*) FROM {engine.source.reading()}'
        assert engine.rows(f"{counted} GROUP BY ALL ORDER BY 2") == [("ANN", 1), ("Ann", 2)]
        assert engine.rows(f"{counted} WHERE \"the name\" = 'ann' GROUP BY ALL") == []


def test_a_folder_holds_one_kind_and_nothing_unfinished(tmp_path: Path) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    with pytest.raises(SourceError, match="no table"):
        find("people", tmp_path)
    duckdb.sql(f"COPY ({ROWS}) TO '{folder / 'a.parquet'}'")
    (folder / "b.csv").write_text("x\nu\n")
    with pytest.raises(SourceError, match="several kinds"):
        find("people", tmp_path)
    (folder / "b.csv").unlink()
    (folder / "_temporary").mkdir()
    duckdb.sql(f"COPY ({ROWS}) TO '{folder / '_temporary' / 'a.parquet'}'")
    with pytest.raises(SourceError, match="at work"):
        find("people", tmp_path)
    (folder / "_delta_log").mkdir()
    with pytest.raises(SourceError, match="Delta"):
        find("people", tmp_path)
