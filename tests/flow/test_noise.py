"""Noise is spending, in whatever command: one entry for one drawing, one figure however often anybody looks."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest

import funnel
from funnel.audit.extras import noise as noisy
from funnel.audit.kernel import drawing
from funnel.errors import AuditFailure, FunnelError
from funnel.format.journal import EstimateEntry
from funnel.ledger import estimates
from funnel.ledger.journal import Journal
from funnel.release.holding import alone
from tests.support.estimating import PEOPLE, claims, policy, text
from tests.trials.attacking.averaging import averaged

PAIR = "SELECT 's' || (i % 2) AS s, 'x' || (i < 303)::INT AS x FROM range(3000) t(i)"
"""303 of 3,000 people have x1."""
TWO = {"estimate__values": {"s": ["s0", "s1"], "x": ["x0", "x1"]}, "privacy": {"notion": "lip", "epsilon": 0.5}}


def charges(folder: Path) -> list[EstimateEntry]:
    lines = Journal(folder / "private").lines()
    return [line.entry for line in lines if isinstance(line.entry, EstimateEntry)]


@pytest.mark.long
def test_however_many_dry_runs_are_one_charge_and_one_noisy_figure(tmp_path):
    """Whoever averages what they print has one estimate, as far from the truth as its noise."""
    path = policy(tmp_path, PAIR, estimate__budget=1.0, **TWO)
    printed = [funnel.run(path, dry_run=True).as_dict() for _ in range(20)]
    assert all(one == printed[0] for one in printed)
    assert len(charges(tmp_path)) == 1
    told = averaged([one["utility"]["entropy"] for one in printed], 3000)
    cells = json.loads(next((tmp_path / "private" / "estimates").iterdir()).read_text())["cells"]
    noisy = [n + up - down for n, up, down in zip(*cells, strict=True)]
    shares = sorted([noisy[0] + noisy[2], noisy[1] + noisy[3]])
    assert told.count == pytest.approx(3000 * shares[0] / sum(shares), abs=0.5)
    assert told.error == 0


@pytest.mark.long
def test_where_every_look_drew_anew_the_average_would_be_the_count(tmp_path, monkeypatch):
    """The attacker is a real one; and the ledger tells of every look, for nothing is drawn without an entry."""
    path = policy(tmp_path, PAIR, **TWO)
    monkeypatch.setattr(estimates, "standing", lambda *_: None)
    told = averaged([funnel.run(path, dry_run=True).as_dict()["utility"]["entropy"] for _ in range(40)], 3000)
    assert 0 < told.error < 2
    assert abs(told.count - 303) < 6 * told.error
    assert len(charges(tmp_path)) == 40


def test_a_budget_that_is_spent_stops_every_command_before_any_noise(tmp_path, monkeypatch):
    path = policy(tmp_path, PAIR, estimate__budget=1.0, **TWO)
    funnel.run(path)
    other = {**TWO, "estimate__values": {"s": ["s0", "s1"], "x": ["x0", "x1", "x2"]}}
    monkeypatch.setattr(estimates, "_noisy", lambda *_: pytest.fail("noise was drawn"))
    for command in (
        lambda one: funnel.run(one, dry_run=True), lambda one: funnel.compare(one, [0.5]),
        funnel.run, funnel.make_lock,
    ):  # fmt: skip
        with pytest.raises(FunnelError) as refused:
            command(policy(tmp_path, PAIR, estimate__budget=1.5, **other))
        assert refused.value.code == "budget"
    monkeypatch.setattr(estimates, "STANDS", timedelta(0))
    with pytest.raises(FunnelError) as refused:
        funnel.run(policy(tmp_path, PAIR, estimate__budget=1.5, **TWO))
    assert refused.value.code == "budget"
    assert len(charges(tmp_path)) == 1


def test_a_look_a_comparison_and_the_nights_run_are_one_estimate(tmp_path):
    path = policy(tmp_path, PAIR, estimate__budget=1.0, **TWO)
    compared = funnel.compare(path, [0.5])
    shown = funnel.run(path, dry_run=True)
    made = funnel.run(path)
    again = funnel.compare(path, [0.5])
    assert compared.as_dict() == again.as_dict()
    assert compared.page() == again.page()
    assert shown.as_dict()["utility"] == made.as_dict()["utility"]
    assert compared.estimate["name"] in compared.text()
    assert shown.as_dict()["estimate"] == {
        "name": charges(tmp_path)[0].name, "epsilon": 1.0, "estimates": 1, "spent": 1.0,
    }  # fmt: skip
    assert made.as_dict()["estimate"] == shown.as_dict()["estimate"]
    assert funnel.audit_release(made.release, tmp_path / "private").passed


def test_whatever_looks_before_a_release_takes_the_one_estimate_or_none(tmp_path, monkeypatch, key):
    """`check` and `plan` see no noise; what a new key would cost is measured over the noise that there is."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    people = PAIR.replace("SELECT", "SELECT i AS id,")
    source = {"table": "table.parquet", "entity": "id"}
    path = policy(tmp_path, people, estimate__budget=1.0, source=source, draws={"key": "env:FUNNEL_KEY"}, **TWO)
    assert funnel.check(path).ok
    funnel.explain(path)
    assert not (tmp_path / "private").exists()
    first, second = (funnel.rotate_key(path).as_dict()["after"] for _ in range(2))
    assert first == second
    funnel.run(path)
    assert len(charges(tmp_path)) == 1


