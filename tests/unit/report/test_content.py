"""The content: its figures agree with definitions computed by hand, and it is a function of the files alone."""

from __future__ import annotations

import html
import inspect
import json
import math
import re
from dataclasses import fields, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import released_table
from funnel.format import canonical
from funnel.format.drift import DriftFile
from funnel.format.manifest import Candidate, FileEntry, Utility
from funnel.format.reported import Published, read, written
from funnel.format.solution import Certificate, Proof, SolutionFile
from funnel.measure.leakage import lip
from funnel.measure.observer import Observed
from funnel.report import FORMAT, figures, page, published
from funnel.report.facts import Facts, parts
from funnel.report.observer import above
from funnel.report.promise import within
from funnel.report.released import significant
from funnel.text import label
from tests.unit.report import sample
from tests.unit.report.sample import Sample

SAMPLES = {name: getattr(sample, name)() for name in ("one_block", "two_blocks", "awkward", "independent")}


@pytest.fixture(params=[(name, public) for name in SAMPLES for public in (True, False)], ids=str)
def content(request: pytest.FixtureRequest) -> dict[str, Any]:
    name, public = request.param
    return SAMPLES[name].content(public)


def test_what_can_be_asked_has_the_errors_of_the_counts_of_each_column() -> None:
    for release in (SAMPLES["one_block"], SAMPLES["two_blocks"]):
        asked = release.published()["asked"]
        for block in release.published()["blocks"]:
            (one,) = [one for one in asked["columns"] if one["name"] == block["name"]]
            errors = [entry["error"] for entry in block["totals"]["entries"]]
            known = [error for error in errors if error is not None]
            assert one["values"] == block["values"]
            if block["totals"]["complete"]:
                assert one["known"] == block["values"]
                assert one["error"] == pytest.approx(float(np.sqrt(np.mean(np.square(known)))), rel=0.06)


def text_of(content: dict[str, Any]) -> str:
    """All words of a page, one space apart."""
    return " ".join(
        html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", page(content), flags=re.DOTALL)).split()
    )


def posteriors(release: Sample) -> tuple[np.ndarray, np.ndarray]:
    """P(s) and P(s|y) by Bayes' rule, one cell, one output at a time."""
    protocols, joint = release.protocols, release.joint
    sizes = [range(len(protocol.outputs)) for protocol in protocols]
    chances = [protocol.probabilities() for protocol in protocols]
    both = np.zeros((len(joint.secret), *map(len, sizes)))
    for cell, count in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        s, xs = cell[0], cell[1:]
        for ys in product(*sizes):
            drawn = [q[y, s if q.shape[1] > 1 else 0, x] for q, y, x in zip(chances, ys, xs, strict=True)]
            both[(s, *ys)] += count / joint.rows * math.prod(drawn)
    flat = both.reshape(len(joint.secret), -1)
    flat = flat[:, flat.sum(axis=0) > 0]
    return flat.sum(axis=1), flat / flat.sum(axis=0)


# Beliefs, shares and guesses of the full report, against their definitions.


@pytest.mark.parametrize("name", SAMPLES)
def test_beliefs_follow_bayes_rule(name: str) -> None:
    before, after = posteriors(SAMPLES[name])
    entries = SAMPLES[name].full()["evidence"]["secrets"]
    labels = [label(value) for value in SAMPLES[name].joint.secret.values]
    for entry in entries:
        s = labels.index(entry["value"])
        assert entry["before"] == pytest.approx(before[s], abs=1e-6)
        assert entry["lowest"] == pytest.approx(after[s].min(), abs=1e-6)
        assert entry["highest"] == pytest.approx(after[s].max(), abs=1e-6)
    assert sum(entry["before"] for entry in entries) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["one_block", "awkward"])
def test_the_strongest_change_of_all_is_the_leakage(name: str) -> None:
    content = SAMPLES[name].full()
    changes = [entry["change"] for entry in content["evidence"]["secrets"]]
    assert max(changes) == pytest.approx(content["measured"]["leakage"]["lip"], abs=1.01e-4)


@pytest.mark.parametrize(("notion", "falls"), [("pml", math.inf), ("lip", None)])
def test_the_part_of_the_bound_that_is_used_is_of_what_it_bounds(notion: str, falls: float | None) -> None:
    """Of rises alone where falls have none: a fall beyond ε is nothing that was promised not to be."""
    joint = Joint.from_table([[400, 10], [300, 290]], "illness", "town")
    content = sample.sample(joint, [sample.response(joint.blocks[0], 3.0)], notion).full()
    epsilon = content["measured"]["rises"]
    for one in content["evidence"]["secrets"]:
        rise, fall = math.log(one["highest"] / one["before"]), math.log(one["before"] / one["lowest"])
        assert one["used"] == pytest.approx(max(rise / epsilon, fall / (falls or epsilon)), abs=2e-3)
        assert one["used"] <= 1
        width = content["evidence"]["width"]
        for part, end in zip(one["allowed"], one["promised"], strict=True):
            change = math.log(end / one["before"]) if end else -math.inf
            assert part == pytest.approx(max(-1, min(1, change / width)), abs=2e-3)
        assert one["allowed"][0] <= one["moves"][0] <= one["moves"][1] <= one["allowed"][1] + 1e-3
    fell = [one for one in content["evidence"]["secrets"] if one["used"] < one["change"] / epsilon - 2e-3]
    assert bool(fell) == (notion == "pml")


