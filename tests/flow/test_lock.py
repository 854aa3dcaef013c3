"""A policy under a lock, night after night: what is drawn from, what is refused, and that the auditor agrees."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
import stat
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
import yaml

import funnel
from funnel.errors import LockError, SourceError
from funnel.format import canonical
from funnel.lock.drift import _times
from funnel.release.narrowed import narrowed
from tests.flow.conftest import nothing_published
from tests.support.forging import Forged, edit, seal
from tests.support.people import FRESH
from tests.support.policies import write_policy

BASE = {
    "source": {"table": "people.parquet", "entity": "id"},
    "sensitive": ["s"],
    "public": ["x"],
    "privacy": {"notion": "lip", "epsilon": 0.3},
}
MONDAY = [
    ("s0", "a", 200),
    ("s0", "b", 100),
    ("s0", "c", 60),
    ("s1", "a", 100),
    ("s1", "b", 90),
    ("s1", "c", 120),
]
TUESDAY = [
    ("s0", "a", 202),
    ("s0", "b", 99),
    ("s0", "c", 60),
    ("s1", "a", 99),
    ("s1", "b", 92),
    ("s1", "c", 119),
]
FAR = [
    ("s0", "a", 300),
    ("s0", "b", 100),
    ("s0", "c", 10),
    ("s1", "a", 40),
    ("s1", "b", 90),
    ("s1", "c", 180),
]


def people(folder: Path, groups: Sequence[tuple[str | int | None, ...]]) -> None:
    """A table of groups (s, x, …, rows), everybody with an id that stays where groups grow; columns s, x, z, …"""
    rows = [(1000 * at + i, group[:-1]) for at, group in enumerate(groups) for i in range(group[-1])]
    names = ["id", "s", "x", "z"][: 1 + len(rows[0][1])]
    values = ", ".join(
        f"({i}, {', '.join('NULL' if part is None else repr(part) for part in row)})" for i, row in rows
    )
    select = f"SELECT * FROM (VALUES {values}) t({', '.join(names)})"
    duckdb.sql(f"COPY ({select}) TO '{folder / 'people.parquet'}' (FORMAT parquet)")


@pytest.fixture
def folder(tmp_path, key, monkeypatch) -> Path:
    monkeypatch.setenv("FUNNEL_KEY", key)
    people(tmp_path, MONDAY)
    return tmp_path


def audited(folder: Path) -> None:
    """The newest release, by the auditor's own word, with its evidence; every claim of a lock is checked."""
    report = funnel.audit_release(folder / "releases" / "latest", folder / "private")
    assert report.passed, report.text()
    status = {one.claim: one.status for one in report.findings}
    assert status["lock"] == "passed"
    assert status["leakage-bound"] == "passed"


def run(folder: Path, **changes) -> dict:
    return funnel.run(write_policy(folder, **(BASE | changes)), locked=True).as_dict()


def released(folder: Path, column: str = "x") -> dict[str, int]:
    """Rows of each value of the newest release."""
    found = duckdb.sql(
        f"SELECT {column}, count(*) FROM '{folder}/releases/latest/data.parquet' GROUP BY 1"
    ).fetchall()
    return dict(found)


@pytest.mark.long
def test_nights_under_a_lock_with_the_real_commands(cli, command, folder):
    """Lock, run, drift a little, run, drift too far, refuse, look at what a new lock changes, replace it."""
    policy = write_policy(folder, **BASE)
    with pytest.raises(LockError, match="no lock"):
        run(folder)
    locked = command("lock", policy, "--json")
    assert (locked.code, locked.json["written"]) == (0, True)
    text = (folder / "policy.lock.yaml").read_text()

    first = cli("run", policy, "--locked", "--json")
    assert first.code == 0, first.err
    assert first.json["locked"]["distance"] == 0
    assert first.json["utility"]["upper_bound"] is None
    audited(folder)
    people(folder, TUESDAY)
    second = run(folder)
    assert 0 < second["locked"]["distance"] < 0.02
    assert second["locked"]["leakage_then"] == first.json["locked"]["leakage_then"]
    assert second["composed"]["figure"] == pytest.approx(
        second["leakage"]["lip"], abs=1e-4
    )  # it only repeats
    audited(folder)
    assert len({path.read_bytes() for path in folder.glob("releases/2*/protocol.json")}) == 1

    people(folder, FAR)
    write_policy(folder, **BASE)
    before = sorted(folder.glob("releases/*"))
    refused = command("run", policy, "--locked", "--json")
    assert refused.code == 4
    assert refused.json["error"]["code"] == "lock-leaks"
    assert "--force" in refused.err
    assert sorted(folder.glob("releases/*")) == before

    again = command("lock", policy)
    assert again.code == 1
    assert "[lock-exists]" in again.err
    assert "privacy: unchanged" in again.out.splitlines()
    assert (folder / "policy.lock.yaml").read_text() == text
    assert command("lock", "--force", policy).code == 0
    assert command("lock", "--check", policy).out.startswith(f"{folder / 'policy.lock.yaml'}: ok")
    run(folder)
    assert funnel.api.audit(folder / "releases", folder / "private").passed


@pytest.mark.long
def test_of_drift_beside_a_budget_the_last_exit_is_one_that_a_policy_may_have(command, folder):
    policy = write_policy(folder, **BASE, budget=0.6)
    assert command("lock", policy).code == 0
    assert command("run", policy, "--locked").code == 0
    people(folder, FAR)
    refused = command("run", policy, "--locked")
    assert "write `accept: unbounded` into the policy in place of `budget` with a new lock" in refused.err
    assert command("check", write_policy(folder, **BASE, accept="unbounded")).code == 0
    assert command("check", write_policy(folder, **BASE, accept="unbounded", budget=0.6)).code == 1


