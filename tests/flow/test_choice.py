"""`mechanism: auto` and `split: optimal` through the commands: planned, released, audited and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import funnel
from tests.flow.conftest import nothing_published
from tests.support.audited import detail, failures
from tests.support.forging import Forged, edit, seal
from tests.support.policies import write_policy

SMALL = {"sensitive": ["relationship"], "public": ["sex"], "privacy__epsilon": 0.25}


def test_auto_releases_the_best_and_lists_its_candidates(command, tmp_path):
    policy = write_policy(tmp_path, mechanism={"kind": "auto", "time_limit": 100}, **SMALL)
    planned = command("plan", policy)
    (line,) = [line for line in planned.out.splitlines() if "candidates:" in line]
    assert "optimal, invariant, randomised-response, conditional-reporting" in line

    run = command("run", policy, "--json")
    assert run.code == 0, run.err
    candidates = run.json["candidates"]
    best = max(candidates, key=lambda one: one["normalised"] or 0)
    assert run.json["mechanism"] == best["mechanism"]
    assert run.json["utility"]["normalised"] == best["normalised"]

    release = tmp_path / "releases" / "latest"
    manifest = json.loads((release / "release.json").read_text())
    assert manifest["mechanism"] == best["mechanism"]
    assert [one["mechanism"] for one in manifest["candidates"]] == [one["mechanism"] for one in candidates]
    page = (release / "report.html").read_text()
    assert all(one["mechanism"] in page for one in candidates)
    assert command("audit", release, "--private", tmp_path / "private").code == 0
    full = command("report", release, "--private", tmp_path / "private", "--to", tmp_path / "full")
    assert full.code == 0
    assert all(one["mechanism"] in (tmp_path / "full" / "report.html").read_text() for one in candidates)


def test_the_candidates_are_those_of_the_policy_and_their_figures_are_said_to_be_nobodys_to_check(command, tmp_path):
    run = command("run", write_policy(tmp_path, mechanism={"kind": "auto", "time_limit": 100}, **SMALL), "--json")
    release = Path(run.json["release"])
    forged = Forged(release, tmp_path / "private" / release.name)
    told = detail(funnel.audit_release(release, forged.kept), "mechanism")
    assert told.endswith("what other candidates keep, or why they were passed over, is the publisher’s word")
    names = [one["mechanism"] for one in run.json["candidates"]]
    unused = next(place for place, name in enumerate(names) if name != run.json["mechanism"])
    for change in (
        lambda old: old["candidates"][unused].update(mechanism="other"),
        lambda old: old["candidates"].pop(unused),
    ):
        edit(release / "release.json", change)
        seal([forged])
        assert failures(funnel.audit_release(release, forged.kept)) == {"policy"}


def test_what_reads_the_secret_is_not_chosen_where_a_secret_is_rare(command, tmp_path):
    """The plan reads the secret for a candidate that might be used; the others then work all the same."""
    changes = {"sensitive": ["native_country"], "public": ["sex"], "mechanism": "auto"}
    run = command("run", write_policy(tmp_path, **changes), "--json")
    assert run.code == 0, run.err
    reasons = {one["mechanism"]: one["reason"] for one in run.json["candidates"]}
    assert reasons["conditional-reporting"]
    assert run.json["mechanism"] != "conditional-reporting"
    refused = command("run", write_policy(tmp_path, **(changes | {"mechanism": "conditional-reporting"})))
    assert "[below-minimum]" in refused.err


def test_a_searched_split_is_released_with_its_shares_and_keeps_no_less(command, tmp_path):
    changes = {"sensitive": ["income"], "public": ["race", "sex"], "mechanism": "randomised-response"}
    kept = {}
    for split in ("equal", "optimal"):
        run = command("run", write_policy(tmp_path, privacy__split=split, **changes), "--json")
        assert run.code == 0, run.err
        kept[split] = run.json["utility"]["normalised"]
        manifest = json.loads((tmp_path / "releases" / "latest" / "release.json").read_text())
        assert manifest["split"] == run.json["split"]
        assert sum(manifest["split"]) == pytest.approx(1)
    assert kept["optimal"] >= kept["equal"]
    assert run.json["split"] != [0.5, 0.5]
    found = funnel.audit_release(tmp_path / "releases" / "latest", tmp_path / "private")
    left = "how ε is split, which the policy leaves open, is the publisher’s word"
    assert detail(found, "policy-terms").endswith(left)


def test_no_time_for_any_candidate_publishes_nothing(command, tmp_path):
    policy = write_policy(tmp_path, mechanism={"kind": "auto", "time_limit": 1e-9}, **SMALL)
    run = command("run", policy)
    assert run.code == 1
    assert "[solver-time]" in run.err
    assert nothing_published(tmp_path)


@pytest.mark.parametrize("wrong", [0, -1, "soon"])
def test_a_time_limit_that_is_none_is_an_error_of_the_policy(command, tmp_path, wrong):
    checked = command("check", write_policy(tmp_path, mechanism={"kind": "auto", "time_limit": wrong}))
    assert checked.code == 1
    assert "mechanism.time_limit" in checked.err
