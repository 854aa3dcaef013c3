"""`init`: the policy it writes can be run at once, whatever the table."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import duckdb
import pytest

import funnel
from funnel.analyst.glance import glance
from funnel.engine import Dialect, find, open_engine
from funnel.engine.duckdb import DuckDB
from funnel.errors import ReleaseError
from funnel.files import creating, write_new
from tests.support.census import CENSUS
from tests.support.policies import finished


def tables(folder: Path) -> dict[str, Path]:
    """Tables that people have."""
    made = {
        "plain.csv": "SELECT i AS id, 'd' || (i % 3) AS diagnosis, 'r' || (i % 5) AS region FROM range(300) t(i)",
        "no entity.parquet": "SELECT 'a' || (i % 2) AS a, 'b' || (i % 4) AS \"b c\" FROM range(200) t(i)",
        "holes.parquet": "SELECT i AS id, nullif('s' || (i % 3), 's0') AS s, 'x' || (i % 4) AS x FROM range(240) t(i)",
        "rare.csv": "SELECT i AS id, 's' || (i % 2) AS s, 'x' || least(i // 3, 9) AS x FROM range(90) t(i)",
        "census.csv": f"SELECT person_id, age, education, hours_per_week, sex, income FROM '{CENSUS}' LIMIT 6000",
        "numbers.parquet": 'SELECT i AS "no", i % 2 AS "2020", i % 7 AS "yes" FROM range(210) t(i)',
    }
    for name, query in made.items():
        duckdb.sql(f"COPY ({query}) TO '{folder / name}'")
    return {name: folder / name for name in made}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["plain.csv", "no entity.parquet", "holes.parquet", "rare.csv", "numbers.parquet", "census.csv"]
)
def test_the_starter_policy_runs_once_it_is_said_what_it_is_for(tmp_path, key, monkeypatch, name):
    monkeypatch.setenv("FUNNEL_KEY", key)
    text = funnel.starter_policy(tables(tmp_path)[name], tmp_path)
    path = tmp_path / "starter.yaml"
    path.write_text(text)
    (todo,) = funnel.check(path).error.problems
    assert (todo.code, text.splitlines()[todo.line - 1].split(":")[0]) == ("unfinished", "description")
    path.write_text(finished(text))
    assert funnel.check(path).ok, funnel.check(path).text()
    summary = funnel.run(path)
    assert summary.release is not None
    assert text.count("#") > 15


@pytest.mark.parametrize("name", ["bevölkerung", "2026", "1e5", "true", "日本", "x" * 100])
def test_a_policy_has_a_name_that_is_accepted_whatever_the_file_is_called(tmp_path, name):
    duckdb.sql(f"COPY (SELECT i AS id, 'd' || i % 3 AS diagnosis, 'r' || i % 5 AS town FROM range(300) t(i)) "
               f"TO '{tmp_path}/{name}.csv'")  # fmt: skip
    path = tmp_path / "starter.yaml"
    path.write_text(finished(funnel.starter_policy(tmp_path / f"{name}.csv", tmp_path)))
    assert funnel.check(path).ok, funnel.check(path).text()


def test_a_table_with_nothing_to_propose_says_so(tmp_path):
    duckdb.sql(f"COPY (SELECT i AS id FROM range(100) t(i)) TO '{tmp_path}/ids.csv'")
    with pytest.raises(funnel.SourceError) as caught:
        funnel.starter_policy(tmp_path / "ids.csv")
    assert "policies/" in (caught.value.advice or "")
    duckdb.sql(f"COPY (SELECT i AS id, i AS x FROM range(0) t(i)) TO '{tmp_path}/none.parquet'")
    with pytest.raises(funnel.SourceError) as caught:
        funnel.starter_policy(tmp_path / "none.parquet")
    assert caught.value.code == "source-empty"


def test_a_policy_is_never_overwritten(tmp_path):
    (tmp_path / "mine.yaml").write_text("precious")
    with pytest.raises(funnel.ReleaseError):
        write_new(tmp_path / "mine.yaml", "text")
    assert (tmp_path / "mine.yaml").read_text() == "precious"


def test_a_telling_column_is_hidden_and_never_proposed_for_release(tmp_path):
    query = "SELECT 'c' || (i % 4) AS colour, 's' || (i % 3) AS secret, 'r' || (i % 5) AS religion FROM range(300) t(i)"
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/t.parquet'")
    (tmp_path / "t.yaml").write_text(finished(funnel.starter_policy(tmp_path / "t.parquet", tmp_path)))
    policy = funnel.load(tmp_path / "t.yaml")
    assert policy.sensitive == ("secret",)
    assert [block.columns for block in policy.blocks] == [("colour",)]


def test_dates_that_stand_as_texts_alone_may_be_rare_in_their_months(tmp_path):
    """A starter checks, though no month has so many records as a value needs."""
    query = """SELECT i AS id, 'r' || (i % 2) AS income,
               CAST(DATE '1940-01-01' + CAST(i % 290 * 62 AS INTEGER) AS VARCHAR) AS born FROM range(400) t(i)"""
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/people.csv'")
    text = funnel.starter_policy(tmp_path / "people.csv", tmp_path)
    (tmp_path / "p.yaml").write_text(finished(text))
    assert "{name: born, round: month, rare: other}" in text
    assert funnel.check(tmp_path / "p.yaml").ok


def test_the_starter_is_a_wide_block_of_what_is_no_key_and_does_not_tell(tmp_path):
    query = """SELECT i AS id, 'r' || (i % 3) AS income, 'note ' || hash(i) AS note, i % 40 AS age,
               't' || (i % 7) AS town, 'x' AS same,
               CAST(DATE '2026-01-01' + CAST(i % 365 AS INTEGER) AS VARCHAR) AS day FROM range(2000) t(i)"""
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/people.csv'")
    text = funnel.starter_policy(tmp_path / "people.csv", tmp_path)
    (tmp_path / "p.yaml").write_text(finished(text))
    policy = funnel.load(tmp_path / "p.yaml")
    (block,) = policy.blocks
    assert block.columns == ("age", "town", "day")
    assert [one.round for one in block.attributes] == [None, None, "month"]
    assert (policy.privacy.notion, policy.privacy.knows, policy.mechanism.kind) == ("srlip", 2, "invariant")
    assert policy.source.entity == "id"
    assert "WARNING: a guess by name" in text
    assert "#  identify: [id]" in text
    assert "#   note                 VARCHAR        2,000 values; it tells who somebody is: left out" in text


def test_a_csv_is_read_once_after_a_look_at_its_first_rows(tmp_path, monkeypatch):
    """Its types, its keys and its values come from one reading, after a look at the first rows."""
    duckdb.sql(f"COPY (SELECT i AS id, i % 3 AS s, i % 5 AS x, i % 4 AS y FROM range(400) t(i)) TO '{tmp_path}/t.csv'")
    asked = list[str]()
    rows = DuckDB.rows

    def counted(engine, statement, parameters=()):
        asked.append(statement)
        return rows(engine, statement, parameters)

    monkeypatch.setattr(DuckDB, "rows", counted)
    funnel.starter_policy(tmp_path / "t.csv", tmp_path)
    assert len([one for one in asked if "read_csv" in one and "LIMIT" not in one]) == 1
    assert not any("sample_size = -1" in one for one in asked)


def of_the_born(folder: Path, born: str, name: str) -> Path:
    """The finished first policy of a table of 600 people, nearly as many days of birth, and half as many months."""
    day = "DATE '1950-01-01' + CAST(hash(i) % 12000 AS INTEGER)"
    query = f"SELECT i AS id, 't' || i % 4 AS town, ['yes', 'no'][i % 2 + 1] AS income, {born.format(day)} AS born"
    duckdb.sql(f"COPY ({query} FROM range(600) t(i)) TO '{folder / name}'")
    path = folder / "starter.yaml"
    path.write_text(finished(funnel.starter_policy(folder / name, folder)))
    return path


@pytest.mark.parametrize("written", ["%Y/%m/%d", "%Y-%-m-%-d"])
def test_a_date_that_no_policy_reads_is_none_to_begin_with(tmp_path, written):
    path = of_the_born(tmp_path, f"strftime({{}}, '{written}')", "t.csv")
    assert funnel.check(path).ok, funnel.check(path).text()


@pytest.mark.parametrize("kind", ["VARCHAR", "DATE"])
def test_months_of_birth_are_no_texts_that_tell_who_somebody_is(tmp_path, kind):
    """What is told more coarsely is not refused for how it is written."""
    path = of_the_born(tmp_path, f"CAST({{}} AS {kind})", "t.parquet")
    assert funnel.check(path).ok, funnel.check(path).text()
    path.write_text(path.read_text().replace("- born", "- {name: born, round: month}"))
    assert "round: month" in path.read_text()
    assert funnel.check(path).ok, funnel.check(path).text()


def test_texts_with_a_time_of_day_are_no_dates(tmp_path):
    """A cast to a date cuts the time off, and no release does."""
    times = "TIMESTAMP '2024-01-01' + INTERVAL (i % 48) HOUR"
    query = f"SELECT {times} AS time, CAST({times} AS DATE) AS day FROM range(400) t(i)"
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/t.csv'")
    source = find(tmp_path / "t.csv")
    with open_engine(source) as engine:
        found = glance(engine, source)
    assert [one.kind for one in found.columns] == ["VARCHAR", "DATE"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_types_and_numbers_of_values_are_found_whatever_the_file(tmp_path, ending):
    query = "SELECT i AS id, i / 4 AS f, 'a' || (i % 5) AS t, nullif(i % 50, 7) AS n FROM range(20000) t(i)"
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/t.{ending}'")
    source = find(tmp_path / f"t.{ending}")
    with open_engine(source) as engine:
        found = glance(engine, source)
    assert found.rows == 20_000
    columns = {one.name: one for one in found.columns}
    assert [one.kind for one in found.columns] == ["BIGINT", "DOUBLE", "VARCHAR", "BIGINT"]
    assert [columns[name].unique for name in ("id", "f", "t", "n")] == [True, True, False, False]
    assert columns["n"].missing == 400
    assert abs(columns["n"].distinct - 49) <= 10
    assert [one.name for one in found.columns if one.tells_who(found.rows)] == ["id", "f"]


def test_where_no_name_tells_the_author_must_choose(tmp_path):
    duckdb.sql(
        f"COPY (SELECT 'a' || (i % 2) AS a, 'b' || (i % 4) AS b FROM range(99) t(i)) TO '{tmp_path}/t.parquet'"
    )
    assert "CHOOSE" in funnel.starter_policy(tmp_path / "t.parquet", tmp_path)


def test_names_with_line_breaks_and_quotes_stay_on_their_line(tmp_path):
    evil = "a\nversion: 2\n\"'"
    quoted = evil.replace('"', '""')
    duckdb.execute(f"""COPY (SELECT 'a' || (i % 2) AS "{quoted}", 'b' || (i % 4) AS b FROM range(99) t(i))
                       TO '{tmp_path}/t.parquet'""")
    (tmp_path / "t.yaml").write_text(finished(funnel.starter_policy(tmp_path / "t.parquet", tmp_path)))
    policy = funnel.load(tmp_path / "t.yaml")
    assert evil in (*policy.sensitive, *policy.blocks[0].columns)


def test_the_minimum_is_never_lowered(tmp_path):
    """Rare values are merged until they have as many records; where less than two are left there is no policy."""
    for name, rare in (("merged", "'x' || least(i // 3, 9)"), ("kept", "'x' || (i % 4)")):
        query = f"SELECT 's' || (i % 2) AS secret, {rare} AS x FROM range(90) t(i)"
        duckdb.sql(f"COPY ({query}) TO '{tmp_path}/{name}.parquet'")
        text = funnel.starter_policy(tmp_path / f"{name}.parquet", tmp_path)
        (tmp_path / f"{name}.yaml").write_text(finished(text))
        policy = funnel.load(tmp_path / f"{name}.yaml")
        assert policy.estimate.minimum == 10
        assert policy.blocks[0].attributes[0].rare == ("other" if name == "merged" else None)
    query = "SELECT i % 2 AS secret, if(i < 3, 'p', 'q') AS x FROM range(90) t(i)"
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/no.parquet'")
    with pytest.raises(funnel.SourceError, match="no two values of 10 records"):
        funnel.starter_policy(tmp_path / "no.parquet", tmp_path)


def test_blanks_are_told_and_stay_unless_asked(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("town,disease\n" + "".join(f"{' ' * (i % 2)}t{i % 3},d{i % 2}\n" for i in range(300)))
    text = funnel.starter_policy(table, tmp_path)
    assert "150 with blanks at an end (`init --trim` leaves these out)" in text
    (tmp_path / "p.yaml").write_text(finished(text))
    assert not funnel.load(tmp_path / "p.yaml").blocks[0].attributes[0].trim


def test_decimal_commas_are_those_of_all_columns(tmp_path):
    """The types are those of the policy's reading, which takes thousands for fractions, and points for letters."""
    lines = [f"{i};{1000 + i % 9},5{i % 3};{1 + i % 8},{100 + i};{i % 7}.5;{'ab'[i % 2]}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["nr;pay;people;point;x", *lines]))
    text = funnel.starter_policy(tmp_path / "t.csv", tmp_path)
    assert '  csv: {decimal: ","}\n' in text
    with open_engine(find(tmp_path / "t.csv", dialect=Dialect(decimal=","))) as engine:
        assert kinds(text) == engine.schema()


def kinds(text: str) -> dict[str, str]:
    """The types of columns as a first policy tells them."""
    told = text.partition("version:")[0].splitlines()
    return {line.split()[1]: line.split()[2] for line in told if line.startswith("#   ")}


WRITTEN = [
    "7", " 7", "7 ", "4.5 ", "4.5\t", " 4.5", "-7", "007", "+5", "7_0", "1e3", "0x10", "0b1", "-007", "1_000.5", "01.5",
    ".5", "5.", "NaN", "9223372036854775808", "1e400", "1 000", "true",
]  # fmt: skip
"""What a column may hold beside numbers."""


@pytest.mark.parametrize("usual", [1, 1.5])
def test_the_type_of_a_csvs_column_is_the_one_that_its_policy_reads(tmp_path, usual):
    names = [f"c{place}" for place in range(len(WRITTEN))]
    rows = [[["a1", "b2"][i % 2], *(str(usual + i % 4) for _ in WRITTEN)] for i in range(60)]
    rows += [["a1", *WRITTEN] for _ in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, [["x", *names], *rows])))
    with open_engine(find(tmp_path / "t.csv")) as engine:
        assert kinds(funnel.starter_policy(tmp_path / "t.csv", tmp_path)) == engine.schema()


