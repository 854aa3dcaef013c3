"""Many releases under one ledger, with the real commands: what they leak together, the budget, the audit of all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import funnel
from funnel.errors import LedgerError
from funnel.format.journal import ReleaseEntry
from funnel.ledger.journal import Journal
from funnel.plan import prepare
from funnel.plan import run as running
from tests.support.ledger import rechained
from tests.support.people import FRESH, MONDAY, SMALL, TUESDAY, ceiling, people
from tests.support.policies import write_policy


@pytest.fixture
def night(tmp_path, key, monkeypatch):
    """One more release of a table of people, in this process; returns what `run --json` prints."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def run(counts=MONDAY, **changes) -> dict[str, Any]:
        people(tmp_path, counts)
        return funnel.run(write_policy(tmp_path, **(SMALL | changes))).as_dict()

    return run


@pytest.mark.long
def test_two_nights_a_new_key_and_a_new_policy(command, night, tmp_path, monkeypatch):
    """Repeat, change, rotate, change the policy; look at the ledger with the commands; audit all; tamper."""
    first, again, changed = night(), night(), night(TUESDAY)
    people(tmp_path, TUESDAY)
    path, new = write_policy(tmp_path, **SMALL), {"FUNNEL_KEY": funnel.new_key()}
    assert command("key", "rotate", path, "--accept", env=new).code == 0
    rotated = command("run", path, "--json", env=new).json
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    funnel.rotate_key(path, accept=True)
    policy = night(TUESDAY, privacy={"notion": "mutual-information", "epsilon": 0.002})
    figures = [one["composed"]["figure"] for one in (first, again, changed, rotated)]
    assert figures[0] == figures[1] < figures[2] <= figures[3] <= ceiling(TUESDAY) + 1e-4
    # What who sees the whole table learns depends on the draws; all else that is said does not.
    told = [[one for one in night["warnings"] if "whole table" not in one] for night in (first, again, changed)]
    assert told[:2] == [[], []]
    assert "release 3" in told[2][0]
    assert policy["composed"]["measure"] == "mutual_information"

    path = write_policy(tmp_path, **SMALL, budget=5.0)
    shown = command("ledger", path)
    assert (shown.code, shown.err) == (0, "")
    assert "an unbroken chain" in shown.out
    assert "budget     5 nats" in shown.out
    told = funnel.read_ledger(path).as_dict()
    assert [one["composed"] for one in told["releases"]] == [*figures, policy["composed"]["figure"]]
    assert told["left"] == pytest.approx(5 - figures[3], abs=1e-9)
    assert [one["added"] for one in told["releases"]][:4] == pytest.approx(
        [figures[0], 0, figures[2] - figures[1], figures[3] - figures[2]], abs=1e-9
    )
    assert len({one["key"] for one in told["releases"]}) == 3

    audit = command("audit", tmp_path / "releases", "--private", tmp_path / "private", "--json")
    assert audit.code == 0, audit.out
    composed = [
        finding
        for release in audit.json["releases"]
        for finding in release["findings"]
        if finding["claim"] == "ledger-composed"
    ]
    assert [finding["status"] for finding in composed] == ["passed"] * 5
    tamper(tmp_path)


def failed(folder: Path) -> set[str]:
    """Claims that fail, of any release or of all."""
    found = funnel.audit_history(folder / "releases", folder / "private")
    every = [*found.findings, *(finding for one in found.releases for finding in one.findings)]
    claims = {finding.claim for finding in every if finding.status == "failed"}
    assert found.passed == (not claims)
    assert ("FAIL" in found.verdict) == bool(claims)
    return claims


def lowered(entry: ReleaseEntry) -> ReleaseEntry:
    """With less told of its own promise."""
    own, *others = entry.promises
    return replace(entry, promises=(replace(own, together=replace(own.together, figure=0.2, measured=0.2)), *others))


def tamper(folder: Path) -> None:
    """Entries replayed, dropped, moved and changed, each time with a chain and a head that fit."""
    private = folder / "private"
    whole = Journal(private).releases()
    lower = lowered(whole[2])
    for entries, claims in (
        ([*whole, whole[0]], {"history-entered", "history-order", "ledger-entry"}),
        (whole[:-1], {"history-entered", "ledger-entry"}),
        (
            [whole[1], whole[0], *whole[2:]],
            {"history-order", "ledger-composed", "ledger-entry", "ledger-identity", "ledger-kept", "ledger-promises"},
        ),
        ([*whole[:2], lower, *whole[3:]], {"ledger-entry", "ledger-composed", "ledger-kept"}),
    ):
        rechained(private, entries)
        assert failed(folder) == claims
    rechained(private, whole)
    assert failed(folder) == set()
    for kept in (private / "protocols").iterdir():
        kept.write_text(kept.read_text().replace("rule", "Rule", 1))
    assert failed(folder) == {"ledger-composed", "ledger-identity", "ledger-kept"}


