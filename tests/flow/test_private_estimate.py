"""Private estimates as people use them: what is published is made of noisy counts, and the auditor can tell."""

from __future__ import annotations

import html
import json
import re
import shutil
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import funnel
from funnel.errors import AuditFailure, FunnelError
from funnel.format.canonical import encode
from funnel.ledger import estimates
from funnel.ledger.journal import Journal
from funnel.measure.uncertainty import radius
from tests.support.estimating import PEOPLE, VALUES, as_published, claims, policy, text
from tests.support.forging import Forged, edit, seal
from tests.support.ledger import rechained

ONE = " UNION ALL SELECT '{secret}', 'alone'"
"""One person has a value of their own."""










def test_a_lock_that_no_estimate_is_left_for_asks_a_person_as_its_help_says(tmp_path, command):
    assert command("lock", policy(tmp_path, estimate__budget=1.5)).code == 0
    again = command("lock", "--force", policy(tmp_path, estimate__budget=1.5, estimate__epsilon=1.2))
    assert again.code == 4 and "[budget]" in again.err
    assert "4 a person must" in command("lock", "--help").out


@pytest.mark.parametrize("stored", [True, False], ids=["files of a database", "files beside their policies"])
def test_noisy_counts_of_a_table_are_not_taken_for_those_of_one_that_reads_alike(tmp_path, monkeypatch, stored):
    """Of one x says nothing of s, of the other everything: to go by the first would promise what is not so."""
    taken = []
    for name, x in {"a": "(i // 2) % 3", "b": "i % 2", "a/.": "(i // 2) % 3"}.items():
        query = f"SELECT 's' || (i % 2) AS s, 'x' || ({x}) AS x FROM range(600) t(i)"
        (tmp_path / name).mkdir(exist_ok=True)
        path = policy(
            tmp_path / name, query, source__table="people.duckdb#people" if stored else "table.parquet",
            privacy={"notion": "ldp", "epsilon": 0.5}, release={"to": "../releases", "private": "../private"},
        )  # fmt: skip
        with duckdb.connect(str(tmp_path / name / "people.duckdb")) as connection:
            connection.execute(f"CREATE OR REPLACE TABLE people AS {query}")
        monkeypatch.chdir(tmp_path / name)
        taken.append(funnel.run(path.name, dry_run=True).as_dict()["estimate"]["name"])
    assert taken[0] == taken[2] != taken[1]


def test_bins_of_a_private_estimate_are_those_of_the_policy_by_their_ends(tmp_path):
    query = "SELECT 's' || (i % 2) AS s, hash(i) % 60 AS x FROM range(600) t(i)"
    bins = {"public": [{"name": "x", "bins": [0, 20, 1234567]}], "estimate__values": {"s": ["s0", "s1"]}}
    release = Path(funnel.run(policy(tmp_path, query, **bins)).release)
    forged = Forged(release, tmp_path / "private" / release.name)
    assert claims(funnel.audit_release(release, forged.private))["estimate-declared"][0] == "passed"
    assert "cut into intervals at 0, 20 and 1234567" in (forged.kept / "report.html").read_text()
    for path in (*release.glob("*.json"), *forged.kept.glob("*.json"), *forged.private.glob("estimate*.json")):
        path.write_text(path.read_text().replace("[0, 20)", "[0, 21)"))
    forged.write_data()
    seal([forged])
    found = claims(funnel.audit_release(release, forged.private))
    assert {claim for claim, (status, _) in found.items() if status == "failed"} == {"estimate-declared"}


def test_a_release_over_a_private_estimate_passes_its_audit_and_says_what_is_protected(tmp_path):
    summary = funnel.run(policy(tmp_path))
    found = claims(funnel.audit_release(summary.release, tmp_path / "private"))
    assert not [claim for claim, (status, _) in found.items() if status == "failed"]
    assert found["estimate-noise"][0] == found["estimate-spent"][0] == "passed"
    status, detail = found["leakage-true"]
    assert status == "not checked"
    assert "as estimated" in detail
    manifest = text(Path(summary.release), "release.json")
    assert manifest["rows"] == summary.rows == 600
    assert manifest["estimate"] == {
        "minimum": 1,
        "kind": "private",
        "epsilon": 1.0,
        "estimates": 1,
        "spent": 1.0,
        "beliefs": None,
    }
    assert manifest["alphabet"]["sensitive"] == 3
    (told,) = (
        one["text"]
        for one in text(Path(summary.release), "report.json")["limits"]
        if "Laplace" in one["text"]
    )
    assert "at most 2.72 times as likely" in told
    assert "Under the true one the released values can tell more" in told
    promise = text(Path(summary.release), "report.json")["promise"]
    assert "noisy counts" in promise["condition"]
    assert "noisy counts" in promise["observer"]