def test_a_lock_of_another_budget_is_kept_under_the_new_one(command, folder):
    """Where only what may be told changes: the advice is not to solve anew, and works."""
    assert command("lock", write_policy(folder, **BASE, budget=0.6)).code == 0
    policy = write_policy(folder, **BASE, accept="unbounded")
    refused = command("run", policy, "--locked")
    assert refused.code == 1 and f"Undo the change, or: `funnel lock --keep {policy}` keeps its protocol" in refused.err
    pinned = (folder / "policy.lock.yaml").read_text()
    assert command("lock", "--keep", policy).code == 0
    assert command("run", policy, "--locked").code == 0
    assert "--force" in command("run", write_policy(folder, **BASE, source__filter="true"), "--locked").err
    assert pinned != (folder / "policy.lock.yaml").read_text()


def test_drift_has_exits_and_each_works(command, folder):
    """A night refused for drift names what to do, in order, as commands; each is carried out as it stands there."""
    policy, lock = write_policy(folder, **BASE), folder / "policy.lock.yaml"
    assert command("lock", policy).code == 0
    assert command("run", policy, "--locked").code == 0
    pinned, text = lock.read_text(), policy.read_text()
    people(folder, FAR)
    refused = command("run", policy, "--locked")
    assert refused.code == 4
    said = " ".join(refused.err.split())
    ways = [refused.err.index(way) for way in ("\n  (1) Keep", "\n  (2) Widen", "\n  (3) Rotate", "\n  (4) A new lock")]
    assert ways == sorted(ways)
    commands = [one.split()[1:] for one in re.findall(r"`(funnel [^`]*)`", said)]
    begun = [one[:2] for one in commands]
    assert begun == [["lock", "--keep"], ["lock", "--room"], ["key", "rotate"], ["lock", "--room"]]

    # Another epsilon, the same protocol: everybody answers as before, and releases state the larger bound.
    wider = re.search(r"`epsilon: ([0-9.]+)`", said)
    assert wider is not None
    too_little = command(*commands[0])
    assert too_little.code == 4, "the policy's own epsilon is still below what is leaked"
    policy.write_text(text.replace("epsilon: 0.3", f"epsilon: {wider[1]}"))
    kept = command(*commands[0], "--json")
    assert (kept.code, kept.json["written"]) == (0, True), kept.err
    (cost,) = kept.json["costs"]
    assert cost["now"] is not None
    done = command("run", policy, "--locked", "--json")
    assert done.code == 0, done.err
    assert len({path.read_bytes() for path in folder.glob("releases/2*/protocol.json")}) == 1
    assert cost["after"] == done.json["composed"]["figure"] == pytest.approx(done.json["leakage"]["lip"], abs=2e-4)
    audited(folder)

    # Another protocol: what it changes and costs each promise is shown first, and nothing is written.
    for options in (["--room", commands[1][2]], []):
        policy.write_text(text)
        lock.write_text(pinned)
        shown = command("lock", policy, *options)
        assert shown.code == 1
        assert lock.read_text() == pinned
        (line,) = [one for one in shown.out.splitlines() if one.startswith("cost")]
        assert "nats after the first release under it" in line or "no finite bound known after" in line
        made = command("lock", "--force", policy, *options, "--json")
        assert (made.code, made.json["written"]) == (0, True), made.err
        (cost,) = made.json["costs"]
        ran = command("run", policy, "--locked", "--dry-run", "--json")
        assert ran.code == (4 if made.json["refused"] else 0), ran.err
        rotated = command("key", "rotate", "--locked", policy, "--json")
        assert rotated.code == 0, rotated.err
        if ran.code == 0:
            assert ran.json["composed"]["figure"] == cost["after"]

    # The last way gives the bound of all releases together up, whatever they tell.
    assert "(5) Where each of these would end a promise" in said
    policy.write_text(text + "accept: unbounded\n")
    assert command("lock", "--force", policy).code == 0
    assert command("run", policy, "--locked").code == 0
    audited(folder)


def test_beliefs_that_fall_too_far_are_told_by_the_bound_that_they_pass(command, folder):
    """The rise is within epsilon: another epsilon would not help, and another `lower` does."""
    people(folder, [("s0", "a", 40), ("s0", "b", 60), ("s1", "a", 70), ("s1", "b", 30)])
    policy = write_policy(folder, **BASE | {"privacy": {"notion": "alip", "epsilon": 0.6, "lower": 0.6}})
    assert command("lock", policy, "--room", "0").code == 0
    people(folder, [("s0", "a", 10), ("s0", "b", 90), ("s1", "a", 90), ("s1", "b", 10)])
    said = " ".join(command("run", policy, "--locked").err.split())
    assert "moves a belief by 1.609438 nats there, above the 0.6 of the policy's `lower`" in said  # ln 5
    assert "that alip allows" not in said
    (lower,) = re.findall(r"tell readers: `lower: ([0-9.]+)` or more", said)
    policy.write_text(policy.read_text().replace("lower: 0.6", f"lower: {lower}"))
    assert command("lock", "--keep", policy).code == 0
    assert command("run", policy, "--locked").code == 0


def test_a_new_lock_with_the_room_of_the_old_one_has_it(command, folder):
    policy = write_policy(folder, **BASE)
    assert command("lock", policy, "--room", "0.2").code == 0
    people(folder, FAR)
    said = " ".join(command("run", policy, "--locked").err.split())
    (way,) = re.findall(r"with the room of the old one: `funnel ([^`]*)`", said)
    assert command(*way.split(), "--force").code == 0
    assert yaml.safe_load((folder / "policy.lock.yaml").read_text())["room"] == 0.2


