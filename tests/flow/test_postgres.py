"""A table in PostgreSQL: the same release as from a file, and one clear error for whatever goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import funnel
from funnel.engine.duckdb import DuckDB
from funnel.engine.sources import find
from funnel.errors import FAULT, SourceError
from tests.support.policies import write_policy
from tests.support.postgres import PASSWORD, Server

ROWS = 600
PEOPLE = """
CREATE TABLE people AS SELECT i AS id, (ARRAY['u', 'v'])[i % 2 + 1] AS answer,
    (ARRAY['red', 'blue', 'green'])[(i * i) % 3 + 1]::char(5) AS colour, (i % 90 + 0.5)::numeric AS age,
    '{"a": 1}'::jsonb AS odd, DATE '2020-01-01' + i AS day FROM generate_series(0, 599) t(i);
CREATE VIEW adults AS SELECT * FROM people WHERE age >= 18;
CREATE VIEW slow AS SELECT *, pg_sleep(0.02)::text AS slept FROM people;
CREATE TABLE terms AS SELECT i AS id, (ARRAY['u', 'v'])[i % 2 + 1] AS answer,
    (ARRAY['infinity', '-infinity', '4713-01-01 BC', '2020-01-01'])[i % 4 + 1]::date AS ends,
    (ARRAY['infinity', '-infinity', '2020-01-01 10:00'])[i % 3 + 1]::timestamp AS left_at
    FROM generate_series(0, 599) t(i);
GRANT SELECT ON people, adults, slow, terms TO reader;
"""


@pytest.fixture(scope="session")  # a worker may come back to this file after another one
def server(postgres: Server) -> Server:
    postgres.run(PEOPLE)
    return postgres


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())


def policy(folder: Path, table: str, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    public = ["colour", {"name": "age", "bins": [0, 30, 60]}]
    source = {"table": table, "entity": "id"}
    return write_policy(folder, source=source, sensitive=["answer"], public=public, **changes)


def test_the_same_release_as_from_a_file(server: Server, tmp_path: Path) -> None:
    with DuckDB(find(server.address())) as engine:
        kinds = engine.schema()
        assert (kinds["age"], kinds["odd"], kinds["day"]) == ("DOUBLE", "VARCHAR", "DATE")
        engine.fetch(("id", "answer", "colour", "age"))
        rows = engine.connection.sql("FROM pulled").to_arrow_table()
    pq.write_table(rows, tmp_path / "p.parquet")
    releases = [
        Path(funnel.run(policy(tmp_path / name, table)).release)
        for name, table in (("a", server.address()), ("b", str(tmp_path / "p.parquet")))
    ]
    for name in ("protocol.json", "data.parquet"):
        assert len({(release / name).read_bytes() for release in releases}) == 1
    assert all(
        PASSWORD not in file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*") if file.is_file()
    )


def test_letters_are_what_they_are_whatever_a_role_or_the_environment_speaks(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another encoding a filter on 'Köln' met nobody there, and let everybody in."""
    server.run(
        "CREATE TABLE towns AS SELECT i AS id, (ARRAY['u', 'v'])[i % 2 + 1] AS answer, "
        "(ARRAY['Köln', 'Bern', 'Århus'])[i / 2 % 3 + 1] AS town, (ARRAY['a', 'b'])[i / 6 % 2 + 1] AS x "
        "FROM generate_series(0, 599) t(i); GRANT SELECT ON towns TO reader"
    )
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    address = server.address(table="public.towns")
    for source in ({"entity": "id"}, {}):
        terms = {"sensitive": ["answer"], "public": ["x"], "draws": {"kind": "fresh"}}
        asked = {"table": address, "filter": "town <> 'Köln'"} | source
        assert funnel.run(write_policy(tmp_path, source=asked, **terms), dry_run=True).joint.rows == 400
        terms["public"] = ["town"]
        joint = funnel.run(write_policy(tmp_path, source={"table": address} | source, **terms), dry_run=True).joint
        assert joint.blocks[0].values == (("Bern",), ("Köln",), ("Århus",))


def test_only_what_the_plan_reads_comes(server: Server, tmp_path: Path) -> None:
    with DuckDB(find(server.address())) as engine:
        engine.schema()
        engine.fetch(("answer", "colour"))
        assert engine.rows("SELECT DISTINCT answer, colour FROM pulled ORDER BY ALL")[0] == ("u", "blue")
        with pytest.raises(SourceError):
            engine.rows("SELECT odd FROM pulled")


