"""A release in a database beside its folder: whole or as it was, and readers of the old table read the new one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path

import adbc_driver_postgresql.dbapi as driver
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.engine.sink import TableComment, dated
from funnel.errors import AGAIN, FAULT, PolicyError, ReleaseError
from tests.support.forging import Forged
from tests.support.policies import write_policy
from tests.support.postgres import PASSWORD, Server

ROWS = 600


@pytest.fixture(scope="session")  # a worker may come back to this file after another one
def server(postgres: Server) -> Server:
    postgres.run("CREATE SCHEMA open AUTHORIZATION reader; GRANT USAGE ON SCHEMA open TO stranger")
    return postgres


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """A table of every type that a release keeps."""
    found = tmp_path_factory.mktemp("people") / "people.parquet"
    places = range(ROWS)
    pq.write_table(pa.table({
        "answer": [("u", "v")[i % 2] for i in places],
        "colour": ["é'\"\\", "blue", None] * (ROWS // 3),
        "size": pa.array([i % 3 for i in places], pa.uint64()),
        "day": [date(2020, 1, 1 + i % 2) for i in places],
        "paid": pa.array([Decimal("1.50") * (i % 2) for i in places], pa.decimal128(9, 2)),
        "grown": [i % 3 == 0 for i in places],
        "tiny": pa.array([i % 2 for i in places], pa.int8()),
    }), found)  # fmt: skip
    return found


TYPED = ["colour", "size", "day", "paid", "grown", "tiny"]


def policy(
    folder: Path, table: Path, also: object, public: tuple[str, ...] = ("colour", "size"), **changes: object
) -> Path:
    folder.mkdir(exist_ok=True)
    return write_policy(
        folder,
        source={"table": str(table), "missing": "category"},
        draws={"kind": "fresh"},
        sensitive=["answer"],
        public=[*public],
        mechanism="randomised-response",
        accept="unbounded",
        privacy={"notion": "lip", "epsilon": 3.0},
        release__also=also,
        **changes,
    )


def ask(server: Server, query: str, user: str = "reader") -> list[tuple]:
    address = server.address(user).partition("#")[0]
    with closing(driver.connect(address)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def comment(server: Server, name: str) -> str:
    return ask(server, f"SELECT obj_description('{name}'::regclass, 'pg_class')")[0][0]


def run(folder: Path, table: Path, server: Server, target: str, **changes: object) -> Path:
    return Path(funnel.run(policy(folder, table, server.address(table=target), **changes)).release)


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_table_holds_the_released_rows_in_their_types(server, tmp_path, table, form) -> None:
    name = f"open.kept_{form}"
    release = run(tmp_path / form, table, server, name, public=TYPED, release__format=form)
    assert comment(server, name) == f"funnel release {release.name} of test"
    kinds = "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum > 0"
    assert dict(ask(server, f"{kinds} AND attrelid = '{name}'::regclass")) == {
        "colour": "text", "size": "numeric(20,0)", "day": "date", "paid": "numeric(9,2)", "grown": "boolean",
        "tiny": "smallint",
    }  # fmt: skip
    if form == "parquet":
        columns = ", ".join(TYPED).replace("paid", "paid::text").replace("size", "size::text")
        rows = pq.read_table(release / "data.parquet").to_pylist()
        texts = [tuple(str(row[c]) if c in ("paid", "size") else row[c] for c in TYPED) for row in rows]
        assert sorted(ask(server, f"SELECT {columns} FROM {name}"), key=str) == sorted(texts, key=str)
    assert all(
        PASSWORD not in one.read_bytes().decode("latin-1") for one in tmp_path.rglob("*") if one.is_file()
    )


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_column_that_names_folders_is_itself_there(server, tmp_path, table, form) -> None:
    """Also where a URL would escape its name, which DuckDB takes as it stands in the folders' names."""
    parted = tmp_path / "people.parquet"
    people = pq.read_table(table)
    names = ["Größe a/b" if one == "size" else one for one in people.column_names]
    pq.write_table(people.rename_columns(names), parted)
    terms = {"release__format": form, "release__partition": "Größe a/b"}
    run(tmp_path, parted, server, f"open.parted_{form}", public=("colour", "Größe a/b"), **terms)
    told = ask(server, f'SELECT "Größe a/b"::text, count(*) FROM open.parted_{form} GROUP BY 1 ORDER BY 1')
    assert [value for value, _ in told] == ["0", "1", "2"] and sum(number for _, number in told) == ROWS