def test_a_kept_lock_promises_the_minimum_of_the_night_when_its_protocol_was_made(command, folder):
    """As a lock does on any night: of a value that few have by now the protocol tells no more than then."""
    few = [(s, x, 2 if x == "c" else rows) for s, x, rows in MONDAY]
    policy = write_policy(folder, **BASE)
    assert command("lock", policy, "--room", "0.5").code == 0
    people(folder, few)
    assert command("run", policy, "--locked").code == 0
    policy = write_policy(folder, **BASE | {"privacy": {"notion": "lip", "epsilon": 0.6}})
    assert command("lock", "--keep", policy).code == 0
    assert command("run", policy, "--locked").code == 0
    report = funnel.audit_release(folder / "releases" / "latest", folder / "private")
    assert report.passed
    (told,) = [one.detail for one in report.findings if one.claim == "minimum"]
    assert told == "the counts that the protocol was made from are not kept with this release"


def test_counts_of_the_night_that_a_kept_lock_was_made_are_the_publishers_word_and_prove_no_minimum(command, folder):
    policy = write_policy(folder, **BASE)
    assert command("lock", policy, "--room", "0.5").code == 0
    policy = write_policy(folder, **BASE | {"privacy": {"notion": "lip", "epsilon": 0.6}})
    assert command("lock", "--keep", policy).code == 0
    assert command("run", policy, "--locked").code == 0
    (kept,) = folder.glob("private/2*/counts.json")
    counts = json.loads(kept.read_bytes())
    values = len(counts["blocks"][0]["values"])
    kept.write_bytes(canonical.encode(counts | {"locked": [[1000] * values]}))
    report = funnel.audit_release(folder / "releases" / "latest", folder / "private")
    assert "minimum" in {one.claim for one in report.unchecked}


def test_a_lock_of_rounded_beliefs_is_not_kept_under_a_smaller_bound(command, folder):
    """It holds for every table that rounds alike as it was solved for; of a smaller one tonight's counts alone tell."""
    rounded = BASE | {"estimate": {"minimum": 2, "beliefs": 0.05}, "accept": "unbounded"}
    assert command("lock", write_policy(folder, **rounded)).code == 0
    for epsilon, kept in ((0.29, False), (0.4, True)):
        policy = write_policy(folder, **rounded | {"privacy": {"notion": "lip", "epsilon": epsilon}})
        told = command("run", "--locked", policy)
        assert (told.code, "`funnel lock --keep" in told.err) == (1, kept)
        done = command("lock", "--keep", policy)
        assert (done.code, "tonight's counts alone" in done.err) == ((0, False) if kept else (1, True))
    assert command("run", "--locked", policy).code == 0


def test_a_lock_of_a_bound_that_is_of_no_table_is_kept_under_a_smaller_one(command, folder):
    rounded = BASE | {"estimate": {"minimum": 2, "beliefs": 0.05}}
    first, then = ({"privacy": {"notion": "ldp-x", "epsilon": epsilon}} for epsilon in (0.3, 0.29))
    assert command("lock", write_policy(folder, **rounded | first)).code == 0
    policy = write_policy(folder, **rounded | then)
    assert "`funnel lock --keep" in command("run", "--locked", policy).err
    assert command("lock", "--keep", policy).code == 0
    assert command("run", "--locked", policy).code == 0


@pytest.mark.parametrize("room", [[], ["--room", "0"]], ids=str)
def test_a_kept_lock_of_secret_randomised_response_passes_its_audit(command, folder, room):
    """Its weights are of the epsilon that it was solved for, and tell less at the counts."""
    asked = {**BASE, "public": ["s", "x"], "mechanism": "secret-randomised-response", "accept": "unbounded"}
    first, then = ({"privacy": {"notion": "rldp", "epsilon": epsilon}} for epsilon in (2.0, 1.85))
    assert command("lock", *room, write_policy(folder, **asked | first)).code == 0
    policy = write_policy(folder, **asked | then)
    assert command("lock", "--keep", policy).code == 0
    run = command("run", "--locked", policy)
    assert run.code == 0, run.err
    audited(folder)


def test_a_budget_that_a_lock_pins_is_raised_as_the_refusal_says(command, folder):
    policy = write_policy(folder, **BASE, budget=0.3)
    assert command("lock", policy).code == 0
    assert command("run", "--locked", policy).code == 0
    refused = command("run", write_policy(folder, **BASE, budget=0.01))
    assert (refused.code, "larger `budget` (a lock pins that too, and says how it is kept)" in refused.err) == (4, True)
    policy = write_policy(folder, **BASE, budget=0.4)
    told = command("run", "--locked", policy)
    assert (told.code, "`funnel lock --keep" in told.err) == (1, True)
    assert command("lock", "--keep", policy).code == 0
    assert command("run", "--locked", policy).code == 0


