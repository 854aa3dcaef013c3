"""What a source may be, and how each thing that is wrong with it is said."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import find
from funnel.engine.sources.pulled import Pulled
from funnel.errors import SourceError
from tests.support.policies import write_policy


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
        assert sorted(engine.rows(f"SELECT x, n FROM {engine.source.reading()}")) == [("u", 1), ("v", 7)]


def test_the_last_line_of_a_csv_counts_for_its_types(tmp_path):
    (tmp_path / "late.csv").write_text("n\n" + "1\n" * 30_000 + "a\n")
    assert schema(tmp_path / "late.csv") == {"n": "VARCHAR"}


@pytest.mark.parametrize("name", ["it's.csv", 'quo"te.csv', "semi;colon.csv", "--.csv", "$x.csv"])
def test_names_are_quoted_never_pasted(tmp_path, name):
    (tmp_path / name).write_text("x\nu\n")
    assert schema(tmp_path / name) == {"x": "VARCHAR"}


def test_missing_and_unknown_sources(tmp_path):
    for name in ("none.csv", "none-*.parquet", "none/**/*.csv", "none/*.csv", "*/none/*.csv"):
        with pytest.raises(SourceError) as caught:
            find(tmp_path / name)
        assert code(caught) == "source-missing"
    (tmp_path / "table.xlsx").write_bytes(b"x")
    with pytest.raises(SourceError) as caught:
        find(tmp_path / "table.xlsx")
    assert code(caught) == "source-unreadable"


@pytest.mark.parametrize("content", [b"PAR1 not parquet", b"PAR1", os.urandom(200)])
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


def test_equal_names_in_parquet_are_refused_too(tmp_path):
    pq.write_table(pa.table({"secret": ["a"], "Secret": ["b"]}), tmp_path / "case.parquet")
    with pytest.raises(SourceError) as caught:
        schema(tmp_path / "case.parquet")
    assert code(caught) == "source-header"


@pytest.mark.parametrize("lines", ['{"s": 1, "S": 2}', '{"s": 1}\n{"S": 2}', '{"S_1": 0, "s": 1}\n{"S": 2}'])
def test_keys_of_json_lines_that_differ_in_case_alone_are_refused(tmp_path, lines):
    """DuckDB calls the second one S_1: a policy that hides S would hide s."""
    (tmp_path / "case.jsonl").write_text(f"{lines}\n")
    with pytest.raises(SourceError) as caught:
        schema(tmp_path / "case.jsonl")
    assert code(caught) == "source-header"


def test_keys_of_json_lines_that_only_look_renamed_are_read(tmp_path):
    (tmp_path / "case.jsonl").write_text('{"s": 1, "s_1": 2}\n')
    assert list(schema(tmp_path / "case.jsonl")) == ["s", "s_1"]


def test_equal_names_of_a_table_that_is_brought_in_are_refused_too():
    """A PostgreSQL database may hold both, and DuckDB gives the second one another name."""

    class Brought(Pulled):
        name = "elsewhere"

        def rows(self, columns):
            return pa.table({"secret": ["a"], "Secret": ["b"]}).to_reader()

    with pytest.raises(SourceError) as caught, DuckDB(Brought()) as engine:
        engine.schema()
    assert code(caught) == "source-header"


@pytest.mark.parametrize("pattern", [True, False])
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_folder_that_contradicts_a_column_of_its_name_is_refused(tmp_path, kind, pattern):
    """DuckDB has the folder's value in place of every row's own."""
    inside = tmp_path / "Secret=a"
    inside.mkdir()
    options = {"jsonl": "(FORMAT json)"}.get(kind, "")
    people = "SELECT i, ['b', 'c'][i % 2 + 1] AS secret FROM range(9) t(i)"
    duckdb.sql(f"COPY ({people}) TO '{inside}/one.{kind}' {options}")
    with pytest.raises(SourceError) as caught:
        schema(tmp_path if pattern else inside / f"one.{kind}")
    assert code(caught) == "source-header"
    assert "other values than the folder of that name" in str(caught.value)


def test_a_ragged_csv_names_its_line(tmp_path):
    (tmp_path / "ragged.csv").write_text("id,s,x\n" + "1,a,b\n" * 20 + "1,a,b,c,d\n" * 3 + "2,a\n")
    with pytest.raises(SourceError) as caught:
        schema(tmp_path / "ragged.csv")
    assert code(caught) == "source-unreadable"
    assert "22" in str(caught.value)


@pytest.mark.parametrize("above", ["s,x\n" + "u,a\nv,b\n" * 30, "s,x\nu,a\n"])
def test_lines_that_the_engine_would_leave_out_are_refused(tmp_path, above):
    """Of two tables in one file it reads the longer, or the second."""
    (tmp_path / "t.csv").write_text(above + "s,x,y\n" + "u,a,1\nv,b,2\n" * 30)
    with pytest.raises(SourceError, match=rf"the first {above.count(chr(10))} lines have other fields"):
        schema(tmp_path / "t.csv")


APOSTROPHES = [("a", "'s-Gravenhage"), ("b", "Oslo"), ("a", "Hawai'"), ("b", "Rome")] * 20
"""From the first apostrophe to the next the engine finds one field in quotes."""
HASHES = [(city, letter) for letter, city in [*[("a", "1"), ("\\", "1"), ("b", "#c")] * 5, *[("'b' ", "1")] * 5]]
"""Where quotes are hard to find the engine takes a line that begins with a hash for a comment."""


@pytest.mark.parametrize("rows", [APOSTROPHES, HASHES])
def test_apostrophes_and_hashes_of_records_are_letters(tmp_path, rows):
    (tmp_path / "t.csv").write_text("s\tx\n" + "".join(f"{s}\t{x}\n" for s, x in rows))
    with DuckDB(find(tmp_path / "t.csv")) as engine:
        engine.prepare((f"CREATE TEMP VIEW source AS SELECT * FROM {engine.source.reading()}",))
        assert engine.rows("SELECT * FROM source") == rows


def test_apostrophes_are_letters_in_every_file_of_a_pattern(tmp_path):
    """Also where the engine finds no quotes in one file, and apostrophes that pair in another."""
    files = [[("u", "Leiden"), ("v", "Delft")] * 50, [("u", "Delft"), ("v", "'s-Gravenhage"), ("u", "Drivers'")]]
    files.append([("u", "'other'"), ("v", "other")] * 20)
    for number, rows in enumerate(files):
        (tmp_path / f"t{number}.csv").write_text("s,x\n" + "".join(f"{s},{x}\n" for s, x in rows))
    with DuckDB(find(tmp_path / "t*.csv")) as engine:
        found = engine.rows(f"SELECT * FROM {engine.source.reading()}")
    assert sorted(found) == sorted(row for rows in files for row in rows)


def test_lines_between_records_that_begin_with_a_hash_are_comments(tmp_path):
    (tmp_path / "t.csv").write_text("# by hand, twice\n# and again\ns,x\n" + "u,a\nv,b\n" * 30 + "# more\nu,a\n")
    with DuckDB(find(tmp_path / "t.csv")) as engine:
        assert list(engine.schema()) == ["s", "x"]
        assert engine.row(f"SELECT count(*) FROM {engine.source.reading()}") == (61,)


@pytest.mark.parametrize("odd", ["u,a\r\n", "u,a,c\n" * 3])
def test_lines_that_fit_no_dialect_are_not_said_to_be_in_another_encoding(tmp_path, odd):
    (tmp_path / "t.csv").write_bytes(("s,x\n" + "u,a\nv,b\n" * 12_000 + odd + "u,a\n").encode())
    with pytest.raises(SourceError, match="the lines of the table do not fit together"):
        schema(tmp_path / "t.csv")


@pytest.mark.parametrize("above", ["Made by hand\n", "A title\n\n", "\n\n"])
def test_a_title_above_the_names_is_no_record(tmp_path, above):
    (tmp_path / "t.csv").write_text(above + "s,x\n" + "u,a\nv,b\n" * 30)
    assert list(schema(tmp_path / "t.csv")) == ["s", "x"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_named_as_what_they_are(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("id,name\n1,Zo\u00eb\n2,Ren\u00e9\n".encode(encoding))
    with pytest.raises(SourceError) as caught:
        schema(tmp_path / "t.csv")
    assert "UTF-8" in str(caught.value)


def test_categorical_values_of_a_csv_are_released_as_they_stand_there(tmp_path):
    rows = [
        f"{i},{'yes' if i % 2 else 'no'},{'1.10' if i % 3 else '1.1'},0{i % 3}/02/2020" for i in range(90)
    ]
    (tmp_path / "t.csv").write_text("id,answer,version,day\n" + "\n".join(rows) + "\n")
    path = write_policy(tmp_path, source={"table": "t.csv"}, sensitive=["answer"], public=["version", "day"],
                        draws={"kind": "fresh"}, privacy={"notion": "lip", "epsilon": 2})  # fmt: skip
    joint = funnel.run(path, dry_run=True).joint
    assert joint.secret.values == (("no",), ("yes",))
    assert set(joint.blocks[0].values) == {("1.1",), ("1.10",)}
    assert set(joint.blocks[1].values) == {("00/02/2020",), ("01/02/2020",), ("02/02/2020",)}


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
        assert engine.rows(f"SELECT x FROM {engine.source.reading()}") == [("u",)]
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


def test_hidden_files_in_a_pattern_are_refused_not_read(tmp_path):
    for name in ("a.parquet", ".b.parquet"):
        duckdb.sql("SELECT 'u' AS x").write_parquet(str(tmp_path / name))
    with pytest.raises(SourceError) as caught:
        find(tmp_path / "*.parquet")
    assert ".b.parquet" in str(caught.value)
    (tmp_path / ".b.parquet").unlink()
    source = find(tmp_path / "*.parquet")
    duckdb.sql("SELECT 'u' AS x").write_parquet(str(tmp_path / ".c.parquet"))
    with pytest.raises(SourceError):
        source.check_unchanged()


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_folder_whose_pattern_would_leave_some_of_it_out_is_refused(tmp_path, kind):
    """The engine's `**` goes through no links, and minds capitals."""
    folder, other = tmp_path / "people", tmp_path / "archive"
    options = {"jsonl": "(FORMAT json)"}.get(kind, "")
    for place in (folder / "year=2024", other / "year=2023"):
        place.mkdir(parents=True)
        duckdb.sql(f"COPY (SELECT 'u' AS x) TO '{place}/one.{kind}' {options}")
    find(folder)
    (folder / "year=2023").symlink_to(other / "year=2023")
    with pytest.raises(SourceError, match="year=2023, a link to a folder"):
        find(folder)
    with DuckDB(find(folder / "**" / f"*.{kind}")) as engine:  # as it advises
        assert engine.row(f"SELECT count(*) FROM {engine.source.reading()}") == (1,)
    (folder / "year=2022").symlink_to(other / "year=2022")
    with pytest.raises(SourceError, match="year=2022 is a link to what is not there"):
        find(folder / "*" / f"*.{kind}")
    (folder / "year=2022").unlink()
    (folder / "year=2023").rename(folder / "_year=2023")
    find(folder)
    (folder / "year=2024" / f"one.{kind}").rename(folder / f"two.{kind.upper()}")
    with pytest.raises(SourceError, match=f"two.{kind.upper()}, and files are read whose names end in .{kind}"):
        find(folder)


