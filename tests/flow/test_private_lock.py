"""A lock over a private estimate: noise drawn once, for many nights, none of which tells of its own counts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import funnel
from funnel.errors import FunnelError, LockError
from funnel.format.canonical import encode
from funnel.format.journal import EstimateEntry, ReleaseEntry
from funnel.ledger import estimates
from funnel.ledger.journal import Journal
from funnel.plan import protect as protecting
from tests.support.estimating import PEOPLE, VALUES, as_published, claims, policy, text
from tests.support.ledger import rechained

FAR = "SELECT 's' || (i % 2) AS s, 'x' || (i % 2) AS x FROM range(600) t(i)"
"""As many people, whose secret shows in x."""
NEAR = PEOPLE.replace("hash(i)", "hash(i + 1)")
LIP = {"notion": "lip", "epsilon": 0.5}


def night(folder: Path, query: str) -> None:
    duckdb.sql(f"COPY ({query}) TO '{folder}/table.parquet'")


def entries(folder: Path, kind: type) -> list:
    """The entries of one kind in the ledger."""
    found = (line.entry for line in Journal(folder / "private").lines())
    return [entry for entry in found if isinstance(entry, kind)]


def latest(folder: Path) -> tuple[Path, Path]:
    """The newest release, and its private folder."""
    release = (folder / "releases" / "latest").resolve()
    return release, folder / "private" / release.name


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A lock, and one night that is far from that of the lock."""
    folder = tmp_path_factory.mktemp("locked")
    path = policy(folder, privacy=LIP, estimate__budget=1.5)
    funnel.make_lock(path)
    night(folder, FAR)
    funnel.run(path, locked=True)
    return folder


@pytest.fixture
def folder(tmp_path, made) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    return tmp_path


def test_a_night_spends_nothing_and_estimates_and_solves_nothing(folder, monkeypatch):
    def never(*arguments: object, **named: object) -> None:
        raise AssertionError("a night under a lock estimates or solves")

    monkeypatch.setattr(estimates, "_noisy", never)
    monkeypatch.setattr(protecting, "choose", never)
    night(folder, NEAR)
    funnel.run(folder / "policy.yaml", locked=True)
    assert len(entries(folder, EstimateEntry)) == 1
    assert len({path.read_bytes() for path in folder.glob("releases/2*/protocol.json")}) == 1
    found = funnel.audit_history(folder / "releases", folder / "private")
    assert found.passed, found.text()
    told = claims(found.releases[-1])
    assert [told[one][0] for one in ("lock", "estimate-noise", "estimate-spent", "minimum")] == ["passed"] * 4
    estimate = text(latest(folder)[0], "release.json")["estimate"]
    assert (estimate["estimates"], estimate["spent"]) == (1, 1.0)
    assert {entry.lock for entry in entries(folder, ReleaseEntry)} == {
        text(latest(folder)[0], "release.json")["locked"]["checksum"]
    }


def test_nothing_published_or_said_follows_from_tonights_counts_but_the_drawn_values(tmp_path, made):
    """Two tables on the same night after the same history: one manifest, one report, one protocol, one summary."""
    kept = []
    for query in (NEAR, FAR):
        home = tmp_path / str(len(kept))
        shutil.copytree(made, home, symlinks=True)
        night(home, query)
        said = funnel.run(home / "policy.yaml", locked=True)
        release = Path(said.release)
        summary = said.as_dict() | {"release": None}
        shown = [line for line in said.text().splitlines() if not line.startswith(("released", "report"))]
        kept.append((*as_published(release, home.parent / "0" / "releases" / "latest"), summary, shown))
    assert kept[0] == kept[1]


def test_a_night_that_is_far_from_the_lock_is_released_and_its_drift_stays_private(made):
    """A stop would be one fact a night about tonight's counts; the operator reads it in the private folder."""
    release, private = latest(made)
    drift = text(private, "drift.json")
    assert drift["leakage_now"] is None or drift["leakage_now"] > LIP["epsilon"]
    assert drift["distance"] > 0.1
    moved = "of the distribution (values as drawn for) has moved, noise included"
    assert moved in (private / "report.json").read_text()
    published = "".join(path.read_text() for path in release.glob("*.[jh]*"))
    assert "has moved" not in published
    assert "nor does any release wait for it" in published
    found = funnel.audit_release(release, made / "private")
    assert found.passed, found.text()
    assert "above ε" in claims(found)["leakage-true"][1]