@pytest.mark.parametrize("mechanism", ["optimal", "conditional-reporting", "unary-encoding"])
def test_all_that_is_published_but_the_drawn_values_follows_from_the_noisy_counts(
    tmp_path, monkeypatch, mechanism
):
    """Two tables, the same noisy counts: the same protocol, report and figures, to the last byte."""
    kept, seen, truths = [], [], []
    for secret in ("s0", "s1"):
        folder = tmp_path / secret
        folder.mkdir()
        path = policy(
            folder, PEOPLE + ONE.format(secret=secret), mechanism=mechanism,
            estimate__values=VALUES | {"x": [*VALUES["x"], "alone"]},
        )  # fmt: skip

        def noisy(counts, rate) -> np.ndarray:
            noise = np.array([1, -2, 0, 3, -1, 0, 5, -4, 0, 1, 2, -1])
            seen.append(seen[0] if seen else np.array(counts) + noise)
            truths.append(counts)
            return seen[0]

        monkeypatch.setattr(estimates, "_noisy", noisy)
        release = Path(funnel.run(path).release)
        kept.append(as_published(release, tmp_path / "s0" / "releases" / "latest"))
    assert truths[0] != truths[1]
    assert kept[0] == kept[1]


def test_with_counts_of_its_own_the_same_table_publishes_another_protocol_for_another_secret(tmp_path):
    found = []
    for secret in ("s0", "s1"):
        folder = tmp_path / secret
        folder.mkdir()
        query = "SELECT 's' || (i % 3 // 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(600) t(i)"
        query += ONE.format(secret=secret)
        path = policy(folder, query, estimate={"minimum": 1}, privacy={"notion": "ldp", "epsilon": 0.5})
        found.append((Path(funnel.run(path).release) / "protocol.json").read_text())
    assert found[0] != found[1]


def test_what_does_not_stand_any_more_is_spent_again_until_the_budget_is_used_up(tmp_path, monkeypatch):
    """By a run that fails, too."""
    monkeypatch.setattr(estimates, "STANDS", timedelta(0))
    path = policy(tmp_path, estimate__budget=2.5)
    first = text(Path(funnel.run(path).release), "release.json")
    impossible = policy(tmp_path, estimate__budget=2.5, estimate__minimum=10_000)
    with pytest.raises(FunnelError) as failed:
        funnel.run(impossible)
    assert failed.value.code == "below-minimum"
    assert "have noisy counts below 10,000" in failed.value.message  # How many records there are is not told.
    assert "`rare" not in (failed.value.advice or "")  # which its policy would refuse
    with pytest.raises(FunnelError) as refused:
        funnel.run(policy(tmp_path, estimate__budget=2.5))
    assert (refused.value.code, first["estimate"]["spent"]) == ("budget", 1.0)
    last = text(Path(funnel.run(policy(tmp_path, estimate__budget=3)).release), "release.json")["estimate"]
    assert (last["estimates"], last["spent"]) == (3, 3.0)
    reports = [funnel.audit_release(one, tmp_path / "private") for one in (tmp_path / "releases").glob("2*")]
    assert [one.passed for one in reports] == [True, True]


def test_a_release_that_is_refused_once_it_is_measured_has_spent_its_estimate_and_says_so(tmp_path):
    path = policy(tmp_path, budget=0.001)
    with pytest.raises(FunnelError) as refused:
        funnel.run(path)
    assert refused.value.code == "budget"
    assert "Nothing was published" not in (refused.value.advice or "")
    assert "stays spent" in (refused.value.advice or "")
    assert funnel.read_ledger(path).estimates.estimates == 1


@pytest.mark.parametrize("source", [{"filter": "s IS NOT NULL"}, {"missing": "drop"}], ids=str)
def test_what_leaves_people_out_without_a_bound_is_refused_before_an_estimate_is_spent(source, tmp_path):
    path = policy(tmp_path, **{f"source__{key}": value for key, value in source.items()})
    with pytest.raises(FunnelError, match="those who are absent are not counted") as refused:
        funnel.run(path)
    assert refused.value.code == "promise-ends"
    assert funnel.read_ledger(path).estimates.estimates == 0
    checked = funnel.check(path, source=True)
    assert not checked.ok and "those who are absent are not counted" in str(checked.as_dict())


