"""`estimate.beliefs` as people use it: what is refused, what is released, what moves it, what it costs."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

import funnel
from funnel.data import Joint
from funnel.errors import PlanError, PolicyError
from funnel.format.canonical import encode
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS
from funnel.release.narrowed import narrowed, ranges
from tests.support.census import CENSUS, census
from tests.support.policies import write_policy
from tests.support.towns import WIDE, people

ROUNDED = {"sensitive": ["income"], "public": ["education"], "estimate__beliefs": 0.02}


@pytest.fixture(autouse=True)
def _key(key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)


def moved(folder: Path, *, records: int) -> Path:
    """The census with so many people of one education, and of no other, having the other income."""
    changed = f"""SELECT * REPLACE (CASE WHEN person_id IN (
        SELECT person_id FROM '{CENSUS}' WHERE education = 'Bachelors' AND income LIKE '<=%' ORDER BY 1 LIMIT {records}
    ) THEN (SELECT max(income) FROM '{CENSUS}' WHERE income LIKE '>%') ELSE income END AS income) FROM '{CENSUS}'"""
    path = folder / f"census{records}.parquet"
    duckdb.sql(f"COPY ({changed}) TO '{path}' (FORMAT parquet)")
    return path


def text(release: str, name: str):
    return json.loads(Path(release, name).read_text())


def claim(report, name: str) -> tuple[str, str]:
    return next((one.status, one.detail) for one in report.findings if one.claim == name)


WRONG = {
    "privacy.notion: `perfect` allows only what does not depend on X": {"privacy": {"notion": "perfect"}},
    "`mutual-information` is an average": {
        "privacy": {"notion": "mutual-information", "epsilon": 0.1}, "mechanism": "greedy-funnel"},
    "`rldp` holds for a set of distributions already": {"privacy": {"notion": "rldp", "epsilon": 1.0}},
    "`srlip` is not measured": {"privacy": {"notion": "srlip", "epsilon": 1.0}},
    "`conditional-reporting` follows the counts themselves": {"mechanism": "conditional-reporting"},
    "`unary-encoding` follows the counts themselves": {"mechanism": {"kind": "unary-encoding"}},
    "`auto` follows the counts themselves": {"mechanism": "auto"},
    "the best split is found on the counts": {"public": ["education", "sex"], "privacy__split": "optimal"},
    "a private estimate is not rounded too": {"estimate__kind": "private", "estimate__epsilon": 1.0},
    "the secret is released too": {"public": ["income", "sex"], "privacy": {"notion": "ldp", "epsilon": 1.0}},
    "must be": {"estimate__beliefs": 0.3},
}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_what_does_not_go_with_rounded_beliefs_is_refused_with_a_reason(said, tmp_path):
    with pytest.raises(PolicyError) as raised:
        funnel.load(write_policy(tmp_path, **(ROUNDED | WRONG[said])))
    assert said.split(": ")[-1] in str(raised.value)


def test_a_release_says_what_its_protocol_was_made_from_and_passes_its_audit(tmp_path):
    summary = funnel.run(write_policy(tmp_path, **ROUNDED))
    manifest = text(summary.release, "release.json")
    assert manifest["estimate"]["beliefs"] == 0.02
    assert manifest["utility"]["upper_bound"] is None
    assert manifest["leakage"]["lip"] < 1
    report = funnel.audit_release(summary.release, tmp_path / "private")
    assert report.passed
    status, said = claim(report, "rounded-beliefs")
    assert status == "passed"
    assert "at most 0.99999" in said or "at most 1.000000" in said
    (told,) = (
        one["text"] for one in text(summary.release, "report.json")["limits"] if "steps of at least 0.02" in one["text"]
    )
    assert "They were made from nothing else" in told
    assert "was rounded as well" in told


@pytest.mark.long
def test_nights_whose_counts_round_alike_have_one_protocol_and_tell_no_more(tmp_path):
    tables = [CENSUS, moved(tmp_path, records=5), moved(tmp_path, records=400)]
    found = [funnel.run(write_policy(tmp_path, **ROUNDED, source__table=str(one))) for one in tables]
    first, second, third = (Path(one.release, "protocol.json").read_bytes() for one in found)
    assert first == second != third
    composed = [text(one.release, "release.json")["composed"] for one in found]
    assert composed[1]["leakage"] <= text(found[1].release, "release.json")["leakage"]["lip"] + 0.001
    plain = [
        funnel.run(write_policy(tmp_path, sensitive=["income"], public=["education"], source__table=str(one),
                                release={"to": "plain", "private": "hidden"}))
        for one in tables[:2]
    ]  # fmt: skip
    assert len({Path(one.release, "protocol.json").read_bytes() for one in plain}) == 2


def test_totals_that_stay_are_known_and_beliefs_are_not(tmp_path):
    summary = funnel.run(write_policy(tmp_path, **ROUNDED, mechanism="invariant"))
    report = funnel.audit_release(summary.release, tmp_path / "private")
    assert report.passed
    assert claim(report, "rounded-beliefs")[0] == claim(report, "totals")[0] == "passed"
    limits = text(summary.release, "report.json")["limits"]
    assert any("counts as known" in one["text"] for one in limits)


def test_blocks_apart_keep_their_bound_together_for_every_table_in_the_steps(tmp_path):
    summary = funnel.run(write_policy(tmp_path, **(ROUNDED | {"public": ["race", "sex"]}), privacy__epsilon=1.5))
    report = funnel.audit_release(summary.release, tmp_path / "private")
    assert report.passed
    assert claim(report, "rounded-beliefs")[0] == "passed"


def test_a_lock_pins_what_was_made_from_rounded_beliefs(tmp_path):
    path = write_policy(tmp_path, **ROUNDED)
    funnel.make_lock(path)
    summary = funnel.run(path, locked=True)
    assert text(summary.release, "release.json")["estimate"]["beliefs"] == 0.02
    report = funnel.audit_release(summary.release, tmp_path / "private")
    assert report.passed
    status, said = claim(report, "rounded-beliefs")
    assert (status, "no file of this release" in said) == ("not checked", True)
    write_policy(tmp_path, **(ROUNDED | {"estimate__beliefs": 0.05}))
    with pytest.raises(funnel.FunnelError, match=r"estimate\.beliefs is 0\.05, the lock has 0\.02"):
        funnel.run(path, locked=True)


def test_cells_are_locked_and_released_from_rounded_beliefs(tmp_path):
    people(tmp_path)
    path = write_policy(
        tmp_path, **WIDE | {"mechanism": "invariant", "estimate__beliefs": 0.05, "privacy__epsilon": 1.5}
    )
    funnel.make_lock(path)
    first, second = (funnel.run(path, locked=True) for _ in range(2))
    assert Path(first.release, "protocol.json").read_bytes() == Path(second.release, "protocol.json").read_bytes()
    assert "made from these counts tell" not in funnel.explain(path).text()
    assert funnel.audit_release(second.release, tmp_path / "private").passed


def test_what_is_published_narrows_counts_down_less():
    """For the shipped policy's table what is known of a count is three times as wide; of others fewer are narrowed."""
    table = census("income", "occupation").table()
    rare = np.argsort(table.sum(axis=0))[:2]
    shipped = Joint.from_table(np.column_stack([np.delete(table, rare, axis=1), table[:, rare].sum(axis=1)]))
    (_, before), (_, after) = (told(shipped, "optimal", step) for step in (None, 0.02))
    assert after > 3 * before > 300
    joint = census("sex", "education")
    assert [told(joint, "invariant", step)[0].narrowed for step in (None, 0.02)] == [2, 0]


