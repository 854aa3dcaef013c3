"""What a release says can be kept at most comes with a proof that the auditor goes through without the solver."""

from __future__ import annotations

import html
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import funnel
from funnel.optimise import solve
from funnel.optimise.certificate import Certificate
from funnel.optimise.columns.search import Columns
from funnel.plan.rebuild import rebuild
from funnel.release import solution
from tests.support.audited import detail, missing, statuses
from tests.support.people import SMALL as TWO
from tests.support.people import people
from tests.support.policies import write_policy

BOXES, ROWS, PAIRS = (
    "gone through again",
    "rows of two different entries priced",
    "values and pairs of values priced",
)
SMALL = {"sensitive": ["race"], "public": [["sex", "relationship"]], "estimate": {"minimum": 1}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lip": (BOXES, {}),
    "ldp of many secret values": (BOXES, {"sensitive": ["occupation"], "privacy__notion": "ldp"}),
    "two secret values": (PAIRS, {"sensitive": ["sex"], "privacy__epsilon": 0.1}),
    "ldp of two secret values": (PAIRS, {"sensitive": ["sex"], "privacy": {"notion": "ldp", "epsilon": 0.1}}),
    "perfect of two secret values": (PAIRS, {"sensitive": ["sex"], "privacy": {"notion": "perfect"}}),
    "perfect of more": (BOXES, {"sensitive": ["race"], "privacy": {"notion": "perfect"}}),
    "srlip": (BOXES, SMALL | {"privacy": {"notion": "srlip", "epsilon": 0.5}}),
    "the usual ldp": (ROWS, {"public": ["relationship"], "privacy": {"notion": "ldp-x", "epsilon": 1.0}}),
    "time that is over": (BOXES, {"sensitive": ["occupation"], "mechanism": {"kind": "optimal", "time_limit": 0.7}}),
    "robust, by way of pairs of distributions": (BOXES, {
        "sensitive": ["sex"], "public": ["sex", "income"], "privacy": {"notion": "rldp", "epsilon": 1.0},
        "mechanism": {"kind": "optimal", "time_limit": 20, "gap": 1e-3},
    }),
    "robust, by way of the secret": (ROWS, {
        "sensitive": ["race"], "public": ["race", "sex"], "privacy": {"notion": "rldp", "epsilon": 1.0},
        "mechanism": {"kind": "polyopt", "time_limit": 1},
    }),
    "the reference without robustness": (ROWS, {
        "sensitive": ["race"], "public": ["race", "sex"], "privacy": {"notion": "ldp", "epsilon": 1.0},
        "mechanism": "non-robust",
    }),
}  # fmt: skip


