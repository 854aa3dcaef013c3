"""Columns as people have them, through the whole program: groups in a file, rare values, dates; and under a lock."""

from __future__ import annotations

import hashlib
import html
import json
from pathlib import Path

import duckdb
import pytest

import funnel
from funnel.audit.audit import audit_release
from funnel.audit.extras.table import COUNTED
from tests.support.audited import detail
from tests.support.forging import Forged, edit, seal
from tests.support.policies import write_policy

TOWNS = "value,group,group2\nOslo,North,Europe\nBergen,North,Europe\nRome,South,Europe\n"
PEOPLE = """SELECT i AS id, 's' || (i % 2) AS s,
    ['Oslo ', 'Bergen', 'Rome', 'Lima'][CAST(hash(i) % 4 AS INTEGER) + 1] AS town,
    DATE '2026-01-01' + CAST(hash(i + 1) % 90 AS INTEGER) AS day,
    CASE WHEN i % 100 < 3 THEN i ELSE i % 3 END AS income FROM range({rows}) t(i)"""


def people(folder: Path, rows: int = 1200) -> None:
    duckdb.sql(f"COPY ({PEOPLE.format(rows=rows)}) TO '{folder}/people.parquet'")


def policy(folder: Path, **changes) -> Path:
    people(folder)
    (folder / "towns.csv").write_text(TOWNS)
    public = [
        {"name": "town", "trim": True, "groups": "towns.csv"},
        {"name": "day", "round": "month"},
        {"name": "income", "rare": "bin"},
    ]
    terms = {"source": {"table": "people.parquet", "entity": "id"}, "sensitive": ["s"], "public": public,
             "mechanism": "randomised-response"}  # fmt: skip
    return write_policy(folder, **{**terms, **changes})


def failures(command, folder: Path) -> list[str]:
    audit = command("audit", folder / "releases" / "latest", "--private", folder / "private", "--json")
    return [one["claim"] for one in audit.json["findings"] if one["status"] == "failed"]


def test_a_release_of_such_columns_is_whole_and_audited(command, tmp_path):
    path = policy(tmp_path)
    assert command("check", path).code == 0
    run = command("run", path, "--json")
    assert run.code == 0, run.err
    assert [one["column"] for one in run.json["rare"]] == ["income"]
    table = f"'{run.json['release']}/data.parquet'"
    towns = duckdb.sql(f"SELECT DISTINCT town FROM {table} ORDER BY 1").fetchall()
    assert towns == [("Lima",), ("North",), ("South",)]
    assert duckdb.sql(f"SELECT DISTINCT typeof(income), typeof(day) FROM {table}").fetchall() == [("BIGINT", "VARCHAR")]
    assert failures(command, tmp_path) == []


def test_what_no_released_value_shows_is_told_to_readers(command, tmp_path):
    """A rounded number, one put at an end, or at a frequent neighbour, looks like the person's own."""
    public = [{"name": "income", "round": 2, "clip": [0, 2], "rare": "bin"}, {"name": "day", "round": "month"}]
    release = Path(command("run", policy(tmp_path, public=public), "--json").json["release"])
    told = html.unescape((release / "report.html").read_text())
    assert (
        "What counts as the true income of a record is its value made coarser before anything was counted: put at "
        "the nearer end where it lay beyond 0 and 2, rounded to a multiple of 2 and replaced by the nearest that is "
        "released where it is none of these itself." in told
    )
    assert "true day of a record is its value made coarser before anything was counted: rounded to the month" in told
    note = "values of income were made coarser before anything was counted: those beyond 0 and 2 put"
    for asked in (["--mean", "income"], []):
        found = command("estimate", release, *asked)
        assert note in found.out, found.err
    assert "income" not in command("estimate", release, "--by", "day").out
    assert failures(command, tmp_path) == []