def told(joint: Joint, mechanism: str, step: float | None):
    """How many cells a reader knows to fewer than ten records, and how wide the middle one's range is."""
    lip = NOTIONS["lip"](notion="lip", epsilon=0.5)
    made = protect(joint, lip, MECHANISMS[mechanism](kind=mechanism), (1.0,), minimum=10, beliefs=step)
    known = ranges(joint.table(), made.protocols[0].probabilities(), np.ones(joint.shape, bool))
    return narrowed(joint, made.protocols, 10), float(np.median(known[..., 1] - known[..., 0]))


def test_a_release_that_claims_rounded_beliefs_without_them_fails_by_name(tmp_path):
    summary = funnel.run(write_policy(tmp_path, sensitive=["income"], public=["education"]))
    manifest = text(summary.release, "release.json")
    manifest["estimate"]["beliefs"] = 0.02
    file = Path(summary.release, "release.json")
    file.chmod(0o600)
    file.write_bytes(encode(manifest))
    report = funnel.audit_release(summary.release, tmp_path / "private")
    status, said = claim(report, "rounded-beliefs")
    assert status == "failed"
    assert "a table whose beliefs round to the same steps exceeds the bound" in said
    assert claim(report, "policy-terms")[0] == "failed"


@pytest.mark.long
def test_comparison_shows_what_steps_cost_beside_rldp(tmp_path):
    path = write_policy(tmp_path, sensitive=["income"], public=["education"])
    found = funnel.compare(path, (1.0,), beliefs=(0, 0.05, 0.02))
    kept = {line.name: line.points[0].normalised for line in found.lines}
    steps = [f"optimal, beliefs in steps of {step}" for step in (0.02, 0.05)]
    assert kept["optimal"] > kept[steps[0]] > kept[steps[1]] > 0.97
    assert kept["optimal (reference, rldp)"] > 0  # which the notion of the policy follows from
    rounded = funnel.compare(write_policy(tmp_path, **ROUNDED), (1.0,))
    again = {line.name: line.points[0].normalised for line in rounded.lines}
    assert again["optimal"] == kept["optimal, beliefs in steps of 0.02"]
    assert again["optimal (reference, beliefs as counted)"] == pytest.approx(kept["optimal"])
    assert set(again) == {"optimal", "invariant", "randomised-response", "optimal (reference, beliefs as counted)"}
    assert rounded.svg().count("beliefs as counted") >= 1
    with pytest.raises(PlanError, match=r"from 0 to 0\.25"):
        funnel.compare(path, (1.0,), beliefs=(0.5,))
    with pytest.raises(PlanError, match="not measured over all beliefs"):
        funnel.compare(write_policy(tmp_path, privacy={"notion": "srlip", "epsilon": 1.0}), beliefs=(0.02,))


