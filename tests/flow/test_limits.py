"""When the time is over first: the best protocol so far is released, with what is proven of it, in words too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import funnel
from tests.support.policies import write_policy

HASTY = {
    "sensitive": ["occupation"],
    "mechanism": {"kind": "optimal", "time_limit": 0.001},
    "estimate__minimum": 1,
}
"""Fifteen values of the secret and sixteen public ones: more than a millisecond's work on any machine."""


@pytest.fixture(scope="module")
def hasty(tmp_path_factory, key):
    """One release whose search had no time."""
    folder = tmp_path_factory.mktemp("hasty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNNEL_KEY", key)
        return funnel.run(write_policy(folder, **HASTY)), folder


def report(folder: Path) -> str:
    release = folder / "releases" / "latest"
    told = json.loads((release / "report.json").read_text())
    return " ".join(told["utility"]["sentences"])


@pytest.mark.long
def test_the_best_so_far_is_released_with_the_gap_it_has(hasty):
    summary, _ = hasty
    utility = summary.as_dict()["utility"]
    assert 0 < utility["normalised"] < utility["upper_bound"] <= 1
    assert utility["gap"] == pytest.approx(utility["upper_bound"] - utility["normalised"])
    assert utility["gap"] > 1e-3
    assert summary.measured.lip.nats <= 1.0
    assert f"gap {utility['gap']:.2%}" in summary.text()


@pytest.mark.long
def test_the_auditor_accepts_what_is_claimed_of_it(hasty):
    summary, folder = hasty
    assert funnel.audit_release(summary.release, folder / "private").passed


@pytest.mark.long
def test_the_report_says_what_is_kept_and_what_is_not_settled(hasty):
    summary, folder = hasty
    words, utility = report(folder), summary.as_dict()["utility"]
    assert f"{utility['normalised']:.1%}" in words
    assert "more may be possible under the same promise; this report does not say whether they are" in words
    assert "No ceiling below 100% is stated" in words
    assert "the best" not in words


@pytest.mark.long
def test_time_enough_settles_it(tmp_path, hasty, key, monkeypatch):
    """The same policy with a wide gap: more is kept, the gap is as asked, and the report leaves nothing open."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    mechanism = {"kind": "optimal", "time_limit": 60.0, "gap": 1e-4}
    summary = funnel.run(write_policy(tmp_path, **{**HASTY, "mechanism": mechanism}))
    settled, before = summary.as_dict()["utility"], hasty[0].as_dict()["utility"]
    assert settled["normalised"] > before["normalised"]
    assert settled["upper_bound"] < before["upper_bound"]
    assert settled["gap"] <= 1e-4 + 2.1e-5
    assert "may be possible" not in report(tmp_path)


def test_the_same_in_two_blocks_claims_no_ceiling(tmp_path):
    summary = funnel.run(write_policy(tmp_path, **HASTY, public=["education", "sex"]), dry_run=True)
    utility = summary.as_dict()["utility"]
    assert utility["normalised"] > 0
    assert utility["upper_bound"] is None
    assert utility["gap"] is None
