"""funnel compare: the figures that a run would give, at every epsilon, for every mechanism that fits."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import funnel
from funnel.errors import PlanError, SourceError
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.choice import PASSED_OVER
from funnel.notions import NOTIONS
from tests.support.policies import write_policy

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Sex is public, relationship hidden: small alphabets, so that everything is quick."""
    folder = tmp_path_factory.mktemp("compare")
    return funnel.compare(write_policy(folder, sensitive=["relationship"], public=["sex"]), (1.0, 0.25, 1.0))


def test_every_fitting_mechanism_has_a_point_at_every_epsilon_once_and_in_order(compared):
    fitting = {kind for kind, one in MECHANISMS.items() if one.misfit("lip", secret_public=False) is None}
    assert {line.mechanism for line in compared.lines} == fitting - {"auto"}
    assert compared.lines[0].mechanism == "optimal"
    assert all([point.epsilon for point in line.points] == [0.25, 1.0] for line in compared.lines)


def test_a_point_is_what_a_run_would_give(compared, tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    for line in compared.lines:
        (_, point) = line.points
        changes = {"sensitive": ["relationship"], "public": ["sex"], "mechanism": line.mechanism}
        run = funnel.run(write_policy(tmp_path, **changes), dry_run=True)
        assert point.normalised == pytest.approx(run.measured.normalised)
        assert point.upper_bound == pytest.approx(run.measured.normalised_bound)
        assert point.leakage == run.measured.own.nats
        assert point.leakage <= 1.0


@pytest.mark.parametrize("changes", [{"privacy": {"notion": "srlip", "epsilon": 1.0}},
                                     {"release__partition": "sex"}])  # fmt: skip
def test_what_is_compared_could_be_asked_for(tmp_path, changes):
    """Sets of values neither stand beside another block under srlip, nor for a folder."""
    terms = {"sensitive": ["relationship"], "public": ["sex", "race"]} | changes
    found = funnel.compare(write_policy(tmp_path, **terms), (1.0,))
    assert {"optimal", "randomised-response"} <= {line.mechanism for line in found.lines}
    for line in found.lines:
        funnel.load(write_policy(tmp_path, **terms | {"mechanism": line.mechanism}))


def test_files_without_folders_are_open_to_sets_of_values(tmp_path):
    terms = {"sensitive": ["relationship"], "public": ["sex"], "release__partition": {"rows": 20_000}}
    kinds = {line.mechanism for line in funnel.compare(write_policy(tmp_path, **terms), (1.0,)).lines}
    assert "unary-encoding" in kinds


def test_rows_and_totals_stand_beside_information_and_epsilon_0(compared):
    told = {line.mechanism: [point.faithful for point in line.points] for line in compared.lines}
    for optimal, invariant in zip(told["optimal"], told["invariant"], strict=True):
        assert invariant.unchanged >= compared.at_zero.unchanged
        assert invariant.face < min(optimal.face, compared.at_zero.face)
    assert compared.at_zero.unchanged == pytest.approx(0.669**2 + 0.331**2, abs=1e-3)
    assert compared.at_zero.accuracy == pytest.approx(compared.at_zero.unchanged)
    text = compared.text()
    assert text.count("records unchanged") == len(compared.lines) + 1
    assert "epsilon 0, drawn for nobody" in text
    assert compared.as_dict()["lines"][1]["points"][0]["faithful"]["face"] == told["invariant"][0].face


def test_no_reader_of_x_alone_passes_the_certified_bound(compared):
    optimal = compared.lines[0]
    for line in compared.lines:
        for bound, point in zip(optimal.points, line.points, strict=True):
            if not MECHANISMS[line.mechanism].reads_secret and point.normalised is not None:
                assert point.normalised <= bound.upper_bound + 1e-9


def test_a_picture_proves_no_less_than_the_table(compared):
    told = re.findall(r"proven at most ([0-9.]+)%", compared.svg())
    bounds = [point.upper_bound for line in compared.lines for point in line.points if point.upper_bound is not None]
    assert len(told) == len(bounds) > 0
    assert all(float(one) / 100 >= bound for one, bound in zip(told, bounds, strict=True))


def test_a_point_without_a_figure_says_why_and_is_not_zero(tmp_path):
    found = funnel.compare(write_policy(tmp_path), (1.0,), time_limit=1e-9)
    assert {point.normalised for line in found.lines for point in line.points} == {None}
    assert {point.reason for line in found.lines for point in line.points} == {PASSED_OVER["solver-time"]}
    text = found.text()
    assert text.count("0.00%") == 1  # at epsilon 0
    assert text.count(PASSED_OVER["solver-time"]) == len(found.lines)
    crosses = list(ElementTree.fromstring(found.svg()).iter(f"{SVG}path"))
    assert len(crosses) == len(found.lines)


def test_what_reads_the_secret_is_refused_where_some_secret_is_rare(tmp_path):
    changes = {"sensitive": ["native_country"], "public": ["sex"], "estimate__minimum": 10}
    found = funnel.compare(write_policy(tmp_path, **changes), (0.5,))
    reasons = {line.mechanism: line.points[0].reason for line in found.lines}
    assert reasons["conditional-reporting"] == PASSED_OVER["below-minimum"]
    assert reasons["optimal"] is None


def test_a_bound_on_the_fall_is_the_policys_at_every_epsilon(tmp_path, key, monkeypatch):
    """A run with another epsilon keeps it; where it would be below, there is no such policy."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    terms = {"sensitive": ["relationship"], "public": ["sex"], "mechanism": "optimal"}
    policy = write_policy(tmp_path, **terms, privacy={"notion": "alip", "epsilon": 0.2, "lower": 0.4})
    found = funnel.compare(policy, (0.1, 0.3, 0.5))
    optimal = next(line for line in found.lines if line.mechanism == "optimal")
    for point in optimal.points[:2]:
        asked = {"notion": "alip", "epsilon": point.epsilon, "lower": 0.4}
        run = funnel.run(write_policy(tmp_path, **terms, privacy=asked), dry_run=True)
        assert point.normalised == pytest.approx(run.measured.normalised)
    assert (optimal.points[2].normalised, optimal.points[2].reason) == (
        None, "the policy's `lower` is below this epsilon",
    )  # fmt: skip


def test_perfect_privacy_has_one_epsilon(tmp_path):
    policy = write_policy(tmp_path, sensitive=["relationship"], public=["sex"], privacy={"notion": "perfect"})
    assert {point.epsilon for line in funnel.compare(policy).lines for point in line.points} == {0.0}
    with pytest.raises(PlanError) as caught:
        funnel.compare(policy, (0.5,))
    assert caught.value.code == "epsilon"


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e9, float("nan"), float("inf")])
def test_an_epsilon_that_is_no_bound_is_refused(tmp_path, epsilon):
    with pytest.raises(PlanError) as caught:
        funnel.compare(write_policy(tmp_path), (0.5, epsilon))
    assert caught.value.code == "epsilon"


def test_the_reference_under_robust_privacy_is_named_dashed_and_last(tmp_path):
    """Without robustness at least as much is kept; that is what the promise costs."""
    changes = {"sensitive": ["income"], "public": [["income", "sex"]], "privacy__notion": "rldp"}
    found = funnel.compare(write_policy(tmp_path, **changes), (1.0,))
    (reference,) = [line for line in found.lines if line.keeps is not None]
    assert found.lines[-1] is reference
    assert (reference.mechanism, reference.keeps) == ("non-robust", "ldp")
    for line in found.lines:
        for point in line.points:
            assert point.normalised <= reference.points[0].upper_bound + 1e-9
    assert f"{reference.mechanism} (reference, ldp only)" in found.text()
    assert f"{reference.mechanism} (reference, ldp only)" in found.svg()


def test_the_table_is_checked_as_in_a_run(tmp_path):
    with pytest.raises(SourceError) as caught:
        funnel.compare(write_policy(tmp_path, public=["education"], estimate__minimum=1000))
    assert caught.value.code == "below-minimum"


def test_the_command_writes_a_picture_and_nothing_else(command, tmp_path):
    policy = write_policy(tmp_path, sensitive=["relationship"], public=["sex"])
    for name in ("p.svg", "p.html"):
        done = command("compare", policy, "--epsilon", "0.5,1", "--picture", tmp_path / name, "--json")
        assert done.code == 0, done.err
        assert done.err == ""
        assert [point["epsilon"] for point in done.json["lines"][0]["points"]] == [0.5, 1.0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.html", "p.svg", "policy.yaml"]
    assert ElementTree.parse(tmp_path / "p.svg").getroot().tag == f"{SVG}svg"
    page = (tmp_path / "p.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    shown = command("compare", policy, "--epsilon", "0.5,1")
    assert "optimal" in shown.out
    assert "%" in shown.out


@pytest.mark.parametrize(
    "wrong",
    [("--epsilon", "a"), ("--epsilon", ""), ("--epsilon", "1,-2"), ("--epsilon", "nan"),
     ("--picture", "p.png"), ("--time-limit", "0")],
)  # fmt: skip
def test_wrong_usage_is_exit_code_two(command, tmp_path, wrong):
    assert command("compare", write_policy(tmp_path), *wrong).code == 2


def test_a_picture_that_cannot_be_written_is_told(command, tmp_path):
    policy = write_policy(tmp_path, sensitive=["relationship"], public=["sex"])
    done = command("compare", policy, "--epsilon", "1", "--picture", tmp_path / "no" / "p.svg")
    assert done.code == 1
    assert "[release-write]" in done.err


def test_a_proven_ceiling_is_not_shown_lower_than_it_is(compared):
    text = compared.text().splitlines()
    shown = [[float(one.strip("%")) / 100 for one in row.split()[3:]] for row in text if "at most, proven" in row]
    proven = [[point.upper_bound for point in line.points] for line in compared.lines if line.points[0].upper_bound]
    assert len(shown) == len(proven) > 0
    for told, found in zip(shown, proven, strict=True):
        assert all(bound <= one + 1e-12 < bound + 1.1e-4 for one, bound in zip(told, found, strict=True))


def test_what_is_left_of_a_wide_block_is_said_to_be_about_its_cells(tmp_path):
    """That a row's cell is the true one says nothing of the values in it, which are drawn from what cells.json says."""
    wide = {"name": "person", "columns": ["sex", "education"], "cells": {"most": 3, "minimum": 1000}}
    path = write_policy(tmp_path, sensitive=["relationship"], public=["race", wide])
    told = funnel.compare(path, (1.0,))
    assert told.title.startswith("Information kept of race, cells of person under lip")
    assert told.text().count("records unchanged, by their cells") == told.text().count("records unchanged") > 0
    assert told.as_dict()["cells"] == ("person",)


def test_what_did_not_finish_is_named_as_its_line_is(tmp_path, monkeypatch):
    """Of two lines with one mechanism it is the one without a figure."""

    def never(*_: object) -> None:
        raise PlanError("mechanism-notion", "it cannot be asked")

    monkeypatch.setattr(NOTIONS["rldp"], "at", never)
    told = funnel.compare(write_policy(tmp_path, sensitive=["relationship"], public=["sex"]), (1.0,), beliefs=(0.05,))
    (note,) = (line for line in told.text().splitlines() if line.startswith("- optimal"))
    assert note.startswith("- optimal (reference, rldp) at epsilon 1:")


def test_epsilon_0_is_of_the_totals_that_a_run_would_release(tmp_path, key, monkeypatch):
    """Two columns become one under a notion that solves them together."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    asked = {
        "sensitive": ["income"], "public": ["sex", {"name": "age", "bins": [17, 25, 45]}], "mechanism": "optimal",
        "privacy": {"notion": "srlip", "epsilon": 0.5},
    }  # fmt: skip
    path = write_policy(tmp_path, **asked)
    nobody, at_zero = funnel.run(path, dry_run=True).measured.nobody, funnel.compare(path, (0.5,)).at_zero
    assert (at_zero.unchanged, at_zero.face) == pytest.approx((nobody.unchanged, nobody.error))