def test_a_change_is_told_as_a_factor_that_was_rounded_up_once() -> None:
    """ln 2 is no 0.6932: a belief that doubles does not change by more than 2.00."""
    joint = Joint.from_table([[100, 0], [0, 100]])
    content = sample.sample(joint, [sample.response(joint.blocks[0], math.log(2) - 1e-7, bits=30)], "ldp").full()
    told = {one["factor"] for one in content["evidence"]["secrets"]}
    told |= {one for row in content["evidence"]["blocks"][0]["map"]["factor"] for one in row}
    assert told == {"2.00"}
    assert all(one["change"] == 0.6932 for one in content["evidence"]["secrets"])


def test_with_two_secret_values_the_change_of_odds_is_the_ldp_leakage() -> None:
    content = SAMPLES["two_blocks"].full()
    changes = [entry["change"] for entry in content["evidence"]["secrets"]]
    assert changes == pytest.approx([content["measured"]["leakage"]["ldp"]] * 2, abs=1.01e-4)


@st.composite
def releases(draw: st.DrawFn) -> Sample:
    """A release of one block with any weights."""
    c, a = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    cells = draw(st.lists(st.integers(0, 60), min_size=c * a, max_size=c * a))
    table = np.array(cells).reshape(c, a)
    table[table.sum(axis=1) == 0, 0] = 1
    table[0, table.sum(axis=0) == 0] = 1
    joint = Joint.from_table(table, "illness", "town")
    cuts = [sorted(draw(st.lists(st.integers(0, 256), min_size=a - 1, max_size=a - 1))) for _ in range(a)]
    weights = np.array([np.diff([0, *cut, 256]) for cut in cuts]).T
    made = sample.sample(joint, [Protocol(joint.blocks[0], joint.blocks[0], 8, weights[:, None, :])],
                         draw(st.sampled_from(["lip", "ldp"])))  # fmt: skip
    return made.stating(epsilon=made.manifest.epsilon or 1.0)


@settings(deadline=None, max_examples=10)
@given(releases())
def test_every_belief_stays_in_the_promised_range(release: Sample) -> None:
    """[DS] Definitions 1 and 2, through the ranges that the report derives from them."""
    if release.manifest.leakage[release.manifest.notion] is None:
        return
    for entry in release.full()["evidence"]["secrets"]:
        for end in ("lowest", "highest"):
            assert entry["promised"][0] - 2e-6 <= entry[end] <= entry["promised"][1] + 2e-6


@given(st.floats(0.001, 0.999), st.floats(0.001, 5))
def test_ranges_are_what_the_definitions_allow(before: float, epsilon: float) -> None:
    """At either end the belief, or that in all other values, has moved by exactly ε; all lie within 0..1."""
    changes = {
        "factor": lambda p, q: math.log(q / p),
        "odds": lambda p, q: math.log(q * (1 - p) / (p * (1 - q))),
    }
    for kind, change in changes.items():
        low, high = within(kind, before, epsilon, epsilon)
        assert 0 <= low <= before <= high <= 1
        for end in (low, high):
            moves = [abs(change(p, q)) for p, q in ((before, end), (1 - before, 1 - end))]
            assert max(moves) == pytest.approx(epsilon, rel=1e-5)


def test_what_may_only_rise_may_fall_to_what_the_rise_of_the_others_leaves() -> None:
    assert within("factor", 0.1, math.inf, 1.0)[0] == within("odds", 0.1, math.inf, 1.0)[0] == 0
    assert within("factor", 0.1, math.inf, 1.0) == pytest.approx((0.0, 0.1 * math.e))
    assert within("factor", 0.9, math.inf, 1.0) == pytest.approx((1 - 0.1 * math.e, 1.0))
    assert within("factor", 0.1, 2.0, 1.0)[0] == pytest.approx(0.1 * math.exp(-2))
    for end in (0.0, 1.0):
        assert (
            within("factor", end, math.inf, math.inf) == within("odds", end, math.inf, math.inf) == (end, end)
        )


