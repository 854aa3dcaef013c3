"""The experiments of the papers: small runs of each, what must be true of them, and the page that tells of them."""

from __future__ import annotations

import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "papers"))

import ds_mechanisms
import ds_optima
import page
import pf
import rldp
import robust
import solving
import tables
from draw import figure
from findings import Claim, Findings, Panel, Run, Series, load, save
from robust import BOXES, MECHANISMS, PRINTED, Sample

PAPERS = Path(page.__file__).parent
NEAR = 1e-9
SMALL = (2, 3)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(robust, "SECONDS", 1.0)


RUNS = {
    "ds-3": lambda: ds_optima.figure_3(Run(2), 3),
    "ds-4": lambda: ds_optima.figure_4(Run(1), (2, 3)),
    "ds-5": lambda: ds_mechanisms.figure_5(Run(1), (0.5, 2.0), panels=1),
    "ds-6": lambda: ds_mechanisms.figure_6(Run(2), ((3, 2),)),
    "ds-7": lambda: ds_mechanisms.figure_7(Run(4), 3),
    "ds-8": lambda: ds_mechanisms.figure_8(Run(1), (0.5,)),
    "rldp-2": lambda: rldp.figure_2(Run(1), panels=1, epsilons=(1.5,)),
    "rldp-3": lambda: rldp.figure_3(Run(2), [SMALL], (0.3, 1.5)),
    "rldp-4": lambda: rldp.figure_4(Run(2), [SMALL], (0.3,)),
    "rldp-5": lambda: rldp.figure_5(Run(2), [SMALL]),
    "rldp-table-2": lambda: rldp.table_2(Run(1), [(2, 5)], (0.1,)),
    "pf-1": lambda: pf.figure_1(Run(1)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_every_experiment_runs_and_is_kept_in_a_few_kilobytes(name, tmp_path):
    findings = RUNS[name]()
    path = save(tmp_path / "results", name, f"python examples/papers {name}", Run(2), findings)
    assert path.stat().st_size < 16_000
    about, again = load(path)
    assert about["versions"]["numpy"] == np.__version__
    assert [one.title for one in again.panels] == [one.title for one in findings.panels]
    assert again.claims == findings.claims
    assert findings.claims

    written = page.write(tmp_path).read_text(encoding="utf-8")
    assert page.TITLES[name].title in written
    for claim in findings.claims:
        assert claim.said in written
        assert claim.ours in written
    if findings.panels:
        marks = ET.parse(path.with_suffix(".svg")).getroot().iter()
        numbers = [float(v) for mark in marks for k, v in mark.attrib.items() if k in ("x", "y", "cx", "cy")]
        assert all(math.isfinite(number) for number in numbers)


def test_optima_lie_in_the_order_of_the_notions():
    """ε/2-LIP implies ε-LDP, which implies ε-LIP; and the cone has the optimum of the polytope of Theorem 2."""
    found = ds_optima.figure_3(Run(3), 3)
    above, below = found.panels
    for panel in (above, below):
        assert all(ratio <= 1 + NEAR for series in panel.series for _, ratio in series.points)
    assert found.claims[-1].holds


def test_randomised_response_and_unary_encoding_stay_below_the_optimum():
    """Both are protocols on X, so the optimum bounds them; so does half of H(X) the latter."""
    joint = tables.joint(tables.jeffreys(np.random.default_rng(3), (3, 4)))
    for epsilon in (0.5, 1.5):
        best = solving.optimum(joint, solving.lip(epsilon)).value
        for mechanism in (solving.GRR, solving.OUE):
            kept = solving.kept_nats(joint, solving.solved(joint, mechanism, solving.lip(epsilon)))
            assert kept <= best + NEAR


def test_strengths_are_those_of_the_formulas():
    """LIP(GRR^α) = max |ln (1 + k p(x|s)) / (1 + k p(x))| and L(α) of conditional reporting, k = e^α - 1."""
    distribution = tables.jeffreys(np.random.default_rng(5), (3, 4)) + 0.02
    joint = tables.joint(distribution / distribution.sum())
    given = joint.table() / joint.table().sum(axis=1, keepdims=True)
    prior, epsilon = solving.prior(joint), 0.4
    k = math.expm1(solving.grr_strength(solving.solved(joint, solving.GRR, solving.lip(epsilon))))
    assert np.abs(np.log((1 + k * given) / (1 + k * prior))).max() == pytest.approx(epsilon, rel=1e-2)
    k = math.expm1(solving.cr_strength(solving.solved(joint, solving.CR, solving.lip(epsilon)), 3))
    whole = given.sum(axis=0)
    assert np.abs(np.log((k * given + whole) / (k * prior + whole))).max() == pytest.approx(epsilon, rel=1e-2)


@pytest.fixture(scope="module")
def samples():
    return list(rldp._samples(Run(3), SMALL))


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_nothing_robust_keeps_more_than_the_non_robust_optimum(samples, epsilon):
    for sample in samples:
        kept = {
            name: robust.normalised(sample, build(sample, epsilon, 0.05))
            for name, build in MECHANISMS.items()
        }
        for name in ("SRR", PRINTED, BOXES, "IR", "IR, Theorem 5"):
            assert kept[name] <= kept["NR"] * (1 + 1e-4)
        assert kept["IR, Theorem 5"] <= kept["IR"] * (1 + 1e-3)
        assert kept[PRINTED] <= kept[BOXES] + robust.GAP


def test_what_is_given_away_under_the_estimate_and_under_the_truth(samples):
    epsilon = 0.3
    for sample in samples:
        known = Sample.of(sample.table)
        for name in ("NR", PRINTED, BOXES, "IR"):
            assert robust.realised(known, MECHANISMS[name](sample, epsilon, 0.05)) <= epsilon * (1 + 1e-6)
        for name in ("SRR", "GRR"):
            assert robust.realised(sample, MECHANISMS[name](sample, epsilon, 0.05)) <= epsilon * (1 + 1e-6)


def test_the_truth_is_averaged_over_where_no_record_was_seen():
    sample = Sample.of(np.array([[30, 0], [10, 60]]), np.array([[0.3, 0.01], [0.1, 0.59]]))
    whole = sample.whole(MECHANISMS["SRR"](sample, 1.0, 0.05))
    assert np.allclose(whole.sum(axis=0), 1)
    assert np.allclose(whole[:, 0, 1], whole[:, 0, 0])


def test_the_funnel_lies_below_the_bottleneck_and_ends_at_nothing():
    assert all(claim.holds for claim in pf.figure_1(Run(1)).claims)


def test_draws_are_the_same_however_many_follow():
    few, many = ([tables.jeffreys(g, SMALL) for g in Run(n).generators()] for n in (2, 3))
    assert np.array_equal(few[1], many[1])
    assert not np.array_equal(few[0], few[1])


def test_charts_survive_hostile_and_single_values():
    panel = Panel("<b>&", "x", "y", [Series("a|b", [[1.0, 0.0, 0.0]]), Series("<i>", [[1.0, 0.0]], "dots")])
    root = ET.fromstring(figure([panel], "t"))
    assert "<b>&" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_cell_of_the_page_cannot_break_its_table(tmp_path):
    findings = Findings([], [Claim("a | b", "1", "2", None)], [])
    save(tmp_path / "results", "ds-3", "c", Run(1), findings)
    assert "a \\| b" in page.write(tmp_path).read_text(encoding="utf-8")


def test_the_page_is_what_the_stored_results_say(tmp_path):
    """Built from the JSON files alone, page and figures come out as they are kept."""
    stored = PAPERS / "results"
    (tmp_path / "results").mkdir()
    for file in stored.glob("*.json"):
        (tmp_path / "results" / file.name).write_bytes(file.read_bytes())
    assert page.write(tmp_path).read_bytes() == (PAPERS / "README.md").read_bytes()
    drawn = {file.name: file.read_bytes() for file in (tmp_path / "results").glob("*.svg")}
    assert drawn == {file.name: file.read_bytes() for file in stored.glob("*.svg")}
    assert {file.stem for file in stored.glob("*.json")} == set(page.TITLES)


def test_the_page_prints_table_2_in_full():
    written = (PAPERS / "README.md").read_text(encoding="utf-8")
    for rows in rldp.PRINTED_TABLE.values():
        for values in rows.values():
            assert all(f"{value:.3f} / " in written for value in values)


@pytest.mark.long
def test_one_command_and_quiet_in_a_log(tmp_path):
    command = [sys.executable, str(PAPERS), "pf-1", "page", "--to", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert (tmp_path / "results" / "pf-1.svg").exists()
    assert "greedy privacy funnel" in (tmp_path / "README.md").read_text(encoding="utf-8")
    refused = subprocess.run(
        [sys.executable, str(PAPERS), "ds-9"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "rldp-table-2" in refused.stderr