def test_the_auditor_knows_the_budget_of_estimates_too(tmp_path, monkeypatch):
    path = policy(tmp_path, estimate__budget=1.5)
    funnel.run(path)
    monkeypatch.setattr(estimates, "STANDS", timedelta(0))
    monkeypatch.setattr(estimates, "_check", lambda *_: None)
    with pytest.raises(AuditFailure) as refused:
        funnel.run(path)
    assert refused.value.where == "estimate-spent"
    assert "spent more than the policy's budget" in refused.value.achieved


def test_the_ledger_and_the_plan_tell_of_the_noise(tmp_path, monkeypatch):
    path = policy(tmp_path, estimate__budget=2)
    assert "private ones" not in funnel.read_ledger(path).text()
    funnel.run(path)
    assert "estimates  1 private one, 1 nats spent of 2" in funnel.read_ledger(path).text()
    assert funnel.read_ledger(path).as_dict()["estimates"] == {"number": 1, "spent": 1.0}
    assert "with noise on every count (epsilon 1 nats)" in funnel.explain(path).text()
    again = funnel.run(path).text()
    for line, said in (("composed", again), ("composed", funnel.read_ledger(path).text()), ("leakage", again)):
        assert ", over noisy counts)" in next(one for one in said.splitlines() if one.startswith(line))
    monkeypatch.setattr(estimates, "STANDS", timedelta(0))
    # New noise may leave nothing to tell: then the next one is waited for.
    warned = (one for _ in range(12) for one in funnel.run(policy(tmp_path)).as_dict()["warnings"])
    assert any(", over noisy counts)" in one for one in warned)
    costs = [one.text("it") for one in funnel.make_lock(path).costs]
    assert costs and all("over noisy counts" in one for one in costs)
    plain = policy(tmp_path, estimate={"minimum": 1})  # the same name: what was released stays what it is
    assert ", over noisy counts)" in funnel.read_ledger(plain).text()
    assert {row["noisy"] for row in funnel.read_ledger(path).as_dict()["releases"]} == {True}


def test_what_a_new_key_costs_is_said_to_be_over_noisy_counts(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    query = f"SELECT row_number() OVER () AS id, * FROM ({PEOPLE})"
    drawn = {"source__entity": "id", "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"}}
    path = policy(tmp_path, query, **drawn)
    funnel.run(path)
    told = dict(line.split(maxsplit=1) for line in funnel.rotate_key(path).text().splitlines()[:5])
    assert all("nats of lip, over noisy counts" in told[one] for one in ("now", "after", "cost"))


@pytest.mark.parametrize("language", ["en", "de"])
def test_what_all_releases_tell_is_not_said_to_follow_from_one_estimate(tmp_path, monkeypatch, language):
    """It follows from those of the other releases as well: who changes one record moves both, by two factors."""
    said = {
        "en": ("and what all releases tell together, were", "and from those of the other releases."),
        "de": ("und dem, was alle Veröffentlichungen zusammen verraten", "aus denen der anderen Veröffentlichungen."),
    }[language]
    path = policy(tmp_path, release__language=language, accept="unbounded")
    for expected in (False, True):
        page = " ".join((Path(funnel.run(path).release) / "report.html").read_text().split())
        assert [words in page for words in said] == [expected] * 2
        monkeypatch.setattr(estimates, "STANDS", timedelta(0))


def test_of_another_policys_promise_over_noisy_counts_a_new_key_is_told(tmp_path, key, monkeypatch):
    """The run goes on from it: it is no secret that was not measured."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    query = f"SELECT row_number() OVER () AS id, * FROM ({PEOPLE})"
    drawn = {"source__entity": "id", "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"}}
    made = funnel.run(policy(tmp_path, query, **drawn))
    told = funnel.rotate_key(policy(tmp_path, query, **drawn, name="another"))
    assert told.measured and told.now == made.composed.together.figure


def test_what_a_new_key_costs_is_measured_by_the_estimate_that_the_next_run_takes(tmp_path, key, monkeypatch, command):
    """By an older one it costs nothing, or what no run will find; and a run that no estimate is left for is no run."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    query = f"SELECT row_number() OVER () AS id, * FROM ({PEOPLE})"
    drawn = {"source__entity": "id", "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"}}
    path = policy(tmp_path, query, **drawn, estimate__budget=2)
    funnel.run(path)
    monkeypatch.setattr(estimates, "STANDS", timedelta(0))
    told = funnel.rotate_key(path)
    assert funnel.read_ledger(path).estimates.estimates == 2
    assert "2 so far, 2 nats spent" in told.text() and told.as_dict()["estimate"]["spent"] == 2
    assert "Nothing was changed" not in told.text()
    assert told.after.figure is not None
    refused = command("key", "rotate", path, "--to", tmp_path / "new.key")
    assert (refused.code, (tmp_path / "new.key").exists()) == (4, False)