def test_an_unchanged_person_answers_as_before(tmp_path, key, monkeypatch):
    """Permanent draws under a lock: one more night adds nothing to what all of them tell together."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    people = PEOPLE.replace("SELECT", "SELECT i AS id,")
    path = policy(
        tmp_path,
        people,
        privacy=LIP,
        source={"table": "table.parquet", "entity": "id"},
        draws={"key": "env:FUNNEL_KEY"},
    )
    funnel.make_lock(path)
    figures = [funnel.run(path, locked=True).as_dict()["composed"]["figure"] for _ in range(2)]
    assert figures[0] == figures[1]
    night(tmp_path, people.replace("600", "700"))
    assert funnel.run(path, locked=True).as_dict()["composed"]["figure"] == figures[0]
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed


def test_a_lock_takes_the_estimate_that_stands_and_so_does_the_next(tmp_path):
    """What a dry run showed, a lock pins, another lock and a run are made from: one entry, one figure."""
    path = policy(tmp_path, privacy=LIP, estimate__budget=1.0)
    shown = funnel.run(path, dry_run=True).as_dict()
    locked = funnel.make_lock(path).lock
    other = policy(tmp_path, privacy=LIP | {"epsilon": 0.7}, estimate__budget=1.0)
    assert funnel.make_lock(other, force=True).lock.noisy == locked.noisy
    funnel.run(other)
    funnel.run(other, locked=True)
    (entry,) = entries(tmp_path, EstimateEntry)
    assert entry.name == locked.estimated == shown["estimate"]["name"]
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed


def test_a_lock_of_rows_with_names_is_made_in_a_folder_that_holds_nothing_yet(tmp_path):
    """Their keys are kept beside where counts of other locks are; no counts are, over a private estimate."""
    named = PEOPLE.replace("SELECT", "SELECT i AS id,")
    path = policy(tmp_path, named, privacy=LIP, release__identify="id")
    made = funnel.make_lock(path).lock
    assert [one.name for one in (tmp_path / "private" / "locks").iterdir()] == [f"{made.checksum}.parquet"]
    assert (tmp_path / "private" / "locks").stat().st_mode & 0o777 == 0o700
    funnel.run(path, locked=True)
    assert len(entries(tmp_path, EstimateEntry)) == 1
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed


def test_a_lock_does_not_say_that_counts_were_estimated_when_it_was_made(tmp_path):
    """Those that it took are up to twelve hours older, and may be of another table than that night's."""
    path = policy(tmp_path, privacy=LIP, estimate__minimum=100)
    funnel.run(path, dry_run=True)
    night(tmp_path, "SELECT 's' || (i % 2) AS s, 'x' || (i % 2 + i // 599) AS x FROM range(600) t(i)")
    funnel.make_lock(path)
    page = " ".join((Path(funnel.run(path, locked=True).release) / "report.html").read_text().split())
    assert "or up to twelve hours before it: this release spent nothing more" in page
    assert "at least 100 records in these counts, noise included" in page
    assert "night that the protocol was fixed" not in page


def test_a_lock_over_a_private_estimate_is_not_kept_and_advice_is_not_what_was_done(tmp_path):
    funnel.make_lock(policy(tmp_path, privacy=LIP))
    with pytest.raises(LockError, match="never drifts") as refused:
        funnel.make_lock(policy(tmp_path, privacy=LIP | {"epsilon": 2.0}), keep=True)
    assert refused.value.advice == "`funnel lock --force` makes another."


PUBLIC = {"s": ["s0", "s1"], "x": VALUES["x"]}


@pytest.mark.parametrize(
    ("public", "privacy", "mechanism"),
    [
        (["x", "z"], {"notion": "srlip", "epsilon": 1.0, "solve": "joint"}, "optimal"),
        (["x", "z"], {"notion": "ldp", "epsilon": 1.0}, "auto"),
        (["s", "x"], {"notion": "ldp-x", "epsilon": 1.0}, "optimal"),
        (["x"], {"notion": "mutual-information", "epsilon": 0.1}, "randomised-response"),
        (["x"], {"notion": "lip", "epsilon": 1.0}, "conditional-reporting"),
        (["x"], {"notion": "lip", "epsilon": 1.0}, "unary-encoding"),
        (["s", "x"], {"notion": "rldp", "epsilon": 1.0}, "polyopt"),
    ],
)
def test_every_notion_and_kind_of_mechanism(tmp_path, public, privacy, mechanism):
    """Locked on one night; on the next one value of the secret has nobody, and the auditor agrees all the same."""
    people = PEOPLE.replace("range(600)", "range(6000)").replace(
        " FROM", ", 'z' || (hash(i) // 5 % 2) AS z FROM"
    )
    values = PUBLIC | ({"z": ["z0", "z1"]} if "z" in public else {})
    path = policy(
        tmp_path, people, public=public, privacy=privacy, mechanism=mechanism, estimate__values=values
    )
    made = funnel.make_lock(path)
    assert (made.lock.rows, made.lock.room) == (6000, 0.0)
    night(tmp_path, people.replace("(i % 2)", "0"))
    funnel.run(path, locked=True)
    release, private = latest(tmp_path)
    found = funnel.audit_release(release, tmp_path / "private")
    assert found.passed, found.text()
    assert text(release, "release.json")["leakage"] == made.lock.leakage
    assert sum(text(private, "counts.json")["private"]["records"]) == 6000


