"""What drift.json says under a lock is held to the lock, to the counts of its night and to those of the release."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

import funnel
from funnel.audit.extras import drift
from funnel.audit.kernel.verdict import Broken
from funnel.format.drift import Unseen
from tests.support.audited import detail, failures, missing
from tests.support.forging import Forged, Json, edit, read, seal
from tests.support.policies import write_policy

THEN = "SELECT 's' || (i % 2) AS s, 'x' || (hash(i) % 4) AS x FROM range(900) t(i)"
NOW = "SELECT 's' || (i % 2) AS s, 'x' || least(hash(i + 1) % 4, 2 + i % 7) AS x FROM range({}) t(i)"
PLAIN: Json = {
    "source": {"table": "table.parquet"}, "sensitive": ["s"], "public": ["x"], "draws": None,
    "privacy": {"notion": "lip", "epsilon": 0.5},
}  # fmt: skip
KINDS: dict[str, Json] = {
    "lip": {},
    "rldp": {"privacy": {"notion": "rldp", "epsilon": 1.5}, "mechanism": "polyopt"},
    "private": {"estimate": {"kind": "private", "epsilon": 1.0, "minimum": 1,
                             "values": {"s": ["s0", "s1", "never"], "x": ["x0", "x1", "x2", "x3"]}}},
}  # fmt: skip
RECORDS = {"lip": 905, "rldp": 640, "private": 905}
"""Of the night; a confidence asks for a wider set around fewer of them than the lock's was."""
LIES: dict[str, Callable[[Json], object]] = {
    "less leakage now": lambda old: old.update(leakage_now=(old["leakage_now"] or 0.1) / 2),
    "more leakage now": lambda old: old.update(leakage_now=(old["leakage_now"] or 0.1) * 2 + 0.1),
    "no bound now": lambda old: old.update(leakage_now=None),
    "less leakage then": lambda old: old.update(leakage_then=(old["leakage_then"] or 0.1) / 2),
    "another night": lambda old: old.update(made="2020-01-01T00:00:00Z"),
    "fewer records then": lambda old: old.update(rows_then=99),
    "fewer records now": lambda old: old.update(rows_now=99),
    "nothing moved": lambda old: old.update(distance=0.0),
    "no divergence": lambda old: old.update(divergence=0.0),
    "a wider set": lambda old: old.update(radius=5.0),
    "inside the set or not": lambda old: old.update(inside=not old["inside"]),
    "a value that is gone": lambda old: old.update(gone=[["x0"]]),
    "a secret that is gone": lambda old: old.update(gone_secrets=[["s0"]]),
    "secrets that nobody knows": lambda old: old.update(new_secrets=None),
    "noise": lambda old: old.update(noisy=not old["noisy"]),
    "keys of rows that have none": lambda old: old.update(new_keys=0, gone_keys=0),
}


@pytest.fixture(scope="module", params=KINDS)
def made(request, tmp_path_factory) -> Path:
    """A night under a lock that was made on another one."""
    folder = tmp_path_factory.mktemp(request.param)
    for query in (THEN, NOW.format(RECORDS[request.param])):
        duckdb.sql(f"COPY ({query}) TO '{folder}/table.parquet'")
        if query == THEN:
            funnel.make_lock(write_policy(folder, **(PLAIN | KINDS[request.param])), room=0.2)
    funnel.run(folder / "policy.yaml", locked=True)
    return folder


def night(folder: Path) -> Forged:
    release = (folder / "releases" / "latest").resolve()
    return Forged(release, folder / "private" / release.name)


def audited(one: Forged) -> funnel.AuditReport:
    return funnel.audit_release(one.folder, one.kept)


def test_what_is_said_of_drift_holds(made):
    found = audited(night(made))
    assert found.passed, found.text()
    assert detail(found, "drift").endswith("how far apart, and leakage then, worked out again")


@pytest.mark.parametrize("lie", LIES)
def test_another_figure_of_drift_fails(tmp_path, made, lie):
    """The report repeats it, unless it has no words for it, and every hash fits."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)
    before = (forged.kept / "drift.json").read_bytes()
    edit(forged.kept / "drift.json", LIES[lie])
    assert (forged.kept / "drift.json").read_bytes() != before
    seal([forged])
    assert failures(audited(forged)) - {"report"} == {"drift"}


def test_the_counts_of_the_lock_are_those_that_are_kept_of_its_night(tmp_path, made):
    """Of these the minimum was promised; those of a private estimate are noisy."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)

    def even(old: Json) -> None:
        (numbers,) = old["locked"]
        numbers[0], numbers[1] = numbers[0] + 1, numbers[1] - 1

    edit(forged.kept / "counts.json", even)
    seal([forged])
    assert failures(audited(forged)) == {"drift"}