def test_a_value_that_is_not_declared_is_named_and_nothing_is_spent(tmp_path):
    with pytest.raises(FunnelError) as refused:
        funnel.run(policy(tmp_path, PEOPLE + ONE.format(secret="s0")))
    assert refused.value.code == "undeclared-value"
    assert "x 'alone'" in str(refused.value.values)
    assert not (tmp_path / "private" / "ledger.jsonl").exists()


def test_estimates_that_were_lost_with_the_ledger_stop_the_next_run(tmp_path, monkeypatch):
    """Gone with every line, or with some: what was spent on these people is not known any more."""
    monkeypatch.setattr(estimates, "STANDS", timedelta(0))
    path = policy(tmp_path)
    funnel.run(path)
    funnel.run(path)
    ledger, head = tmp_path / "private" / "ledger.jsonl", tmp_path / "private" / "ledger.head"
    whole, confirmed = ledger.read_bytes(), head.read_bytes()
    first, *rest = whole.splitlines(keepends=True)
    assert [json.loads(line)["entry"]["kind"] for line in whole.splitlines()] == ["estimate", "release"] * 2
    for content in (first, b"".join(rest), whole.replace(b'"epsilon":"1"', b'"epsilon":"1/9"', 1)):
        ledger.write_bytes(content)
        with pytest.raises(FunnelError) as refused:
            funnel.run(path)
        assert refused.value.code == "ledger"
        assert "Restore the private folder from a backup" in refused.value.advice
    head.unlink()
    ledger.unlink()
    with pytest.raises(FunnelError, match="the ledger does not know of release"):
        funnel.run(path)
    ledger.write_bytes(whole)
    head.write_bytes(confirmed)
    assert text_of_estimate(funnel.run(path).release) == (3, 3.0)


def text_of_estimate(release: str) -> tuple[int, float]:
    told = text(Path(release), "release.json")["estimate"]
    return told["estimates"], told["spent"]


def test_several_blocks_with_bins_and_missing_values_are_estimated_over_all_their_combinations(tmp_path):
    query = (
        "SELECT 's' || (i % 2) AS s, nullif('x' || (hash(i) % 3), 'x2') AS x, (hash(i) // 7 % 50)::INT AS age "
        "FROM range(900) t(i)"
    )
    path = policy(
        tmp_path, query, source__missing="category", public=["x", {"name": "age", "bins": [0, 20, 60]}],
        estimate__values={"s": ["s0", "s1"], "x": ["x0", "x1"]}, mechanism="auto",
    )  # fmt: skip
    summary = funnel.run(path)
    report = funnel.audit_release(summary.release, tmp_path / "private")
    assert report.passed
    assert "36 cells" in claims(report)["estimate-noise"][1]


def test_a_secret_that_is_released_too_is_one_column_of_the_domain(tmp_path):
    path = policy(
        tmp_path, public=["s", "x"], privacy={"notion": "ldp-x", "epsilon": 1.0}, mechanism="optimal",
        estimate__values={"s": ["s0", "s1"], "x": VALUES["x"]},
    )  # fmt: skip
    summary = funnel.run(path)
    report = funnel.audit_release(summary.release, tmp_path / "private")
    assert report.passed
    assert "6 cells" in claims(report)["estimate-noise"][1]


@pytest.mark.parametrize("public", [["x"], ["s", "x"]])
def test_a_robust_promise_is_about_a_set_that_is_wide_enough_for_the_noise(tmp_path, public):
    query = PEOPLE.replace("range(600)", "range(6000)")
    mechanism = "optimal" if public == ["x"] else "polyopt"
    path = policy(
        tmp_path, query, public=public, privacy={"notion": "rldp", "epsilon": 1.0}, mechanism=mechanism,
        estimate__values={"s": ["s0", "s1"], "x": VALUES["x"]},
    )  # fmt: skip
    summary = funnel.run(path)
    found = claims(funnel.audit_release(summary.release, tmp_path / "private"))
    assert not [claim for claim, (status, _) in found.items() if status == "failed"]
    assert found["uncertainty"][0] == found["estimate-noise"][0] == "passed"
    assert "within" in found["leakage-true"][1]
    parameters = text(Path(summary.release), "release.json")["parameters"]
    assert parameters["radius"] > radius(0.95, 2, 6000, 6)