@pytest.mark.parametrize("name", ["two", "two.parq", "two.csv.bz2"])
def test_a_part_with_another_ending_is_not_left_out(tmp_path, name):
    """Trino and Athena write none."""
    for one in ("one.parquet", name):
        duckdb.sql(f"COPY (SELECT 'u' AS x) TO '{tmp_path}/{one}' (FORMAT parquet)")
    with pytest.raises(SourceError, match=f"holds {name}, and files are read whose names end in .parquet"):
        find(tmp_path)
    (tmp_path / name).rename(tmp_path / "README")
    (tmp_path / "README").write_text("No part of the table.\n")
    (tmp_path / "notes.txt").symlink_to("nowhere.txt")
    (tmp_path / ".git").mkdir()
    find(tmp_path)
    find(tmp_path / "**" / "*.parquet")


def test_brackets_in_the_path_of_a_table_are_no_pattern(tmp_path):
    for place, rows in (("p[1]", 1), ("p1", 2)):
        (tmp_path / place).mkdir()
        for name in ("t.csv", "q[1].csv"):
            (tmp_path / place / name).write_text("x\n" + "u\n" * rows)
    (tmp_path / "p[1]" / "q1.csv").write_text("x\n" + "u\n" * 3)
    for name in ("t.csv", "q[1].csv", "?.csv", "[t].csv"):
        with DuckDB(find(name, tmp_path / "p[1]")) as engine:
            assert engine.row(f"SELECT count(*) FROM {engine.source.reading()}") == (1,), name


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("asked", ["table.{}", "*.{}", "."], ids=["file", "pattern", "folder"])
def test_a_link_to_a_file_elsewhere_is_read(kind: str, asked: str, tmp_path: Path) -> None:
    for folder in ("lake", "here"):
        (tmp_path / folder).mkdir()
    duckdb.sql(f"COPY (SELECT 'u' AS x FROM range(3)) TO '{tmp_path}/lake/night.{kind}'")
    (tmp_path / "here" / f"table.{kind}").symlink_to(f"../lake/night.{kind}")
    (tmp_path / f"secret.{kind}").write_text("x\nu\n")
    with DuckDB(find(tmp_path / "here" / asked.format(kind))) as engine:
        assert engine.row(f"SELECT count(*) FROM {engine.source.reading()}") == (3,)
        with pytest.raises(duckdb.PermissionException):
            engine.connection.execute(f"SELECT * FROM read_text('{tmp_path}/secret.{kind}')")


