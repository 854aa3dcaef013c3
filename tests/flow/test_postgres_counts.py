"""A database that counts by itself: the same counts as from its rows, whatever they hold; and the example runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import funnel
from funnel.engine.duckdb import DuckDB
from funnel.plan.compiled import planned
from funnel.plan.count import look
from funnel.policy import load
from tests.support.policies import write_policy
from tests.support.postgres import PASSWORD, Server

ROOT = Path(__file__).parents[2]
ODD = """
CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE odd AS SELECT
    (ARRAY['u', 'v'])[i % 2 + 1] AS answer,
    (ARRAY['a', 'A', 'é', E'e\\u0301', ' a ', NULL])[i % 6 + 1] COLLATE folding AS name,
    (ARRAY['blue', 'red ', 'pale', 'grey'])[least(i % 7, 3) + 1] AS colour,
    (ARRAY['NaN', '-0', '0', '0.05', '0.15', '17.5', '30', '9e15', '1e-320', NULL])[i % 10 + 1]::float8 AS share,
    (ARRAY['NaN', '-0', '0', '29.999999999999996', '30', '59.5', '1e300', NULL])[i % 8 + 1]::float8 AS age,
    (i * 37 % 1000)::numeric / 8 AS paid,
    (ARRAY[-3, -2, -1, 0, 1, 2, 3, 9007199254740993])[i % 8 + 1] AS whole,
    (DATE '2019-12-30' + i % 400) AS born,
    (TIMESTAMP '2020-01-01 00:00:00' + i * INTERVAL '7 hours') AS seen,
    (i % 5 = 0) AS grown,
    md5(i::text) AS note
