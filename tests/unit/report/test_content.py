"""The content: its figures agree with definitions computed by hand, and it survives JSON."""

from __future__ import annotations

import html
import json
import math
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.data import Joint, Protocol
from funnel.data.channel import released_table
from funnel.errors import InternalError
from funnel.measure.leakage import lip
from funnel.report import FORMAT, compose, figures, render
from funnel.report.blocks import _rank
from funnel.report.text import label
from tests.unit.report import sample
from tests.unit.report.test_disclosure import releases

SAMPLES = {name: getattr(sample, name)() for name in ("one_block", "two_blocks", "awkward", "independent")}


@pytest.fixture(params=[(name, published) for name in SAMPLES for published in (True, False)], ids=str)
def content(request: pytest.FixtureRequest) -> dict[str, Any]:
    name, published = request.param
    return compose(*SAMPLES[name], published=published)


def posteriors(release: sample.Sample) -> tuple[np.ndarray, np.ndarray]:
    """P(s) and P(s|y) by Bayes' rule, one cell, one output at a time."""
    _, protocols, joint = release
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


@pytest.mark.parametrize("name", SAMPLES)
def test_beliefs_follow_bayes_rule(name: str) -> None:
    release = SAMPLES[name]
    before, after = posteriors(release)
    entries = compose(*release, published=False)["measured"]["secrets"]
    labels = [label(value) for value in release[2].secret.values]
    for entry in entries:
        s = labels.index(entry["value"])
        assert entry["before"] == pytest.approx(before[s], abs=1e-6)
        assert entry["lowest"] == pytest.approx(after[s].min(), abs=1e-6)
        assert entry["highest"] == pytest.approx(after[s].max(), abs=1e-6)
    assert sum(entry["before"] for entry in entries) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["one_block", "awkward"])
def test_the_strongest_change_of_all_is_the_leakage(name: str) -> None:
    content = compose(*SAMPLES[name], published=False)
    changes = [entry["change"] for entry in content["measured"]["secrets"]]
    assert max(changes) == pytest.approx(content["measured"]["leakage"]["lip"], abs=1.01e-4)


def test_with_two_secret_values_the_change_of_odds_is_the_ldp_leakage() -> None:
    content = compose(*SAMPLES["two_blocks"], published=False)
    changes = [entry["change"] for entry in content["measured"]["secrets"]]
    assert changes == pytest.approx([content["measured"]["leakage"]["ldp"]] * 2, abs=1.01e-4)


@settings(deadline=None, max_examples=30)
@given(releases(), st.booleans())
def test_every_belief_stays_in_the_promised_range(release: sample.Sample, published: bool) -> None:
    """[DS] Definitions 1 and 2, through the ranges that the report derives from them."""
    about, _, _ = release
    if about["leakage"][about["notion"]] is None:
        return
    content = compose(*release, published=published)
    slack = max(0.006, 1.01 * content["step"]) if published else 2e-6
    for entry in content["measured"]["secrets"]:
        for end in ("lowest", "highest"):
            if not entry["pooled"] and entry[end] is not None:
                assert entry["promised"][0] - slack <= entry[end] <= entry["promised"][1] + slack


@settings(deadline=None, max_examples=30)
@given(releases())
def test_content_survives_json_and_renders_to_the_same_page(release: sample.Sample) -> None:
    content = compose(*release, published=True)
    again = json.loads(json.dumps(content, ensure_ascii=False, allow_nan=False))
    assert again == content
    assert render(again) == render(content)


def test_the_content_is_json_and_names_its_format(content: dict[str, Any]) -> None:
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["format"] == FORMAT


@pytest.mark.parametrize("name", SAMPLES)
def test_composing_twice_gives_the_same_content(name: str) -> None:
    assert compose(*SAMPLES[name], published=True) == compose(*SAMPLES[name], published=True)


def test_files_in_the_manifest_do_not_change_the_content() -> None:
    """The report is written before the manifest lists its hash, and is rebuilt after."""
    about, *rest = SAMPLES["one_block"]
    files = {
        "report.html": {"sha256": "0" * 64, "bytes": 1},
        "protocol.json": {"sha256": "ab" * 32, "bytes": 2},
    }
    written = compose(about, *rest, published=True, protocol_sha256="ab" * 32)
    assert compose(about | {"files": files}, *rest, published=True) == written
    assert {"what": "Protocol, SHA-256", "value": "ab" * 32} in written["provenance"]