def test_a_lock_that_is_there_is_kept_and_another_one_spends_again(folder):
    path = folder / "policy.yaml"
    whole = (folder / "policy.lock.yaml").read_bytes()
    again = funnel.make_lock(path)
    assert (again.same, again.written, "up to date" in again.text()) == (True, False, True)
    assert not funnel.make_lock(path, room=0.1).same
    laxer = policy(folder, privacy=LIP | {"epsilon": 0.7}, estimate__budget=1.5)
    other = funnel.make_lock(laxer)
    assert (other.same, other.written, other.difference.verdict) == (False, False, "weaker")
    assert "nothing was estimated" in other.text()
    assert (folder / "policy.lock.yaml").read_bytes() == whole
    with pytest.raises(FunnelError) as refused:
        funnel.make_lock(laxer, force=True)
    assert (refused.value.code, "funnel lock" in refused.value.advice) == ("budget", True)
    funnel.make_lock(policy(folder, privacy=LIP | {"epsilon": 0.7}, estimate__budget=2.0), force=True)
    assert len(entries(folder, EstimateEntry)) == 2, "the table lies elsewhere, so that another one is counted"
    funnel.run(folder / "policy.yaml", locked=True)
    assert funnel.audit_history(folder / "releases", folder / "private").passed


def test_the_lock_names_the_noisy_counts_by_a_hash_and_holds_none(folder):
    kept = json.loads(next((folder / "private" / "estimates").iterdir()).read_text())
    written = (folder / "policy.lock.yaml").read_text()
    assert sum(kept["cells"][0]) == 600
    assert kept["cells"][0] != kept["cells"][1]
    assert "\ncells" not in written
    assert 'noisy: "' in written
    assert "counts: null" in written


def test_a_dry_run_under_a_lock_tells_no_drift(folder):
    said = funnel.run(folder / "policy.yaml", locked=True, dry_run=True)
    assert said.as_dict()["locked"].keys() == {"lock", "made", "told"}
    assert "not told" in said.text()
    assert len(entries(folder, EstimateEntry)) == 1


def gone(folder: Path) -> None:
    shutil.rmtree(folder / "private" / "estimates")


def exchanged(folder: Path) -> None:
    kept = next((folder / "private" / "estimates").iterdir())
    content = json.loads(kept.read_text())
    content["cells"][1][0] += 1
    kept.write_text(json.dumps(content))


def forgotten(folder: Path) -> None:
    for name in ("ledger.jsonl", "ledger.head"):
        (folder / "private" / name).unlink()


@pytest.mark.parametrize(
    ("damage", "code"), [(gone, "lock-damaged"), (exchanged, "lock-damaged"), (forgotten, "ledger")]
)
def test_without_what_the_lock_was_made_from_no_night_is_released(folder, damage, code):
    before = sorted((folder / "releases").iterdir())
    damage(folder)
    with pytest.raises(FunnelError) as refused:
        funnel.run(folder / "policy.yaml", locked=True)
    assert refused.value.code == code
    assert "backup" in refused.value.advice
    assert sorted((folder / "releases").iterdir()) == before


def other_noise(kept: dict) -> None:
    """The same counts at last, of other noise: both counts and noise of one cell moved by one."""
    cell = kept["private"]["cells"][0]
    noise = cell[3] - cell[4] + 1
    cell[3:] = [max(noise, 0), max(-noise, 0)]
    kept["cells"] = [[s, x, max(n + up - down, 1)] for s, x, n, up, down in kept["private"]["cells"]]


def other_people(kept: dict) -> None:
    records = kept["private"]["records"]
    most = records.index(max(records))
    records[most] -= 1
    records[most - 1] += 1


def one_more(kept: dict) -> None:
    kept["private"]["records"][0] += 1


@pytest.mark.parametrize(
    ("change", "claim"),
    [(other_noise, "lock"), (other_people, "draw-inputs"), (one_more, "counts")],
)
def test_evidence_that_is_not_of_the_lock_is_found(folder, change: Callable[[dict], None], claim: str):
    release, private = latest(folder)
    kept = text(private, "counts.json")
    change(kept)
    (private / "counts.json").write_bytes(encode(kept))
    assert claims(funnel.audit_release(release, folder / "private"))[claim][0] == "failed"


def test_an_estimate_or_an_entry_of_another_lock_is_found(folder):
    release, _ = latest(folder)
    private = folder / "private"
    spent, entry = (line.entry for line in Journal(private).lines())
    for lock in ("0" * 64, None):
        rechained(private, [spent, replace(entry, lock=lock)])
        assert claims(funnel.audit_release(release, private))["ledger-entry"][0] == "failed"
    rechained(private, [replace(spent, name="lock-20200101T000000Z-abcdef"), entry])
    assert claims(funnel.audit_release(release, private))["estimate-spent"][0] == "failed"
    rechained(private, [spent, entry, replace(spent, name="another")])
    assert funnel.audit_release(release, private).passed, "others may estimate after the lock"