def test_a_robust_promise_needs_counts_that_are_seen_through_the_noise(tmp_path):
    path = policy(tmp_path, privacy={"notion": "rldp", "epsilon": 1.0})
    with pytest.raises(FunnelError) as refused:
        funnel.run(path)
    assert refused.value.code == "below-minimum"
    assert "1 of the declared values of the secret" in refused.value.message
    assert (tmp_path / "private" / "ledger.jsonl").read_text().count("\n") == 1


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    funnel.run(policy(folder))
    return folder


def changed(folder: Path, made: Path, change) -> dict[str, tuple[str, str]]:
    """The audit of a release whose counts were changed, as if its writer had kept that."""
    shutil.copytree(made, folder, dirs_exist_ok=True, symlinks=True)
    release = (folder / "releases" / "latest").resolve()
    path = folder / "private" / release.name / "counts.json"
    kept = json.loads(path.read_text())
    change(kept)
    path.write_bytes(encode(kept))
    return claims(funnel.audit_release(release, folder / "private"))


def without_noise(kept: dict) -> None:
    kept["private"]["cells"] = [[*cell[:3], 0, 0] for cell in kept["private"]["cells"]]


def other_epsilon(kept: dict) -> None:
    kept["private"]["epsilon"] = "2"


def a_cell_less(kept: dict) -> None:
    kept["private"]["cells"].pop()


def moved(kept: dict) -> None:
    """One record more in one cell, one less noise: the noisy count stays, and is not what was drawn."""
    cells = kept["private"]["cells"]
    pair = [max(cells, key=lambda cell, x=x: (cell[1] == x, cell[2])) for x in (0, 1)]
    for cell, by in zip(pair, (1, -1), strict=True):
        noise = cell[3] - cell[4] - by
        cell[2:] = [cell[2] + by, max(noise, 0), max(-noise, 0)]


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (without_noise, "estimate-noise"), (other_epsilon, "estimate-spent"), (a_cell_less, "counts"),
        (moved, "estimate-spent"),
    ],
)  # fmt: skip
def test_evidence_that_does_not_fit_is_found(tmp_path, made, change, claim):
    found = changed(tmp_path, made, change)
    assert found[claim][0] == "failed"


def test_noise_that_is_not_noise_is_found(tmp_path, made):
    """All cells 40 up, at a rate of 1/2: 20 standard deviations."""

    def shift(kept: dict) -> None:
        for cell in kept["private"]["cells"]:
            cell[3:] = [cell[3] + 40, cell[4]]
        kept["cells"] = [[s, x, max(n + up - down, 1)] for s, x, n, up, down in kept["private"]["cells"]]

    found = changed(tmp_path, made, shift)
    assert found["estimate-noise"][0] == "failed"
    assert "the noise" in found["estimate-noise"][1]


def test_an_estimate_that_is_not_on_record_is_found(tmp_path, made):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    release, private = (tmp_path / "releases" / "latest").resolve(), tmp_path / "private"
    estimate, entry = (line.entry for line in Journal(private).lines())
    for entries in ([entry], [replace(estimate, name="lock-1"), entry], [estimate, estimate, entry]):
        rechained(private, entries)
        assert claims(funnel.audit_release(release, private))["estimate-spent"][0] == "failed"