def test_what_cannot_be_released_is_left_out_and_what_is_missing_is_told(tmp_path):
    """A list has no text; NaN is missing; and a column that one half of the rows has is not the same in every row."""
    query = "['yes', 'no'][i % 2 + 1] AS income, [i % 3] AS tags, INTERVAL (i % 3) DAY AS gap"
    query += ", CASE WHEN i % 3 > 0 THEN 'x' END AS moved"
    query += ", CASE WHEN i % 4 > 0 THEN (i % 5)::DOUBLE ELSE 'nan' END AS share"
    duckdb.sql(f"COPY (SELECT {query}, NULL::INTEGER AS no FROM range(600) t(i)) TO '{tmp_path}/t.parquet'")
    text = funnel.starter_policy(tmp_path / "t.parquet", tmp_path)
    said = {line.split()[1]: " ".join(line.split()[3:]) for line in text.splitlines() if line.startswith("#   ")}
    assert said["tags"] == said["gap"] == "3 values; no plain values: left out"
    assert said["moved"] == "1 values, 200 missing"
    assert said["share"] == "5 values, 150 missing"
    assert said["no"] == "0 values, 600 missing; the same in every row: left out"
    (tmp_path / "t.yaml").write_text(finished(text))
    checked = funnel.check(tmp_path / "t.yaml", source=True)
    assert checked.ok, checked.text()