def test_the_next_release_replaces_the_table_and_its_readers_and_views_stay(server, tmp_path, table) -> None:
    first = run(tmp_path, table, server, "open.nightly")
    server.run(
        "GRANT SELECT ON open.nightly TO stranger; CREATE VIEW open.blue AS SELECT * FROM open.nightly; "
        "GRANT SELECT ON open.blue TO reader"
    )
    second = run(tmp_path, table, server, "open.nightly")
    assert first.name < second.name == comment(server, "open.nightly").split()[2]
    assert ask(server, "SELECT count(*) FROM open.blue") == [(ROWS,)]
    with pytest.raises(ReleaseError, match="something there depends on the old table") as caught:
        run(tmp_path, table, server, "open.nightly", public=("colour",))
    assert (caught.value.code, caught.value.exit_code) == ("also-write", AGAIN)
    server.run("DROP VIEW open.blue")
    assert funnel.send_newest(tmp_path / "policy.yaml").written
    assert not funnel.send_newest(tmp_path / "policy.yaml").written
    assert ask(server, "SELECT count(colour) > 0 FROM open.nightly", "stranger") == [(True,)]


def test_an_old_table_can_be_kept_by_its_date(server, tmp_path, table) -> None:
    also = {"table": server.address(table="open.dated"), "old": "keep"}
    first = Path(funnel.run(policy(tmp_path, table, also)).release)
    server.run("GRANT SELECT ON open.dated TO stranger")
    second = Path(funnel.run(policy(tmp_path, table, also)).release)
    kept = f'open."dated_{first.name[:16]}"'
    assert comment(server, kept).split()[2] == first.name
    assert comment(server, "open.dated").split()[2] == second.name
    assert ask(server, f"SELECT (SELECT count(*) FROM {kept}), count(*) FROM open.dated", "stranger") == [
        (ROWS, ROWS)
    ]
    assert len(dated("ü" * 40, TableComment(first.name, "small")).encode()) <= 63


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "environment", "said"),
    [
        ({"table": "open.wrong"}, {"PGPASSWORD": "wrong-one"}, "refuses the role or its password"),
        ({"table": "open.wrong", "user": "stranger"}, {}, "may not write the table"),
        ({"table": "nowhere.people"}, {}, "the schema does not exist"),
        ({"table": "open.wrong", "host": "127.0.0.9"}, {}, "cannot be reached"),
        ({"table": "open.theirs"}, {}, "is no release, and is left alone"),
    ],
)
def test_what_a_database_refuses_leaves_the_release_whole(
    server, tmp_path, table, monkeypatch, address, environment, said
) -> None:
    server.run(
        "CREATE TABLE IF NOT EXISTS open.theirs AS SELECT 1 AS one; ALTER TABLE open.theirs OWNER TO reader"
    )
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ReleaseError) as caught:
        funnel.run(policy(tmp_path, table, server.address(**address)))
    told = str(caught.value)
    assert (caught.value.code, said in told, "was published, whole and audited" in told) == (
        "also-write",
        True,
        True,
    ), told
    assert not any(secret in told for secret in (PASSWORD, "wrong-one"))
    release = (tmp_path / "releases" / "latest").resolve()
    assert release.name in told
    assert caught.value.release == str(release)
    assert funnel.audit_release(release, tmp_path / "private").passed
    assert ask(server, "SELECT one FROM open.theirs") == [(1,)] if not environment else True