def test_the_full_report_says_what_was_made_of_columns_and_the_published_one_does_not(command, tmp_path):
    binned = [{"name": "income", "bins": [0, 1.5]}, {"name": "day", "bins": ["2026-01-01", "2026-03-01"]}]
    release = Path(command("run", policy(tmp_path, public=binned), "--json").json["release"])
    private = (tmp_path / "private" / release.name / "report.html").read_text()
    assert "Income: cut into intervals at 0 and 1.5. Day: cut into intervals at 2026-01-01 and 2026-03-01." in private
    release = Path(command("run", policy(tmp_path, accept=["unbounded"]), "--json").json["release"])
    private = (tmp_path / "private" / release.name / "report.html").read_text()
    for said in (
        "Town: blanks around texts were left out and 3 values merged by meaning into 2 groups.",
        "Day: told by their month.",
        "Income: rare values are the nearest that stands for enough records.",
    ):
        assert said in private
        assert said not in (release / "report.html").read_text()
    clipped = [{"name": "income", "round": 1000000, "clip": [-2, 1577836800000001]}]
    release = Path(command("run", policy(tmp_path, public=clipped, accept=["unbounded"]), "--json").json["release"])
    private = (tmp_path / "private" / release.name / "report.html").read_text()
    ends = "-2 and 1577836800000001"
    assert f"Income: numbers beyond {ends} were taken for these and rounded to multiples of 1000000." in private
    assert f"nearer end where it lay beyond {ends}" in (release / "report.html").read_text()
    assert f"those beyond {ends} put" in command("estimate", release, "--mean", "income").out


def test_what_was_rare_or_frequent_when_the_protocol_was_fixed_is_not_said_of_tonight(command, tmp_path):
    public = [{"name": "income", "rare": "bin"}, {"name": "town", "top": 2}]
    path = policy(tmp_path, public=public)
    assert command("lock", path).code == 0
    many = PEOPLE.format(rows=1200).replace("i % 100 < 3 THEN i", "i % 100 < 40 THEN 77").replace("'Lima'", "'Perth'")
    duckdb.sql(f"COPY ({many}) TO '{tmp_path}/people.parquet'")
    release = Path(command("run", "--locked", path, "--json").json["release"])
    private = html.unescape((tmp_path / "private" / release.name / "report.html").read_text())
    assert "Income: values that were rare then are the nearest that stood for enough records." in private
    assert "Town: all but the 2 most frequent values when the protocol was fixed are “other”." in private
    incomes, towns = (duckdb.sql(f"SELECT DISTINCT {one} FROM '{release}/data.parquet'").fetchall()
                      for one in ("income", "town"))  # fmt: skip
    assert (77,) not in incomes and ("Perth",) not in towns


def test_the_audit_tells_by_what_hash_a_file_of_groups_is_the_policys_own(command, tmp_path):
    """A file that lacked a level would let nobody know of it: that it is the one in git no file of a release shows."""
    release = Path(command("run", policy(tmp_path), "--json").json["release"])
    told = detail(audit_release(release, tmp_path / "private"), "policy")
    named = f"towns.csv {hashlib.sha256((tmp_path / 'towns.csv').read_bytes()).hexdigest()}"
    assert told.endswith(f"the policy's own is the publisher’s word, but for the SHA-256 of their texts: {named}")
    assert "files of groups are the policy's" in COUNTED


@pytest.mark.long
def test_the_files_of_groups_are_kept_so_that_the_policy_can_be_read_again(command, tmp_path):
    release = command("run", policy(tmp_path), "--json").json["release"]
    (tmp_path / "towns.csv").unlink()
    assert failures(command, tmp_path) == []
    private = tmp_path / "private" / Path(release).name
    kept = json.loads((private / "groups.json").read_text())
    assert kept["files"] == {"towns.csv": TOWNS}
    (private / "groups.json").write_text((private / "groups.json").read_text().replace("South", "North"))
    assert "evidence" in failures(command, tmp_path)