def test_a_kept_lock_says_when_its_protocol_was_fixed(command, folder, monkeypatch):
    """Totals stay as they were on that night, which may be long before: not on the night it was kept."""
    policy = write_policy(folder, **BASE | {"mechanism": "invariant"})
    assert command("lock", policy).code == 0
    first = yaml.safe_load((folder / "policy.lock.yaml").read_text())
    assert "fixed" not in first
    people(folder, TUESDAY)
    monkeypatch.setattr("funnel.lock.pin.datetime", SimpleNamespace(now=lambda _: datetime(2027, 1, 2, 3, 4, 5)))
    assert command("lock", "--keep", write_policy(folder, **BASE | {"mechanism": "invariant", "budget": 2.0})).code == 0
    assert command("lock", "--keep", write_policy(folder, **BASE | {"mechanism": "invariant", "budget": 1.0})).code == 0
    kept = yaml.safe_load((folder / "policy.lock.yaml").read_text())
    assert (kept["made"], kept["fixed"]) == ("2027-01-02T03:04:05Z", first["made"])
    release = Path(funnel.run(policy, locked=True).release)
    told = html.unescape((release / "report.html").read_text())
    assert f"The protocol leaves every total as it was when it was fixed by a lock, {first['made']}." in told
    assert f"on the night that the protocol was fixed ({first['made']}, in a lock)" in told
    assert f"The protocol is fixed since {first['made']}, now by a lock, made at {kept['made']}:" in told
    full = html.unescape((folder / "private" / release.name / "report.html").read_text())
    assert f"The lock was made at {kept['made']}. Leakage (lip):" in full
    audited(folder)
    stated = json.loads((release / "release.json").read_text())["locked"]
    assert stated["fixed"] == first["made"]


def test_a_lock_that_leaves_no_room_is_kept(command, folder):
    """Perfect privacy has an epsilon of zero, of which no part is left."""
    people(folder, [*(("s0", x, 30) for x in "abc"), *(("s1", x, n) for x, n in (("a", 50), ("b", 20), ("c", 30)))])
    perfect = BASE | {"privacy": {"notion": "perfect"}}
    assert command("lock", write_policy(folder, **perfect)).code == 0
    kept = command("lock", "--keep", write_policy(folder, **perfect, budget=1.0))
    assert kept.code == 0, kept.err
    assert yaml.safe_load((folder / "policy.lock.yaml").read_text())["room"] == 0


def test_a_protocol_that_tells_nothing_is_kept_with_a_room_that_another_lock_could_have(command, folder):
    """Advice after drift names that room, and all of epsilon is none."""
    people(folder, [(s, x, 60) for s in ("s0", "s1") for x in "abc"])
    policy = write_policy(folder, **BASE)
    assert command("lock", policy).code == 0
    assert command("lock", "--keep", write_policy(folder, **BASE, budget=1.0)).code == 0
    room = yaml.safe_load((folder / "policy.lock.yaml").read_text())["room"]
    assert 0 < room < 1
    assert command("lock", policy, "--room", str(room)).code == 1  # There is another lock.


def test_of_unseen_values_in_several_blocks_it_is_said_that_rows_count_for_each():
    unseen = [SimpleNamespace(columns=(column,), rule="drop") for column in "xy"]
    assert _times(SimpleNamespace(unseen=unseen), "drop") == " (one for each block)"
    assert _times(SimpleNamespace(unseen=unseen[:1]), "drop") == _times(SimpleNamespace(unseen=unseen), "other") == ""


@pytest.mark.parametrize("whose", [{"entity": "id"}, {}], ids=["one reading", "several"])
@pytest.mark.parametrize(("missing", "own"), [(6, []), (60, [[None]])], ids=["rare", "frequent"])
def test_a_missing_value_is_as_rare_under_a_lock_as_it_was_without(folder, whose, missing, own):
    """It becomes other where it did so on the lock's night, and stays where it was frequent then."""
    few = [("s0", None, missing), ("s1", "d", 6), ("s0", "e", 6)]
    changes = {"public": [{"name": "x", "rare": "other"}]} | ({} if whose else {"draws": {"kind": "fresh"}})
    source = {"table": "people.parquet", "missing": "category"} | whose
    policy = write_policy(folder, **BASE | changes | {"source": source})
    people(folder, [*MONDAY, *few])
    funnel.make_lock(policy)
    block = yaml.safe_load((folder / "policy.lock.yaml").read_text())["block.0"]
    assert [value for value, _ in block["inputs"]] == [["a"], ["b"], ["c"], ["other"], *own]
    for night in (MONDAY, TUESDAY):
        people(folder, [*night, *few])
        assert funnel.run(policy, locked=True).rows == sum(rows for *_, rows in [*night, *few])
        audited(folder)


def test_a_kept_lock_is_of_the_same_columns_and_secret(command, folder):
    policy = write_policy(folder, **BASE)
    assert command("lock", "--keep", policy).code == 1  # there is none
    assert command("lock", policy).code == 0
    write_policy(folder, **BASE | {"public": [{"name": "x", "rare": "other"}]})
    refused = command("lock", "--keep", policy)
    assert (refused.code, "public changed" in refused.err) == (1, True)
    assert command("lock", "--keep", "--force", policy).code == 2


def test_a_kept_lock_under_another_epsilon_is_not_said_to_be_measured_anew(command, folder):
    """Its leakage is what it was; stated is a figure rounded up, which never is above epsilon."""
    assert command("lock", write_policy(folder, **BASE)).code == 0
    told = command("lock", "--keep", write_policy(folder, **BASE, privacy__epsilon=0.6))
    assert told.code == 0
    assert "measured.lip" in told.out
    said = dict(re.findall(r"measured\.(\w+): .*; (as it is stated.*): more than before", told.out))
    assert said.pop("lip") == "as it is stated, rounded up and no more than epsilon"
    assert set(said.values()) <= {"as it is stated, rounded up"}  # epsilon bounds no other measure
    assert "measured, more" not in told.out