def test_blanks_are_those_that_a_policy_leaves_out(tmp_path):
    ends = "['', chr(9), chr(160), ' '][i % 4 + 1]"
    query = f"['yes', 'no'][i % 2 + 1] AS income, 't' || i % 3 || {ends} AS town, i % 5 AS x"
    duckdb.sql(f"COPY (SELECT {query} FROM range(600) t(i)) TO '{tmp_path}/t.parquet'")
    text = funnel.starter_policy(tmp_path / "t.parquet", tmp_path, trim=True)
    assert "450 with blanks at an end (left out)" in text
    assert "{name: town, trim: true}" in text


def test_dates_that_begin_with_the_day_are_named_as_texts(tmp_path):
    lines = [f"{i},{1 + i % 28}.{1 + i % 12}.1987,{'ab'[i % 2]},{'cd'[i // 2 % 2]}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["nr,born,x,y", *lines]))
    assert " values, texts to funnel, which reads dates as 1987-12-31" in funnel.starter_policy(tmp_path / "t.csv")


@pytest.mark.parametrize("rows", [1, 19])
def test_a_table_of_a_few_rows_is_told_how_many_it_has(tmp_path, rows):
    duckdb.sql(f"COPY (SELECT i AS id, i % 2 AS x, i % 3 AS y FROM range({rows}) t(i)) TO '{tmp_path}/t.csv'")
    with pytest.raises(funnel.SourceError, match=f"the table has {rows} row"):
        funnel.starter_policy(tmp_path / "t.csv")


@pytest.mark.long
def test_three_hundred_columns_are_read_in_the_memory_of_a_few(tmp_path):
    columns = ", ".join(f"chr(97 + CAST(hash(i + {c}) % 3 AS INTEGER)) AS f{c}" for c in range(300))
    duckdb.sql(f"COPY (SELECT i AS id, {columns} FROM range(100) t(i)) TO '{tmp_path}/t.csv'")
    text = funnel.starter_policy(tmp_path / "t.csv", tmp_path)
    assert "  knows: 1 " in text  # any two of so many columns are more pairs than anybody waits for
    (tmp_path / "p.yaml").write_text(finished(text))
    assert len(funnel.load(tmp_path / "p.yaml").blocks[0].columns) == 299


def test_a_semicolon_table_with_a_broken_line_is_not_read_by_its_decimal_commas(tmp_path):
    lines = [f"{i};{i % 9},5;{'ab'[i % 2]}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["nr;pay;x", *lines[:50], "50;1,5", *lines[51:]]))
    with pytest.raises(funnel.SourceError, match="line 52 has 2 fields, the header has 3"):
        funnel.starter_policy(tmp_path / "t.csv")


def test_columns_without_a_name_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text("id,,x,\n" + "".join(f"{i},a,b,c\n" for i in range(50)))
    with pytest.raises(funnel.SourceError, match="columns 2, 4 have no name in the header"):
        funnel.starter_policy(tmp_path / "t.csv")


@pytest.mark.parametrize("first", ["nr;town;wage;", ";;;", "\nnr;town;wage;", None])
def test_a_first_line_without_a_name_for_every_column_is_no_record(tmp_path, first):
    rows = "".join(f"{i};t{i % 3};{i % 7},5;s{i % 2}\n" for i in range(200))
    (tmp_path / "t.csv").write_text(rows if first is None else f"{first}\n{rows}")
    with pytest.raises(funnel.SourceError) as caught:
        funnel.starter_policy(tmp_path / "t.csv", tmp_path)
    assert caught.value.code == "source-header" and "--names" in str(caught.value)
    text = funnel.starter_policy(tmp_path / "t.csv", tmp_path, names=["nr", "town", "wage", "secret"])
    assert "(200 rows)" in text and "wage                 DOUBLE" in text
    assert f"header: {str(first is not None).lower()}, names: [nr, town, wage, secret]" in text
    (tmp_path / "p.yaml").write_text(finished(text))
    assert funnel.check(tmp_path / "p.yaml").ok
    with pytest.raises(funnel.SourceError, match="2 names are given"):
        funnel.starter_policy(tmp_path / "t.csv", tmp_path, names=["nr", "town"])


def test_names_are_for_a_csv_alone(tmp_path):
    duckdb.sql(f"COPY (SELECT i % 2 AS a, i % 3 AS b FROM range(99) t(i)) TO '{tmp_path}/t.parquet'")
    with pytest.raises(funnel.SourceError, match="only a CSV"):
        funnel.starter_policy(tmp_path / "t.parquet", tmp_path, names=["x", "y"])


def test_times_alone_are_merged_as_texts_and_no_column_is_called_a_weight(tmp_path):
    """A wide release calls so what its rows count for, and rare times have no nearest one."""
    many = "SELECT i AS id, 's' || (i % 2) AS s, TIMESTAMP '2026-01-01' + INTERVAL (least(i // 3, 9)) DAY AS seen"
    duckdb.sql(f"COPY ({many} FROM range(90) t(i)) TO '{tmp_path}/times.parquet'")
    weighed = "SELECT i AS id, 's' || (i % 2) AS s, i % 3 AS weight, i % 4 AS x, i % 5 AS y FROM range(300) t(i)"
    duckdb.sql(f"COPY ({weighed}) TO '{tmp_path}/weights.parquet'")
    for name in ("times", "weights"):
        text = funnel.starter_policy(tmp_path / f"{name}.parquet", tmp_path)
        (tmp_path / "starter.yaml").write_text(finished(text))
        found = funnel.check(tmp_path / "starter.yaml")
        assert found.ok, found.text()
    assert "add it under another name" in text


def test_a_disk_that_is_full_keeps_no_part_of_a_file_and_says_what_helps(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    with pytest.raises(ReleaseError, match="No space left") as caught, creating("file", path):
        path.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (caught.value.code, caught.value.exit_code) == ("disk-full", 5)
    assert "Free space" in str(caught.value.advice)
    assert not path.exists()
    with pytest.raises(ReleaseError, match="No space left"), creating("file", device := Path("/dev/full")):
        device.write_text("much")
    assert device.exists()
    path.write_text("somebody's")
    with pytest.raises(ReleaseError, match="File exists"):
        write_new(path, "another")
    assert path.read_text() == "somebody's"