@pytest.mark.long
def test_a_lock_pins_groups_whatever_file_they_are_in(command, tmp_path):
    path = policy(tmp_path)
    assert command("lock", path).code == 0
    assert command("run", "--locked", path).code == 0
    assert failures(command, tmp_path) == []
    (tmp_path / "towns.csv").write_text(TOWNS.replace("Rome,South", "Rome,North"))
    run = command("run", "--locked", path)
    assert (run.code, "[lock-policy]" in run.err) == (1, True)
    differs = command("diff", tmp_path / "policy.lock.yaml", path)
    # A town may be called South, too: it was with Rome, and would not be.
    assert differs.code == 1
    assert "other names of groups, which a value may have" in differs.out
    (tmp_path / "towns.csv").write_text(TOWNS.replace("Bergen,North", "Bergen,West"))
    differs = command("diff", tmp_path / "policy.lock.yaml", path)
    assert differs.code == 1
    assert "public.town" in differs.out


def test_under_a_lock_rare_values_become_its_own_and_the_same_person_answers_alike(command, tmp_path):
    path = policy(tmp_path, public=[{"name": "income", "rare": "bin"}, {"name": "town", "rare": "other"}])
    assert command("lock", path).code == 0
    first = command("run", "--locked", path, "--json").json
    again = command("run", "--locked", path, "--json").json
    one, two = (Path(each["release"], "released.json").read_bytes() for each in (first, again))
    assert one == two
    people(tmp_path, rows=1300)  # incomes that the lock has never seen
    assert command("run", "--locked", path, "--json").code == 0
    duckdb.sql(f"""COPY (SELECT * REPLACE (if(id < 5, 'Paris', town) AS town) FROM '{tmp_path}/people.parquet')
                   TO '{tmp_path}/new.parquet'""")
    (tmp_path / "new.parquet").replace(tmp_path / "people.parquet")
    run = command("run", "--locked", path)
    assert (run.code, "[unseen-value]" in run.err) == (4, True)  # the lock knows no `other`


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("keys", [[], ["id"]])
def test_an_audit_knows_values_that_stand_in_the_table_otherwise_than_in_their_label(command, tmp_path, form, keys):
    """0.10 has the label 0.1, and dates of long ago are none that everybody can read."""
    values = """[0.10, 20.00, -1.55][i % 3 + 1]::DECIMAL(9, 2) AS paid,
        ['0044-03-15 (BC)', '12000-01-01'][i % 2 + 1]::DATE AS day"""
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        made = f"SELECT i AS id, 's' || (i % 7 // 3) AS s, {values} FROM range(300) t(i)"
        connection.execute(f"CREATE TABLE people AS {made}")
    told = {"format": form, "identify": keys} if keys else {"format": form}
    path = policy(tmp_path, source={"table": "people.duckdb#people", "entity": "id"}, public=["paid", "day"],
                  release={"to": "releases", "private": "private", **told})  # fmt: skip
    run = command("run", path, "--json")
    assert run.code == 0, run.err
    assert failures(command, tmp_path) == []


def test_an_error_in_a_file_of_groups_names_the_file_and_the_line(command, tmp_path):
    path = policy(tmp_path)
    (tmp_path / "towns.csv").write_text(TOWNS + "Oslo,South,Europe\n")
    check = command("check", path)
    assert check.code == 1
    assert "towns.csv:5:1: `Oslo` is in `South` here" in check.err


@pytest.mark.long
def test_counting_the_source_again_finds_the_same_groups_and_rare_values(command, tmp_path):
    run = command("run", policy(tmp_path), "--json")
    table = tmp_path / "people.parquet"
    audit = command("audit", run.json["release"], "--private", tmp_path / "private", "--table", table, "--json")
    assert audit.code == 0, audit.out