def test_the_command_line_tells_of_steps(command, tmp_path):
    path = write_policy(tmp_path, **(ROUNDED | {"public": ["race"]}))
    assert "from beliefs rounded outward to steps of 0.02" in command("plan", path).out
    compared = command("compare", path, "--epsilon", "1", "--beliefs", "0.05")
    assert "optimal, beliefs in steps of 0.05" in compared.out
    assert command("compare", path, "--beliefs", "x").code == 2


@pytest.mark.parametrize(("step", "share"), [(None, 0.9834), (0.01, 0.979), (0.02, 0.9777), (0.05, 0.9731)])
def test_what_steps_cost_where_the_secret_is_common(step, share):
    found = of("income", "education", step)
    assert found.normalised == pytest.approx(share, abs=6e-4)


def test_and_where_a_value_of_it_is_rare_nearly_everything():
    """P(s|x) of a secret that 23 people have lies in the lowest step for every x, so it may be all of one x."""
    found = of("marital_status", "relationship", 0.02)
    assert found.normalised < 0.4 < of("marital_status", "relationship", None).normalised


def of(secret: str, public: str, step: float | None):
    lip = NOTIONS["lip"](notion="lip", epsilon=1.0)
    joint = census(secret, public)
    assert (np.asarray(joint.table()).sum(axis=0) >= 10).all()
    return protect(joint, lip, MECHANISMS["optimal"](kind="optimal"), (1.0,), minimum=10, beliefs=step)


def test_totals_of_few_are_rounded_and_not_kept(tmp_path):
    """Of several blocks: the totals kept were those of a table that nobody has, and every such run failed its audit."""
    number = {"xpp": 9, "xpq": 14, "xqp": 12, "xqq": 4, "ypp": 12, "ypq": 15, "yqp": 9, "yqq": 3}
    rows = [",".join(kind) for kind, times in number.items() for _ in range(times)]
    (tmp_path / "t.csv").write_text("\n".join(["s,a,b", *rows]))
    policy = {
        "source": {"table": "t.csv"}, "sensitive": ["s"], "public": ["a", "b"], "draws": None,
        "privacy": {"notion": "ldp", "epsilon": 0.7}, "mechanism": "invariant", "estimate__beliefs": 0.1,
    }  # fmt: skip
    with pytest.raises(PlanError, match="totals that follow from them cannot be kept"):
        funnel.run(write_policy(tmp_path, **policy))
    for changes in ({"mechanism": {"kind": "invariant", "totals": "free"}}, {"estimate__minimum": 7}):
        assert funnel.run(write_policy(tmp_path, **policy | changes)).release