def test_what_a_database_never_takes_is_not_said_to_be_written_later(server, tmp_path, table) -> None:
    """PostgreSQL has no text with U+0000, whenever it is sent."""
    people = pq.read_table(table)
    colours = pa.array([("a\0b", "blue")[i % 2] for i in range(ROWS)])
    odd = tmp_path / "odd.parquet"
    pq.write_table(people.set_column(people.column_names.index("colour"), "colour", colours), odd)
    with pytest.raises(ReleaseError, match=r"holds the character U\+0000") as caught:
        funnel.run(policy(tmp_path, odd, server.address(table="open.odd")))
    assert (caught.value.code, caught.value.exit_code) == ("also-refused", FAULT)
    assert "As it stands, the database does not take this release." in caught.value.advice
    assert "funnel also" not in caught.value.advice


def test_a_connection_that_ends_in_the_middle_leaves_the_old_table_whole(server, tmp_path, table) -> None:
    first = run(tmp_path, table, server, "open.cut")
    server.run("""CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END';
        CREATE TRIGGER slow BEFORE INSERT ON open.cut FOR EACH ROW EXECUTE FUNCTION slow()""")
    again = subprocess.Popen(
        [sys.executable, "-m", "funnel", "run", str(tmp_path / "policy.yaml")],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=os.environ,
    )  # fmt: skip
    query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'COPY%'"
    server.run(f"""DO $$ BEGIN FOR i IN 1..600 LOOP
        EXIT WHEN ({query}) > 0; PERFORM pg_sleep(0.05); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$""")
    _, told = again.communicate(timeout=60)
    assert (again.returncode, "ended the connection" in told, "Traceback" in told) == (AGAIN, True, False), (
        told
    )
    assert comment(server, "open.cut").split()[2] == first.name
    assert ask(server, "SELECT count(*) FROM open.cut") == [(ROWS,)]
    server.run("DROP TRIGGER slow ON open.cut")
    newest = (tmp_path / "releases" / "latest").resolve()
    assert newest.name > first.name
    assert funnel.send_newest(tmp_path / "policy.yaml").release == newest.name
    assert comment(server, "open.cut").split()[2] == newest.name


def test_whether_a_lost_commit_was_one_is_not_known(server, tmp_path, table) -> None:
    """A standby that never answers lets the commit wait; whoever ends the connection then ends no more than that."""
    run(tmp_path, table, server, "open.late")
    again = subprocess.Popen(
        [sys.executable, "-m", "funnel", "run", str(tmp_path / "policy.yaml")],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=os.environ,
    )  # fmt: skip
    local = "SET synchronous_commit = local;"
    try:
        server.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        server.run(f"{local} SELECT pg_reload_conf()")
        waiting = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        server.run(f"""{local} DO $$ BEGIN FOR i IN 1..1200 LOOP
            EXIT WHEN ({waiting}) > 0; PERFORM pg_sleep(0.05); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$""")
    finally:
        server.run(f"{local} ALTER SYSTEM RESET synchronous_standby_names")
        server.run(f"{local} SELECT pg_reload_conf()")
    told = " ".join(again.communicate(timeout=60)[1].split())
    newest = (tmp_path / "releases" / "latest").resolve().name
    assert comment(server, "open.late").split()[2] == newest
    said = "may not have been written to the database" in told, "The table there is as it was." in told
    assert (again.returncode, *said) == (AGAIN, True, False), told
    assert not funnel.send_newest(tmp_path / "policy.yaml").written


def test_a_role_with_too_little_time_is_told_that_and_not_of_the_host(server, tmp_path, table) -> None:
    first = run(tmp_path, table, server, "open.short")
    server.run("""CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END';
        CREATE TRIGGER wait BEFORE INSERT ON open.short FOR EACH ROW EXECUTE FUNCTION wait();
        ALTER ROLE reader SET statement_timeout = '1s'""")
    try:
        with pytest.raises(ReleaseError, match="the statement was broken off") as caught:
            run(tmp_path, table, server, "open.short")
    finally:
        server.run("ALTER ROLE reader RESET statement_timeout")
    assert "host" not in str(caught.value) and "The table there is as it was." in str(caught.value)
    assert comment(server, "open.short").split()[2] == first.name