def test_a_wide_block_has_such_columns_too(command, tmp_path):
    inner = [
        {"name": "town", "trim": True, "groups": "towns.csv"},
        {"name": "day", "round": "week"},
        {"name": "income", "rare": "bin"},
    ]
    block = {"name": "person", "columns": inner, "cells": {"most": 8, "minimum": 50}}
    path = policy(tmp_path, public=[block], mechanism="invariant")
    assert command("check", path).code == 0
    run = command("run", path, "--json")
    assert run.code == 0, run.err
    table = f"'{run.json['release']}/data.parquet'"
    assert duckdb.sql(f"SELECT DISTINCT town FROM {table} ORDER BY 1").fetchall() == [("Lima",), ("North",), ("South",)]
    types = "DISTINCT typeof(income), typeof(day), bool_and(dayofweek(day) = 1)"
    assert duckdb.sql(f"SELECT {types} FROM {table} GROUP BY ALL").fetchall() == [("BIGINT", "DATE", True)]
    assert failures(command, tmp_path) == []


def test_rare_values_of_a_wide_block_are_an_error_where_the_policy_says_so(command, tmp_path):
    inner = ["town", {"name": "income", "rare": "error"}]
    path = policy(tmp_path, public=[{"name": "person", "columns": inner, "cells": 8}], mechanism="invariant")
    for name in ("check", "plan", "run"):
        said = command(name, path)
        assert (said.code, "[rare-values]" in said.err) == (1, True), said.err
        assert "income" in said.err


@pytest.mark.parametrize("rule", ["other", "bin"])
def test_more_values_than_memory_has_room_for_are_refused_by_their_number(tmp_path, monkeypatch, rule):
    """The engine counts them before any of them is held."""
    monkeypatch.setattr("funnel.plan.merging.MOST_VALUES", 50)
    public = [{"name": "age", "rare": rule}]
    with pytest.raises(funnel.PlanError, match=r"age takes \d\d values; rare ones can be merged among 50 at most"):
        funnel.run(write_policy(tmp_path, public=public, draws={"kind": "fresh"}, source__entity=None))


ODD = {"INTERVAL": "to_days(i % 2)", "BLOB": "'a'::BLOB", "STRUCT": "{'a': 1}", "INTEGER[]": "[1]"}


@pytest.mark.parametrize("kind", ODD)
def test_values_without_one_plain_spelling_are_refused(command, tmp_path, kind):
    """A month and thirty days are equal to the engine and two texts: they were counted as one, and drawn as two."""
    duckdb.sql(f"COPY (SELECT 's' || (i % 2) AS s, {ODD[kind]} AS x FROM range(40) t(i)) TO '{tmp_path}/t.parquet'")
    asked = {"source": {"table": "t.parquet"}, "sensitive": ["s"], "public": ["x"], "draws": {"kind": "fresh"}}
    written = write_policy(tmp_path, **asked)
    for way in ("check", "plan", "run"):
        refused = command(way, written)
        told = refused.out + refused.err
        assert refused.code == 1 and f"column x is {kind}" in told and "; only plain values can be used" in told, told


@pytest.mark.parametrize("change", [lambda rare: rare.clear(), lambda rare: rare[0].update(rule="other"),
                                    lambda rare: rare[1].update(column="income"),
                                    lambda rare: rare[0].update(known="lock_x0_0"),
                                    lambda rare: rare[0].update(only_if="s = 1")])  # fmt: skip
def test_a_plan_that_does_otherwise_with_rare_values_is_one_for_something_else(change, command, tmp_path):
    path = policy(tmp_path, public=[{"name": "income", "rare": "bin"}, {"name": "town", "rare": "other"}])
    folder = Path(command("run", path, "--json").json["release"])
    made = Forged(folder, tmp_path / "private" / folder.name)
    assert failures(command, tmp_path) == []
    edit(made.kept / "plan.json", lambda old: [change(one["rare"]) for one in old["steps"] if one["step"] == "count"])
    seal([made])
    assert failures(command, tmp_path) == ["policy"]