def test_on_the_locks_own_night_its_leakage_has_not_moved(command, folder):
    """The lock states it rounded up, to few decimals where there are few records; beside it stands what is measured."""
    policy = write_policy(folder, **BASE | {"privacy": {"notion": "lip", "epsilon": 2.0}})
    assert command("lock", policy).code == 0
    (said,) = [line for line in command("run", policy, "--locked").out.splitlines() if line.startswith("drift")]
    then, now = map(float, re.findall(r"lip at most ([0-9.]+) then, ([0-9.]+) nats now; 0.00%", said)[0])
    assert now < then < 2


def test_a_lock_on_the_same_night_is_up_to_date(folder):
    policy = write_policy(folder, **BASE)
    made = funnel.make_lock(policy)
    text = made.path.read_bytes()
    again = funnel.make_lock(policy)
    assert (again.same, again.written) == (True, False)
    assert made.path.read_bytes() == text
    assert funnel.check(made.path).ok  # policies/*.yaml holds locks too
    made.path.write_bytes(text[:-9])
    assert not funnel.check(made.path).ok


def test_the_lock_is_plain_yaml_and_holds_no_counts(folder):
    """Every number in it is a weight, a term, or a rounded figure; the counts lie in private, for their owner."""
    made = funnel.make_lock(write_policy(folder, **BASE))
    facts = yaml.safe_load(made.path.read_text())
    weights = [row for _, row in facts["block.0"]["inputs"]]
    assert {sum(row) for row in weights} == {1 << facts["block.0"]["bits"]}
    assert facts["leakage"]["lip"] <= 0.285  # five per cent of 0.3 are left to drift
    assert all(round(figure, 4) == figure for figure in facts["leakage"].values())
    told = {key for key in facts if key not in ("terms", "block.0")}
    assert not told & {"cells", "joint", "counts_of"}
    kept = folder / "private" / "locks" / f"{made.lock.checksum}.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    counts = sorted(cell[-1] for cell in json.loads(kept.read_text())["cells"])
    assert counts == sorted(group[-1] for group in MONDAY)


def test_rare_values_of_the_secret_are_not_named(folder):
    people(folder, [*MONDAY, ("very rare", "a", 3)])
    made = funnel.make_lock(write_policy(folder, **BASE | {"privacy": {"notion": "lip", "epsilon": 2.0}}))
    assert "very rare" not in made.path.read_text()
    assert made.lock.secrets == 3


@pytest.mark.parametrize("careless", ["0.3", "a", "\n"])
def test_a_changed_lock_is_not_used(folder, careless):
    """Any edit, even of a space at the end, is caught by the checksum; nothing is published."""
    path = funnel.make_lock(write_policy(folder, **BASE)).path
    text = path.read_text()
    changed = {"0.3": text.replace("epsilon: 0.3", "epsilon: 3.0"), "a": text.replace('[["a"]', '[["A"]'),
               "\n": text.replace("\n", " \n", 1)}[careless]  # fmt: skip
    assert changed != text
    path.write_text(changed)
    with pytest.raises(LockError, match="checksum") as caught:
        run(folder)
    assert caught.value.code == "lock-damaged"
    assert nothing_published(folder)
    assert funnel.make_lock(folder / "policy.yaml", force=True).written


def test_the_lock_of_another_policy_names_what_differs(folder):
    funnel.make_lock(write_policy(folder, **BASE))
    with pytest.raises(LockError, match=r"privacy.epsilon is 0.4, the lock has 0.3") as caught:
        run(folder, privacy={"notion": "lip", "epsilon": 0.4})
    assert caught.value.code == "lock-policy"
    agreement = funnel.check_lock(folder / "policy.yaml")
    assert not agreement.ok
    assert nothing_published(folder)
    # where the table lies, and where releases go, is not the lock's business
    run(folder, release={"to": "elsewhere", "private": "private"}, description="another sentence")


NEW = [*TUESDAY, ("s0", "new", 7), ("s1", "new", 8)]


def test_unseen_values_are_an_error(folder):
    funnel.make_lock(write_policy(folder, **BASE))
    people(folder, NEW)
    with pytest.raises(SourceError) as caught:
        run(folder)
    assert (caught.value.code, caught.value.values) == ("unseen-value", "'new' (15)")
    assert nothing_published(folder)


def test_rare_values_are_counted_with_those_of_them_that_are_dropped(folder):
    """What is rare is known once the table is read, and who is dropped once both columns are."""
    night = [("s0", "x0", "a", 60), ("s0", "x1", "b", 40), ("s1", "x0", "b", 50), ("s1", "x1", "a", 45),
             ("s0", "x2", "a", 6), ("s1", "x3", "b", 7)]  # fmt: skip
    terms = BASE | {"public": [{"name": "x", "rare": "other"}, {"name": "z", "unseen": "drop"}], "accept": "unbounded"}
    people(folder, night)
    policy = write_policy(folder, **terms)
    funnel.make_lock(policy)
    people(folder, night)
    assert "13 records together became another one\n" in funnel.run(policy, locked=True).text()
    people(folder, [*night, ("s0", "x2", "new", 4)])
    found = funnel.run(policy, locked=True)
    assert "17 records together became another one, counted with those of them that are dropped\n" in found.text()
    assert found.rows == 208


def test_unseen_values_are_dropped_and_counted(folder):
    changes = {"public": [{"name": "x", "unseen": "drop"}]}
    funnel.make_lock(write_policy(folder, **(BASE | changes)))
    people(folder, NEW)
    found = run(folder, **changes)
    assert found["rows"] == sum(group[-1] for group in TUESDAY)
    assert (found["locked"]["dropped"], found["locked"]["new"]) == (15, 1)
    assert sum(released(folder).values()) == found["rows"]
    drift = json.loads(next(folder.glob("private/2*/drift.json")).read_text())
    assert drift["unseen"] == [{"columns": ["x"], "value": ["new"], "rows": 15, "rule": "drop"}]
    assert "new (15 records, left out)" in next(folder.glob("private/2*/report.json")).read_text()
    assert "15 records" not in (folder / "releases/latest/report.json").read_text()
    audited(folder)