def test_shares_are_those_of_the_joint_and_the_protocol() -> None:
    release = SAMPLES["one_block"]
    prior = release.joint.table().sum(axis=0) / release.joint.rows
    chances = release.protocols[0].probabilities()[:, 0, :]
    shares = release.full()["evidence"]["blocks"][0]["shares"]
    assert [entry["before"] for entry in shares] == pytest.approx(prior, abs=1e-6)
    assert [entry["after"] for entry in shares] == pytest.approx(chances @ prior, abs=1e-6)
    assert [entry["kept"] for entry in shares] == pytest.approx(np.diag(chances), abs=1e-6)
    assert [entry["true"] for entry in shares] == pytest.approx(
        np.diag(chances) * prior / (chances @ prior), abs=1e-6
    )


def test_where_draws_read_the_secret_shares_are_means_over_it() -> None:
    release = SAMPLES["awkward"]
    counts, chances = release.joint.table(0), release.protocols[0].probabilities()
    given_x = counts / counts.sum(axis=0)
    mean = np.einsum("ysx,sx->yx", chances, given_x)
    shares = release.full()["evidence"]["blocks"][0]["shares"]
    assert [entry["kept"] for entry in shares] == pytest.approx(np.diag(mean), abs=1e-6)
    after = mean @ counts.sum(axis=0) / counts.sum()
    assert [entry["after"] for entry in shares] == pytest.approx(after, abs=1e-6)


def test_a_value_that_is_never_released_is_never_kept() -> None:
    last = SAMPLES["independent"].full()["evidence"]["blocks"][0]["shares"][2]
    assert (last["after"], last["kept"], last["true"]) == (0.0, 0.0, None)


def test_shares_of_sets_are_those_of_one_value() -> None:
    release = sample.sets()
    (protocol,), counts = release.protocols, release.joint.table().sum(axis=0)
    present, absent = protocol.shares
    block = release.full()["evidence"]["blocks"][0]
    reached = (counts * present + (counts.sum() - counts) * absent) / counts.sum()
    assert [entry["after"] for entry in block["shares"]] == pytest.approx(reached, abs=1e-6)
    assert [entry["kept"] for entry in block["shares"]] == pytest.approx([present] * len(counts))
    assert block["drawn"] == pytest.approx(present, abs=0.05) and block["map"] is None