def test_a_published_content_rounds_what_a_full_one_tells() -> None:
    full, public = (compose(*SAMPLES["one_block"], published=published) for published in (False, True))
    for exact, rounded in zip(full["measured"]["secrets"], public["measured"]["secrets"], strict=True):
        assert rounded["before"] == pytest.approx(exact["before"], abs=0.005)
        assert rounded["before"] == round(rounded["before"], 3) and "records" not in rounded
    for exact, rounded in zip(full["blocks"][0]["shares"], public["blocks"][0]["shares"], strict=True):
        assert all(rounded[key] == round(exact[key], 3) for key in ("before", "after", "kept", "true"))
    assert "counts" in full["blocks"][0] and "counts" not in public["blocks"][0]


def test_shares_are_those_of_the_joint_and_the_protocol() -> None:
    _, (protocol,), joint = SAMPLES["one_block"]
    prior = joint.table().sum(axis=0) / joint.rows
    chances = protocol.probabilities()[:, 0, :]
    shares = compose(*SAMPLES["one_block"], published=False)["blocks"][0]["shares"]
    assert [entry["before"] for entry in shares] == pytest.approx(prior, abs=1e-6)
    assert [entry["after"] for entry in shares] == pytest.approx(chances @ prior, abs=1e-6)
    assert [entry["kept"] for entry in shares] == pytest.approx(np.diag(chances), abs=1e-6)
    assert [entry["true"] for entry in shares] == pytest.approx(
        np.diag(chances) * prior / (chances @ prior), abs=1e-6
    )
    assert sum(entry["after"] for entry in shares) == pytest.approx(1, abs=1e-5)


def test_a_value_that_is_never_released_is_never_kept() -> None:
    last = compose(*SAMPLES["independent"], published=False)["blocks"][0]["shares"][2]
    assert (last["after"], last["kept"], last["true"]) == (0.0, 0.0, None)


def test_draws_that_read_the_secret_are_shown_as_their_mean_given_x() -> None:
    _, protocols, joint = SAMPLES["awkward"]
    given_x = joint.table(0) / joint.table(0).sum(axis=0)
    mean = np.einsum("ysx,sx->yx", protocols[0].probabilities(), given_x)
    content = compose(*SAMPLES["awkward"], published=False)["blocks"][0]
    assert content["reads_secret"]
    assert np.allclose(content["protocol"]["chances"], mean, atol=1e-6)


