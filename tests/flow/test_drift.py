"""What drift.json says under a lock is held to the lock, to the counts of its night and to those of the release."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import funnel
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
    seal([forged])
    found = audited(forged)
    assert missing(found) == {"drift"} and "1 was not checked" in found.verdict
    assert detail(found, "drift").endswith("were not kept, and they are here")


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