@pytest.mark.parametrize("entity", ["id", None])
def test_infinite_dates_and_times_stay_what_they_are(
    server: Server, tmp_path: Path, entity: str | None
) -> None:
    """Also where a filter compares them; the driver alone would have them five million years before Christ."""
    table = server.address(table="terms")
    source = {"table": table, "entity": entity, "filter": "ends > DATE '2000-01-01' OR ends < DATE '0001-01-01'"}
    source = {key: value for key, value in source.items() if value is not None}
    told = {"sensitive": ["answer"], "public": ["ends", "left_at"], "estimate": {"minimum": 1}}
    drawn = {"draws": {"kind": "fresh"}} if entity is None else {}
    made = funnel.run(write_policy(tmp_path, source=source, **told, **drawn))
    counts = json.loads((tmp_path / "private" / Path(made.release).name / "counts.json").read_bytes())
    ends, left = (sorted(value for (value,) in block["values"]) for block in counts["blocks"])
    assert ends == ["-infinity", "2020-01-01", "4713-01-01 (BC)", "infinity"]
    assert left == ["-infinity", "2020-01-01 10:00:00", "infinity"]
    assert sum(one[-1] for one in counts["cells"]) == ROWS


@pytest.mark.long
@pytest.mark.parametrize("entity", [None, "id"], ids=["counted there", "rows"])
def test_times_with_a_zone_are_those_of_utc_whatever_a_session_says(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entity: str | None
) -> None:
    """Else the same table has other values where a run, or a role, has another zone, and its audit fails."""
    server.run(
        "DROP TABLE IF EXISTS zoned; CREATE TABLE zoned AS SELECT i AS id, (ARRAY['u', 'v'])[i % 2 + 1] AS answer, "
        "timestamptz '2026-02-01 00:00+00' + (i - 300) * interval '1 minute' AS seen, interval '1 day' * (i % 2) AS "
        "lasts, decode(lpad(to_hex(i % 2), 2, '0'), 'hex') AS code, "
        "ARRAY[(ARRAY['0.3', '0.30000000000000004'])[i % 2 + 1]::float8] AS few FROM generate_series(0, 599) t(i); "
        "GRANT SELECT ON zoned TO reader"
    )
    styles = {"bytea_output": "escape", "IntervalStyle": "iso_8601", "DateStyle": "German", "extra_float_digits": "0"}
    source = {"table": server.address(table="zoned"), "filter": "seen >= '2026-01-31 22:00'"}
    source |= {} if entity is None else {"entity": entity}
    drawn = {"draws": {"kind": "fresh"}} if entity is None else {}
    public = [{"name": "seen", "round": "day"}, "lasts", "code", "few"]
    found = []
    for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
        for name, style in styles.items() if zone == "Asia/Tokyo" else ():
            server.run(f"ALTER ROLE reader SET {name} = '{style}'")
        monkeypatch.setenv("PGTZ", zone)
        (folder := tmp_path / zone.replace("/", "-")).mkdir()
        terms = {"source": source, "sensitive": ["answer"], "public": public, "estimate": {"minimum": 1}}
        release = Path(funnel.run(write_policy(folder, **terms, **drawn)).release)
        found.append((folder / "private" / release.name / "counts.json").read_bytes())
    server.run("ALTER ROLE reader RESET ALL")
    told = [{key: one for key, one in json.loads(text).items() if key in ("blocks", "cells")} for text in found]
    assert told[0] == told[1] == told[2]
    assert [value for (value,) in told[0]["blocks"][0]["values"]] == ["2026-01-31", "2026-02-01"]
    assert [len(block["values"]) for block in told[0]["blocks"]] == [2, 2, 2, 2]
    assert sum(one[-1] for one in told[0]["cells"]) == 420