@pytest.fixture
def released(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[funnel.Summary, Path]]:
    """A release made in this process."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def make(**changes: Any) -> tuple[funnel.Summary, Path]:
        summary = funnel.run(write_policy(tmp_path, **changes))
        return summary, Path(str(summary.release))

    return make


def claims(release: Path, private: Path) -> Any:
    return funnel.audit_release(release, private)


@pytest.mark.long
@pytest.mark.parametrize("what", CASES)
def test_the_bound_of_a_release_is_proven_anew(what: str, released, tmp_path) -> None:
    how, changes = CASES[what]
    summary, release = released(**changes)
    report = claims(release, tmp_path / "private")
    assert report.passed
    assert statuses(report)["utility-bound"] == "passed"
    told = detail(report, "utility-bound")
    assert told.endswith((how, "which bounds everything") if what == "time that is over" else how)
    assert summary.measured.normalised <= summary.measured.normalised_bound


def test_a_proof_is_private_and_the_published_report_gives_no_number_of_boxes(released, tmp_path) -> None:
    _, release = released()
    kept = tmp_path / "private" / release.name
    assert not (release / "proof.bin").exists()
    assert (kept / "proof.bin").stat().st_mode & 0o777 == 0o600
    boxes = json.loads((kept / "solution.json").read_text())["certificate"]["proof"]["boxes"]
    full = json.loads((kept / "report.json").read_text())["evidence"]["proof"]
    assert f"branch and bound over {boxes:,} boxes" in full and "with the private evidence, the audit" in full
    assert "branch and bound" not in (release / "report.json").read_text()


def test_the_full_report_can_be_rebuilt_and_says_the_same_of_the_proof(released, tmp_path) -> None:
    _, release = released()
    kept = tmp_path / "private" / release.name
    rebuild(release, tmp_path / "private", tmp_path / "again")
    for name in ("report.json", "report.html"):
        assert (kept / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_report_is_printed_by_an_optional_library_and_never_into_a_release(released, tmp_path, monkeypatch) -> None:
    _, release = released()
    pages = list[str]()

    class Printed:
        def __init__(self, string: str) -> None:
            pages.append(string)

        def write_pdf(self) -> bytes:
            return b"%PDF"

    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(funnel.ReleaseError, match="not installed"):
        rebuild(release, None, tmp_path / "print", pdf=True)
    assert not (tmp_path / "print").exists()
    monkeypatch.setitem(sys.modules, "weasyprint", SimpleNamespace(HTML=Printed))
    rebuild(release, None, tmp_path / "print", pdf=True)
    assert (tmp_path / "print" / "report.pdf").read_bytes() == b"%PDF"
    assert pages == [(release / "report.html").read_text("utf-8")]
    with pytest.raises(funnel.ReleaseError, match=r"no file of a release"):
        rebuild(release, None, None, pdf=True)


def test_of_several_blocks_no_bound_is_claimed(released, tmp_path) -> None:
    _, release = released(public=["education_num", "sex"], estimate={"minimum": 1})
    report = claims(release, tmp_path / "private")
    assert detail(report, "utility-bound") == "not claimed: no upper bound is stated"
    assert "utility-bound" not in missing(report)
    assert not (tmp_path / "private" / release.name / "proof.bin").exists()


def test_a_proof_too_large_to_be_read_again_is_not_kept(released, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(solution, "MOST_BYTES", 100)
    _, release = released()
    assert not (tmp_path / "private" / release.name / "proof.bin").exists()
    assert statuses(claims(release, tmp_path / "private"))["utility-bound"] == "not checked"


@pytest.mark.parametrize("figure", ["duals", "peak"])
def test_a_release_whose_proof_does_not_hold_is_never_published(
    figure: str, tmp_path, key, monkeypatch
) -> None:
    monkeypatch.setenv("FUNNEL_KEY", key)

    def lying(*arguments: Any, **options: Any) -> Columns:
        found = honestly(*arguments, **options)
        honest = found.certificate
        less = {"duals": honest.duals * 0.99, "peak": honest.peak - 1e-3}
        return replace(found, certificate=Certificate(**(vars(honest) | {figure: less[figure]})))

    honestly = solve.columns
    monkeypatch.setattr(solve, "columns", lying)
    monkeypatch.setattr(solve, "max", lambda bound, value: bound, raising=False)
    with pytest.raises(funnel.FunnelError) as caught:
        funnel.run(write_policy(tmp_path))
    assert caught.value.code == "audit-failed"
    assert not os.path.lexists(tmp_path / "releases" / "latest")


OF_FEW = {
    "en": (
        ["how close they come to the best is not told", "What any other mechanism could keep", "A ceiling on what any"],
        ["may keep more", "No ceiling", "The ceiling is proven"],
    ),
    "de": (
        ["wie nahe sie dem Besten kommen", "Was irgendein anderes Verfahren", "Eine Obergrenze dessen"],
        ["vielleicht mehr", "mehr erhalten", "Die Obergrenze ist"],
    ),
}
"""What pages say of the optimum of a few records, and what they do not."""


@pytest.mark.parametrize("language", OF_FEW)
def test_of_few_records_nothing_is_said_of_what_others_could_keep(tmp_path: Path, language: str) -> None:
    """The optimum is proven in the private evidence, and a figure of it would tell single records."""
    people(tmp_path, [[4, 2, 1], [1, 3, 3]])
    asked = {"privacy": {"notion": "lip", "epsilon": 0.5}, "mechanism": "optimal", "estimate": {"minimum": 1}}
    asked |= {"draws": {"kind": "fresh"}, "release__language": language}
    made = Path(funnel.run(write_policy(tmp_path, **(TWO | asked))).release or "")
    full, published = (
        " ".join(html.unescape((folder / "report.html").read_text()).split())
        for folder in (tmp_path / "private" / made.name, made)
    )
    told, never = OF_FEW[language]
    assert all(one in full for one in told)
    assert not any(one in full + published for one in never)