@pytest.mark.parametrize("name", SAMPLES)
def test_untouched_records_are_those_that_keep_every_value(name: str) -> None:
    protocols, joint = SAMPLES[name].protocols, SAMPLES[name].joint
    kept = 0.0
    for cell, count in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        chance = float(count)
        for protocol, x in zip(protocols, cell[1:], strict=True):
            value, s = protocol.inputs.values[x], cell[0] if protocol.reads_secret else 0
            rows = [y for y, output in enumerate(protocol.outputs.values) if output == value]
            chance *= sum(protocol.probabilities()[y, s, x] for y in rows)
        kept += chance
    assert SAMPLES[name].full()["evidence"]["untouched"] == pytest.approx(kept / joint.rows, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_chance_of_true_values_is_that_of_records_with_one_secret(seed: int) -> None:
    """Blocks that read the secret read the same one: the least chances of two do not meet in a record of no secret."""
    roll, secret = np.random.default_rng(seed), Alphabet.of(("s",), [("a",), ("b",), ("c",)])
    protocols = []
    for name in "xz":
        inputs = Alphabet.of((name,), [("0",), ("1",)])
        kept = roll.integers(1, 255, (3, 2))
        weights = np.array([[kept[:, 0], 256 - kept[:, 1]], [256 - kept[:, 0], kept[:, 1]]]).transpose(0, 2, 1)
        protocols.append(Protocol(inputs, inputs, 8, weights, secret))
    ways = product(range(3), range(2), range(2))
    true = [protocols[0].alike()[s, x] * protocols[1].alike()[s, z] for s, x, z in ways]
    found = Facts(SAMPLES["two_blocks"].manifest, tuple(protocols)).true_chance
    assert found == pytest.approx((min(true), max(true)))


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
def test_what_was_drawn_is_near_what_was_expected(name: str) -> None:
    evidence = SAMPLES[name].full()["evidence"]
    for block in evidence["blocks"]:
        expected = sum(one["records"] * one["kept"] for one in block["shares"]) / SAMPLES[name].joint.rows
        assert block["drawn"] == pytest.approx(expected, abs=5 / math.sqrt(SAMPLES[name].joint.rows))


@pytest.mark.parametrize("name", SAMPLES)
def test_guessing_takes_the_likeliest_value_before_and_after(name: str) -> None:
    joint = SAMPLES[name].joint
    table = released_table(joint, SAMPLES[name].protocols).reshape(len(joint.secret), -1).astype(float)
    guess = SAMPLES[name].full()["evidence"]["guess"]
    assert guess["before"] == pytest.approx(table.sum(axis=1).max() / table.sum(), abs=1e-6)
    assert guess["after"] == pytest.approx(table.max(axis=0).sum() / table.sum(), abs=1e-6)
    assert guess["after"] >= guess["before"]


def test_the_gain_of_guessing_is_within_theorem_1_of_pf() -> None:
    for release in SAMPLES.values():
        guess = release.full()["evidence"]["guess"]
        information = release.manifest.leakage["mutual_information"]
        assert guess["after"] - guess["before"] <= math.sqrt(2 * information) + 1e-6


# A pure function of the files.


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(releases())
def test_content_survives_its_file_and_renders_to_the_same_page(release: Sample) -> None:
    for content in (release.published(), release.full()):
        again = canonical.decode("report.json", canonical.encode(content))
        assert again == content and page(again) == page(content)


def test_the_published_report_is_made_of_published_records_alone(tmp_path: Path) -> None:
    """Whoever has the published files can make it: nothing of the evidence can be in it."""
    assert next(iter(inspect.signature(published).parameters.values())).annotation == "Published"
    assert [one.name for one in fields(Published)] == ["manifest", "protocol", "released", "cells"]
    for name, release in SAMPLES.items():
        folder = tmp_path / name
        folder.mkdir()
        names = ("data.parquet", "protocol.json", "released.json", "report.html", "report.json",
                 "datapackage.json", "croissant.json", "dcat.jsonld")  # fmt: skip
        release = release.stating(files=dict.fromkeys(names, FileEntry("0" * 64, 1)))  # noqa: PLW2901
        for file, content in written(release.shown).items():
            (folder / file).write_bytes(content)
        assert published(read(Published, folder)) == release.published()


def test_the_full_report_says_all_that_the_published_one_does() -> None:
    for release in SAMPLES.values():
        public, private = release.published(), release.full()
        assert set(private) - set(public) == {"evidence"} and "evidence" not in public
        told = {key for key in public if public[key] != private[key]}
        assert told <= {"published", "consequences"}


@pytest.mark.parametrize("public", [True, False])
def test_files_in_the_manifest_do_not_change_the_content(public: bool) -> None:
    """The report is written before the manifest lists its hash, and is made again after."""
    listed = SAMPLES["one_block"].stating(files={"report.html": FileEntry("0" * 64, 1)})
    assert listed.content(public) == SAMPLES["one_block"].content(public)


def test_the_content_is_json_and_names_its_format(content: dict[str, Any]) -> None:
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["format"] == FORMAT


# What is said of blocks, ceilings, and releases of the truth.


def test_rank_tells_whether_true_totals_can_be_estimated() -> None:
    whole = SAMPLES["one_block"].published()
    assert whole["blocks"][0]["rank"] == 16
    assert any("full rank (16)" in sentence for sentence in whole["utility"]["sentences"])
    partial = SAMPLES["independent"].published()
    assert partial["blocks"][0]["rank"] == 2
    assert any("rank 2 with 3 values" in sentence for sentence in partial["utility"]["sentences"])


def test_where_draws_read_the_secret_the_report_does_not_promise_true_totals_and_does_not_call_them_withheld() -> None:
    """Chances of another value are those of its share for each secret: with these the expected totals can be undone."""
    own = SAMPLES["awkward"]
    sentences = own.published()["utility"]["sentences"]
    (told,) = [sentence for sentence in sentences if "depend on the secret" in sentence]
    assert "works out no totals of single values" in told
    assert "can work them out from the released totals" in told
    protocol, counts = own.protocols[0], own.joint.block(0).table()
    assert isinstance(protocol, Protocol)
    chances = protocol.probabilities()
    other = np.array([[min(chances[y, s]) for y in range(len(chances))] for s in range(len(counts))])
    moved = other.sum(axis=0) / (len(counts) - 1)
    kept = chances[0, 0].max() - chances[0, 0].min()
    expected = np.einsum("ysx,sx->y", chances, counts)
    found = (expected - counts.sum() * moved) / (kept - moved.sum() / len(counts))
    assert found == pytest.approx(counts.sum(axis=0), abs=3)  # chances are rounded


def test_certified_ceilings_are_rounded_up() -> None:
    release = SAMPLES["one_block"]
    content = release.stating(utility=replace(release.manifest.utility, upper_bound=0.9398)).published()
    note = content["headline"][2]["note"]
    assert note == "proven: no more than 94.0% is possible by drawing from education alone"
    (sentence,) = [one for one in content["utility"]["sentences"] if "proven" in one]
    assert "draws from the true education alone can keep more than 94.0%" in sentence
    assert "Proven ceiling" in {one["term"] for one in content["glossary"]}


def test_a_gap_between_rounded_figures_is_not_told_smaller_than_it_may_be() -> None:
    """With one decimal 36 % is told as 40 %: the ceiling, rounded up to 60 %, may be 25 points above."""
    few, own = {"normalised": 0.4, "upper_bound": 0.6, "entropy": 1.0, "mutual_information": 0.4}, SAMPLES["one_block"]
    estimate = replace(own.manifest.estimate, minimum=own.manifest.rows // 30)
    release = own.stating(estimate=estimate, utility=replace(own.manifest.utility, **few))
    assert release.manifest.decimals == 1
    (sentence,) = [one for one in release.published()["utility"]["sentences"] if "more may be possible" in one]
    assert "Up to 25.0 percentage points more may be possible" in sentence


@pytest.mark.parametrize(
    ("ceiling", "text"), [(0.9398, "94.0%"), (0.94, "94.1%"), (0.93, "93.1%"), (0.99999, "100.0%")]
)
def test_a_ceiling_is_rounded_up_and_so_is_never_understated(ceiling: float, text: str) -> None:
    """The manifest's own rounding at four decimals is allowed for."""
    assert figures.most(ceiling) == text


def test_without_a_ceiling_none_is_claimed() -> None:
    content = SAMPLES["one_block"].published()
    assert "proven" not in json.dumps(content["headline"])
    assert any("No ceiling is stated here" in sentence for sentence in content["utility"]["sentences"])


def test_of_a_ceiling_that_its_decimals_round_to_everything_is_not_said_that_none_is_proven() -> None:
    """One decimal of 0.91 is 1.0, and none is nothing at all: the run and the private folder may know more."""
    own = SAMPLES["one_block"]
    for told in ({"upper_bound": 1.0, "normalised": 0.5}, {"upper_bound": None}):
        sentences = own.stating(utility=replace(own.manifest.utility, **told)).published()["utility"]["sentences"]
        assert not [one for one in sentences if "proven" in one or "claimed" in one]
        assert [one for one in sentences if one.startswith("No ceiling") and "stated" in one]


@pytest.mark.parametrize("public", [True, False])
def test_of_several_blocks_no_ceiling_is_told(public: bool) -> None:
    """A later block is bounded only given what the earlier ones release, at a budget that may have been raised."""
    release = SAMPLES["two_blocks"]
    bounded = replace(release.manifest.utility, upper_bound=0.9)
    text = text_of(release.stating(utility=bounded, mechanism="optimal").content(public))
    assert "No ceiling is proven for several blocks" in text
    for claim in ("Proven ceiling", "It is proven", "proven: no more", "share of ε", "90.0%"):
        assert claim not in text
    assert (
        "each time to keep information about the true values within the promise, given what the blocks before" in text
    )


def test_how_a_ceiling_was_proven_is_told_with_the_evidence() -> None:
    release = SAMPLES["one_block"]
    proof = Proof("0" * 64, 3, 217, 4)
    for given_proof, words in ((proof, "branch and bound over 217 boxes"), (None, "kept in solution.json")):
        found = Certificate("public", (0.1,), 0.0, 217, given_proof)
        solution = SolutionFile("funnel-solution/1", ("",), (1.9,), (1.0,), found)
        proven = replace(release, solution=solution)
        assert words in text_of(proven.full()) and words not in text_of(proven.published())


def as_they_are(notion: str = "lip") -> Sample:
    """One block released by the identity, as the optimum is where the bound is not reached."""
    joint = Joint.from_table([[400, 300, 200], [300, 300, 300]] if notion == "lip" else [[40, 20], [80, 40]])
    size = len(joint.blocks[0])
    protocol = Protocol(joint.blocks[0], joint.blocks[0], 0, np.eye(size, dtype=np.int64)[:, None, :])
    release = sample.sample(joint, [protocol], notion, mechanism="optimal")
    return release.stating(utility=replace(release.manifest.utility, upper_bound=1.0))


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("notion", ["lip", "perfect"])
def test_a_release_of_the_truth_says_so_and_speaks_of_no_draws(notion: str, public: bool) -> None:
    content = as_they_are(notion).content(public)
    assert content["asked"]["commands"] == [] and content["blocks"][0]["as_is"]
    assert content["headline"][2]["note"] == "the true values are released as they are"
    text = text_of(content)
    why = (
        f"ε = {content['promise']['epsilon']:g} is as much as, or more than, the true values of X give away"
        if notion == "lip"
        else "In this table the true values of X say nothing"
    )
    assert why in text and "so they are released as they are." in text
    assert "How many records have each value of X is not withheld" in text
    for untrue in ("pull them away", "can keep more than", "2⁰", "out of 2", "without bias", "each is drawn for",
                   "Released, sanitised", "Draws are", "narrow down its true values", "on its bounds"):  # fmt: skip
        assert untrue not in text


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_totals_that_can_be_counted_are_those_of_groups_that_no_draw_leaves(a: int, seed: int) -> None:
    """A sum over some values is one of released counts, whatever is drawn, where no output is shared."""
    rng = np.random.default_rng(seed)
    drawn = rng.random((a + 1, a)) < rng.choice([0.2, 0.5])
    drawn[a, ~drawn.any(axis=0)] = True
    ends = [[drawn[:, [x in group for x in range(a)]].any(axis=1) for group in (inside, set(range(a)) - inside)]
            for size in range(a + 1) for inside in map(set, combinations(range(a), size))]  # fmt: skip
    countable = sum(not (one & rest).any() for one, rest in ends)
    weights = np.where(drawn, 1, 0)[:, None, :].astype(np.int64)
    weights[drawn.argmax(axis=0), 0, np.arange(a)] += 8 - drawn.sum(axis=0)
    values, outputs = (Alphabet(("x",), tuple((str(i),) for i in range(size))) for size in (a, a + 1))
    assert 2 ** parts(Protocol(values, outputs, 3, weights)) == countable


def test_values_under_other_names_and_columns_that_stay_are_not_called_withheld() -> None:
    """What `funnel estimate` finds exactly, the report does not count among what is not released."""
    release = SAMPLES["one_block"]
    values = release.joint.blocks[0]
    turned = np.roll(np.eye(len(values), dtype=np.int64), 1, axis=0)[:, None, :]
    mixed = release.protocols[0].weights.copy()
    mixed[0, :, 1:], mixed[:, :, 0] = 0, 0
    mixed[0, 0, 0] = 1 << release.protocols[0].bits
    mixed[1, 0, 1:] += (1 << release.protocols[0].bits) - mixed[:, 0, 1:].sum(axis=0)
    for weights, bits, groups in ((turned, 0, len(values)), (mixed, release.protocols[0].bits, 2)):
        told = sample.sample(release.joint, [Protocol(values, values, bits, weights)], "lip").published()
        exact = [one for one in told["blocks"][0]["totals"]["entries"] if one["error"] == 0]
        assert exact, "estimates find these totals"
        assert f"fall into {groups} groups that no draw leaves" in told["scope"]["withheld"]
    assert "groups that no draw leaves" not in release.published()["scope"]["withheld"]


def test_beside_another_block_one_released_as_it_is_is_named() -> None:
    release = SAMPLES["two_blocks"]
    races = release.joint.blocks[1]
    same = Protocol(races, races, 0, np.eye(len(races), dtype=np.int64)[:, None, :])
    content = sample.sample(release.joint, [release.protocols[0], same], "ldp").published()
    assert [block["as_is"] for block in content["blocks"]] == [False, True]
    text = text_of(content)
    assert "Every value of race is released as it is." in text and "values (as it is)" in text
    assert "Do not read the released totals of workclass as the true ones" in text
    assert "How many records have each value of race is not withheld" in text
    assert "For race, Q has" not in text and "1/2⁰" not in text


def test_a_protocol_without_chance_that_merges_values_is_not_the_truth() -> None:
    joint = Joint.from_table([[400, 300, 200], [300, 300, 300]])
    outputs = type(joint.blocks[0])(("X",), joint.blocks[0].values[:2])
    merged = Protocol(joint.blocks[0], outputs, 0, np.array([[1, 0, 1], [0, 1, 0]])[:, None, :])
    text = text_of(sample.sample(joint, [merged]).published())
    assert "Nothing is left to chance" in text and "released as they are" not in text
    assert "2⁰" not in text and "the published chances are all 0 or 1" in text


def test_an_unbounded_leakage_is_said_to_be_unbounded() -> None:
    joint = Joint.from_table([[400, 200, 0], [200, 100, 300]])
    release = sample.sample(joint, [sample.response(joint.blocks[0], 40.0, bits=8)], epsilon=1.0)
    assert release.manifest.leakage["lip"] is None
    content = release.full()
    assert content["headline"][1]["figure"] == "unbounded"
    assert content["measured"]["sentence"] == "Some released value rules out a value of S altogether."
    assert content["evidence"]["secrets"][0]["change"] is None
    assert None in content["evidence"]["blocks"][0]["map"]["change"][0]
    assert "ruled out" in page(content)


def test_a_leakage_rounded_up_at_four_decimals_heads_the_page() -> None:
    release = SAMPLES["one_block"]
    exact, stated = (
        lip(released_table(release.joint, release.protocols)).nats,
        release.manifest.leakage["lip"],
    )
    assert exact <= stated <= exact + 1e-4
    assert release.published()["headline"][1]["figure"] == f"{stated:.4f}"


def test_consequences_are_lemma_1_of_ds() -> None:
    rows = {
        name: [row["implied"] for row in SAMPLES[name].published()["consequences"]][:3] for name in SAMPLES
    }
    assert rows["one_block"] == ["at most 1.35 nats", "at most 2.7 nats", "at most 1.35 nats"]
    assert rows["two_blocks"] == ["at most 0.6 nats"] * 3
    assert rows["independent"] == ["0"] * 3


def test_a_measured_figure_is_told_as_the_most_and_never_as_what_is_implied() -> None:
    """With one decimal 0.2389 is published as 0.3: that much at most, also where a theorem says less beside it."""
    own = SAMPLES["two_blocks"]
    few = own.manifest.leakage | {"ldp": 0.25, "lip": 0.3, "mutual_information": 0.1}
    estimate = replace(own.manifest.estimate, minimum=own.manifest.rows // 30)
    release = own.stating(estimate=estimate, epsilon=0.25, leakage=few)
    assert release.manifest.decimals == 1
    rows = release.published()["consequences"][:3]
    assert {row["implied"] for row in rows} == {"at most 0.25 nats"}
    assert sorted(row["measured"] for row in rows) == ["at most 0.1 nats", "at most 0.25 nats", "at most 0.3 nats"]
    german = release.stating(language="de").published()["consequences"][:3]
    assert sorted(row["measured"] for row in german) == ["höchstens 0,1 Nat", "höchstens 0,25 Nat", "höchstens 0,3 Nat"]
    above = release.stating(leakage=few | {"lip": 0.4}).published()["consequences"]
    assert "at most 0.4 nats" in [row["measured"] for row in above]
    fine = own.stating(epsilon=0.25, leakage=few | {"lip": 0.2389}).published()["consequences"]
    assert "at most 0.2389 nats" in [row["measured"] for row in fine]


def test_what_epsilon_means_includes_this_release(content: dict[str, Any]) -> None:
    (here,) = [row for row in content["scale"] if row["here"]]
    assert float(here["epsilon"]) == content["promise"]["epsilon"]
    at_two = next(row for row in content["scale"] if row["epsilon"] == "2")
    odds = {"lip": ("1.3%", "73.9%"), "perfect": ("1.3%", "73.9%"), "ldp": ("1.4%", "45.1%")}
    assert (at_two["from"], at_two["to"]) == odds[content["promise"]["notion"]]


def test_large_alphabets_leave_the_pictures_out_and_nothing_else() -> None:
    joint = Joint.from_table(np.full((70, 70), 12))
    content = sample.sample(joint, [sample.response(joint.blocks[0], 3.0)], "perfect").full()
    block = content["blocks"][0]
    assert block["protocol"] is None and content["evidence"]["blocks"][0]["map"] is None
    assert len(block["totals"]["entries"]) == len(content["evidence"]["secrets"]) == 70
    shown = page(content)
    assert "too many for a picture" in shown and "The first 60 are shown; report.json lists all 70." in shown


def test_without_bias_is_not_said_to_be_precise_where_values_are_hardly_ever_kept() -> None:
    joint = Joint.from_table([[600, 300], [300, 600]])
    weights = np.array([[65_000, 64_000], [536, 1536]])[:, None, :]
    release = sample.sample(joint, [Protocol(joint.blocks[0], joint.blocks[0], 16, weights)])
    (told,) = [one for one in release.published()["utility"]["sentences"] if "without bias" in one]
    assert "very uncertain" in told and told.endswith(f"{joint.blocks[0].values[1][0]} (2.3%).")
    kept = SAMPLES["one_block"].published()["utility"]["sentences"]
    assert not [one for one in kept if "very uncertain" in one]


def test_no_belief_that_is_possible_is_shown_as_nought() -> None:
    content = SAMPLES["one_block"].stating(epsilon=5.0).published()
    (here,) = [row for row in content["scale"] if row["here"]]
    assert here["from"] == "below 0.1%"


def test_differences_of_shares_are_points_and_one_nat_is_singular() -> None:
    rows = SAMPLES["one_block"].stating(epsilon=2.0).full()["consequences"]
    assert [row["implied"] for row in rows[:2]] == ["at most 2 nats", "at most 4 nats"]
    assert rows[3]["implied"].endswith(" percentage points")
    assert re.fullmatch(r"\d+\.\d percentage points \(from .*% to .*%\)", rows[3]["measured"])
    assert SAMPLES["one_block"].published()["consequences"][3]["measured"] is None
    assert figures.unit(1.0) == "1 nat"


def test_a_secret_that_is_also_public_is_not_called_withheld() -> None:
    """Some mechanisms release the secret itself in sanitised form."""
    hidden = SAMPLES["one_block"].published()["scope"]["withheld"]
    assert hidden.startswith("Marital status itself, every other column")
    shown = SAMPLES["one_block"].stating(sensitive=("education",)).published()
    assert shown["scope"]["withheld"].startswith("Every other column")
    half = SAMPLES["one_block"].stating(sensitive=("marital_status", "education")).published()
    assert half["scope"]["withheld"].startswith("Marital status itself, every other column")
    assert "the table has education among its columns" in " ".join(half["scope"]["sentences"])


def test_the_drift_since_a_lock_is_told_with_the_evidence_alone() -> None:
    drift = DriftFile(
        "funnel-drift/1", "ab" * 32, "2026-10-01T00:00:00Z", "lip", 0.9, 0.94991, 31_000, 32_561, True, 0.021, 2.0,
        0.004, None, None, False, (), (("Preschool",),), None, None,
    )  # fmt: skip
    release = replace(SAMPLES["one_block"], drift=drift)
    text = text_of(release.full())
    assert (
        "2.1% of the distribution (values as drawn for) has moved." in text
        and "Values of the lock without records: Preschool." in text
    )
    assert ": at most 0.9000 nats then, 0.9500 nats now; 31,000 records then, 32,561 now." in text
    assert "Drift" not in text_of(release.published()) and "New values" not in text


# Released totals and what they say of the true ones.


def test_released_totals_are_those_of_the_table() -> None:
    for release in (SAMPLES["one_block"], SAMPLES["two_blocks"]):
        for index, block in enumerate(release.published()["blocks"]):
            outputs = [label(value) for value in release.protocols[index].outputs.values]
            seen = dict.fromkeys(outputs, 0)
            for *codes, count in release.released.rows:
                seen[outputs[codes[index]]] += count
            assert {one["values"][0]: one["released"] for one in block["totals"]["entries"]} == seen


@pytest.mark.parametrize("name", ["one_block", "two_blocks"])
def test_estimates_are_near_the_truth_which_the_report_never_saw(name: str) -> None:
    release = SAMPLES[name]
    for index, block in enumerate(release.published()["blocks"]):
        truth = release.joint.table(index).sum(axis=0).tolist()
        apart = [(one["estimate"] - true) / one["error"]
                 for one, true in zip(block["totals"]["entries"], truth, strict=True)]  # fmt: skip
        assert block["totals"]["complete"] and max(map(abs, apart)) < 4
        assert np.mean(np.square(apart)) < 3


def test_estimates_of_sets_are_near_the_truth() -> None:
    release = sample.sets()
    entries = release.published()["blocks"][0]["totals"]["entries"]
    for one, true in zip(entries, release.joint.table().sum(axis=0).tolist(), strict=True):
        assert abs(one["estimate"] - true) < 4 * one["error"] and one["released"] > 0


def test_without_rank_no_total_is_estimated_but_all_are_told() -> None:
    totals = SAMPLES["independent"].published()["blocks"][0]["totals"]
    assert not totals["complete"] and all(one["estimate"] is None for one in totals["entries"][-2:])
    text = text_of(SAMPLES["independent"].published())
    assert "different mixtures of values are released with the same chances" in text
    chances = SAMPLES["independent"].protocols[-1].probabilities()[:, 0, :]
    *_, away = np.linalg.svd(chances)[2]  # the difference of two mixtures, then: its sum is nothing
    assert np.abs(chances @ away).max() < 1e-9 and abs(away.sum()) < 1e-9


def test_estimates_have_as_many_digits_as_they_are_good_for() -> None:
    assert significant(7134.4, 123.4) == (7130.0, 120.0)
    assert significant(7134.4, 0.0) == (7134.0, 0.0)
    assert significant(-3.2, 0.314) == (-3.0, 0.31)


@pytest.mark.parametrize("values", [1, 2])
def test_values_are_all_the_same_where_they_are_and_not_where_a_figure_is_rounded_to_nothing(values: int) -> None:
    one = few(values)
    said = one.stating(utility=Utility(0.0, 0.0, 1.0, None)).published()
    assert (said["headline"][2]["figure"] == "none to keep") is (values == 1)
    assert ("The true values are all the same" in text_of(said)) is (values == 1)
    assert ("keep I(X;Y) = 0.0 of it" in text_of(said)) is (values == 2)


def test_candidates_keep_about_as_much_as_the_figures_of_few_records_say() -> None:
    one = SAMPLES["one_block"]
    tried = (Candidate("optimal", 0.7, None), Candidate("invariant", None, "it took too long"))
    told = one.stating(candidates=tried, mechanism="optimal").published()["drawing"]["candidates"]
    assert [row["kept"] for row in told] == ["70.0%", None]
    less = few(2).stating(candidates=tried, mechanism="optimal").published()
    assert less["drawing"]["candidates"][0]["kept"] == "about 70%"
    assert "70.0%" not in text_of(less)


def few(values: int) -> Sample:
    """Two hundred records, of whose figures one decimal is told, and of a column with so many values."""
    joint = sample.joint_of([(("yn"[i // 2 % 2],), ("ab"[i % values],)) for i in range(200)], [("s",), ("x",)])
    return sample.sample(joint, [sample.response(joint.blocks[0], 0.5)])


def test_what_tells_nothing_at_all_is_not_said_to_tell_a_rounding() -> None:
    release = SAMPLES["independent"]
    leakage = release.manifest.leakage | {"mutual_information": 0.0001}
    rows = release.stating(leakage=leakage).published()["consequences"]
    assert [row["measured"] for row in rows[:3]] == ["0", "0", "0"] and rows[4]["implied"] == "0"


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 1.0])
def test_rows_that_are_moved_by_twice_an_epsilon_are_counted_however_small_it_is(epsilon: float) -> None:
    moves = np.array([[0.5, 1.0, 2.0]]) * epsilon
    seen = Observed("exact", np.exp(-moves), np.exp(moves), np.array([5, 7, 11]))
    assert above(seen, {"rises": epsilon, "falls": epsilon}) == 11