def test_a_top_of_fewer_values_than_there_are_makes_the_other_that_unseen_values_go_under(folder):
    """As the advice says; one of as many makes none."""
    few, all_ = ({"public": [{"name": "x", "top": top, "unseen": "other"}]} for top in (2, 3))
    with pytest.raises(LockError, match="`top` with fewer values than there are"):
        funnel.make_lock(write_policy(folder, **(BASE | all_)))
    funnel.make_lock(write_policy(folder, **(BASE | few)))


def test_unseen_values_go_under_other(folder):
    """`other` is there because the table has it; without it there is nothing to put them under."""
    changes = {"public": [{"name": "x", "unseen": "other"}]}
    with pytest.raises(LockError, match="no value `other`") as caught:
        funnel.make_lock(write_policy(folder, **(BASE | changes)))
    assert caught.value.exit_code == 1  # the policy is at fault: of `funnel lock`, 4 is about `estimate.budget`
    others = [("s0", "other", 40), ("s1", "other", 45)]
    people(folder, [*MONDAY, *others])
    funnel.make_lock(write_policy(folder, **(BASE | changes)))
    people(folder, [*MONDAY, ("s0", "other", 38), ("s1", "other", 42), ("s0", "new", 2), ("s1", "newer", 3)])
    found = run(folder, **changes)
    assert found["rows"] == sum(group[-1] for group in [*MONDAY, *others])
    assert (found["locked"]["pooled"], found["locked"]["new"]) == (5, 2)
    assert found["locked"]["distance"] == 0
    audited(folder)


def test_top_keeps_the_values_of_the_lock(folder):
    """What was frequent when the lock was made stays a value of its own, and what is frequent now is `other`."""
    rest = [("s0", "d", 20), ("s1", "d", 20), ("s0", "e", 15), ("s1", "e", 15)]
    people(folder, [*MONDAY, *rest])
    changes = {"public": [{"name": "x", "top": 3}]}
    funnel.make_lock(write_policy(folder, **(BASE | changes)))
    swapped = [(s, {"d": "c", "c": "d"}.get(x, x), rows) for s, x, rows in [*MONDAY, *rest]]
    people(folder, [(s, {"e": "brand new"}.get(x, x), rows) for s, x, rows in [*MONDAY, *rest]])
    assert run(folder, **changes)["locked"]["distance"] == 0
    assert set(released(folder)) <= {"a", "b", "c", "other"}
    people(folder, swapped)
    try:
        run(folder, **changes)
    except LockError as error:
        assert error.code == "lock-leaks"  # d is common now, and counted as other all the same
    assert set(released(folder)) <= {"a", "b", "c", "other"}


def test_values_that_are_gone_or_rare_tonight(folder):
    """A value of the lock without records, or with fewer than the minimum, changes nothing about the protocol."""
    funnel.make_lock(write_policy(folder, **BASE | {"privacy": {"notion": "lip", "epsilon": 2.0}}))
    for few in (3, 0):
        people(folder, [*(group for group in MONDAY if group[1] != "b"), ("s0", "b", few), ("s1", "b", few)])
        found = run(folder, privacy={"notion": "lip", "epsilon": 2.0})
        assert found["locked"]["gone"] == (few == 0)
        assert found["alphabet"]["public"] == 3
        audited(folder)


def test_new_and_vanished_secrets_are_measured_as_they_are(folder):
    generous = {"privacy": {"notion": "lip", "epsilon": 1.0}}
    funnel.make_lock(write_policy(folder, **(BASE | generous)), room=0.5)
    people(folder, [*TUESDAY, ("s2", "a", 30), ("s2", "b", 20), ("s2", "c", 20)])
    found = run(folder, **generous)
    assert (found["locked"]["new_secrets"], found["locked"]["gone_secrets"]) == (1, 0)
    assert found["alphabet"]["sensitive"] == 3
    audited(folder)


def test_missing_values_are_what_the_policy_says(folder):
    """A NULL is a value like any other where it is a category: known to the lock, or unseen."""
    changes = {"source": {"table": "people.parquet", "entity": "id", "missing": "category"}}
    missing = [("s0", None, 30), ("s1", None, 33)]
    funnel.make_lock(write_policy(folder, **(BASE | changes)))
    people(folder, [*MONDAY, *missing])
    with pytest.raises(SourceError, match="missing"):
        run(folder, **changes)
    funnel.make_lock(folder / "policy.yaml", force=True)
    assert run(folder, **changes)["rows"] == 733
    audited(folder)