FROM generate_series(0, 2999) AS t(i);
GRANT SELECT ON odd TO reader;
"""
PUBLIC = [
    {"name": "name", "trim": True}, {"name": "colour", "top": 2}, {"name": "age", "bins": [0, 30, 60]},
    {"name": "paid", "round": 25.0}, {"name": "born", "round": "month"}, {"name": "whole", "round": 2.0},
    {"name": "seen", "bins": ["2020-01-01", "2021-06-01"]}, "share",
    {"name": "grown", "groups": {"all": ["true", "false"]}},
]  # fmt: skip


@pytest.fixture(scope="session")  # a worker may come back to this file after another one
def server(postgres: Server) -> Server:
    postgres.run(ODD)
    return postgres


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


def policy(folder: Path, server: Server, public: list[object] = PUBLIC, **source: object) -> Path:
    told = {"table": server.address(table="public.odd"), "missing": "category"} | source
    return write_policy(
        folder, source=told, sensitive=["answer"], public=public, draws={"kind": "fresh"}, estimate__minimum=1
    )


FILTERS = [
    "whole <> 2 AND share IS NOT NULL",
    "whole IN (-2, 0, 9007199254740993)", "whole > 1.5 OR whole IS NULL", "whole BETWEEN -1 AND 9e15",
    "share < 0.15 OR share >= 17.5", "share = -0.0", "share <> 0.1500000000000000001", "share IS DISTINCT FROM 30",
    "paid >= 60.125", "paid + 1 > 60", "share > '0.1'",
    "born >= '2020-02-29' AND born <> DATE '2020-12-31'", "born < TIMESTAMP '2020-06-01 12:00:00'",
    "seen > TIMESTAMP '2020-03-01 07:00:00' OR seen = '2020-01-01'", "year(seen) = 2021",
    "name = 'a' OR name IN ('é', ' a ')", "colour <> 'red ' AND colour <> 'o''clock'", "colour > 'gray'",
    "name LIKE 'a%'", "NOT grown", "grown = true",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("predicate", FILTERS)
def test_what_a_filter_compares_is_grouped_as_it_compares_it(
    server: Server, tmp_path: Path, predicate: str
) -> None:
    """Comparisons have the same answer for all values of a group; whatever else is read, is read value by value."""
    loaded = load(policy(tmp_path, server, ["colour"], filter=predicate))
    with planned(loaded) as (plan, counting, table):
        there = seen_of(loaded, plan, counting), everybody(plan, counting)
    with DuckDB(replace(table, seen=None)) as engine:
        engine.fetch(plan.reads(engine.schema()))
        assert there == (seen_of(loaded, plan, engine), everybody(plan, engine))


def everybody(plan, engine) -> list:
    """The counts of all who are in the source, by whether they are in the release."""
    engine.prepare(plan.everybody.statements)
    return [sorted(engine.rows(one), key=str) for one in plan.everybody.counts]


def test_columns_that_a_filter_compares_leave_few_groups(server: Server, tmp_path: Path) -> None:
    """A moment before or after another, a note or not that one: of all others nobody learns which they are."""
    predicate = f"seen >= '2020-06-01' AND note <> 'x' AND paid < {1e16}"
    for terms, most in ((predicate, 2 * 2 * 3), (predicate.replace("< 1e+16", "< 60"), 2 * 2 * 3 * 2)):
        with planned(load(policy(tmp_path, server, ["grown"], filter=terms))) as (_, engine, _):
            (groups,) = engine.row("SELECT count(*) FROM counted")
        assert (groups <= most) == (terms != predicate)


@pytest.mark.long
@pytest.mark.parametrize(
    "source", [{}, {"filter": "whole <> 2 AND share IS NOT NULL"}, {"missing": "drop"}], ids=str
)
def test_counted_there_and_counted_here_are_the_same(server: Server, tmp_path: Path, source: dict) -> None:
    """All columns together, where most groups are of one row; then each alone, where they are of many."""
    for public in (PUBLIC, *([one] for one in PUBLIC)):
        loaded = load(policy(tmp_path, server, public, **source))
        with planned(loaded) as (plan, counting, table):
            there = seen_of(loaded, plan, counting)
            (groups,) = counting.row("SELECT count(*) FROM counted")
        with DuckDB(replace(table, seen=None)) as engine:
            engine.fetch(plan.reads(engine.schema()))
            here = seen_of(loaded, plan, engine)
        assert there == here
        assert source or len(public) > 1 or groups < 3000 / 8


def seen_of(loaded, plan, engine) -> tuple:
    """The counts of all combinations of values as the protocol is made from them, and what is missing."""
    look(loaded, plan, engine)
    rows = sorted(engine.rows(plan.count.cells), key=str)
    return rows, engine.row(plan.inspect.statement)


def test_no_row_leaves_a_database_that_counts(server: Server, tmp_path: Path, command) -> None:
    path = policy(tmp_path, server, ["grown", {"name": "age", "bins": [0, 30, 60]}])
    with planned(load(path)) as (_, engine, _):
        # Two answers, two values, three bins, and NaN and NULL as they are: at most, whatever there are rows.
        assert engine.row("SELECT count(*) <= 2 * 2 * 5, sum(n) FROM counted") == (True, 3000)
    assert "counts distinct rows by answer, age (by its bins), grown" in command("plan", path).out
    assert funnel.run(path).rows == 3000


def test_rows_that_are_somebody_s_come_as_rows(server: Server, tmp_path: Path) -> None:
    with planned(load(policy(tmp_path, server, ["grown"], entity="whole"))) as (_, engine, source):
        assert source.seen is None
        assert engine.row("SELECT count(*) FROM pulled") == (3000,)


@pytest.mark.long
def test_the_example_runs_as_it_is_written(postgres: Server, tmp_path: Path, key: str) -> None:
    folder = tmp_path / "postgres"
    shutil.copytree(ROOT / "examples" / "postgres", folder)
    postgres.run("CREATE DATABASE demo")
    environment = os.environ | {
        "PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "owner", "PGPASSWORD": PASSWORD,
        "FUNNEL_KEY": key, "PYTHONPATH": str(ROOT), "WAIT": "0",
    }  # fmt: skip

    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    def does(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=folder, env=environment | more, text=True, capture_output=True, check=False
        )

    assert does("psql", "-q", "demo", "-v", "ON_ERROR_STOP=1", "-f", "setup.sql").returncode == 0
    night = does("./nightly")
    assert night.returncode == 0, night.stderr
    asked = "SELECT count(*), obj_description('open.people'::regclass, 'pg_class') FROM open.people"
    release = (folder / "releases" / "latest").resolve().name
    assert (
        does("psql", "-qtA", "demo", "-c", asked).stdout.strip()
        == f"20000|funnel release {release} of people"
    )
    # The database restarts while the source is read: nothing was published, and what stands there is last night's.
    script = folder / "nightly"
    script.write_text(script.read_text().replace("funnel run", "PGPORT=1 funnel run"))
    again = does("./nightly")
    assert again.returncode == 5, again.stderr
    assert (folder / "releases" / "latest").resolve().name == release
