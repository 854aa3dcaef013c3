"""One reading under a lock counts and draws, and without one draws and checks: the same files and refusals as apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

import funnel
from funnel.draw import once
from funnel.errors import FunnelError
from funnel.lock.pin import lock_of
from funnel.plan import run as running
from funnel.plan.run import execute
from funnel.policy import load
from tests.flow.conftest import nothing_published
from tests.support.policies import write_policy

FILES = ("protocol.json", "released.json", "cells.json", "data.parquet", "data/part-*.parquet")
KEPT = ("counts.json", "draws.json", "people.json", "drift.json", "population.json", "known.json", "distances.json")


def people(folder: Path, rows: int = 20_000, entity: str = "CAST(i * 3 AS VARCHAR) || 'p'", more: str = "",
           dated: str = "") -> None:  # fmt: skip
    """People with a secret, a number that is binned, and two texts, one of them missing at times."""
    duckdb.sql(f"""COPY (SELECT {entity} AS id, 's' || (i * 7 % 3) AS s, (i * 13 % 50) AS age,
        CASE WHEN i % 11 = 0 THEN NULL WHEN i % 50 IN (5, 6) THEN 'y' || (i % 2) ELSE 'x' || (i * i % 5) END AS x,
        'z' || ((i // 3 + i * 7 % 3) % 4) AS z, i AS n{dated}
        FROM range({rows}) t(i) {more}) TO '{folder}/people.parquet'""")


@pytest.fixture(scope="module")
def ready(tmp_path_factory, key):
    """The folder of a policy over two blocks with its lock, to be copied."""
    folder = tmp_path_factory.mktemp("ready")
    people(folder)
    policy = write_policy(
        folder, source={"table": "people.parquet", "entity": "id", "missing": "category"}, sensitive=["s"],
        public=[{"name": "age", "bins": [0, 10, 30]}, ["x", {"name": "z", "top": 2}]],
        privacy={"notion": "lip", "epsilon": 1.5},
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as inside:
        inside.setenv("FUNNEL_KEY", key)
        funnel.make_lock(policy)
    return folder


@pytest.fixture
def locked(ready, tmp_path, key, monkeypatch):
    """A policy over two blocks with its lock."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    return tmp_path / "policy.yaml"


def released(policy: Path, *, locked: bool = True) -> tuple[list[str], dict[str, bytes]]:
    """The stages of a run, and the bytes of what it wrote but for the release's own name."""
    told = dict[str, None]()
    loaded = load(policy)
    lock = lock_of(loaded) if locked else None
    summary = execute(loaded, lock=lock, progress=lambda stage, *_: told.setdefault(stage))
    release = Path(summary.release)
    kept = policy.parent / "private" / release.name
    files = [file for folder, names in ((release, FILES), (kept, KEPT)) for name in names for file in folder.glob(name)]
    merged = {"merged": repr(summary.counted.merged).encode()}
    return list(told), merged | {file.name: file.read_bytes() for file in files}


@pytest.mark.long
@pytest.mark.parametrize("entity", ["CAST(i * 3 AS VARCHAR) || 'p'", "5000000 - i", "i * 1000000000000"])
def test_one_reading_finds_what_several_do(locked, entity, monkeypatch):
    """Texts, numbers side by side, numbers too far apart for flags: the same bytes, the sample of people among them."""
    people(locked.parent, entity=entity)
    stages, one = released(locked)
    assert "count and draw" in stages
    assert not {"inspect", "count", "people", "draw"} & set(stages)
    monkeypatch.setattr(running, "read_once", lambda *_: None)
    stages, several = released(locked)
    assert {"inspect", "identify", "count", "people", "draw"} < set(stages)
    assert one == several
    assert json.loads(one["people.json"])["sample"]
    for release in (locked.parent / "releases").iterdir():
        assert funnel.audit_release(release, locked.parent / "private").passed


WIDE = {"name": "w", "columns": ["age", "x", {"name": "z", "top": 2}], "cells": {"most": 12, "minimum": 200}}
ONCE = {
    "filter": {"source": {"filter": "age > 3"}},
    "knows": {
        "privacy": {"notion": "srlip", "epsilon": 1.5, "knows": ["x"]},
        "public": [["x", {"name": "z", "top": 2}]],
    },
    "keys": {"release__identify": ["id"]},
    "keys of several files": {"release__identify": ["n", "id"], "release__partition": {"rows": 3000}},
    "cells": {"public": [WIDE], "mechanism": "randomised-response"},
    "cells beside values": {
        "public": [WIDE | {"columns": ["age", "x"]}, "z"],
        "source": {"filter": "age > 3"},
        "mechanism": "randomised-response",
    },
    "cells and keys": {"public": [WIDE], "mechanism": "randomised-response", "release__identify": ["id"]},
    "dropped": {"source": {"missing": "drop"}},
    "dropped numbers": {"source": {"missing": "drop", "entity": "n"}},
    "dropped cells with keys": {
        "source": {"missing": "drop", "entity": "n", "filter": "age > 3"},
        "public": [WIDE],
        "release__identify": ["id"],
    },
    "known cells": {
        "public": [WIDE | {"columns": ["age", {"name": "x", "groups": {"a": ["x0", "x1"]}}]}],
        "privacy": {"notion": "srlip", "epsilon": 1.5, "knows": ["x"]},
    },
}
"""What else but plain values can be counted and drawn in one reading."""


def changed(folder: Path, changes: dict[str, object]) -> Path:
    """The policy of `locked` with such changes."""
    source = {"table": "people.parquet", "entity": "id", "missing": "category"} | changes.get("source", {})
    usual = {
        "public": [{"name": "age", "bins": [0, 10, 30]}, ["x", {"name": "z", "top": 2}]],
        "privacy": {"notion": "lip", "epsilon": 1.5},
    }
    return write_policy(folder, **(usual | {"sensitive": ["s"]} | changes | {"source": source}))


@pytest.mark.long
@pytest.mark.parametrize("changes", ONCE.values(), ids=ONCE)
def test_more_than_values_is_counted_and_drawn_in_one_reading(locked, changes, monkeypatch):
    """Keys and cells in the one reading; who is absent, and what is known, in readings behind it: the same bytes."""
    policy = changed(locked.parent, changes)
    funnel.make_lock(policy, force=True)
    stages, one = released(policy)
    assert "count and draw" in stages
    assert not {"inspect", "identify", "cells", "count", "name", "people", "draw"} & set(stages)
    with monkeypatch.context() as patched:
        patched.setattr(running, "read_once", lambda *_: None)
        stages, several = released(policy)
    assert {"inspect", "identify", "count", "people", "draw"} < set(stages)
    assert one == several
    people(locked.parent, more="UNION ALL SELECT 'q', 's0', 13, 'new', 'z1', -9")  # what was begun in one is given up
    with pytest.raises(FunnelError) as refused:
        funnel.run(policy, locked=True)
    assert refused.value.code == "unseen-value"


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"more": "UNION ALL SELECT '3p', 's0', 3, 'x1', 'z1', 1"}, "entity-repeated"),
        ({"more": "UNION ALL SELECT NULL, 's0', 3, 'x1', 'z1', 1"}, "entity-null"),
        ({"more": "UNION ALL SELECT 'q', 's0', 3, 'new', 'z1', 1"}, "unseen-value"),
        ({"more": "UNION ALL SELECT 'q', 's0', -3, 'x1', 'z1', 1"}, "below-bins"),
        ({"more": "WHERE i % 3 = 0"}, "one-secret"),
        ({"more": "WHERE i < 0"}, "source-empty"),
        ({"more": "WHERE (i * 7 % 3 = 0) = (i * 13 % 50 < 10)"}, "lock-leaks"),
        ({"entity": "i // 2"}, "entity-repeated"),
    ],
)
def test_what_is_refused_is_refused_as_ever(locked, change, code):
    people(locked.parent, **change)
    with pytest.raises(FunnelError) as refused:
        funnel.run(locked, locked=True)
    assert refused.value.code == code, refused.value
    assert nothing_published(locked.parent)