def test_counts_that_are_said_not_to_be_kept_and_are_here_leave_the_claim_unchecked(tmp_path, made):
    """They may have been put back since; and how far the table moved may be hidden so."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)
    nobody = dict.fromkeys(("distance", "divergence", "inside", "new_secrets", "gone_secrets"))
    edit(forged.kept / "drift.json", lambda old: old.update(nobody, known=False))
    also, noisy = set[str](), json.loads((forged.kept / "drift.json").read_bytes())["noisy"]
    if json.loads((forged.kept / "counts.json").read_bytes())["locked"] is not None:
        also = set() if noisy else {"minimum"}
        seal([forged])
        assert failures(audited(forged)) == {"drift"}  # counts that nobody knew are nowhere else
        edit(forged.kept / "counts.json", lambda old: old.update(locked=None))
    seal([forged])
    found = audited(forged)
    assert missing(found) == {"drift"} | also and f"{1 + len(also)} w" in found.verdict
    assert detail(found, "drift").endswith("were not kept, and they are here")


def test_what_a_release_that_has_gone_said_of_its_night_is_looked_at_again(tmp_path, made):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)
    (tmp_path / "gone").mkdir()
    forged.folder.rename(tmp_path / "gone" / forged.folder.name)
    assert told_of_gone(forged)[0] == "passed"
    edit(forged.kept / "drift.json", lambda old: old.update(rows_now=99))
    seal([Forged(tmp_path / "gone" / forged.folder.name, forged.kept)])
    status, told = told_of_gone(forged)
    assert status == "failed" and "drift.json: records" in told


def told_of_gone(forged: Forged) -> tuple[str, str]:
    """What the audit of its folder finds of a release that is not in it any more."""
    found = funnel.audit_history(forged.folder.parent, forged.private).findings
    return next((one.status, one.detail) for one in found if one.claim == "history-kept")


def test_without_the_counts_of_the_lock_what_they_say_is_not_compared(tmp_path, made):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)
    shutil.rmtree(forged.private / "locks", ignore_errors=True)
    noisy = json.loads((forged.kept / "drift.json").read_bytes())["noisy"]
    found = audited(forged)
    assert found.passed and missing(found) == (set() if noisy else {"drift"})
    told = "worked out again" if noisy else "not kept any more"
    assert detail(found, "drift").endswith(told)
    edit(forged.kept / "drift.json", lambda old: old.update(distance=0.5))
    seal([forged])
    assert failures(audited(forged)) == ({"drift"} if noisy else set())


@pytest.mark.parametrize("part", [0.5, 2.0])
def test_a_lock_that_told_another_leakage_than_its_counts_show_fails(tmp_path, made, part):
    """The report repeats what it says of then; under rldp more is allowed to be said."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)
    old = read(forged.kept / "drift.json")
    lock, then = forged.kept / "lock.yaml", old["leakage_then"]
    lock.write_text(lock.read_text().replace(f"  {old['measure']}: {then}", f"  {old['measure']}: {then * part}"))
    edit(forged.kept / "drift.json", lambda drift: drift.update(leakage_then=then * part))
    seal([forged])
    checksum = read(forged.folder / "release.json")["locked"]["checksum"]
    if not old["noisy"]:
        kept = (forged.private / "locks" / f"{old['lock']}.json").rename(forged.private / "locks" / f"{checksum}.json")
        edit(kept, lambda counts: counts.update(lock=checksum))
    plan = forged.kept / "plan.json"
    plan.write_text(plan.read_text().replace(old["lock"], checksum))
    seal([forged])
    more = part > 1 and old["measure"] == "rldp"
    assert failures(audited(forged)) == (set() if more else {"drift"})


@pytest.fixture(scope="module")
def strange(tmp_path_factory) -> Path:
    """A night with values that its lock does not know: of x they go under `other`, of z they are left out."""
    folder = tmp_path_factory.mktemp("strange")
    x, z = "['p', 'q', 'other'][1 + CAST(hash(i) % 3 AS INT)]", "'z' || (hash(i + 1) % 2)"
    rows = f"SELECT 's' || (i % 2) AS s, {x} AS x, {z} AS z FROM range(600) t(i)"
    terms = PLAIN | {"public": [{"name": "x", "unseen": "other"}, {"name": "z", "unseen": "drop"}],
                     "privacy": {"notion": "ldp-x", "epsilon": 1.0}, "accept": "unbounded"}  # fmt: skip
    for more in ("", "UNION ALL VALUES ('s0', 'new', 'z0'), ('s1', 'new', 'z9'), ('s1', 'p', 'z8')"):
        duckdb.sql(f"COPY ({rows} {more}) TO '{folder}/table.parquet'")
        if not more:
            funnel.make_lock(write_policy(folder, **terms))
    funnel.run(folder / "policy.yaml", locked=True)
    return folder


