"""What a source may be, and how each thing that is wrong with it is said."""

from __future__ import annotations

import gzip
import os

import duckdb
import pytest

from funnel.engines.duckdb import DuckDB
from funnel.engines.source import find
from funnel.errors import SourceError


def schema(path) -> dict[str, str]:
    with DuckDB(find(path)) as engine:
        return engine.schema()


def code(caught) -> str:
    assert caught.value.advice or caught.value.where
    return caught.value.code


def test_csv_parquet_and_globs_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("x,n\nu,1\nv,2\n")
    duckdb.sql("SELECT 'u' AS x, 1 AS n").write_parquet(str(tmp_path / "part-1.parquet"))
    duckdb.sql("SELECT 7 AS n, 'v' AS x").write_parquet(str(tmp_path / "part-2.parquet"))
    with gzip.open(tmp_path / "b.csv.gz", "wt") as handle:
        handle.write("x,n\nu,1\n")
    assert schema(tmp_path / "a.csv") == {"x": "VARCHAR", "n": "BIGINT"}
    assert schema(tmp_path / "b.csv.gz") == {"x": "VARCHAR", "n": "BIGINT"}
    with DuckDB(find(tmp_path / "part-*.parquet")) as engine:
        assert set(engine.schema()) == {"x", "n"}
        assert sorted(engine.rows(f"SELECT x, n FROM {engine.source.reader}")) == [("u", 1), ("v", 7)]


def test_the_last_line_of_a_csv_counts_for_its_types(tmp_path):
    (tmp_path / "late.csv").write_text("n\n" + "1\n" * 30_000 + "a\n")
    assert schema(tmp_path / "late.csv") == {"n": "VARCHAR"}


@pytest.mark.parametrize("name", ["it's.csv", 'quo"te.csv', "semi;colon.csv", "--.csv", "$x.csv"])
def test_names_are_quoted_never_pasted(tmp_path, name):
    (tmp_path / name).write_text("x\nu\n")
    assert schema(tmp_path / name) == {"x": "VARCHAR"}


def test_missing_and_unknown_sources(tmp_path):
    for name, expected in (("none.csv", "source-missing"), ("none-*.parquet", "source-missing")):
        with pytest.raises(SourceError) as caught:
            find(tmp_path / name)
        assert code(caught) == expected
    (tmp_path / "table.xlsx").write_bytes(b"x")
    with pytest.raises(SourceError) as caught:
        find(tmp_path / "table.xlsx")
    assert code(caught) == "source-unreadable"


@pytest.mark.parametrize("content", [b"PAR1 not parquet", b"", os.urandom(200)])
def test_a_damaged_file_is_one_clear_error(tmp_path, content):
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(SourceError) as caught:
        schema(tmp_path / "bad.parquet")
    assert code(caught) == "source-unreadable"


@pytest.mark.parametrize("header", ["x,x", "x,X", "x,", 'a;"b";A'])
def test_equal_or_empty_headers_are_refused(tmp_path, header):
    separator = ";" if ";" in header else ","
    rows = separator.join("1" * (header.count(separator) + 1))
    (tmp_path / "twice.csv").write_text(f"{header}\n{rows}\n{rows}\n")
    with pytest.raises(SourceError) as caught:
        schema(tmp_path / "twice.csv")
    assert code(caught) == "source-header"


def test_a_source_that_moves_is_noticed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\nu\n")
    source = find(path)
    source.check_unchanged()
    path.write_text("x\nu\nv\n")
    with pytest.raises(SourceError) as caught:
        source.check_unchanged()
    assert code(caught) == "source-changed"
    path.unlink()
    with pytest.raises(SourceError):
        source.check_unchanged()


def test_the_engine_reaches_no_file_beyond_its_folders(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.csv").write_text("x\nu\n")
    (outside / "secret.csv").write_text("x\nu\n")
    with DuckDB(find(inside / "a.csv")) as engine:
        assert engine.rows(f"SELECT x FROM {engine.source.reader}") == [("u",)]
        for statement in (
            f"SELECT * FROM read_csv('{outside}/secret.csv')",
            f"COPY (SELECT 1) TO '{outside}/x.csv'",
            "SET enable_external_access = true",
            "SET threads = 1",
            "INSTALL httpfs",
            f"ATTACH '{outside}/x.db'",
        ):
            with pytest.raises(SourceError):
                engine.rows(statement)
    assert sorted(path.name for path in outside.iterdir()) == ["secret.csv"]