def test_a_table_that_lacks_rows_is_not_called_the_release(server, tmp_path, table) -> None:
    first = run(tmp_path, table, server, "open.eaten")
    server.run("""CREATE FUNCTION eat() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER eat BEFORE INSERT ON open.eaten FOR EACH ROW EXECUTE FUNCTION eat()""")
    with pytest.raises(ReleaseError, match=f"the table took 0 of {ROWS} rows"):
        run(tmp_path, table, server, "open.eaten")
    assert comment(server, "open.eaten").split()[2] == first.name
    server.run("DROP TRIGGER eat ON open.eaten")
    assert funnel.send_newest(tmp_path / "policy.yaml").written
    server.run("DELETE FROM open.eaten WHERE ctid IN (SELECT ctid FROM open.eaten LIMIT 1)")
    assert funnel.send_newest(tmp_path / "policy.yaml").written
    assert ask(server, "SELECT count(*) FROM open.eaten") == [(ROWS,)]


def test_what_triggers_wait_with_until_the_commit_is_looked_at_before(server, tmp_path, table) -> None:
    first = run(tmp_path, table, server, "open.waits")
    server.run("""CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN DELETE FROM open.waits; RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON open.waits DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION late()""")
    with pytest.raises(ReleaseError, match=f"the table took 0 of {ROWS} rows"):
        run(tmp_path, table, server, "open.waits")
    assert comment(server, "open.waits").split()[2] == first.name
    server.run("""CREATE OR REPLACE FUNCTION late() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN COMMENT ON TABLE open.waits IS ''mine''; RETURN NULL; END'""")
    with pytest.raises(ReleaseError, match="what stands there is no release"):
        funnel.send_newest(tmp_path / "policy.yaml")
    assert comment(server, "open.waits").split()[2] == first.name


def test_a_release_that_was_changed_since_is_not_written(server, tmp_path, table) -> None:
    """Also where release.json lists the changed files: the ledger knows what was audited."""
    made = run(tmp_path, table, server, "open.changed")
    forged = Forged(made, tmp_path / "private" / made.name)
    forged.answer([(0, 0)] * ROWS)
    forged.list_files()
    server.run("DROP TABLE open.changed")
    with pytest.raises(ReleaseError, match="not the one that was audited"):
        funnel.send_newest(tmp_path / "policy.yaml")
    assert ask(server, "SELECT to_regclass('open.changed')::text") == [(None,)]


def test_a_group_that_owned_the_old_table_may_read_the_new_one(server, tmp_path, table) -> None:
    run(tmp_path, table, server, "open.team")
    server.run("""CREATE ROLE team; GRANT team TO reader, stranger; GRANT USAGE, CREATE ON SCHEMA open TO team;
        ALTER TABLE open.team OWNER TO team""")
    run(tmp_path, table, server, "open.team", public=("colour",))
    assert ask(server, "SELECT count(*) FROM open.team", "stranger") == [(ROWS,)]


def test_what_inherits_from_the_table_keeps_its_rows(server, tmp_path, table) -> None:
    run(tmp_path, table, server, "open.parent", public=("colour",))
    server.run("CREATE TABLE open.child () INHERITS (open.parent); INSERT INTO open.child VALUES ('theirs')")
    server.run("GRANT SELECT ON open.child TO reader")
    run(tmp_path, table, server, "open.parent", public=("colour",))
    assert ask(server, "SELECT colour FROM open.child") == [("theirs",)]
    assert ask(server, "SELECT count(*) FROM ONLY open.parent") == [(ROWS,)]


def test_another_policy_s_table_is_left_alone(server, tmp_path, table) -> None:
    run(tmp_path / "a", table, server, "open.shared")
    with pytest.raises(ReleaseError, match="a release of another policy, test"):
        run(tmp_path / "b", table, server, "open.shared", name="other")