ONE_GROUP = {"name": "z", "groups": {"a": ["z0", "z1", "z2", "z3"]}}
RARE = {
    "apart": {"public": [{"name": "age", "rare": "bin"}, {"name": "x", "rare": "other"}], "estimate": {"minimum": 500}},
    "in a block": {
        "public": [[ONE_GROUP, {"name": "x", "rare": "other"}], {"name": "age", "rare": "bin"}],
        "source": {"missing": "drop", "entity": "n"},
        "release__identify": ["n", "id"],
        "estimate": {"minimum": 500},
    },
    "known": {
        "public": [[ONE_GROUP, {"name": "x", "rare": "other"}]],
        "privacy": {"notion": "srlip", "epsilon": 1.5, "knows": ["x"]},
        "estimate": {"minimum": 500},
    },
}


@pytest.mark.long
@pytest.mark.parametrize("changes", RARE.values(), ids=RARE)
def test_rare_values_and_new_ones_become_what_the_lock_says_in_one_reading(locked, changes, monkeypatch):
    policy = changed(locked.parent, changes | {"mechanism": "randomised-response"})
    funnel.make_lock(policy, force=True, room=0.3)
    people(locked.parent, more="UNION ALL SELECT 'q' || i, 's' || (i % 3), 15, 'new', 'z1', -i FROM range(1, 31) t(i)")
    stages, one = released(policy)
    assert "count and draw" in stages
    assert not {"inspect", "identify", "count", "name", "people", "draw"} & set(stages)
    monkeypatch.setattr(running, "read_once", lambda *_: None)
    stages, several = released(policy)
    assert {"inspect", "identify", "count", "people", "draw"} < set(stages)
    assert one == several
    assert b"Merged(column='x', values=3, records=" in one["merged"]


