"""A release whose totals stay: made, audited, and told; what it says of its totals is derived from the counts anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import funnel
from funnel.audit.extras import totals
from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken
from funnel.errors import PlanError
from tests.support.audited import detail, missing, statuses
from tests.support.forging import edit
from tests.support.people import FRESH, MONDAY, SMALL, people
from tests.support.policies import write_policy

POLICY = Path(__file__).parents[2] / "policies" / "invariant.yaml"
CASES: dict[str, dict[str, Any]] = {
    "lip": {},
    "free totals": {"mechanism": {"kind": "invariant", "totals": "free"}, "privacy__epsilon": 2.0},
    "ldp": {"privacy__notion": "ldp"},
    "perfect": {"privacy": {"notion": "perfect"}},
    "the usual ldp": {"public": ["relationship"], "privacy": {"notion": "ldp-x", "epsilon": 1.0}},
    "alip": {"privacy": {"notion": "alip", "epsilon": 0.5, "lower": 1.0}},
    "srlip": {
        "sensitive": ["race"], "public": [["sex", "relationship"]], "estimate": {"minimum": 1},
        "privacy": {"notion": "srlip", "epsilon": 1.0},
    },
    "robust": {
        "sensitive": ["sex"], "public": ["sex", "income"], "privacy": {"notion": "rldp", "epsilon": 1.0},
    },
    "groups of groups": {
        "public": [{"name": "relationship", "groups": [
            {"married": ["Husband", "Wife"], "kin": ["Own-child", "Other-relative"]}, {"family": ["married", "kin"]},
        ]}],
        "mechanism": {"kind": "invariant", "distance": "order"},
    },
    "cells": {
        "sensitive": ["income"], "mechanism": {"kind": "invariant", "distance": {"person": "order"}},
        "public": [{"name": "person", "columns": ["age", "sex"], "cells": {"most": 20, "minimum": 50}}],
    },
    "what others know": {
        "sensitive": ["income"], "privacy": {"notion": "srlip", "epsilon": 1.0, "knows": 1},
        "public": [{"name": "person", "columns": ["education", "sex"], "cells": {"most": 12, "minimum": 50}}],
    },
    "order": {
        "public": [{"name": "age", "bins": [17, 25, 35, 45, 55, 65]}],
        "mechanism": {"kind": "invariant", "distance": "order"},
    },
}  # fmt: skip


@pytest.fixture
def released(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A release made in this process: its folder."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def make(**changes: Any) -> Path:
        return Path(str(funnel.run(write_policy(tmp_path, **{"mechanism": "invariant"} | changes)).release))

    return make


@pytest.mark.long
@pytest.mark.parametrize("what", CASES)
def test_what_is_said_of_totals_is_derived_anew(what: str, released, tmp_path) -> None:
    report = funnel.audit_release(released(**CASES[what]), tmp_path / "private")
    assert report.passed
    assert missing(report) <= {"source"}
    assert statuses(report)["totals"] == "passed"
    said = detail(report, "totals")
    assert ("totals free" if what == "free totals" else "totals off by at most 0.0") in said
    found, bound = (float(said.split(before)[1].split()[0].rstrip(",")) for before in ("distance ", "at least "))
    assert bound <= found <= bound + 4e-4


def test_a_least_distance_is_said_to_be_of_totals_that_stay_exactly(released, tmp_path) -> None:
    """Whole numbers that leave a total off by a tenth of a record may change fewer of so small a table."""
    people(tmp_path, [[9, 4], [6, 3], [6, 2]])
    made = released(
        source={"table": "people.parquet", "entity": "id"}, sensitive=["s"], public=["x"], draws={"kind": "fresh"},
        privacy={"notion": "perfect"}, estimate={"minimum": 2},
    )  # fmt: skip
    folder = tmp_path / "private" / made.name
    (told,) = json.loads((folder / "solution.json").read_text(encoding="utf-8"))["totals"]
    distance = float(detail(funnel.audit_release(made, tmp_path / "private"), "totals").split("distance ")[1][:8])
    assert 0 < told["deviation"] <= 0.1
    assert distance < told["optimum"] == pytest.approx(0.42, abs=1e-9)
    said = json.loads((folder / "report.json").read_text(encoding="utf-8"))["evidence"]["totals"]
    assert said.endswith("at least 0.420000 under any protocol with this promise that keeps totals exactly.")


def test_several_blocks_state_their_totals_and_no_bound(released, tmp_path) -> None:
    rules = {"kind": "invariant", "distance": {"age": "order"}}
    public = ["education", {"name": "age", "bins": [17, 25, 35, 45, 55, 65]}]
    report = funnel.audit_release(released(public=public, mechanism=rules), tmp_path / "private")
    assert report.passed
    assert detail(report, "totals").count("no bound of it claimed") == 2


def lowered(told: dict[str, Any]) -> None:
    told["deviation"] /= 2


def better(told: dict[str, Any]) -> None:
    told["optimum"] += 1e-4


def cheaper(told: dict[str, Any]) -> None:
    told["prices"] = [2 * price for price in told["prices"]]


def unpriced(told: dict[str, Any]) -> None:
    told["binding"].pop()


def negative(told: dict[str, Any]) -> None:
    told["binding"][0][2] *= -1


def tighter(told: dict[str, Any]) -> None:
    side = told["sides"][told["binding"][0][1]]
    side[0] += 0.05 * max(map(abs, side))


def elsewhere(told: dict[str, Any]) -> None:
    told["binding"][0][1] = len(told["sides"])


LIES = {
    "deviation of a total is another": [lowered],
    "less than the optimum": [better, cheaper, unpriced],
    "is negative": [negative],
    "none that lip asks for": [tighter],
    "other values or sides": [elsewhere],
}


@pytest.mark.long
@pytest.mark.parametrize(("said", "lie"), [(said, lie) for said, lies in LIES.items() for lie in lies])
def test_a_lie_about_totals_is_refused(lie, said, released, tmp_path) -> None:
    release = released(public=["relationship"])
    private = tmp_path / "private"
    edit(private / release.name / "solution.json", lambda told: lie(told["totals"][0]))
    with pytest.raises(Broken, match=said):
        totals.check(Release(release, private))


def unsaid(told: dict[str, Any]) -> None:
    told["totals"] = []


def test_totals_that_move_are_none_that_stay(released, tmp_path) -> None:
    """Whatever solution.json says of them, or does not: release.json says that raw totals are right on average."""
    release = released(**CASES["free totals"], public=["relationship"])
    private = tmp_path / "private"
    edit(release / "release.json", lambda told: told.update(totals="kept"))
    solution = private / release.name / "solution.json"
    with pytest.raises(Broken, match=r"stated otherwise than in release\.json"):
        totals.check(Release(release, private))
    edit(solution, unsaid)
    with pytest.raises(Broken, match="nothing is told of totals"):
        totals.check(Release(release, private))


def test_a_total_that_is_said_to_stay_is_off_by_a_tenth_at_most(released, tmp_path) -> None:
    release = released(**CASES["free totals"], public=["relationship"])
    private = tmp_path / "private"
    edit(release / "release.json", lambda told: told.update(totals="kept"))
    off = largest_deviation(release, private)
    assert off > 1
    edit(private / release.name / "solution.json", lambda told: told["totals"][0].update(deviation=off))
    with pytest.raises(Broken, match="a total that is said to stay"):
        totals.check(Release(release, private))


def largest_deviation(release: Path, private: Path) -> float:
    """By how much an expected total is off, from the two files."""
    (block,) = json.loads((release / "protocol.json").read_text())["blocks"]
    counts = [0] * len(block["inputs"])
    for _, x, n in json.loads((private / release.name / "counts.json").read_text())["cells"]:
        counts[x] += n
    there = dict(zip(map(tuple, block["outputs"]), block["weights"], strict=True))
    nothing = [0] * len(counts)
    expected = [sum(w * n for w, n in zip(there.get(tuple(value), nothing), counts, strict=True)) / 2 ** block["bits"]
                for value in block["inputs"]]  # fmt: skip
    return max(abs(one - n) for one, n in zip(expected, counts, strict=True))


def test_totals_that_a_lock_fixed_are_those_of_its_night(tmp_path, key, monkeypatch) -> None:
    monkeypatch.setenv("FUNNEL_KEY", key)
    policy = write_policy(tmp_path, mechanism="invariant", public=["relationship"])
    funnel.make_lock(policy)
    release = Path(str(funnel.run(policy, locked=True).release))
    said = str(totals.check(Release(release, tmp_path / "private")))
    assert said.startswith("at the counts of the lock’s night off by at most 0.0")
    solution = tmp_path / "private" / release.name / "solution.json"
    whole, told = solution.read_bytes(), {"binding": [], "deviation": 0.0, "optimum": 0.0, "prices": None, "sides": []}
    edit(solution, lambda old: old.update(totals=[told]))
    with pytest.raises(Broken, match="where a lock fixed them"):
        totals.check(Release(release, tmp_path / "private"))
    solution.write_bytes(whole)
    (kept,) = (tmp_path / "private" / "locks").glob("*.json")

    def moved(file: dict[str, Any]) -> None:
        most = max(range(len(file["cells"])), key=lambda place: file["cells"][place][-1])
        less = next(place for place, cell in enumerate(file["cells"]) if cell[1] != file["cells"][most][1])
        file["cells"][most][-1] -= 1000
        file["cells"][less][-1] += 1000

    edit(kept, moved)
    with pytest.raises(Broken, match="a total that is said to stay"):
        totals.check(Release(release, tmp_path / "private"))
    kept.unlink()
    assert "are not kept any more" in str(totals.check(Release(release, tmp_path / "private")))
    edit(release / "release.json", lambda old: old.update(totals="free"))
    assert "totals may move" in str(totals.check(Release(release, tmp_path / "private")))


def test_totals_that_stay_can_be_had_though_values_are_not_told_apart(released) -> None:
    """Of a Q without full rank that was made so: page and estimates say of each total what `--by` gives."""
    release = released(**CASES["perfect"], public=["relationship"])
    (block,) = funnel.estimate_counts(release).blocks
    assert block.rank < len(block.inputs)
    assert any("right on average as they stand: `--by relationship`" in one for one in block.notes)
    assert not any("certain" in one or "only totals of groups" in one for one in block.notes)
    page = " ".join((release / "report.html").read_text().split())
    assert "may be read as they stand" in page and "of the true totals can be" not in page


@pytest.mark.parametrize("way", ["check", "plan", "run"])
def test_a_column_without_an_order_is_refused_before_anything_is_solved(command, tmp_path, way: str) -> None:
    people(tmp_path, MONDAY)
    own = FRESH | {"mechanism": {"kind": "invariant", "distance": {"x": "order"}}}
    policy = write_policy(tmp_path, **SMALL | own | {"privacy": {"notion": "lip", "epsilon": 0.4}})
    refused = command(way, policy, *(["--source"] if way == "check" else []))
    assert refused.code == 1 and "x holds fewer than two numbers" in refused.out + refused.err


def test_values_that_noise_is_drawn_for_have_their_order_before_it_is(tmp_path) -> None:
    """Else a run would spend its estimate and fail."""
    people(tmp_path, MONDAY)
    values = {"s": ["s0", "s1"], "x": ["x0", "x1", "x2"]}
    own = FRESH | {
        "mechanism": {"kind": "invariant", "distance": {"x": "order"}},
        "estimate": {"kind": "private", "epsilon": 1.0, "budget": 5.0, "minimum": 1, "values": values},
    }
    policy = write_policy(tmp_path, **SMALL | own | {"privacy": {"notion": "lip", "epsilon": 0.4}})
    with pytest.raises(PlanError, match="x holds fewer than two numbers"):
        funnel.run(policy)
    assert not (tmp_path / "private" / "ledger.jsonl").exists()
    own["public"] = [{"name": "x", "groups": [{"low": ["x0", "x1"], "high": ["x2"]}, {"all": ["low", "high"]}]}]
    own["estimate"]["values"] = values | {"x": ["low", "high"]}
    assert funnel.check(write_policy(tmp_path, **SMALL | own | {"privacy": {"notion": "lip", "epsilon": 0.4}})).ok


def test_the_ready_policy_runs_and_passes_its_audit(command, tmp_path) -> None:
    policy = yaml.safe_load(POLICY.read_text())
    policy["source"]["table"] = str(POLICY.parent / policy["source"]["table"])
    policy["release"] |= {"to": "out", "private": "kept"}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    made = command("run", "policy.yaml", "--json", cwd=tmp_path)
    assert made.code == 0
    assert made.json["mechanism"] == "invariant"
    audit = command("audit", "out/latest", "--private", "kept", cwd=tmp_path)
    assert audit.code == 0
    assert "totals off by at most 0.0" in audit.out
    counts = command("estimate", "out/latest", "--json", cwd=tmp_path).json["blocks"][0]
    assert "released totals are right on average as they stand" in " ".join(counts["notes"])
    read = command("estimate", "out/latest", "--by", counts["columns"][0], "--json", cwd=tmp_path).json["figures"]
    assert [one["estimate"] for one in read] == [one["count"] for one in counts["released"]]
    report = json.loads((tmp_path / "out" / "latest" / "report.json").read_text())
    assert any("how often each is released is right on" in one for one in report["drawing"]["sentences"])
