"""Who knows the exact counts and sees all rows: told by the run, the full report and the audit; never published."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import funnel
from tests.support.audited import detail, failures, statuses
from tests.support.census import CENSUS
from tests.support.forging import Forged, edit, seal
from tests.support.people import people
from tests.support.policies import write_policy
from tests.trials.attacking.whole import moved

CLAIM = "whole-table"


def _asked(folder: Path, counts, epsilon: float = 0.5, **changes) -> Path:
    people(folder, counts)
    asked = {
        "source": {"table": "people.parquet", "entity": "id"}, "sensitive": ["s"], "public": ["x"],
        "privacy": {"notion": "lip", "epsilon": epsilon}, "draws": {"kind": "fresh"},
    }  # fmt: skip
    return write_policy(folder, **asked | changes)


def _told(folder: Path, release: str, *, private: bool = True) -> dict:
    place = folder / "private" / Path(release).name if private else Path(release)
    return json.loads((place / "report.json").read_text())


def test_a_small_table_has_an_exact_figure_that_the_audit_finds_too(tmp_path, command):
    done = command("run", _asked(tmp_path, [[76, 111, 102], [0, 33, 78]]), "--json")
    told = done.json["observer"]
    assert told["how"] == "exact"
    assert told["allowed"] == {"rises": 0.5, "falls": 0.5}
    kept = _told(tmp_path, done.json["release"])["evidence"]
    assert kept["observer"] == told
    assert "exact, from the chances of all outcomes" in kept["whole"]
    report = funnel.audit_release(Path(done.json["release"]), tmp_path / "private")
    assert statuses(report)[CLAIM] == "passed"
    assert "as all outcomes show" in detail(report, CLAIM)


def test_beyond_epsilon_by_more_than_a_tenth_the_run_says_so(tmp_path, command):
    """Of a value that tells nothing by itself, any other total than the expected one tells something."""
    path = _asked(tmp_path, [[76, 111, 102], [0, 33, 78]], 0.0001)
    done = command("run", path, "--json")
    told = done.json["observer"]
    assert max(told["rises"], told["falls"]) > 0.0002
    assert told["beyond"]
    assert told["above"] > 0
    assert "the whole table may tell more" in done.err
    assert any("the whole table" in one for one in done.json["warnings"])


def test_the_published_folder_has_words_and_no_figure(tmp_path, command):
    done = command("run", _asked(tmp_path, [[76, 111, 102], [0, 33, 78]]))
    assert "\nwhole      who knows the exact counts" in done.out
    release = str(tmp_path / "releases" / "latest")
    content = _told(tmp_path, release, private=False)
    (text,) = (one["text"] for one in content["limits"] if one["title"] == "The rest of the table")
    assert "learns more about a record" in text
    assert not any(letter.isdigit() for letter in text)
    assert "evidence" not in content


def test_a_private_estimate_prints_nothing_of_the_records_own_counts(tmp_path, command):
    values = {"s": ["s0", "s1"], "x": ["x0", "x1", "x2"]}
    asked = {"kind": "private", "epsilon": 1.0, "budget": 1.0, "minimum": 10, "values": values}
    path = _asked(tmp_path, [[760, 1110, 1020], [200, 330, 780]], 0.1, estimate=asked)
    done = command("run", path, "--json")
    assert done.json["observer"] is None
    kept = _told(tmp_path, done.json["release"])["evidence"]
    assert "which nobody is taken to know" in kept["whole"]
    report = funnel.audit_release(Path(done.json["release"]), tmp_path / "private")
    assert statuses(report)[CLAIM] == "passed"


@pytest.mark.long
@pytest.mark.parametrize("name", ["rises", "falls", "odds"])
@pytest.mark.parametrize("counts", [[[76, 111, 102], [20, 33, 78]], [[760, 1110, 1020], [200, 330, 780]]])
def test_a_figure_told_too_low_fails_by_name(tmp_path, command, counts, name):
    done = command("run", _asked(tmp_path, counts), "--json")
    forged = Forged(Path(done.json["release"]), tmp_path / "private" / Path(done.json["release"]).name)
    edit(forged.kept / "report.json", lambda old: old["evidence"]["observer"].update({name: 0.0}))
    seal([forged], reports=False)
    assert CLAIM in failures(funnel.audit_release(forged.folder, tmp_path / "private"))


def test_an_attacker_with_the_true_counts_is_moved_no_further_than_the_full_report_says(tmp_path, command):
    """The shipped policy: some beliefs move further than ε, which is about a row's own value alone."""
    done = command("run", write_policy(tmp_path, draws={"kind": "fresh"}), "--json")
    counted = duckdb.sql(f"SELECT marital_status, education, count(*) FROM '{CENSUS}' GROUP BY ALL").fetchall()
    truth = {((s,), (x,)): number for s, x, number in counted}
    found, told = moved(Path(done.json["release"]), truth, 1.0), done.json["observer"]
    assert max(found.alone) <= 1 + 1e-9
    assert max(found.whole) > 1
    assert found.whole[0] <= told["rises"] + 1e-3
    assert found.whole[1] <= told["falls"] + 1e-3
    assert found.rows == 32561
    assert 0 < found.beyond < found.rows