DATED = {"name": "w", "columns": ["age", {"name": "d", "round": "month"}], "cells": {"most": 4, "minimum": 200}}


@pytest.mark.parametrize(
    ("changes", "more", "code"),
    [
        ({"release__identify": ["n"]}, "'q', 's0', 3, 'x1', 'z1', 1", "identify-repeated"),
        ({"release__identify": ["n"]}, "'q', 's0', 3, 'x1', 'z1', NULL", "identify-null"),
        ({"public": [WIDE]}, "'q', 's0', 3, 'new', 'z1', 1", "unseen-value"),
        ({"public": [WIDE | {"columns": ["age", "z"]}]}, "'q', 's0', 3, 'x1', NULL, 1", "unseen-value"),
        ({"public": [WIDE]}, "'3p', 's0', 3, 'x1', 'z1', 1", "entity-repeated"),
        ({"public": [DATED]}, "'q', 's0', 3, 'x1', 'z1', 1, 'never'", "not-a-date"),
        (
            {"public": [{"name": "age", "bins": [0, 1, 2, 30], "rare": "other"}], "estimate": {"minimum": 700}},
            "'q', 's0', -3, 'x1', 'z1', 1",
            "below-bins",
        ),
        (
            {"public": [WIDE | {"columns": ["x", {"name": "age", "bins": [0, 10, 30], "rare": "other"}]}]},
            "'q', 's0', -3, 'x1', 'z1', 1",
            "below-bins",
        ),
    ],
    ids=["key twice", "no key", "unseen", "missing", "person twice", "no date", "rare below", "below"],
)
def test_what_is_refused_of_keys_and_cells_is_refused_as_ever(locked, changes, more, code):
    dated = ", '2026-0' || (i % 2 + 1) || '-03' AS d" if code == "not-a-date" else ""
    people(locked.parent, dated=dated)
    policy = changed(locked.parent, changes | {"mechanism": "randomised-response"})
    funnel.make_lock(policy, force=True)
    people(locked.parent, more=f"UNION ALL SELECT {more}", dated=dated)
    with pytest.raises(FunnelError) as refused:
        funnel.run(policy, locked=True)
    assert refused.value.code == code, refused.value
    assert nothing_published(locked.parent)


def test_more_combinations_than_can_be_held_are_left_to_readings_that_count_them(locked, monkeypatch):
    policy = changed(locked.parent, {"public": [WIDE], "mechanism": "randomised-response"})
    funnel.make_lock(policy, force=True)
    monkeypatch.setattr("funnel.engine.wide._WAITING", 0)
    monkeypatch.setattr("funnel.engine.wide.MOST_CODES", 30)
    with pytest.raises(FunnelError, match=r"take [0-9]+ combinations; cells are made of 10 at most") as refused:
        funnel.run(policy, locked=True)
    assert refused.value.code == "cells-size"
    assert nothing_published(locked.parent)


