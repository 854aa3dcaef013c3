"""Each thing that is wrong makes one clear error, exit code 1, and publishes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import yaml

import funnel
from funnel.engine.duckdb import DuckDB
from tests.flow.conftest import evidence_left, nothing_published
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

ROOT = Path(funnel.__file__).parent.parent


def table(folder: Path, query: str) -> str:
    duckdb.sql(f"COPY ({query}) TO '{folder}/table.parquet'")
    return "table.parquet"


PEOPLE = "SELECT i AS id, 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(1000) t(i)"


CASES = [
    ("unknown-column", None, {"public": ["eduction"]}),
    ("unknown-column", None, {"source__entity": "personid"}),
    ("source-empty", PEOPLE + " WHERE false", {}),
    ("source-empty", PEOPLE, {"source__filter": "x = 'nobody'"}),
    (
        "source-all-null",
        "SELECT i AS id, 's' || (i % 2) AS s, NULL::VARCHAR AS x FROM range(99) t(i)",
        {"source__missing": "category"},
    ),
    (
        "source-nulls",
        "SELECT i AS id, 's' || (i % 2) AS s, nullif('x' || (i % 3), 'x1') AS x FROM range(99) t(i)",
        {},
    ),
    ("unknown-key", None, {"privaci": {"notion": "lip"}}),
    ("epsilon", None, {"privacy__epsilon": -1.0}),
    ("epsilon", None, {"privacy__epsilon": 0}),
    (
        "entity-repeated",
        "SELECT i // 2 AS id, 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(1000) t(i)",
        {},
    ),
    (
        "entity-repeated",
        "SELECT (i // 2)::VARCHAR AS id, 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(1000) t(i)",
        {},
    ),
    (
        "entity-null",
        "SELECT nullif(i, 5) AS id, 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(1000) t(i)",
        {},
    ),
    (
        "below-minimum",
        "SELECT i AS id, 's' || (i % 2) AS s, CASE WHEN i < 5 THEN 'rare' ELSE 'x' END AS x FROM range(99) t(i)",
        {},
    ),
    ("below-bins", None, {"public": [{"name": "age", "bins": [20, 40]}]}),
    ("one-secret", "SELECT i AS id, 's' AS s, 'x' || (i % 3) AS x FROM range(99) t(i)", {}),
    (
        "nothing-to-release",
        None,
        {"sensitive": ["education"], "public": ["education_num"], "privacy": {"notion": "perfect"}},
    ),
    (
        "alphabet-too-large",
        "SELECT i AS id, 's' || (i % 2) AS s, i % 3000 AS x FROM range(9000) t(i)",
        {"estimate": {"minimum": 1}},
    ),
    ("source-missing", None, {"source__table": "none.parquet"}),
    ("source-unreadable", None, {"source__table": "policy.yaml"}),
    ("key-missing", None, {"draws__key": "env:NO_SUCH_KEY"}),
    ("key-missing", None, {"draws__key": "file:no-such.key"}),
    ("key-unreadable", None, {"draws__key": "file:policy.yaml"}),
    (
        "below-minimum",
        "SELECT i AS id, if(i < 3, 'rare', 's' || (i % 2)) AS s, 'x' || (i % 3) AS x FROM range(99) t(i)",
        {"mechanism": "conditional-reporting"},
    ),
    ("epsilon", None, {"privacy__epsilon": 1e7}),
    ("sensitive-public", None, {"public": ["marital_status"]}),
    ("filter", None, {"source__filter": "age > 18; DROP TABLE people"}),
]


@pytest.mark.parametrize(
    ("code", "query", "changes"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_one_clear_error_and_nothing_published(command, tmp_path, code, query, changes):
    if query is not None:
        table(tmp_path, query)
        changes = {
            "source": {"table": "table.parquet", "entity": "id"},
            "sensitive": ["s"],
            "public": ["x"],
            **changes,
        }
    path = write_policy(tmp_path, **changes)
    path.chmod(0o600)  # one case names the policy itself as the key
    run = command("run", path)
    assert run.code == 1, (run.code, run.out, run.err)
    assert f"[{code}]" in run.err
    assert run.err.count("[") == run.err.count("]")
    assert "Traceback" not in run.err
    assert run.out == ""
    assert nothing_published(tmp_path)
    assert evidence_left(tmp_path) == []


OF_THE_TABLE = [case for case in CASES if not case[0].startswith("key-")]


@pytest.mark.parametrize(
    ("code", "query", "changes"), OF_THE_TABLE, ids=[f"{i}-{c[0]}" for i, c in enumerate(OF_THE_TABLE)]
)
def test_check_and_plan_refuse_what_a_run_refuses(command, tmp_path, code, query, changes):
    """But that no table is no fault of a policy, which is reviewed where the table may be out of reach."""
    if query is not None:
        table(tmp_path, query)
        changes = {"source": {"table": "table.parquet", "entity": "id"}, "sensitive": ["s"], "public": ["x"], **changes}
    path = write_policy(tmp_path, **changes)
    plan, check = command("plan", path), command("check", path)
    assert (plan.code, f"[{code}]" in plan.err) == (1, True), plan.err
    if code == "source-missing":
        assert (check.code, "out of reach" in check.out) == (0, True)
    else:
        assert (check.code, f"[{code}]" in check.err) == (1, True), check.err


IDENTIFIERS = [
    ("'key ' || i", "x", {}),
    ("i * 7", "x", {}),
    ("'note of ' || hash(i)", {"name": "p", "columns": ["x", "y"]}, {}),
    ("i", {"name": "p", "columns": ["x", "y"]}, {"estimate": {"minimum": 1}}),
]


@pytest.mark.parametrize(("value", "public", "changes"), IDENTIFIERS)
def test_an_identifier_among_the_public_columns_is_refused_with_advice(command, tmp_path, value, public, changes):
    table(tmp_path, f"SELECT i AS id, 's' || (i % 2) AS s, {value} AS x, 'y' || (i % 3) AS y FROM range(3000) t(i)")
    path = write_policy(tmp_path, source={"table": "table.parquet", "entity": "id"}, sensitive=["s"], public=[public],
                        mechanism="invariant", **changes)  # fmt: skip
    for name in ("run", "plan", "check"):
        said = command(name, path)
        assert said.code == 1
        assert "x takes 3,000 values in 3,000 records" in said.err
        assert "release.identify" in said.err
        assert "note of" not in said.err
    assert nothing_published(tmp_path)


TWELVE = [
    "age", "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "capital_gain",
    "capital_loss", "hours_per_week", "native_country",
]  # fmt: skip


@pytest.mark.long
def test_too_many_columns_are_refused_before_the_run_with_the_block_that_helps(command, tmp_path):
    path = write_policy(tmp_path, sensitive=["income"], public=TWELVE, estimate={"minimum": 1}, mechanism="invariant")
    said = {name: command(name, path) for name in ("check", "plan")}
    for one in said.values():
        assert one.code == 1
        assert "combinations with the secret" in one.err
        assert "capital_gain (119 values), hours_per_week (94 values)" in one.err
    proposed = yaml.safe_load(said["plan"].err.split("`")[3])
    assert "capital_gain" in proposed["columns"]
    others = [column for column in TWELVE if column not in proposed["columns"]]
    path = write_policy(tmp_path, sensitive=["income"], public=[proposed, *others], mechanism="invariant",
                        estimate={"minimum": 1})  # fmt: skip
    plan = command("plan", path)
    assert plan.code == 0, plan.err
    assert "cells of age, " in plan.out
    assert "combinations with the secret; up to 2,000,000 can be measured" in plan.out


@pytest.mark.parametrize("name", ["id", "person id", "order", "Person-Nr", "2id", "id#", "a.b", "it's", 'a"b'])
def test_advice_to_leave_out_rows_without_a_person_works_as_it_stands(command, tmp_path, name):
    column = '"' + name.replace('"', '""') + '"'
    table = f"SELECT nullif(i, 5) AS {column}, 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(1000) t(i)"
    duckdb.sql(f"COPY ({table}) TO '{tmp_path}/people.parquet' (FORMAT parquet)")
    source = {"table": "people.parquet", "entity": name}
    path = write_policy(tmp_path, source=source, sensitive=["s"], public=["x"], accept=["unbounded"])
    refused = command("run", path)
    assert "[entity-null]" in refused.err
    advised = yaml.safe_load(refused.err.partition("absent): `")[2].partition("`")[0])
    path = write_policy(tmp_path, source=source | advised, sensitive=["s"], public=["x"], accept=["unbounded"])
    done = command("run", path, "--json")
    assert (done.code, done.json["rows"]) == (0, 999), done.err


def test_errors_are_data_for_programs(command, tmp_path):
    run = command("run", write_policy(tmp_path, public=["eduction"]), "--json")
    assert run.code == 1
    assert run.json["error"]["code"] == "unknown-column"
    assert run.json["error"]["problems"][0]["line"] > 0
    assert "education" in run.json["error"]["problems"][0]["suggestion"]


def test_a_source_that_vanishes_between_counting_and_drawing(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    table(tmp_path, PEOPLE)
    path = write_policy(
        tmp_path, source={"table": "table.parquet", "entity": "id"}, sensitive=["s"], public=["x"]
    )
    stream = DuckDB.stream

    def vanish(engine, statement, rows):
        (tmp_path / "table.parquet").unlink()
        return stream(engine, statement, rows)

    monkeypatch.setattr(DuckDB, "stream", vanish)
    with pytest.raises(funnel.SourceError) as caught:
        funnel.run(path)
    assert caught.value.code == "source-changed"
    assert nothing_published(tmp_path)
    assert evidence_left(tmp_path) == []


@pytest.mark.parametrize(
    "change",
    [
        "SELECT i AS id, 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(999) t(i)",
        "SELECT i AS id, 's' || (i % 2) AS s, 'x' || (hash(i + 1) % 3) AS x FROM range(1000) t(i)",
        "SELECT i AS id, 's' || (i % 2) AS s, 'new' AS x FROM range(1000) t(i)",
    ],
)
def test_a_source_that_changes_between_counting_and_drawing(tmp_path, key, monkeypatch, change):
    monkeypatch.setenv("FUNNEL_KEY", key)
    table(tmp_path, PEOPLE)
    path = write_policy(
        tmp_path, source={"table": "table.parquet", "entity": "id"}, sensitive=["s"], public=["x"]
    )
    stream = DuckDB.stream

    def rewrite(engine, statement, rows):
        table(tmp_path, change)
        return stream(engine, statement, rows)

    monkeypatch.setattr(DuckDB, "stream", rewrite)
    with pytest.raises(funnel.SourceError) as caught:
        funnel.run(path)
    assert caught.value.code == "source-changed"
    assert nothing_published(tmp_path)
    monkeypatch.undo()
    monkeypatch.setenv("FUNNEL_KEY", key)
    assert funnel.run(path).release is not None


@pytest.mark.long
@pytest.mark.parametrize("room", [0, 300, 2_000, 40_000])
def test_a_full_disk_publishes_nothing_and_the_next_run_works(command, tmp_path, key, room):
    """No file may grow beyond `room` bytes: what a full disk does, wherever it strikes."""
    path = write_policy(tmp_path)
    script = (
        f"import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); "
        f"from funnel.cli.app import main; main(['run', {str(path)!r}])"
    )
    environment = {**os.environ, "FUNNEL_KEY": key, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-B", "-c", script],  # Python itself would keep modules cut short
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert run.returncode == 5, run.stderr
    assert "[disk-full]" in run.stderr
    assert nothing_published(tmp_path)
    again = command("run", path)
    assert again.code == 0, again.err


def test_a_key_file_that_others_can_read_is_refused(command, tmp_path):
    (tmp_path / "open.key").write_text(funnel.new_key())
    (tmp_path / "open.key").chmod(0o644)
    run = command("run", write_policy(tmp_path, draws__key="file:open.key"))
    assert run.code == 1
    assert "[key-permissions]" in run.err
    assert "chmod 600" in run.err
    assert nothing_published(tmp_path)


def test_no_message_holds_the_key(command, tmp_path):
    secret = funnel.new_key()
    for changes in ({"draws__key": "env:BAD"}, {"public": ["none"]}, {}):
        run = command(
            "run",
            write_policy(tmp_path, **changes),
            "--traceback",
            env={"BAD": secret[:-3] + "abc", "FUNNEL_KEY": secret},
        )
        assert secret.removeprefix("funnel-key-1:")[:16] not in run.out + run.err


def test_wrong_usage_is_exit_code_2(command):
    assert command("run").code == 2
    assert command("no-such-command").code == 2
    assert command("run", "a.yaml", "--no-such-option").code == 2


@pytest.mark.parametrize("mechanism", ["conditional-reporting", "randomised-response"])
def test_where_epsilon_is_nothing_nobody_is_told_to_allow_more(command, tmp_path, mechanism):
    """A larger one is refused under `perfect`, so that another notion is named."""
    source = {"table": table(tmp_path, PEOPLE), "entity": "id"}
    run = command("run", write_policy(tmp_path, source=source, sensitive=["s"], public=["x"], mechanism=mechanism,
                                      privacy={"notion": "perfect"}))  # fmt: skip
    assert (run.code, "[nothing-to-release]" in run.err) == (1, True)
    assert "larger epsilon" not in run.err and "use `notion: lip` with an epsilon above zero" in run.err.lower()


@pytest.mark.parametrize(("to", "private"), [("rel", "{}/hidden"), (".", "../hidden"), ("..", "{}/away/hidden")])
def test_evidence_is_read_wherever_its_folders_would_lie_from_there(to, private, tmp_path):
    """A policy in the evidence has relative paths that begin elsewhere: its folders were looked at when it ran."""
    home = tmp_path / "one" / "two"
    home.mkdir(parents=True)
    (tmp_path / "away").mkdir()
    people(home, MONDAY)
    private = private.format(tmp_path)
    terms = {"release__to": to, "release__private": private, "draws": {"kind": "fresh"}}
    if to != "rel":
        terms["source__table"] = str((home / "people.parquet").rename(tmp_path / "away" / "people.parquet"))
    path = write_policy(home, **SMALL | terms)
    folder = Path(funnel.run(path).release)
    found = funnel.audit_release(folder, home / private)
    assert found.passed, found.text()