TWO = [(s, x, z, 20 + 7 * (int(s[1]) + len(x) + len(z))) for s in ("s0", "s1") for x in ("a", "bb", "ccc")
       for z in ("p", "qq")]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("public", "privacy"),
    [
        (["x", "z"], {"notion": "lip", "epsilon": 0.5}),
        (["x", "z"], {"notion": "srlip", "epsilon": 0.5}),
        (["x", "z"], {"notion": "srlip", "epsilon": 0.5, "solve": "sequential"}),
        ([["x", "z"]], {"notion": "ldp", "epsilon": 0.5}),
        (["s", "x"], {"notion": "rldp", "epsilon": 1.0}),
        (["x", "z"], {"notion": "ldp-x", "epsilon": 1.0}),
        (["x", "z"], {"notion": "mutual-information", "epsilon": 0.02}),
    ],
)
def test_several_columns_under_every_notion(folder, public, privacy):
    """Blocks side by side, and those that a notion makes one: with a combination that is gone, and one that is new."""
    people(folder, TWO)
    dropping = [
        [{"name": one, "unseen": "drop"} for one in item]
        if isinstance(item, list)
        else {"name": item, "unseen": "drop"}
        for item in public
    ]
    mechanism = {"rldp": "polyopt", "mutual-information": "randomised-response"}.get(
        privacy["notion"], "optimal"
    )
    changes = {"public": dropping, "privacy": privacy, "mechanism": mechanism, "accept": "unbounded"}
    funnel.make_lock(write_policy(folder, **(BASE | changes)), room=0.3)
    people(
        folder,
        [group for group in TWO if group[1:3] != ("a", "p")] + [("s0", "new", "p", 4), ("s1", "a", "r", 4)],
    )
    found = run(folder, **changes)
    assert found["locked"]["new"] >= 1
    assert found["rows"] <= sum(group[-1] for group in TWO)
    assert sum(released(folder, "x").values()) == found["rows"]
    audited(folder)


@pytest.mark.long
def test_robust_policies_say_whether_tonight_lies_in_the_ball(folder):
    changes = {"public": ["s", "x"], "privacy": {"notion": "rldp", "epsilon": 1.5}, "mechanism": "polyopt"}
    funnel.make_lock(write_policy(folder, **(BASE | changes)), room=0.4)
    near = run(folder, **changes)["locked"]
    assert (near["inside"], near["divergence"]) == (True, 0)
    people(folder, TUESDAY)
    moved = run(folder, **changes)["locked"]
    p, q = (np.array([group[-1] for group in night]) / 1.0 for night in (MONDAY, TUESDAY))
    p, q = p / p.sum(), q / q.sum()
    assert moved["divergence"] == pytest.approx(math.log((p**2 / q).sum()))
    assert moved["inside"] is (moved["divergence"] <= moved["radius"])


@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism", ["auto", "conditional-reporting", "unary-encoding", "randomised-response"]
)
def test_every_kind_of_mechanism(folder, mechanism):
    changes = {"mechanism": mechanism, "privacy": {"notion": "lip", "epsilon": 0.5}}
    funnel.make_lock(write_policy(folder, **(BASE | changes)), room=0.2)
    people(folder, TUESDAY)
    found = run(folder, **changes)
    assert found["mechanism"] in (
        mechanism,
        *(["optimal", "conditional-reporting"] if mechanism == "auto" else []),
    )
    audited(folder)


def test_a_mechanism_that_reads_the_secret_needs_all_of_it(folder):
    """Its protocol names the values of the secret, so a new one, or one that has become rare, is no small matter."""
    changes = {"mechanism": "conditional-reporting", "privacy": {"notion": "lip", "epsilon": 1.0}}
    funnel.make_lock(write_policy(folder, **(BASE | changes)), room=0.2)
    people(folder, [*MONDAY, ("s2", "a", 40), ("s2", "b", 40), ("s2", "c", 40)])
    with pytest.raises(SourceError) as new:
        run(folder, **changes)
    people(
        folder,
        [(s, x, 4 if (s, x) == ("s0", "b") else rows) for s, x, rows in MONDAY if (s, x) != ("s1", "b")],
    )
    with pytest.raises(SourceError) as rare:
        run(folder, **changes)
    assert (new.value.code, rare.value.code) == ("unseen-value", "below-minimum")
    assert "lower `estimate.minimum`" in rare.value.advice and "funnel lock --force" in rare.value.advice
    changes["estimate__minimum"] = 1
    with pytest.raises(funnel.LockError) as other:
        run(folder, **changes)
    assert other.value.code == "lock-policy"
    funnel.make_lock(write_policy(folder, **(BASE | changes)), force=True)
    run(folder, **changes)


@pytest.mark.parametrize(("mechanism", "epsilon"), [("conditional-reporting", 0.5), ("invariant", 0.1)])
def test_weights_of_another_night_are_no_shares_of_tonights_nor_keep_its_totals(folder, mechanism, epsilon):
    """Nobody can tell whether they are, or do, so nothing is reckoned from that."""
    changes = {"mechanism": mechanism, "privacy": {"notion": "lip", "epsilon": epsilon}}
    path = write_policy(folder, **(BASE | changes))
    funnel.make_lock(path, room=0.2)
    made = funnel.run(path, locked=True)
    known, protocols = made.narrowed, made.protection.protocols
    evidence = Path(made.release).parents[1] / "private" / Path(made.release).name
    rows = np.array(json.loads((Path(made.release) / "released.json").read_bytes())["rows"])
    assert known == narrowed(made.joint, protocols, made.policy.estimate.minimum, released=rows)
    more = {"shown": mechanism == "conditional-reporting", "kept": mechanism == "invariant"}
    assert known != narrowed(made.joint, protocols, made.policy.estimate.minimum, released=rows, **more)
    page = json.loads((evidence / "report.json").read_text())
    assert page["evidence"]["narrowed"] == asdict(known)
    shown = " ".join((Path(made.release) / "report.html").read_text().split())
    said = "how the released values were distributed for each s when the protocol was fixed."
    assert (said in shown) == (mechanism == "conditional-reporting")


def test_without_a_key_or_the_counts_of_that_night(folder):
    """Fresh draws have no key, so nothing is said of the counts; without them the claim is measured all the same."""
    changes = {"source": {"table": "people.parquet"}, "draws": {"kind": "fresh"}}
    made = funnel.make_lock(write_policy(folder, **(BASE | changes)))
    assert made.lock.counts is None
    (folder / "private" / "locks" / f"{made.lock.checksum}.json").unlink()
    found = run(folder, **changes)
    assert (found["locked"]["known"], found["locked"]["distance"]) == (False, None)
    report = funnel.audit_release(folder / "releases" / "latest", folder / "private")
    assert report.passed
    assert "minimum" in {one.claim for one in report.unchecked}