MORE = {
    "two blocks": {},
    "one from two": {"privacy__notion": "srlip"},
    "rare": {"public": [{"name": "age", "rare": "bin"}, {"name": "x", "rare": "other"}], "estimate": {"minimum": 900}},
    "filter": {"source": {"filter": "age > 3"}},
    "dropped": {"source": {"missing": "drop"}},
    "sets": {"privacy": {"notion": "ldp-x", "epsilon": 1.5}, "mechanism": "unary-encoding", "public": ["x"]},
    "keys": {"release__identify": ["id"]},
    "keys of several files": {"release__identify": ["n", "id"], "release__partition": {"rows": 3000}},
}


@pytest.mark.long
@pytest.mark.parametrize("changes", MORE.values(), ids=MORE)
def test_draws_check_what_else_would_be_read_apart(locked, changes, monkeypatch):
    """Whose rows they are is found with the draws: the same bytes as in readings of their own."""
    policy = changed(locked.parent, changes)
    stages, one = released(policy, locked=False)
    assert stages.index("draw") < stages.index("identify") < stages.index("people")
    monkeypatch.setattr(running, "read_drawing", lambda *_: None)
    stages, apart = released(policy, locked=False)
    assert "identify" not in stages
    assert one == apart
    assert json.loads(one["people.json"])["sample"]


@pytest.mark.parametrize("entity", ["i // 2", "'p' || (i // 2)", "i // 2 * 1000000000000"])
def test_people_who_are_there_twice_are_found_with_the_draws(locked, entity):
    people(locked.parent, entity=entity)
    with pytest.raises(FunnelError) as refused:
        funnel.run(locked)
    assert refused.value.code == "entity-repeated"
    assert nothing_published(locked.parent)


@pytest.mark.long
@pytest.mark.parametrize("entity", ["id", "n"])
@pytest.mark.parametrize("pinned", [True, False])
def test_who_is_there_twice_is_refused_where_one_of_the_rows_is_left_out(locked, pinned, entity):
    twice, nobody = ("'3p', 's0', 3, NULL, 'z1', 1", "NULL, 's0', 3, NULL, 'z1', NULL")
    policy = changed(locked.parent, {"source": {"missing": "drop", "entity": entity}})
    if pinned:
        funnel.make_lock(policy, force=True)
        assert funnel.run(policy, locked=True).release
    for one, code in (twice, "entity-repeated"), (nobody, "entity-null"):
        people(locked.parent, more=f"UNION ALL SELECT {one}")
        with pytest.raises(FunnelError) as refused:
            funnel.run(policy, locked=pinned)
        assert refused.value.code == code


def test_a_secret_that_is_new_takes_the_usual_readings(locked):
    table = f"'{locked.parent}/people.parquet'"
    other = f"SELECT id || 'q' AS id, 's9' AS s, * EXCLUDE (id, s) FROM {table} WHERE hash(id) % 5 = 0"
    duckdb.sql(f"COPY (FROM {table} UNION ALL {other}) TO '{locked.parent}/more.parquet'")
    (locked.parent / "more.parquet").replace(locked.parent / "people.parquet")
    stages, _ = released(locked)
    assert {"count and draw", "inspect", "count", "people", "draw"} < set(stages)


@pytest.mark.parametrize("pinned", [True, False])
def test_a_source_that_moves_during_the_reading_is_refused(locked, pinned, monkeypatch):
    plain = once.Reading.add

    def moving(self, batch):
        people(locked.parent, rows=19_000)
        return plain(self, batch)

    monkeypatch.setattr(once.Reading, "add", moving)
    with pytest.raises(FunnelError) as refused:
        funnel.run(locked, locked=pinned)
    assert refused.value.code == "source-changed"
    assert nothing_published(locked.parent)


def test_flags_count_numbers_of_any_narrow_range():
    numbers = [5, 9, -3, 9, 100_000, -70_000]
    flags = once.Flags()
    for number in numbers:
        flags.add(once.Entities(once.np.array([number]), None))
    assert flags.found() == 5
    flags.add(once.Entities(once.np.array([1 << 40]), None))
    assert flags.found() is None