def test_one_file_under_two_names_is_not_counted_twice(tmp_path):
    (tmp_path / "2024").mkdir()
    (tmp_path / "2024" / "people.csv").write_text("x\nu\n")
    (tmp_path / "latest").symlink_to("2024")
    with pytest.raises(SourceError, match="are one file"):
        find(tmp_path / "*" / "people.csv")
    (tmp_path / "latest").unlink()
    (tmp_path / "2024" / "copy.csv").hardlink_to(tmp_path / "2024" / "people.csv")
    with pytest.raises(SourceError, match="are one file"):
        find(tmp_path / "2024")


def test_a_pattern_counts_nothing_that_writers_keep_for_themselves(tmp_path):
    for place in (".ipynb_checkpoints", "_temporary"):
        folder = tmp_path / place / "people" / place
        folder.mkdir(parents=True)
        for one in (folder, folder.parent):
            (one / "people.csv").write_text("x\nu\n")
        with pytest.raises(SourceError, match=f"also matches .*{place}"):
            find(folder.parent / "**" / "*.csv")
        find(folder / "*.csv")
    lake = tmp_path / "lake" / "people"
    (lake / "_delta_log").mkdir(parents=True)
    duckdb.sql("SELECT 'u' AS x").write_parquet(str(lake / "one.parquet"))
    for table in (tmp_path / "lake", lake / "*.parquet"):
        with pytest.raises(SourceError, match="table"):
            find(table)