def test_the_plan_says_where_the_table_goes_and_a_dry_run_writes_nothing(
    server, tmp_path, table, command
) -> None:
    path = policy(tmp_path, table, server.address(table="open.dry"))
    assert f"then to {server.address(table='open.dry')}, its old table replaced" in command("plan", path).out
    assert command("run", "--dry-run", path).code == 0
    assert ask(server, "SELECT to_regclass('open.dry')::text") == [(None,)]


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ("postgresql://reader:hunter2@host/db#t", "no password belongs into a policy"),
        ("postgresql://reader@host/db", "name one behind the address"),
        ("people.parquet", "`also` names a table of a database"),
        ("s3://bucket/people#t", "not offered"),
        ({"table": "postgresql://h/d#t", "old": "burn"}, "burn"),
    ],
)
def test_check_refuses_addresses_of_another_form(tmp_path, table, command, also, said) -> None:
    done = command("check", policy(tmp_path, table, also))
    assert (done.code, said in done.out + done.err, "hunter2" in done.out + done.err) == (1, True, False), (
        done
    )


@pytest.mark.parametrize("name", ["ctid", "xmin", "c" * 64, "ü" * 32])
def test_a_column_that_no_table_there_can_have_is_refused_before_anything_is_released(tmp_path, name) -> None:
    """Every `funnel also` would fail again, with the words for a server that is away."""
    with pytest.raises(PolicyError, match="can be no column of a table in the database"):
        funnel.load(policy(tmp_path, tmp_path / "people.parquet", "postgresql://a@b/c#d", public=(name, "size")))
    assert funnel.load(policy(tmp_path, tmp_path / "people.parquet", "postgresql://a@b/c#d", public=("c" * 63, "size")))
    block = {"name": "w" * 57, "columns": ["colour", "size"], "cells": 4}
    assert funnel.load(policy(tmp_path, tmp_path / "people.parquet", "postgresql://a@b/c#d", public=(block,)))
    other = {"name": "other", "columns": ["paid", "day"], "cells": 4}
    with pytest.raises(PolicyError, match="can be no column of a table in the database"):
        funnel.load(policy(tmp_path, tmp_path / "people.parquet", "postgresql://a@b/c#d", public=(block, other)))


def test_a_name_that_is_cut_there_is_no_server_that_is_away(server, tmp_path, table) -> None:
    """A column of 0 and 1 for each value has a name that follows from the value."""
    people = pq.read_table(table)
    colours = pa.array([("c" * 70, "blue")[i % 2] for i in range(ROWS)])
    long = tmp_path / "long.parquet"
    pq.write_table(people.set_column(people.column_names.index("colour"), "colour", colours), long)
    path = policy(tmp_path, long, server.address(table="open.bits"), public=("colour",))
    path.write_text(path.read_text().replace(
        "mechanism: randomised-response", "mechanism: {kind: unary-encoding, release: bits}"))  # fmt: skip
    with pytest.raises(ReleaseError, match="the driver of the database refuses it") as caught:
        funnel.run(path)
    assert (caught.value.code, caught.value.exit_code) == ("also-refused", FAULT)
    assert "funnel also" not in caught.value.advice


def test_a_newer_release_that_was_taken_back_is_not_said_to_need_nothing(server, tmp_path, table) -> None:
    run(tmp_path, table, server, "open.back")
    newest = run(tmp_path, table, server, "open.back")
    shutil.move(newest, tmp_path / "away")
    (tmp_path / "private" / newest.name / "published").unlink()
    path = policy(tmp_path, table, server.address(table="open.back"))
    with pytest.raises(ReleaseError, match="holds a newer release") as caught:
        funnel.send_newest(path)
    assert "where that one was taken back, drop the table, then call `funnel also`" in caught.value.advice
    assert (caught.value.code, caught.value.exit_code) == ("also-refused", FAULT)
    server.run("DROP TABLE open.back")
    assert funnel.send_newest(path).written