def test_policies_of_one_private_folder_spend_together_and_share_what_is_the_same(tmp_path):
    """Another bound over the same counts takes them again; another column of the same people spends more of one sum."""
    policy(tmp_path, PAIR, estimate__budget=1.5, **TWO)
    (tmp_path / "policy.yaml").rename(tmp_path / "first.yaml")
    second = {**TWO, "privacy": {"notion": "ldp", "epsilon": 1.0}, "name": "second", "accept": "test"}
    policy(tmp_path, PAIR, estimate__budget=1.5, **second)
    (tmp_path / "policy.yaml").rename(tmp_path / "second.yaml")
    third = {**TWO, "name": "third", "source__filter": "s <> 'nobody'", "accept": ["unbounded"]}
    policy(tmp_path, PAIR, estimate__budget=1.5, **third)
    funnel.run(tmp_path / "first.yaml")
    funnel.run(tmp_path / "second.yaml")
    assert len(charges(tmp_path)) == 1
    with pytest.raises(FunnelError) as refused:
        funnel.run(tmp_path / "policy.yaml")
    assert refused.value.code == "budget"
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed


def test_whether_noise_is_taken_again_tells_nothing_of_the_counts(tmp_path):
    """The table changes between a look and a run of the same hours: same noise, same protocol, no second entry."""
    path = policy(tmp_path, PAIR, estimate__budget=1.0, **TWO)
    funnel.run(path, dry_run=True)
    first = Path(funnel.run(path).release)
    moved = PAIR.replace("303", "304").replace("3000", "3010")
    duckdb.sql(f"COPY ({moved}) TO '{tmp_path}/table.parquet'")
    second = funnel.run(path)
    assert len(charges(tmp_path)) == 1
    assert (first / "protocol.json").read_bytes() == (Path(second.release) / "protocol.json").read_bytes()
    assert (text(first, "release.json")["rows"], second.rows) == (3000, 3010)
    found = funnel.audit_history(tmp_path / "releases", tmp_path / "private")
    assert found.passed, found.text()


@pytest.mark.parametrize("size", [60, 1 << 80, -(1 << 80)])
def test_noise_that_hardly_ever_happens_is_released_like_any_other(tmp_path, monkeypatch, size):
    """The law is the one stated: none of its outcomes is refused, or told by what a run prints. A later audit tells."""
    monkeypatch.setattr(estimates, "discrete_laplace", lambda rate, dice: size)
    summary = funnel.run(policy(tmp_path, PAIR, **TWO))
    assert not summary.warnings
    report = funnel.audit_release(summary.release, tmp_path / "private")
    assert [one.claim for one in report.of("failed")] == ["estimate-noise"]
    assert "thousand million" in report.verdict
    assert "noise is not as large as stated" in claims(report)["estimate-noise"][1]


