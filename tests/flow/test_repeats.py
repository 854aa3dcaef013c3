"""Permanent draws of two nights, one of which did not follow from the key that it names."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

import funnel
from tests.support.forging import Forged, edit, lines_of, rechain, seal
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

ONE_MORE = [[61, 40, 30], [30, 50, 45]]
SETS = {"mechanism": {"kind": "unary-encoding", "release": "set"}, "privacy": {"notion": "ldp-x", "epsilon": 1.0}}
USUAL = {"privacy": {"notion": "ldp-x", "epsilon": 1.0}}

COMPARED = "as 1 earlier release that can be compared"
OTHERS = ("not checked", "not claimed: no earlier release drew by this key and protocol")


def nights(folder: Path, second: list[list[int]], **terms: object) -> list[Forged]:
    funnel.write_key(folder / "draw.key")
    policy = write_policy(folder, **SMALL | {"draws__key": "file:draw.key"} | terms)
    for counts in (MONDAY, second):
        people(folder, counts)
        funnel.run(policy)
    names = sorted(path.name for path in (folder / "private").glob("2*"))
    return [Forged(folder / "releases" / name, folder / "private" / name) for name in names]


def told(release: Forged) -> tuple[str, str, set[str]]:
    found = funnel.audit_release(release.folder, release.private)
    one = next(finding for finding in found.findings if finding.claim == "draws-repeat")
    return one.status, one.detail, {finding.claim for finding in found.of("failed")}


@pytest.mark.parametrize("terms", [USUAL, SETS, {}], ids=["usual", "sets", "ldp"])
@pytest.mark.parametrize("second", [MONDAY, ONE_MORE], ids=["same", "one more"])
def test_answers_that_changed_without_a_value_are_found(second, terms, tmp_path: Path) -> None:
    first, last = nights(tmp_path, second, **terms)
    before = told(last)
    assert not before[2]
    if second is ONE_MORE and not terms:
        assert before[:2] == OTHERS
        return
    assert before[:2] == ("passed", COMPARED)

    def other(file: dict) -> None:
        (rows,) = file["blocks"]
        taken, given = (next(row for row in rows if row[:2] == [1, output]) for output in (0, 1))
        taken[2], given[2] = taken[2] - 5, given[2] + 5

    edit(first.kept / "draws.json", other)
    status, detail, failed = told(last)
    assert failed == {"draws-repeat"} and f"this is not the file of {first.folder.name} that was entered" in detail
    seal([first, last])
    status, detail, failed = told(last)
    assert (status, failed) == ("failed", {"draws-repeat"}), detail
    assert f"other answers than in {first.folder.name}" in detail


@pytest.mark.parametrize("lost", ["draws.json", "evidence.json"])
def test_draws_that_are_not_kept_are_not_taken_for_none(lost: str, tmp_path: Path) -> None:
    first, last = nights(tmp_path, MONDAY)
    funnel.run(tmp_path / "policy.yaml")
    third = max((tmp_path / "private").glob("2*"))
    (first.kept / lost).unlink()
    gone = f"no draws are kept, with the list that names them, of {first.folder.name}, by this key and protocol"
    assert told(last) == ("not checked", gone, set())
    assert told(Forged(tmp_path / "releases" / third.name, third)) == ("passed", f"{COMPARED}; {gone}", set())


PRIVATE = {"kind": "private", "epsilon": 1.0, "budget": 2.0, "minimum": 1,
           "values": {"s": ["s0", "s1"], "x": ["x0", "x1", "x2", "x9"]}}  # fmt: skip


@pytest.mark.parametrize("more", [5, -5])
def test_fewer_answers_of_a_set_than_its_people_gave_are_found_as_more_are(more: int, tmp_path: Path) -> None:
    """What is answered of one value adds up to nothing, so that fewer of it are no more of another."""
    first, last = nights(tmp_path, ONE_MORE, **SETS)

    def other(file: dict) -> None:
        (rows,) = file["blocks"]
        next(row for row in rows if row[:2] == [1, 0])[2] += more

    edit(first.kept / "draws.json", other)
    seal([first, last])
    assert told(last)[2] == {"draws-repeat"}


@pytest.mark.parametrize(("new", "values", "compared"), [("x1", None, True), ("x9", None, False), ("x9", "x9", True)])
def test_under_a_lock_the_same_people_are_compared_unless_it_leaves_some_out(
    new: str, values: str | None, compared: bool, tmp_path: Path
) -> None:
    """One person more has a value of the lock's night, or one that it leaves out, or one that noisy counts may have."""
    funnel.write_key(tmp_path / "draw.key")
    terms = SMALL | USUAL | {"draws__key": "file:draw.key", "public": [{"name": "x", "unseen": "drop"}]}
    if values:
        declared = PRIVATE["values"] | {"x": ["x0", "x1", "x2", values]}
        terms |= {"estimate": PRIVATE | {"values": declared}}
    policy = write_policy(tmp_path, **terms | {"accept": ["unbounded"]})
    people(tmp_path, MONDAY)
    funnel.make_lock(policy, room=0.5)
    found = []
    for more in ("", f"UNION ALL SELECT 's1', '{new}', 999"):
        table = f"SELECT s, x, id FROM '{tmp_path}/people.parquet' {more}"
        duckdb.sql(f"COPY ({table}) TO '{tmp_path}/new.parquet'")
        (tmp_path / "new.parquet").rename(tmp_path / "people.parquet")
        name = Path(funnel.run(policy, locked=True).release).name
        found.append(Forged(tmp_path / "releases" / name, tmp_path / "private" / name))
    unknown = f"of {found[0].folder.name}, by this key and protocol, it is not known who was drawn for as now"
    assert told(found[1]) == (*(("passed", COMPARED) if compared else ("not checked", unknown)), set())

    def other(file: dict) -> None:
        (rows,) = file["blocks"]
        taken, given = next(pair for pair in pairwise(rows) if pair[0][0] == pair[1][0] and pair[0][2] > 5)
        taken[2], given[2] = taken[2] - 5, given[2] + 5

    edit(found[0].kept / "draws.json", other)
    seal(found)
    _, detail, failed = told(found[1])
    assert failed == ({"draws-repeat"} if compared else set())
    assert ("other answers than in" in detail) == compared