@pytest.mark.parametrize("less", [{"epsilon": "1/100"}, {"terms": "0" * 64}, None], ids=["cheaper", "other", "gone"])
def test_a_charge_of_an_estimate_that_no_release_was_made_of_is_that_of_what_is_kept(tmp_path, less):
    """One that was looked at and not released is charged like any other: a ledger that tells less of it fails."""
    funnel.run(policy(tmp_path, estimate__epsilon=0.5), dry_run=True)
    release, private = Path(funnel.run(policy(tmp_path)).release), tmp_path / "private"
    found = claims(funnel.audit_release(release, private))
    assert found["estimate-spent"] == ("passed", "2 estimates before its entry, 1.5 nats together")
    looked, *rest = (line.entry for line in Journal(private).lines())
    rechained(private, rest if less is None else [replace(looked, **less), *rest])
    many, spent = (1, 1.0) if less is None else (2, 1 + float(Fraction(less.get("epsilon", "1/2"))))
    edit(release / "release.json", lambda file: file["estimate"].update(spent=spent, estimates=many))
    seal([Forged(release, private / release.name)])
    status, said = claims(funnel.audit_release(release, private))["estimate-spent"]
    assert status == "failed" and said.startswith(f"ledger.jsonl: charge of {looked.name} is not the same")
    (private / "estimates" / f"{looked.name}.json").unlink()
    seal([Forged(release, private / release.name)])
    status, said = claims(funnel.audit_release(release, private))["estimate-spent"]
    assert status == "passed" and said.endswith("; of 1 nothing is kept that shows what was drawn") == (many == 2)


def test_noise_of_an_estimate_that_no_release_was_made_of_is_as_large_as_its_charge_says(tmp_path):
    """An estimate that is charged as a cheaper one, in the ledger and where it is kept."""
    values = VALUES | {"x": [f"x{i}" for i in range(40)]}
    terms = {"estimate": {"kind": "private", "epsilon": 4.0, "minimum": 1, "values": values}}
    funnel.run(policy(tmp_path, **terms), dry_run=True)
    terms["estimate"] |= {"epsilon": 1.0}
    release, private = Path(funnel.run(policy(tmp_path, **terms)).release), tmp_path / "private"
    looked, *rest = (line.entry for line in Journal(private).lines())
    edit(private / "estimates" / f"{looked.name}.json", lambda file: file.update(epsilon="1/10"))
    rechained(private, [replace(looked, epsilon="1/10"), *rest])
    edit(release / "release.json", lambda file: file["estimate"].update(spent=1.1))
    seal([Forged(release, private / release.name)])
    status, said = claims(funnel.audit_release(release, private))["estimate-spent"]
    assert status == "failed" and "the noise is not as large as stated" in said


def test_the_truth_and_the_noise_are_in_the_private_evidence_alone(made):
    release = (made / "releases" / "latest").resolve()
    kept = text(made / "private" / release.name, "counts.json")["private"]
    assert Fraction(kept["epsilon"]) == 1
    assert sum(cell[2] for cell in kept["cells"]) == 600
    assert "private" not in text(release, "release.json")


def test_totals_that_stay_at_noisy_counts_are_not_said_to_stay_at_those_of_the_records(tmp_path):
    """Nor are noisy counts shown as if they were counts of records."""
    summary = funnel.run(policy(tmp_path, PEOPLE, mechanism="invariant", privacy={"notion": "lip", "epsilon": 0.1}))
    release = Path(summary.release)
    published, full = text(release, "report.json"), text(tmp_path / "private" / release.name, "report.json")
    drawn = published["drawing"]["sentences"][0]
    assert "how often each is released is right on average, at the noisy counts." in drawn
    assert "records at the noisy counts" in full["evidence"]["totals"]
    assert "are those of the noisy counts where nothing else is said" in full["evidence"]["origin"]
    assert "noisy counts" not in published["scope"]["records"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_of_true_values_that_are_released_a_page_says_what_the_noisy_counts_say_and_no_more(tmp_path, language):
    made = funnel.run(policy(tmp_path, privacy={"notion": "lip", "epsilon": 9.0}, release__language=language))
    page = html.unescape((Path(made.release) / "report.html").read_text())
    said = {"en": "by themselves, as the noisy counts have it, so", "de": "verraten, nach den verrauschten Anzahlen"}
    assert said[language] in " ".join(page.split())


def test_chances_that_no_count_bears_on_are_not_said_to_come_from_noisy_ones(tmp_path):
    """Those of randomised response under the usual LDP; the figures do."""
    terms = {"privacy": {"notion": "ldp-x", "epsilon": 1.0}, "mechanism": "randomised-response"}
    release = Path(funnel.run(policy(tmp_path, **terms)).release)
    page, full = (" ".join(html.unescape(re.sub(r"<[^>]*>", " ", (folder / "report.html").read_text())).split())
                  for folder in (release, tmp_path / "private" / release.name))  # fmt: skip
    assert "All figures in release.json but" in page and "The chances of drawing each value" not in page
    assert "depend on ε and the number of values, not on the counts" in page
    assert "figures at the records’ own counts, which nobody is taken to know." in full
