"""What becomes of a column's values before they are counted: dates, groups, blanks, decimals, rare values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.cells.columns import number
from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import find
from funnel.errors import SourceError
from funnel.plan.build import compile_plan
from funnel.plan.tabulate import tabulate
from tests.support.policies import write_policy


def policy(folder: Path, value: str, column: object, rows: int = 240, **changes) -> Path:
    """A table of people with a column x, and a policy that releases it."""
    query = f"SELECT i AS id, 's' || (i % 2) AS s, {value} AS x FROM range({rows}) t(i)"
    duckdb.execute(f"COPY ({query}) TO '{folder}/t.parquet'")
    terms = {"source": {"table": "t.parquet", "entity": "id"}, "sensitive": ["s"], "public": [column]}
    return write_policy(folder, **{**terms, **changes})


def labels(path: Path) -> list[str | None]:
    """The values that are sanitised, in their order."""
    return [value for (value,) in funnel.run(path, dry_run=True).joint.blocks[0].values]


DAY = "DATE '2025-12-30' + CAST(i % 4 AS INTEGER)"
"""A Tuesday, a Wednesday, and two days of the next year."""


def test_numbers_in_floating_point_are_told_apart_as_double_precision_holds_them(tmp_path):
    value = "[0.3::DOUBLE, 0.1::DOUBLE + 0.2::DOUBLE][i % 2 + 1]"
    assert labels(policy(tmp_path, value, "x")) == ["0.3", "0.30000000000000004"]


def of_unknown_age(folder: Path, **changes) -> Path:
    """The policy of people of whom a quarter has NaN for an age, in a file whose statistics are of all others."""
    path = policy(folder, "0", {"name": "x", "bins": [0, 18, 60]}, accept=["unbounded"], **changes)
    table = pq.read_table(folder / "t.parquet")
    ages = pa.array([15.0, 25.0, float("nan"), 65.0] * (table.num_rows // 4))
    pq.write_table(table.set_column(table.column_names.index("x"), "x", ages), folder / "t.parquet")
    return path


@pytest.mark.parametrize("terms", [{"source__missing": "drop"}, {"source__filter": "NOT isnan(x)"}])
def test_who_has_no_age_is_left_out_where_the_policy_says_so(tmp_path, terms):
    assert funnel.run(of_unknown_age(tmp_path, **terms), dry_run=True).joint.counts.tolist() == [60, 60, 60]


def test_who_has_no_age_is_missing_whatever_statistics_leave_out(tmp_path):
    with pytest.raises(SourceError, match=r"missing values in x \(60\)"):
        funnel.run(of_unknown_age(tmp_path), dry_run=True)


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR"])
@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("day", ["2025-12-30", "2025-12-31", "2026-01-01", "2026-01-02"]),
        ("week", ["2025-12-29"]),
        ("month", ["2025-12", "2026-01"]),
        ("quarter", ["2025-Q4", "2026-Q1"]),
        ("year", ["2025", "2026"]),
    ],
)
def test_dates_are_told_as_far_as_they_are_asked_for(tmp_path, kind, part, values):
    value = f"CAST({DAY} AS {kind})" if kind != "TIMESTAMPTZ" else f"({DAY})::TIMESTAMP AT TIME ZONE 'UTC'"
    assert labels(policy(tmp_path, value, {"name": "x", "round": part})) == values


def test_times_with_a_zone_are_the_same_on_every_machine(tmp_path):
    """As values, as identifiers, to a filter, and whichever zone the machine lives in."""
    time = "TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_hours(CAST(i % 2 AS INTEGER))"
    path = policy(tmp_path, time, "x", source__filter="x >= DATE '2026-01-01'")
    code = f"import funnel; print(funnel.run({str(path)!r}, dry_run=True).joint.blocks[0].values)"
    env = {**os.environ, "PYTHONPATH": str(Path(funnel.__file__).parents[1]), "TZ": "America/New_York"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(('2026-01-01 00:00:00+00',), ('2026-01-01 01:00:00+00',))"


def test_dates_are_cut_into_bins(tmp_path):
    bins = ["2025-12-30", "2026-01-01"]
    column = {"name": "x", "bins": bins}
    assert labels(policy(tmp_path, DAY, column)) == ["[2025-12-30, 2026-01-01)", "[2026-01-01, ∞)"]
    with pytest.raises(funnel.SourceError) as caught:
        labels(policy(tmp_path, DAY, {"name": "x", "bins": bins[1:]}))
    assert caught.value.code == "below-bins"
    assert "120 rows have a x below" in str(caught.value)


@pytest.mark.parametrize("column", [{"round": "month"}, {"bins": ["2020-01-01"]}])
@pytest.mark.parametrize("odd", ["31.12.2025", "epoch", "25-12-31", "2025/12/31", "2025-02-30"])
def test_a_text_that_is_no_date_is_counted_and_refused(tmp_path, column, odd):
    """Also one that the engine would make a date of, some other day at that."""
    value = f"if(i % 60 = 0, '{odd}', '2025-12-31')"
    with pytest.raises(funnel.SourceError) as caught:
        labels(policy(tmp_path, value, {"name": "x"} | column))
    assert caught.value.code == "not-a-date"
    assert "4 rows have a x" in str(caught.value)
    assert odd not in str(caught.value)


def test_dates_and_bins_are_released_with_their_types(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    for part, kind in (("day", "DATE"), ("month", "VARCHAR"), ("year", "BIGINT")):
        release = funnel.run(policy(tmp_path, DAY, {"name": "x", "round": part}, name=part,
                                    release={"to": part, "private": f"{part}-private"})).release  # fmt: skip
        assert duckdb.sql(f"SELECT DISTINCT typeof(x) FROM '{release}/data.parquet'").fetchall() == [(kind,)]


def test_values_not_named_keep_their_own_name(tmp_path):
    towns = "['Oslo', 'Bergen', 'Rome', NULL][i % 4 + 1]"
    column = {"name": "x", "groups": {"North": ["Oslo", "Bergen", "Thule"]}}
    path = policy(tmp_path, towns, column, source__missing="category")
    assert labels(path) == ["North", "Rome", None]


def test_numbers_are_grouped_by_their_one_spelling(tmp_path):
    column = {"name": "x", "groups": {"low": [0, 1], "high": [2]}}
    assert labels(policy(tmp_path, "CAST(i % 3 AS DOUBLE)", column)) == ["high", "low"]


def test_blanks_around_texts_are_left_out_and_blanks_alone_are_missing(tmp_path):
    value = "[' a', 'a ', E'a\\t', '  '][i % 4 + 1]"
    column = {"name": "x", "trim": True}
    assert labels(policy(tmp_path, value, column, source__missing="category")) == ["a", None]
    dropping = {"source__missing": "drop", "accept": "unbounded"}
    assert labels(policy(tmp_path, value, column | {"groups": {"A": ["a"]}}, **dropping)) == ["A"]
    with pytest.raises(funnel.SourceError) as caught:
        labels(policy(tmp_path, value, column))
    assert caught.value.code == "source-nulls"


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ({"round": 0.1}, ["-0.2", "-0.1", "0.0", "0.2"]),
        ({"round": 0.1, "clip": [-0.15, 0.05]}, ["-0.1", "0.0", "0.1"]),
        ({"bins": [-1, -0.25, 0, 0.15]}, ["[-0.25, 0)", "[0, 0.15)", "[0.15, ∞)"]),
        ({}, ["-0.25", "-0.15", "0.04", "0.15"]),
    ],
)
def test_decimals_are_rounded_as_they_are_written(tmp_path, column, values):
    """As a float 0.15 is 1.4999… tenths; halves go up, also below zero."""
    value = "CAST([-0.25, -0.15, 0.04, 0.15][i % 4 + 1] AS DECIMAL(12,2))"
    assert labels(policy(tmp_path, value, {"name": "x"} | column)) == values


@pytest.mark.parametrize(
    ("kind", "step", "value", "told"),
    [
        ("BIGINT", 1, (1 << 52) + 1, (1 << 52) + 1),
        ("BIGINT", 1000, 1234567890123456499, 1234567890123456000),
        ("BIGINT", 1000, -1234567890123456500, -1234567890123456000),
        ("UBIGINT", 10, 1 << 62, (1 << 62) - 4),
        ("BIGINT", 7, 24, 21),
    ],
)
def test_whole_numbers_are_rounded_to_the_nearest_multiple_however_long(tmp_path, kind, step, value, told):
    query = f"CAST([{value}, 0][i // 2 % 2 + 1] AS {kind})"
    assert labels(policy(tmp_path, query, {"name": "x", "round": step})) == sorted(["0", str(told)])


def test_an_edge_is_not_rounded_to_the_precision_of_what_it_cuts(tmp_path):
    query = "CAST([16777216, 5][i // 2 % 2 + 1] AS FLOAT)"
    column = {"name": "x", "bins": [0, 10, 16777217]}
    assert labels(policy(tmp_path, query, column)) == ["[0, 10)", "[10, 16777217)"]
    query = "CAST([0.3, 0.7][i // 2 % 2 + 1] AS FLOAT)"
    assert labels(policy(tmp_path, query, {"name": "x", "bins": [0, 0.3, 0.7]})) == ["[0.3, 0.7)", "[0.7, ∞)"]


def test_decimals_are_released_as_decimals(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    release = funnel.run(policy(tmp_path, "CAST(i % 3 AS DECIMAL(12,2))", "x")).release
    assert duckdb.sql(f"SELECT DISTINCT typeof(x) FROM '{release}/data.parquet'").fetchall() == [("DECIMAL(12,2)",)]


@pytest.mark.parametrize(
    ("value", "column", "code"),
    [
        ("'a'", {"round": 5}, "column-type"),
        ("'a'", {"rare": "bin"}, "column-type"),
        ("i % 3", {"trim": True}, "column-type"),
        ("i % 3", {"round": "day"}, "column-type"),
        ("i % 3", {"bins": ["2020-01-01"]}, "column-type"),
        (DAY, {"round": 5}, "column-type"),
    ],
)
def test_a_column_of_another_type_is_refused_at_its_line(tmp_path, value, column, code):
    path = policy(tmp_path, value, {"name": "x"} | column)
    with pytest.raises(funnel.PolicyError) as caught:
        funnel.explain(path)
    (problem,) = caught.value.problems
    assert problem.code == code
    assert "name: x" in path.read_text().splitlines()[problem.line - 1]


SKEWED = "CASE WHEN i < 4 THEN 'a' WHEN i < 10 THEN 'b' WHEN i < 25 THEN 'c' ELSE 'd' END"
"""4, 6, 15 and 215 records."""


@pytest.mark.parametrize(
    ("minimum", "values", "told"),
    [
        (4, ["a", "b", "c", "d"], (0, 0)),
        (5, ["c", "d", "other"], (2, 10)),  # the four are too few, so the next rarest joins them
        (10, ["c", "d", "other"], (2, 10)),
        (11, ["d", "other"], (3, 25)),
    ],
)
def test_rare_values_become_other_until_it_has_support(tmp_path, minimum, values, told):
    path = policy(tmp_path, SKEWED, {"name": "x", "rare": "other"}, estimate={"minimum": minimum})
    summary = funnel.run(path, dry_run=True)
    assert [value for (value,) in summary.joint.blocks[0].values] == values
    (merged,) = summary.as_dict()["rare"]
    assert (merged["column"], merged["values"], merged["records"]) == ("x", *told)
    assert ("rare       x" in summary.text()) == (told != (0, 0))


@pytest.mark.parametrize(
    ("minimum", "values", "told"),
    [
        (7, ["c", "d", "other"], (1, 4)),  # six of the fifteen were called so, and with the four they are enough
        (11, ["d", "other"], (2, 19)),
        (16, ["d", "other"], (2, 19)),
    ],
)
def test_a_value_that_is_called_other_has_its_records_in_it(tmp_path, minimum, values, told):
    called = SKEWED.replace("'b'", "'other'")
    path = policy(tmp_path, called, {"name": "x", "rare": "other"}, estimate={"minimum": minimum})
    summary = funnel.run(path, dry_run=True)
    assert [value for (value,) in summary.joint.blocks[0].values] == values
    (merged,) = summary.as_dict()["rare"]
    assert (merged["column"], merged["values"], merged["records"]) == ("x", *told)


def test_rare_groups_and_missing_values_become_other_too(tmp_path):
    value = f"if(i < 2, NULL, {SKEWED})"
    column = {"name": "x", "rare": "other", "groups": {"A": ["a", "b"]}}
    path = policy(tmp_path, value, column, estimate={"minimum": 10}, source__missing="category")
    assert labels(path) == ["c", "d", "other"]


INCOMES = "CASE WHEN i < 200 THEN i % 2 ELSE 2 * i END"
"""0 and 1 a hundred times each, then forty numbers once."""


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "DECIMAL(12,2)"])
def test_rare_numbers_become_the_nearest_that_stands_for_enough(tmp_path, kind):
    path = policy(tmp_path, f"CAST({INCOMES} AS {kind})", {"name": "x", "rare": "bin"})
    joint = funnel.run(path, dry_run=True).joint
    kept = [int(value) for (value,) in joint.blocks[0].values]
    assert kept[:2] == [0, 1]
    assert 3 <= len(kept) - 2 <= 4
    assert joint.table(0).sum(axis=0).min() >= 10
    assert joint.rows == 240


def test_rare_dates_are_binned_as_days(tmp_path):
    path = policy(tmp_path, "DATE '2026-01-01' + CAST(i AS INTEGER)", {"name": "x", "round": "day", "rare": "bin"})
    found = labels(path)
    assert 10 <= len(found) <= 24
    assert all(number(one, "DATE") for one in found)


def test_every_value_becomes_the_nearest_of_those_kept(tmp_path):
    path = policy(tmp_path, INCOMES, {"name": "x", "rare": "bin"})
    loaded = funnel.load(path)
    source = find(loaded.path(loaded.source.table))
    with DuckDB(source) as engine:
        plan = compile_plan(loaded, engine.schema(), source)
        engine.prepare(plan.scan.statements)
        tabulate(engine, plan.count)
        pairs = [(int(old), int(new)) for old, new in engine.rows("SELECT v0, v1 FROM rare_x0_0")]
    kept = {new for _, new in pairs}
    assert all(abs(old - new) == min(abs(old - one) for one in kept) for old, new in pairs)


def test_whole_numbers_that_floats_do_not_tell_apart_are_refused_where_they_stand_for_themselves(tmp_path):
    """Of decimals so long the engine makes floats: two secrets were one, and the bound about that."""
    long = "1e16 + i % 3"
    for changes in ({}, {"sensitive": ["x"], "public": ["s"]}):
        with pytest.raises(funnel.SourceError, match=r"beyond 2\^53 among floating-point numbers"):
            funnel.run(policy(tmp_path, long, "x", **changes), dry_run=True)
    assert labels(policy(tmp_path, long, {"name": "x", "bins": [0, 1]})) == ["[1, ∞)"]
    assert labels(policy(tmp_path, "CAST(i % 3 AS DOUBLE) / 4", "x")) == ["0", "0.25", "0.5"]


def test_a_mechanism_that_releases_numbers_makes_no_texts_of_rare_ones(tmp_path):
    terms = {"mechanism": "gaussian-funnel", "privacy": {"notion": "mutual-information", "epsilon": 0.1}}
    for rare, codes in (("other", ["wrong-value"]), ("bin", [])):
        path = policy(tmp_path, "i % 30", {"name": "x", "round": 1, "rare": rare}, **terms)
        checked = funnel.check(path).error
        assert [one.code for one in checked.problems] == codes if checked else not codes