def test_an_estimate_too_small_to_show_that_it_has_noise_says_so(tmp_path, monkeypatch):
    """Chance alone leaves few cells as they are often enough: no claim that they have noise."""
    told = []
    for there in (True, False):
        folder = tmp_path / str(there)
        folder.mkdir()
        if not there:
            monkeypatch.setattr(estimates, "discrete_laplace", lambda rate, dice: 0)
        report = funnel.audit_release(funnel.run(policy(folder, PAIR, **TWO)).release, folder / "private")
        assert report.passed, report.text()
        told.append(claims(report)["estimate-noise"][1])
    assert all("; so few that they would pass without any noise; " in one for one in told), told
    gone = "; at least 0 of the 3000 records released are not among those that were counted for it"
    assert all(one.endswith(gone) for one in told)
    assert "noise" in noisy.TITLE and noisy.TITLE.endswith("no further than chance does")
    rate, cells = 0.5, np.arange(1, 60)
    none = [noisy._chance(np.zeros(n, int), rate) for n in cells]
    np.testing.assert_allclose(none, ((1 - math.exp(-rate)) / (1 + math.exp(-rate))) ** cells)


@pytest.mark.parametrize("noise", [30, -30])
def test_the_minimum_is_of_counts_with_their_noise(tmp_path, monkeypatch, noise):
    """A value that nobody has may have enough; where one has not, the run is refused and the estimate stays spent."""
    monkeypatch.setattr(estimates, "discrete_laplace", lambda rate, dice: noise)
    values = {"estimate__values": {"s": ["s0", "s1"], "x": ["x0", "x1", "x2"]}, "estimate__minimum": 20}
    path = policy(tmp_path, PAIR, **TWO | values)
    if noise > 0:
        (block,) = json.loads((Path(str(funnel.run(path).release)) / "protocol.json").read_text())["blocks"]
        assert ["x2"] in block["inputs"]
    else:
        with pytest.raises(FunnelError) as refused:
            funnel.run(path)
        assert refused.value.code == "below-minimum"
    assert len(charges(tmp_path)) == 1


def test_draws_that_hardly_ever_happen_are_released_like_any_others_and_told(tmp_path, monkeypatch):
    """As if every draw were one in a thousand million; what is impossible is refused all the same."""
    monkeypatch.setattr(drawing, "FALSE_ALARM", 1e9)
    path = policy(tmp_path, PAIR, estimate={"minimum": 10}, privacy=TWO["privacy"])
    summary = funnel.run(path)
    (told,) = [one for one in summary.warnings if "hardly ever" in one]
    assert "[draw-fit]" in told
    assert "once in a thousand million times" in told
    found = funnel.audit_release(summary.release, tmp_path / "private")
    assert [one.claim for one in found.of("failed")] == ["draw-fit"]
    assert "hardly ever" not in (Path(summary.release) / "report.json").read_text()
    monkeypatch.setattr(drawing, "strays", lambda *_: (0.0, 1))
    with pytest.raises(AuditFailure) as refused:
        funnel.run(path)
    assert refused.value.where == "draw-fit"


@pytest.mark.long
def test_two_looks_at_once_are_one_charge(tmp_path):
    path = policy(tmp_path, PAIR, estimate__budget=1.0, **TWO)
    with alone(tmp_path / "private"), pytest.raises(FunnelError) as refused:
        funnel.run(path, dry_run=True)
    assert refused.value.code == "release-busy"
    command = [sys.executable, "-m", "funnel", "run", "--dry-run", "--json", str(path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    told = [one.communicate(timeout=60)[0] for one in both]
    assert len(charges(tmp_path)) == 1
    assert any(one.returncode == 0 for one in both)
    done = [json.loads(out) for one, out in zip(both, told, strict=True) if one.returncode == 0]
    assert len({one["utility"]["entropy"] for one in done}) == 1


def test_a_look_writes_no_counts_into_a_published_folder(tmp_path):
    path = policy(tmp_path, PEOPLE, release={"to": "releases", "private": "releases/private"})
    with pytest.raises(FunnelError) as refused:
        funnel.run(path, dry_run=True)
    assert refused.value.code == "release-path"
    assert not (tmp_path / "releases" / "private").exists()