def test_two_locks_that_leave_out_as_many_people_leave_out_others(tmp_path: Path) -> None:
    """Nothing is known then of who is answered as before: the honest release of the second night was refused."""
    funnel.write_key(tmp_path / "draw.key")
    terms = SMALL | {"draws__key": "file:draw.key", "public": ["x", {"name": "z", "unseen": "drop"}]}
    terms |= {"privacy": {"notion": "lip", "epsilon": 1.0}, "estimate": {"minimum": 5}, "accept": "unbounded"}
    policy = write_policy(tmp_path, **terms)
    for unknown in ("p", "q"):
        for left_out in (f"WHERE z <> '{unknown}'", ""):
            query = "SELECT i AS id, 's' || hash(i) % 2 AS s, 'x' || hash(i + 1000) % 3 AS x"
            query = f"SELECT * FROM ({query}, ['p', 'q', 'r', 'r'][i % 4 + 1] AS z FROM range(240) t(i)) {left_out}"
            duckdb.sql(f"COPY ({query}) TO '{tmp_path}/people.parquet'")
            if left_out:
                funnel.make_lock(policy, force=True)
        made = Path(funnel.run(policy, locked=True).release)
        report = funnel.audit_release(made, tmp_path / "private")
        assert not report.of("failed")


def test_fresh_draws_repeat_nothing(tmp_path: Path) -> None:
    _, last = nights(tmp_path, MONDAY, draws={"kind": "fresh"}, accept=["unbounded"])
    assert told(last)[:2] == ("not checked", "not claimed: draws are fresh")


def test_a_key_that_is_named_and_was_not_drawn_with_is_found(tmp_path: Path) -> None:
    """A night drawn with a new key is said to repeat the night before: then all would tell no more than one."""
    first, last = nights(tmp_path, MONDAY)
    policy = next(tmp_path.glob("*.yaml"))
    funnel.rotate_key(policy, to=tmp_path / "new.key")
    policy.write_text(policy.read_text().replace("draw.key", "new.key"))
    funnel.run(policy)
    third = max(path.name for path in (tmp_path / "private").glob("2*"))
    forged = Forged(tmp_path / "releases" / third, tmp_path / "private" / third)
    assert told(forged)[0] == "not checked"
    old = json.loads((first.folder / "release.json").read_text())["draws"]
    edit(forged.folder / "release.json", lambda told: told.update(draws=old))
    lines = [line for line in lines_of(first.private) if line["entry"]["kind"] == "release"]
    lines[-1]["entry"]["key_fingerprint"] = old["key_fingerprint"]
    rechain(first.private, lines)
    seal([first, last, forged])
    assert told(forged)[0] == "failed"