def test_no_more_of_a_budget_is_left_than_a_release_may_add(night, tmp_path):
    used = night(budget=0.5)["composed"]["figure"]
    for budget, left in ((used + 0.00006, 0.0), (used + 0.00016, 0.0001), (used, 0.0), (used + 0.0001, 0.0001)):
        told = funnel.read_ledger(write_policy(tmp_path, **SMALL, budget=round(budget, 5)))
        assert told.left == left
        assert told.as_dict()["left"] == left


def test_the_budget_refuses_before_anything_is_drawn(command, night, tmp_path):
    first = night(budget=0.5)
    people(tmp_path, TUESDAY)
    path = write_policy(tmp_path, **SMALL, budget=0.5)
    before = sorted(file.name for file in tmp_path.rglob("*"))
    refused = command("run", path, "--json")
    assert refused.code == refused.json["code"] == 4
    assert refused.json["error"]["code"] == "budget"
    assert "together with the 1 before it would leak" in refused.json["error"]["message"]
    assert "[budget]" in refused.err
    with pytest.raises(LedgerError, match="the budget is"):
        funnel.run(path, dry_run=True)
    assert sorted(file.name for file in tmp_path.rglob("*")) == before
    assert funnel.read_ledger(path).left == pytest.approx(0.5 - first["composed"]["figure"], abs=1e-9)
    dry = funnel.run(write_policy(tmp_path, **SMALL, budget=5.0), dry_run=True).as_dict()
    assert dry["composed"]["releases"] == 2
    assert dry["composed"]["figure"] > first["composed"]["figure"]


@pytest.mark.long
def test_a_release_above_its_policys_budget_is_found(night, tmp_path, monkeypatch):
    """By an auditor who takes nobody's word that it was refused; one that is within it is told how far."""
    figure = night(budget=5.0)["composed"]["figure"]
    found = funnel.audit_release(tmp_path / "releases" / "latest", tmp_path / "private").findings
    (own,) = (one for one in found if one.claim == "ledger-promises")
    assert (own.status, own.detail) == ("passed", f"1 promise, the own at {figure:g} of 5 nats")
    monkeypatch.setattr(running, "check_promises", lambda *_: None)
    monkeypatch.setattr(prepare, "check_known", lambda *_: None)
    night(budget=figure)
    assert failed(tmp_path) == set()
    night(budget=figure - 1e-4)
    assert failed(tmp_path) == {"ledger-promises"}


def test_a_dry_run_without_the_key_looks_back_as_under_a_new_one(night, tmp_path, monkeypatch):
    night()
    monkeypatch.delenv("FUNNEL_KEY")
    dry = funnel.run(write_policy(tmp_path, **SMALL), dry_run=True).as_dict()
    assert dry["composed"]["how"] == "exact"
    assert dry["composed"]["figure"] > dry["leakage"]["lip"]


def test_a_ledger_without_releases_and_one_that_is_damaged(command, night, tmp_path):
    path = write_policy(tmp_path, **SMALL, budget=1.0)
    empty = command("ledger", path, "--json")
    assert (empty.code, empty.err) == (0, "")
    assert empty.json["releases"] == []
    assert empty.json["left"] == 1.0
    assert "no release yet" in funnel.read_ledger(path).text()
    night()
    ledger = tmp_path / "private" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"draws":"permanent"', b'"draws":"permanenT"'))
    broken = command("ledger", path)
    assert broken.code == 1
    assert "[ledger]" in broken.err


def test_releases_that_are_gone_are_told_and_releases_of_nobody_fail(night, tmp_path):
    gone, kept = (Path(night(**FRESH)["release"]) for _ in range(2))
    for path in sorted(gone.iterdir()):
        path.unlink()
    gone.rmdir()
    missing = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    assert [one.claim for one in missing.failed] == ["history-released"]
    assert "published, and not here, nor by a plan that is kept" in missing.text() and gone.name in missing.text()
    (tmp_path / "private" / gone.name / "published").unlink()
    audit = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    assert audit.passed
    assert f"never visible: {gone.name}" in audit.text()
    foreign = kept.with_name("20200101T000000Z-abcdef")
    foreign.mkdir()
    strange = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    assert not strange.passed
    assert f"another ledger: {foreign.name}" in strange.text()


def test_the_ledger_is_not_said_to_be_broken_where_a_release_is_another_one_s(night, tmp_path):
    night(**FRESH)
    other = Path(night(**FRESH, name="other", release__private="own")["release"])
    audit = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    assert f"another ledger: {other.name}" in audit.text()
    (foreign,) = [one for one in audit.releases if not one.passed]
    claims = {one.claim: one.status for one in foreign.findings}
    assert (foreign.release.name, claims["evidence"], claims["ledger-chain"]) == (other.name, "failed", "passed")