@pytest.mark.parametrize("where", ["lock.yaml", "counts.json", "release.json"])
def test_the_auditor_finds_a_protocol_that_no_lock_fixed(folder, where):
    """A lock with other weights, counts of the lock's night below the minimum, or a manifest with another lock."""
    funnel.make_lock(write_policy(folder, **BASE))
    run(folder)
    private, release = next(folder.glob("private/2*")), folder / "releases" / "latest"
    path = (release if where == "release.json" else private) / where
    text = path.read_text()
    if where == "lock.yaml":
        body = re.sub(r'\nprotocol: "\w{4}', '\nprotocol: "0000', text).rpartition("checksum")[0]
        path.write_text(f'{body}checksum: "{hashlib.sha256(body.encode()).hexdigest()}"\n')
    else:
        evidence = json.loads(text)
        if where == "counts.json":
            evidence["locked"][0][0] = 2
        else:
            evidence["locked"]["checksum"] = "0" * 64
        path.write_bytes(canonical.encode(evidence))
    report = funnel.audit_release(release, folder / "private")
    failed = {one.claim for one in report.of("failed")}
    assert "lock" in failed, "its counts are as many records as the lock says"
    assert ("minimum" in failed) == (where == "counts.json")


@pytest.mark.parametrize("kept", ["all", "no counts of the lock"])
def test_releases_under_one_lock_tell_one_night_of_it(folder, kept):
    """What each says of that night's records is what the one before says, also where the lock's counts are lost."""
    made = funnel.make_lock(write_policy(folder, **BASE))
    nights = [run(folder) for _ in range(2)]
    if kept != "all":
        (folder / "private" / "locks" / f"{made.lock.checksum}.json").unlink()
    (*_, last), private = (Path(one["release"]) for one in nights), folder / "private"
    assert funnel.audit_release(last, private).passed

    def moved(file: dict) -> None:
        few, *_, many = sorted(range(len(file["locked"][0])), key=file["locked"][0].__getitem__)
        file["locked"][0][few] += 7
        file["locked"][0][many] -= 7

    edit(private / last.name / "counts.json", moved)
    seal([Forged(last, private / last.name)])
    failed = {one.claim for one in funnel.audit_release(last, private).of("failed")}
    assert failed == ({"lock", "drift"} if kept == "all" else {"lock"})


def test_the_mechanism_is_the_one_that_the_lock_names(folder):
    """Where the policy lets funnel choose, nothing else says which one it was."""
    funnel.make_lock(write_policy(folder, **BASE, mechanism="auto"))
    release, private = Path(run(folder, mechanism="auto")["release"]), folder / "private"
    assert funnel.audit_release(release, private).passed
    whole = (release / "release.json").read_bytes()
    compared = [{"mechanism": one, "normalised": None, "reason": "x"} for one in ("optimal", "randomised-response")]
    for change, claim in (({"mechanism": "non-robust"}, "lock"), ({"candidates": compared}, "policy-terms")):
        edit(release / "release.json", lambda old, new=change: old.update(new))
        seal([Forged(release, private / release.name)])
        assert claim in {one.claim for one in funnel.audit_release(release, private).of("failed")}
        (release / "release.json").write_bytes(whole)


def test_a_dry_run_under_a_lock_draws_nothing(folder):
    policy = write_policy(folder, **BASE)
    funnel.make_lock(policy)
    found = funnel.run(policy, locked=True, dry_run=True).as_dict()
    assert found["release"] is None
    assert found["locked"]["distance"] == 0
    assert nothing_published(folder)


@pytest.mark.parametrize(
    ("changes", "ways"),
    [
        ({"privacy": {"notion": "perfect"}}, ["A new lock", "Rotate", "Where each"]),
        (FRESH, ["Keep", "Widen", "A new lock", "Where each"]),
    ],
    ids=["a bound of nothing", "fresh draws"],
)
def test_drift_has_no_exit_that_would_be_refused(command, folder, changes, ways):
    """No other epsilon may stand under `perfect`, and no part of none is left to drift; fresh draws have no key."""
    policy = write_policy(folder, **BASE | changes)
    assert command("lock", policy).code == 0
    people(folder, FAR)
    refused = command("run", policy, "--locked")
    assert refused.code == 4
    told = re.findall(r"\n  \(\d\) ([A-Z][a-z]*(?: new lock| each)?)", refused.err)
    assert told == ways


@pytest.mark.parametrize("fresh", [{}, FRESH], ids=["permanent", "fresh"])
def test_a_lock_whose_run_is_refused_names_what_can_be_done(command, folder, fresh):
    """Draws that are made anew have no key to rotate; of other counts no lock pins the protocol of an earlier run."""
    policy = write_policy(folder, **BASE | fresh | {"budget": 0.3})
    assert command("run", policy).code == 0
    (line,) = [one for one in command("lock", policy).out.splitlines() if one.startswith("next run")]
    assert ("`funnel key rotate --locked`" in line) == (not fresh)
    assert ("releases made without a lock, where it was made for the same counts" in line) == (not fresh)
    again = json.loads(command("lock", "--json", policy).out)
    assert again["same"]
    assert again["refused"]["code"] == "budget"
    assert again["costs"][0]["after"] > 0.3
    assert command("run", "--locked", policy).code == 4
