"""The content: its figures agree with definitions computed by hand, and it survives JSON."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import InternalError
from funnel.model import Joint
from funnel.model.channel import released_table
from funnel.model.leakage import lip
from funnel.report import FORMAT, compose, render
from funnel.report.wording import label
from tests.report import sample
from tests.report.test_disclosure import releases

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
    slack = 0.006 if published else 1e-6
    for entry in compose(*release, published=published)["measured"]["secrets"]:
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
    assert content["headline"][2]["note"] == "proven: no more than 94.0% is possible"
    assert any("94.0%" in sentence for sentence in content["utility"]["sentences"])


def test_without_a_ceiling_none_is_claimed() -> None:
    content = compose(*SAMPLES["one_block"], published=True)
    assert "proven" not in json.dumps(content["headline"])
    assert any("not claimed to be the best" in sentence for sentence in content["utility"]["sentences"])


def test_blocks_have_ceilings_of_their_own() -> None:
    content = compose(*SAMPLES["two_blocks"], published=True, bounds=[0.5, 0.2])
    assert any(
        sentence.startswith("Proven ceilings for each block") for sentence in content["utility"]["sentences"]
    )


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
    independent = compose(*SAMPLES["independent"], published=True)
    assert not [one for one in independent["utility"]["sentences"] if "x1 (" in one]


def test_a_secret_that_is_also_public_is_not_called_withheld() -> None:
    """Some mechanisms release the secret itself in sanitised form."""
    about, protocols, joint = SAMPLES["one_block"]
    hidden = compose(about, protocols, joint, published=True)["scope"]["withheld"]
    assert hidden.startswith("Marital status itself, every other column")
    shown = compose(about | {"sensitive": ["education"]}, protocols, joint, published=True)
    assert shown["scope"]["withheld"].startswith("Every other column")