def test_a_folder_is_the_same_one_wherever_a_run_is_asked_from(tmp_path, key, monkeypatch):
    """A release that is gone was not published elsewhere; one of another policy, by the same words, was."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    names, root = ("one", "two"), tmp_path / "here"
    for name in names:
        (root / name).mkdir(parents=True)
        changes: dict[str, Any] = {"name": name, "release__to": "rel", "release__private": "../private"}
        write_policy(root / name, **SMALL | FRESH | changes | {"source": {"table": "../people.parquet"}})
    people(root, MONDAY)
    for name in names:
        monkeypatch.chdir(root / name)
        funnel.run("policy.yaml")
    for name in names:
        found = funnel.audit_history(root / name / "rel", root / "private")
        assert found.passed, found.text()
    monkeypatch.chdir(root)
    funnel.run("two/policy.yaml")
    monkeypatch.chdir(tmp_path)
    root = root.rename(tmp_path / "there")
    funnel.run(root / "two" / "policy.yaml")
    for gone in sorted((root / "two" / "rel").glob("2*"))[:2]:
        shutil.rmtree(gone)
        missing = funnel.audit_history(root / "two" / "rel", root / "private")
        assert [one.claim for one in missing.failed] == ["history-released"]
        assert gone.name in missing.text()


def test_releases_in_another_folder_are_not_said_to_be_gone(night, tmp_path):
    """Policies that share a private folder may publish in folders of their own: one is no witness of the other."""
    night(**FRESH)
    other = Path(night(**FRESH, name="other", accept="unbounded", release__to="elsewhere")["release"])
    for folder in ("releases", "elsewhere"):
        audit = funnel.audit_history(tmp_path / folder, tmp_path / "private")
        assert audit.passed, audit.text()
        assert "published in another folder, which this audit does not look at: 2" in audit.text()
    listed = tmp_path / "private" / other.name / "evidence.json"
    listed.rename(tmp_path / "evidence.json")
    audit = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    assert audit.passed and "published in another folder, which this audit does not look at: 2" in audit.text()
    (tmp_path / "evidence.json").rename(listed)
    other.rename(tmp_path / "lost")
    night(**FRESH, name="other", accept="unbounded", release__to="elsewhere")
    missing = funnel.audit_history(tmp_path / "elsewhere", tmp_path / "private")
    assert [one.claim for one in missing.failed] == ["history-released"]
    assert other.name in missing.text()


def answers(release: str) -> list[str]:
    return [row[0] for row in duckdb.sql(f"SELECT x FROM '{release}/data.parquet'").fetchall()]


def test_what_is_answered_depends_on_neither_threads_nor_row_order(night, tmp_path):
    first = night()
    rows = duckdb.sql(f"SELECT id, s, x FROM '{tmp_path}/people.parquet'").fetchall()
    order = np.random.default_rng(3).permutation(len(rows))
    shuffled = ", ".join(f"({rows[i][0]}, '{rows[i][1]}', '{rows[i][2]}')" for i in order)
    duckdb.sql(
        f"COPY (SELECT * FROM (VALUES {shuffled}) t(id, s, x)) TO '{tmp_path}/people.parquet' (FORMAT parquet)"
    )
    second = funnel.run(write_policy(tmp_path, **SMALL), threads=1).as_dict()
    assert answers(first["release"]) == answers(second["release"])
    drawn = [
        (tmp_path / "private" / Path(one["release"]).name / "draws.json").read_bytes()
        for one in (first, second)
    ]
    assert drawn[0] == drawn[1], "as many of each value answered alike"


def test_a_bound_on_the_fall_is_of_each_release_and_the_ledger_says_so(command, night, tmp_path):
    """What several releases tell is measured as `alip` is, by the rise; `lower` holds for one."""
    drawn_afresh = {"privacy": {"notion": "alip", "epsilon": 0.5, "lower": 1.0}, "draws": {"kind": "fresh"}}
    first, again = night(**drawn_afresh), night(**drawn_afresh)
    said = "what releases tell together is measured as how far beliefs may rise; how far they may fall is not"
    assert said not in first["warnings"]
    assert said in again["warnings"]
    policy = write_policy(tmp_path, **(SMALL | drawn_afresh))
    assert said in command("ledger", policy).out
    page = (Path(again["release"]) / "report.html").read_text()
    assert "may fall is not measured" in " ".join(page.split()) and ", of rises alone" in page


def test_who_is_absent_may_have_what_nobody_in_the_release_has(night, tmp_path):
    """Of `alip` that is measured by the rise too: the fall has no limit, and is not said to have one."""
    own = {"privacy": {"notion": "alip", "epsilon": 0.5, "lower": 1.0}, "source__filter": "x <> 'x1'"}
    told = night(**own)
    said = "what releases tell together is measured as how far beliefs may rise; how far they may fall is not"
    assert told["composed"]["figure"] is not None and said in told["warnings"]
    page = " ".join((Path(told["release"]) / "report.html").read_text().split())
    assert "counts it, as far as it raises beliefs" in page and "may fall is not measured" in page