def test_a_name_that_is_no_text_is_one_error(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.csv")).write_text("x\nu\n")
    for table in (tmp_path, tmp_path / "*.csv"):
        with pytest.raises(SourceError) as caught:
            find(table)
        assert caught.value.code == "source-unreadable"


def test_a_view_is_read_once_whatever_it_says_the_next_time(tmp_path):
    with duckdb.connect(str(tmp_path / "people.duckdb")) as made:
        made.execute("CREATE TABLE people AS SELECT i AS id, 'u' AS x FROM range(1000) t(i)")
        made.execute('CREATE VIEW "Some" AS SELECT * FROM people WHERE random() < 0.5')
    with DuckDB(find(f"{tmp_path}/people.duckdb#some")) as engine:
        engine.fetch(["x", "id"])
        first, second = (engine.rows(f"SELECT id FROM {engine.source.reading()} ORDER BY id") for _ in range(2))
    assert first == second and 300 < len(first) < 700


def test_a_rewrite_that_restores_its_time_is_noticed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\nu\n")
    source, before = find(path), path.stat()
    path.write_text("x\nv\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SourceError) as caught:
        source.check_unchanged()
    assert code(caught) == "source-changed"


def test_what_spills_is_private_and_goes_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "big.parquet"
    duckdb.sql(f"COPY (SELECT 'person-' || hash(i) AS id FROM range(400000) t(i)) TO '{path}'")
    with DuckDB(find(path), memory="12MB", threads=1) as engine:
        scratch = Path(engine.row("SELECT current_setting('temp_directory')")[0])
        assert scratch.stat().st_mode & 0o077 == 0
        engine.prepare((f"CREATE TEMP TABLE t AS SELECT id FROM {engine.source.reading()}",))
        assert any(scratch.iterdir())
    assert not scratch.exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["big.parquet"]