def test_the_table_is_counted_again_by_its_address(server: Server, tmp_path: Path) -> None:
    made = funnel.run(policy(tmp_path, server.address()))
    found = funnel.audit_release(made.release, tmp_path / "private", table=server.address())
    assert found.passed, found.text()
    call = ["audit", made.release, "--private", str(tmp_path / "private"), "--table", server.address(table="adults")]
    done = subprocess.run(
        [sys.executable, "-m", "funnel", *call], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "[source-counts]" in done.stdout
    assert "source-missing" not in done.stdout


def test_check_plan_and_a_view_serve_as_well(server: Server, tmp_path: Path) -> None:
    path = policy(tmp_path, server.address(table="adults"))
    for command in ("check", "plan"):
        found = subprocess.run(
            [sys.executable, "-m", "funnel", command, str(path)], capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        assert PASSWORD not in found.stdout + found.stderr
    assert funnel.run(path, dry_run=True).rows == sum(i % 90 + 0.5 >= 18 for i in range(ROWS))


@pytest.mark.parametrize(
    ("table", "environment", "code", "said"),
    [
        ({}, {"PGPASSWORD": "wrong-one"}, "source-unreadable", "refuses the role or its password"),
        ({"user": "nobody"}, {}, "source-unreadable", "refuses the role or its password"),
        ({"table": "public.none"}, {}, "source-unreadable", "the table does not exist"),
        ({"table": "none.people"}, {}, "source-unreadable", "does not exist"),
        ({"user": "stranger"}, {}, "source-unreadable", "may not read the table"),
        ({"host": "127.0.0.9"}, {}, "source-unreachable", "cannot be reached"),
    ],
)
def test_what_goes_wrong_is_one_clear_error(
    server, tmp_path, monkeypatch, table, environment, code, said
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SourceError) as caught:
        funnel.run(policy(tmp_path, server.address(**table)))
    assert (caught.value.code, said in str(caught.value)) == (code, True), str(caught.value)
    assert not any(secret in str(caught.value) for secret in (PASSWORD, "wrong-one"))
    assert not (tmp_path / "releases").exists() or not any((tmp_path / "releases").iterdir())


def test_a_value_that_cannot_be_computed_there_is_no_release_that_is_not_taken(server: Server, tmp_path: Path) -> None:
    server.run("CREATE VIEW broken AS SELECT id, answer, colour, 1 / (id - 7) AS age FROM people; "
               "GRANT SELECT ON broken TO reader")  # fmt: skip
    with pytest.raises(SourceError) as refused:
        funnel.run(policy(tmp_path, server.address(table="broken")))
    assert (refused.value.code, refused.value.exit_code) == ("source-unreadable", FAULT)
    assert "broke off in the middle of the rows" in str(refused.value)
    assert not any(words in str(refused.value) for words in ("As it stands", "cannot be reached"))


def test_a_connection_that_ends_in_the_middle_publishes_nothing(server: Server, tmp_path: Path) -> None:
    path = policy(tmp_path, server.address(table="slow"), source__filter="slept IS NOT NULL")
    run = subprocess.Popen(
        [sys.executable, "-m", "funnel", "run", str(path)], stderr=subprocess.PIPE, text=True, env=os.environ
    )
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%slept%' AND usename = 'reader'"
    while run.poll() is None:
        server.run(ended)
        time.sleep(0.05)
    _, told = run.communicate(timeout=600)
    assert (run.returncode != 0, "ended the connection" in told, "Traceback" in told) == (
        True,
        True,
        False,
    ), told
    assert not any((tmp_path / "releases").glob("2*"))


def test_a_table_that_changes_meanwhile_is_read_as_it_was(server: Server, tmp_path: Path) -> None:
    server.run("CREATE TABLE moving AS SELECT * FROM people; GRANT SELECT ON moving TO reader")
    with DuckDB(find(server.address(table="moving"))) as engine:
        engine.schema()
        engine.fetch(("id",))
        server.run("DELETE FROM moving")
        assert engine.row("SELECT count(*) FROM pulled") == (ROWS,)


@pytest.mark.parametrize(
    "address", ["postgresql://reader:hunter2@host/db#t", "postgresql://host/db?password=hunter2#t"]
)
def test_a_password_in_a_policy_is_refused_and_not_repeated(tmp_path: Path, address: str) -> None:
    command = [sys.executable, "-m", "funnel", "check", "--json", str(policy(tmp_path, address))]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "no password belongs into a policy" in found.stdout
    assert "hunter2" not in found.stdout + found.stderr
    assert json.loads(found.stdout)