@pytest.mark.parametrize("name", SAMPLES)
def test_untouched_records_are_those_that_keep_every_value(name: str) -> None:
    _, protocols, joint = SAMPLES[name]
    kept = 0.0
    for cell, count in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        chance = float(count)
        for protocol, x in zip(protocols, cell[1:], strict=True):
            value, s = protocol.inputs.values[x], cell[0] if protocol.reads_secret else 0
            rows = [y for y, output in enumerate(protocol.outputs.values) if output == value]
            chance *= sum(protocol.probabilities()[y, s, x] for y in rows)
        kept += chance
    assert compose(*SAMPLES[name], published=False)["utility"]["untouched"] == pytest.approx(
        kept / joint.rows, abs=1e-6
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_guessing_takes_the_likeliest_value_before_and_after(name: str) -> None:
    _, protocols, joint = SAMPLES[name]
    table = released_table(joint, protocols).reshape(len(joint.secret), -1).astype(float)
    guess = compose(*SAMPLES[name], published=False)["measured"]["guess"]
    assert guess["before"] == pytest.approx(table.sum(axis=1).max() / table.sum(), abs=1e-6)
    assert guess["after"] == pytest.approx(table.max(axis=0).sum() / table.sum(), abs=1e-6)
    assert guess["after"] >= guess["before"]


def test_the_gain_of_guessing_is_within_theorem_1_of_pf() -> None:
    for release in SAMPLES.values():
        content = compose(*release, published=False)
        guess, information = (
            content["measured"]["guess"],
            content["measured"]["leakage"]["mutual_information"],
        )
        assert guess["after"] - guess["before"] <= math.sqrt(2 * information) + 1e-6


def test_rank_tells_whether_true_shares_can_be_estimated() -> None:
    full = compose(*SAMPLES["one_block"], published=True)
    assert full["blocks"][0]["rank"] == 16
    assert any("full rank (16)" in sentence for sentence in full["utility"]["sentences"])
    partial = compose(*SAMPLES["independent"], published=True)
    assert partial["blocks"][0]["rank"] == 2
    assert any("rank 2 with 3 values" in sentence for sentence in partial["utility"]["sentences"])


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_zeros_make_ranks_easy_and_change_none(b: int, a: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 3, (b, a)) * (rng.random((b, a)) < rng.random())
    matrix[0, ~matrix.any(axis=0)] = 1
    matrix = matrix / matrix.sum(axis=0)
    assert _rank(matrix) == np.linalg.matrix_rank(matrix)


def test_where_draws_read_the_secret_the_report_does_not_promise_true_shares() -> None:
    sentences = compose(*SAMPLES["awkward"], published=True)["utility"]["sentences"]
    (told,) = [sentence for sentence in sentences if "depend on the secret" in sentence]
    assert "do not tell the true ones" in told
    name = told.removeprefix("For ").split(",")[0]
    assert not any(f"For {name}, Q has" in sentence for sentence in sentences)


def test_certified_ceilings_are_shares_of_the_entropy() -> None:
    about, protocols, joint = SAMPLES["one_block"]
    utility = about["utility"] | {"upper_bound": 0.9398}
    content = compose(about | {"utility": utility}, protocols, joint, published=True, bounds=[1.5])
    assert content["blocks"][0]["utility"]["upper_bound"] == pytest.approx(1.5 / utility["entropy"], abs=1e-4)
    note = content["headline"][2]["note"]
    assert note == "proven: no more than 94.0% is possible by drawing from education alone"
    (sentence,) = [one for one in content["utility"]["sentences"] if "proven" in one]
    assert "draws from the true education alone can keep more than 94.0%" in sentence
    assert "Proven ceiling" in {one["term"] for one in content["glossary"]}


@pytest.mark.parametrize(
    ("ceiling", "text"), [(0.9398, "94.0%"), (0.94, "94.1%"), (0.93, "93.1%"), (0.99999, "100.0%")]
)
def test_a_ceiling_is_rounded_up_and_so_is_never_understated(ceiling: float, text: str) -> None:
    """The manifest's own rounding at four decimals is allowed for."""
    assert figures.most_text(ceiling) == text


def test_without_a_ceiling_none_is_claimed() -> None:
    content = compose(*SAMPLES["one_block"], published=True)
    assert "proven" not in json.dumps(content["headline"])
    assert any("not claimed to be the best" in sentence for sentence in content["utility"]["sentences"])


@pytest.mark.parametrize("published", [True, False])
def test_of_several_blocks_no_ceiling_and_no_budget_is_told(published: bool) -> None:
    """A later block is bounded only given what the earlier ones release, at a budget that may have been raised."""
    about, protocols, joint = SAMPLES["two_blocks"]
    stated = about | {"utility": about["utility"] | {"upper_bound": 0.9}, "mechanism": "optimal"}
    content = compose(stated, protocols, joint, published=published, bounds=[0.5, 0.2])
    assert [block["utility"]["upper_bound"] for block in content["blocks"]] == [None, None]
    assert not any("share" in block for block in content["blocks"])
    text = html_text(content)
    assert "No ceiling is proven for several blocks" in text
    for claim in ("Proven ceiling", "It is proven", "proven: no more", "share of ε", "90.0%"):
        assert claim not in text
    assert (
        "as much information about the true values as the promise allows given what the blocks before" in text
    )


def html_text(content: dict[str, Any]) -> str:
    """All words of a page, one space apart."""
    return " ".join(
        html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", render(content), flags=re.DOTALL)).split()
    )


def as_they_are(notion: str = "lip") -> sample.Sample:
    """One block released by the identity, as the optimum is where the bound is not reached."""
    joint = Joint.from_table([[400, 300, 200], [300, 300, 300]] if notion == "lip" else [[40, 20], [80, 40]])
    size = len(joint.blocks[0])
    protocol = Protocol(joint.blocks[0], joint.blocks[0], 0, np.eye(size, dtype=np.int64)[:, None, :])
    about = sample.manifest(joint, [protocol], notion, mechanism="optimal")
    return about | {"utility": about["utility"] | {"upper_bound": 1.0}}, [protocol], joint


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("notion", ["lip", "perfect"])
def test_a_release_of_the_truth_says_so_and_speaks_of_no_draws(notion: str, published: bool) -> None:
    content = compose(*as_they_are(notion), published=published)
    assert content["utility"]["command"] is None and content["blocks"][0]["as_is"]
    assert content["headline"][2]["note"] == "the true values are released as they are"
    text = html_text(content)
    why = (
        f"ε = {content['promise']['epsilon']:g} is as much as, or more than, the true values of X give away"
        if notion == "lip"
        else "In this table the true values of X say nothing"
    )
    assert why in text and "so they are released as they are." in text
    for untrue in ("pull them away", "can keep more than", "2⁰", "out of 2", "without bias", "each drawn for",
                   "Released, sanitised", "Draws are", "narrow down its true values"):  # fmt: skip
        assert untrue not in text


def test_beside_another_block_one_released_as_it_is_is_named() -> None:
    _, (first, _), joint = SAMPLES["two_blocks"]
    races = joint.blocks[1]
    same = Protocol(races, races, 0, np.eye(len(races), dtype=np.int64)[:, None, :])
    content = compose(sample.manifest(joint, [first, same], "ldp"), [first, same], joint, published=True)
    assert [block["as_is"] for block in content["blocks"]] == [False, True]
    text = html_text(content)
    assert "Every value of race is released as it is." in text and "values (as it is)" in text
    assert "Do not read the released shares of workclass as the true ones" in text
    assert "For race, Q has" not in text and "1/2⁰" not in text


def test_a_protocol_without_chance_that_merges_values_is_not_the_truth() -> None:
    joint = Joint.from_table([[400, 300, 200], [300, 300, 300]])
    outputs = type(joint.blocks[0])(("X",), joint.blocks[0].values[:2])
    merged = Protocol(joint.blocks[0], outputs, 0, np.array([[1, 0, 1], [0, 1, 0]])[:, None, :])
    text = html_text(compose(sample.manifest(joint, [merged]), [merged], joint, published=True))
    assert "Nothing is left to chance" in text and "released as they are" not in text
    assert "2⁰" not in text and "the published chances are all 0 or 1" in text


@pytest.mark.parametrize("wrong", [0.2, 5.0, None])
def test_a_manifest_that_claims_another_leakage_is_refused(wrong: float | None) -> None:
    about, *rest = SAMPLES["one_block"]
    with pytest.raises(InternalError, match="the manifest claims lip"):
        compose(about | {"leakage": about["leakage"] | {"lip": wrong}}, *rest, published=True)


def test_a_leakage_rounded_up_at_four_decimals_is_accepted() -> None:
    about, protocols, joint = SAMPLES["one_block"]
    exact = lip(released_table(joint, protocols)).nats
    assert exact <= about["leakage"]["lip"] <= exact + 1e-4
    assert (
        compose(about, protocols, joint, published=True)["headline"][1]["figure"]
        == f"{about['leakage']['lip']:.4f}"
    )


def test_an_unbounded_leakage_is_said_to_be_unbounded() -> None:
    joint = Joint.from_table([[400, 200, 0], [200, 100, 300]])
    parts = [sample.response(joint.blocks[0], 40.0, bits=8)]
    about = sample.manifest(joint, parts) | {"epsilon": 1.0}
    assert about["leakage"]["lip"] is None
    content = compose(about, parts, joint, published=False)
    assert content["headline"][1]["figure"] == "unbounded"
    assert content["measured"]["sentence"] == "Some released value rules out a value of S altogether."
    assert content["measured"]["secrets"][0]["change"] is None
    assert None in content["blocks"][0]["beliefs"]["change"][0]
    assert "ruled out" in render(content)


def test_consequences_are_lemma_1_of_ds() -> None:
    about, *rest = SAMPLES["one_block"]
    lip_rows = compose(about, *rest, published=True)["consequences"]
    assert [row["implied"] for row in lip_rows[:3]] == [
        "at most 1.35 nats",
        "at most 2.7 nats",
        "at most 1.35 nats",
    ]
    about, *rest = SAMPLES["two_blocks"]
    ldp_rows = compose(about, *rest, published=True)["consequences"]
    assert [row["implied"] for row in ldp_rows[:3]] == ["at most 0.6 nats"] * 3
    about, *rest = SAMPLES["independent"]
    assert [row["implied"] for row in compose(about, *rest, published=True)["consequences"][:3]] == ["0"] * 3


def test_what_epsilon_means_includes_this_release(content: dict[str, Any]) -> None:
    here = [row for row in content["scale"]["rows"] if row["here"]]
    assert len(here) == 1
    assert float(here[0]["epsilon"]) == content["promise"]["epsilon"]
    at_two = next(row for row in content["scale"]["rows"] if row["epsilon"] == "2")
    odds = {"lip": ("1.3%", "73.9%"), "perfect": ("1.3%", "73.9%"), "ldp": ("1.4%", "45.1%")}
    assert (at_two["from"], at_two["to"]) == odds[content["promise"]["notion"]]


def test_large_alphabets_leave_the_pictures_out_and_nothing_else() -> None:
    table = np.full((70, 70), 12)
    joint = Joint.from_table(table)
    parts = [sample.response(joint.blocks[0], 3.0)]
    content = compose(sample.manifest(joint, parts, "perfect"), parts, joint, published=True)
    block = content["blocks"][0]
    assert block["protocol"] is None and block["beliefs"] is None
    assert len(block["shares"]) == len(content["measured"]["secrets"]) == 70
    page = render(content)
    assert "too many for a picture" in page and "The first 60 are shown; report.json lists all 70." in page


def test_released_names_that_are_seldom_true_are_pointed_out() -> None:
    content = compose(*SAMPLES["one_block"], published=True)
    seldom = [entry["value"] for entry in content["blocks"][0]["shares"] if entry["true"] < 0.5]
    (sentence,) = [one for one in content["utility"]["sentences"] if "fewer than half" in one]
    assert len(seldom) == 7 and all(f"{name} (" in sentence for name in seldom[:6])
    assert sentence.endswith("and 1 other.")
    assert "below 0.1%" not in sentence
    independent = compose(*SAMPLES["independent"], published=True)
    assert not [one for one in independent["utility"]["sentences"] if "x1 (" in one]


def test_a_value_hardly_ever_released_is_still_pointed_out() -> None:
    """Its share after rounds to 0, and so does how often it is true: neither hides it."""
    joint = Joint.from_table([[60_000, 12], [30_000, 12]])
    weights = np.array([[65_535, 65_535], [1, 1]])[:, None, :]
    parts = [Protocol(joint.blocks[0], joint.blocks[0], 16, weights)]
    content = compose(sample.manifest(joint, parts, "perfect"), parts, joint, published=True)
    last = content["blocks"][0]["shares"][1]
    assert (last["after"], last["true"]) == (0.0, 0.0)
    (sentence,) = [one for one in content["utility"]["sentences"] if "fewer than half" in one]
    assert f"{last['value']} (below 0.1%)" in sentence


def test_without_bias_is_not_said_to_be_precise_where_values_are_hardly_ever_kept() -> None:
    joint = Joint.from_table([[600, 300], [300, 600]])
    weights = np.array([[65_000, 64_000], [536, 1536]])[:, None, :]
    parts = [Protocol(joint.blocks[0], joint.blocks[0], 16, weights)]
    sentences = compose(sample.manifest(joint, parts), parts, joint, published=True)["utility"]["sentences"]
    (sentence,) = [one for one in sentences if "without bias" in one]
    assert "very uncertain" in sentence and sentence.endswith(f"{joint.blocks[0].values[1][0]} (2.3%).")
    kept = compose(*SAMPLES["one_block"], published=True)["utility"]["sentences"]
    assert not [one for one in kept if "very uncertain" in one]


def test_no_chance_or_belief_that_is_possible_is_shown_as_nought() -> None:
    about, *rest = SAMPLES["one_block"]
    content = compose(about | {"epsilon": 5.0}, *rest, published=True)
    here = next(row for row in content["scale"]["rows"] if row["here"])
    assert here["from"] == "below 0.1%"
    assert [one for one in content["measured"]["secrets"] if not one["pooled"] and one["promised"][0] == 0]
    assert "below 0.1% – " in html_text(content) and " 0.0% – " not in html_text(content)


def test_differences_of_shares_are_points_and_one_nat_is_singular() -> None:
    about, *rest = SAMPLES["one_block"]
    rows = compose(about | {"epsilon": 2.0}, *rest, published=True)["consequences"]
    assert [row["implied"] for row in rows[:2]] == ["at most 2 nats", "at most 4 nats"]
    assert rows[3]["implied"].endswith(" percentage points")
    assert re.fullmatch(r"\d+\.\d percentage points \(from .*% to .*%\)", rows[3]["measured"])
    assert figures.nats_unit(1.0) == "1 nat"


def test_a_secret_that_is_also_public_is_not_called_withheld() -> None:
    """Some mechanisms release the secret itself in sanitised form."""
    about, protocols, joint = SAMPLES["one_block"]
    hidden = compose(about, protocols, joint, published=True)["scope"]["withheld"]
    assert hidden.startswith("Marital status itself, every other column")
    shown = compose(about | {"sensitive": ["education"]}, protocols, joint, published=True)
    assert shown["scope"]["withheld"].startswith("Every other column")