BECAME: dict[str, Callable[[list[Json]], object]] = {
    "left out, not under other": lambda new: new[0].update(rule="drop"),
    "under other, not left out": lambda new: new[-1].update(rule="other"),
    "no column's": lambda new: new[0].update(columns=[]),
    "of another column": lambda new: new[0].update(columns=["z"]),
    "known": lambda new: new[-1].update(value=["z0"]),
    "twice": lambda new: new.append(new[-1]),
    "more that are left out": lambda new: new[-1].update(rows=40),
    "nothing": lambda new: new.clear(),
}


def test_what_became_of_values_that_the_lock_does_not_know_holds(strange):
    found, told = audited(night(strange)), read(night(strange).kept / "drift.json")
    assert found.passed, found.text()
    assert [(*one["columns"], *one["value"], one["rows"], one["rule"]) for one in told["unseen"]] == [
        ("x", "new", 2, "other"), ("z", "z8", 1, "drop"), ("z", "z9", 1, "drop"),
    ]  # fmt: skip


@pytest.mark.parametrize("lie", BECAME)
def test_something_else_that_became_of_them_fails(tmp_path, strange, lie):
    shutil.copytree(strange, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)
    edit(forged.kept / "drift.json", lambda old: BECAME[lie](old["unseen"]))
    seal([forged])
    assert failures(audited(forged)) - {"report"} == {"drift"}


def test_a_night_that_let_refused_values_pass_is_none(command, tmp_path, strange):
    """No run would write it: it is told as a file that is not of its format, by the report, too."""
    shutil.copytree(strange, tmp_path, dirs_exist_ok=True, symlinks=True)
    forged = night(tmp_path)
    seal([forged])
    edit(forged.kept / "drift.json", lambda old: old["unseen"][0].update(rule="error"))
    told = command("report", forged.folder, "--private", forged.kept, "--to", tmp_path / "pages")
    assert told.code not in (0, 3) and "drift.json" in told.err


@pytest.mark.parametrize(("rules", "holds"), [(("error", "drop"), True), (("error", "error"), False)])
def test_rows_in_no_cell_are_left_out_where_a_column_of_the_block_says_so(rules, holds):
    """By default a lock refuses them, and then no drift tells of any."""
    block = SimpleNamespace(name="w", columns=[SimpleNamespace(unseen=rule) for rule in rules])
    terms = SimpleNamespace(wide=[block], public=[[SimpleNamespace(name="w", unseen="error")]])
    known = SimpleNamespace(columns=("w",), values=[("1",), ("2",)])
    opened = SimpleNamespace(terms=terms, alphabets=[known], staged=True)
    found = SimpleNamespace(unseen=[Unseen(("w",), ("0",), 1, "drop")])
    with nullcontext() if holds else pytest.raises(Broken, match="what became of a new value"):
        drift._check_unseen(opened, found)


@pytest.mark.parametrize(
    "asked",
    [{"confidence": 0.95}, {"confidence": 1e-12}, {"radius": 0.01}, {}],
    ids=["confidence", "hardly any", "radius", "lip"],
)
def test_the_set_of_a_lock_is_as_large_as_its_policy_and_records_ask_for(asked: Json, tmp_path: Path) -> None:
    """Wider, the night lies inside it; smaller, less was said to leak then."""
    robust: Json = {"privacy": {"notion": "rldp", "epsilon": 1.5} | asked, "mechanism": "polyopt"}
    duckdb.sql(f"COPY ({THEN}) TO '{tmp_path}/table.parquet'")
    funnel.make_lock(write_policy(tmp_path, **(PLAIN | robust if asked else PLAIN)), room=0.2)
    funnel.run(tmp_path / "policy.yaml", locked=True)
    one = night(tmp_path)
    assert funnel.audit_release(one.folder, one.private).passed
    lock, told = one.kept / "lock.yaml", f"  radius: {read(one.kept / 'drift.json')['radius']}\n"
    text = lock.read_text()
    assert (told in text) == bool(asked)
    lock.write_text(text.replace(told, "  radius: 0.4\n") if asked else
                    text.replace("parameters: {}\n", "parameters:\n  radius: 0.4\n"))  # fmt: skip
    edit(one.kept / "drift.json", lambda old: old.update(radius=0.4, inside=True))
    old = read(one.folder / "release.json")["locked"]["checksum"]
    seal([one])
    new = read(one.folder / "release.json")["locked"]["checksum"]
    (kept,) = (one.private / "locks").glob("*.json")
    edit(kept, lambda file: file.update(lock=new))
    kept.rename(kept.with_name(f"{new}.json"))
    edit(one.kept / "plan.json", lambda file: [step.update(lock=new) for step in file["steps"] if "lock" in step])
    seal([one])
    assert old != new
    found = funnel.audit_release(one.folder, one.private)
    assert failures(found) == ({"drift"} if "confidence" in asked else {"lock", "drift"} if asked else {"lock"})
    assert ("the radius is not what the lock’s records ask for" in found.text()) == ("confidence" in asked)
