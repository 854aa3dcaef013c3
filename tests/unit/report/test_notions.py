"""Each notion's report makes the promise of that notion, for its observer, and no stronger one."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel.data import Alphabet, Joint, Protocol
from funnel.data.channel import released_table
from funnel.format.manifest import Parameters
from funnel.measure.information import mutual_information
from funnel.measure.leakage import ldp, lip
from funnel.notions import NOTIONS, implications
from funnel.report import page, words
from funnel.report.evidence import realised
from funnel.report.facts import Facts
from tests.unit.report import sample

POLICIES = sorted((Path(__file__).parents[3] / "policies").glob("*.yaml"))
AVERAGE = ["mutual-information"]
WORST_CASE = sorted({*NOTIONS} - {*AVERAGE})
ONLY_WORST_CASE = (
    "worst-case", "for every record and every value", "by at most a factor", "promised range", "Pale bar",
    "the limit of what the promise allows", "exp(ε) is the factor",
    "the bound holds in exactly the same way", "can be led no further than",
)  # fmt: skip
ONLY_AVERAGE = ("On average over all records", "sets no bound for a single record", "no bound follows")


def about(notion: str, *, public: bool = True, joint: Joint | None = None) -> dict[str, Any]:
    """The content of a release under a notion."""
    if notion == "perfect":
        return sample.independent().content(public)
    joint = joint or Joint.from_table([[400, 200, 100], [150, 250, 300]], "illness", "town")
    return sample.sample(joint, [sample.response(block, 1.0) for block in joint.blocks], notion).content(
        public
    )


def text_of(content: dict[str, Any]) -> str:
    """All words of a page, one space apart."""
    shown = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page(content), flags=re.DOTALL)
    return " ".join(html.unescape(shown).split())


def two_columns() -> Joint:
    """Illness, and a block of two columns."""
    rng = np.random.default_rng(3)
    values = tuple((f"t{i}", f"j{j}") for i in range(2) for j in range(2))
    joint = Joint.from_table(rng.integers(40, 200, (2, 4)), "illness", "x")
    return Joint(joint.secret, (Alphabet(("town", "job"), values),), joint.cells, joint.counts)


def with_secret(seed: int = 5, merged: bool = True) -> Joint:
    """A joint whose released values are x = (s, u): the secret is among the columns."""
    rng = np.random.default_rng(seed)
    values = [(f"s{s}", f"u{u}") for s in range(3) for u in range(2 + s % 2)]
    counts = rng.integers(30, 300, len(values))
    cells = np.array([[int(value[0][1]), x] for x, value in enumerate(values)], np.int64)
    secret = Alphabet(("illness",), (("s0",), ("s1",), ("s2",)))
    if merged:
        return Joint(secret, (Alphabet(("illness", "town"), tuple(values)),), cells, counts)
    return Joint(
        secret, (Alphabet(("illness",), secret.values),), cells[[0, 2, 5], :1].repeat(2, 1), counts[:3]
    )


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("notion", AVERAGE)
def test_an_average_is_never_told_in_the_words_of_a_worst_case(notion: str, published: bool) -> None:
    text = text_of(about(notion, public=published))
    assert [phrase for phrase in ONLY_WORST_CASE if phrase in text] == []
    assert [phrase for phrase in ONLY_AVERAGE if phrase not in text] == []
    assert "single records may be affected" in text and "weigh little in an average" in text


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("notion", WORST_CASE)
def test_a_worst_case_is_told_in_full_and_not_as_an_average(notion: str, published: bool) -> None:
    text = text_of(about(notion, public=published))
    assert "The promise is worst-case: it holds for every record" in text
    assert ("promised range" in text) != published
    falls = notion == "pml"  # of which nothing follows about a fall
    assert [phrase for phrase in ONLY_AVERAGE if phrase in text] == (["no bound follows"] if falls else [])


@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_the_promise_stands_with_its_condition_its_observer_and_its_definition(notion: str) -> None:
    promise = about(notion)["promise"]
    assert all(
        promise[key].endswith((".", "]")) or key == "definition"
        for key in ("sentence", "condition", "observer")
    )
    assert notion in {"perfect"} or re.search(r"\[(DS|PF|RLDP)", promise["definition"])


def test_every_two_notions_promise_in_other_words() -> None:
    told = [about(name, joint=two_columns())["promise"]["sentence"] for name in NOTIONS if name != "alip"]
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_papers_listed_are_those_cited(notion: str) -> None:
    content = about(notion)
    cited = set(re.findall(r"\[(DS|PF|RLDP)\b", json.dumps([content["promise"], content["consequences"]])))
    assert {paper["tag"].strip("[]") for paper in content["papers"]} == cited


# What is promised, notion by notion.


def test_side_knowledge_is_promised_against_those_who_know_some_columns_but_not_all() -> None:
    content = about("srlip", joint=two_columns())
    assert (
        "even if they already know the true values of some of the released columns"
        in content["promise"]["sentence"]
    )
    assert (
        "some of the released columns, whichever these are but not in all" in content["promise"]["condition"]
    )
    assert "say nothing more" in content["promise"]["observer"]
    # Who knows a finer value than the table has, the age in a band of ages, may learn more: tests/unit/notions.
    promise = content["promise"]
    told = [promise["sentence"], promise["condition"], promise["definition"], content["measured"]["sentence"]]
    for one in (*told, content["consequences"][0]["claim"]):
        assert "as coarse as the table has them" in one
    assert "each as coarse as the table has it" in promise["observer"]
    text = text_of(content)
    assert "of ages in bands, the band" in text and "exactly" not in text.partition("Knowledge from elsewhere")[2][:200]
    assert "A condition that no record meets" in text and "puts no constraint" in text
    assert "this is the best" not in text


def test_one_column_leaves_no_side_knowledge_to_promise_against() -> None:
    content = about("srlip")
    assert content["promise"]["sentence"] == about("lip")["promise"]["sentence"]
    assert "Only one column is sanitised" in content["promise"]["observer"]


def test_draws_that_read_the_secret_are_not_promised_to_those_who_know_all_columns() -> None:
    release = sample.sample(*_reads(two_columns()), "srlip")
    observer = release.published()["promise"]["observer"]
    assert "someone who knows them all is not covered" in observer and "say nothing more" not in observer


def test_chances_that_leave_nothing_to_chance_are_not_said_to_contain_counts() -> None:
    """Conditional reporting of a large epsilon releases all as it is, and its chances are zero and one."""
    joint = two_columns()
    drawn, certain = (sample.sample(joint, [sample.conditional(joint, strength)]) for strength in (1.0, 60.0))
    assert certain.protocols[0].reads_secret
    for release, told in ((drawn, True), (certain, False)):
        for language in ("en", "de"):
            said = json.dumps(release.stating(language=language).published(), ensure_ascii=False)
            assert ("also reads" in said or "liest beim Ziehen" in said) is told


def test_little_information_is_not_told_as_none() -> None:
    """What was rounded to nothing, or to all, may be little, or nearly all."""
    joint = Joint.from_table([[400000, 300000, 200000], [300000, 300000, 300000]], "illness", "town")
    release = sample.sample(joint, [sample.response(joint.blocks[0], 0.001)])
    for rounded, said in ((0.0, "below 0.1%"), (1.0, "above 99.9%"), (0.5, "50.0%")):
        stated = release.stating(utility=replace(release.manifest.utility, normalised=rounded, upper_bound=None))
        text = text_of(stated.published())
        assert f"Information kept {said}" in text and f"of it, {said}." in text
    exact = sample.sample(joint, [sample.response(joint.blocks[0], 60.0)])
    assert "Information kept 100.0%" in text_of(exact.published())


def _reads(joint: Joint) -> tuple[Joint, list[Protocol]]:
    return joint, [sample.conditional(joint, 1.0)]


@pytest.mark.parametrize(("solve", "claim", "no_claim"), [
    ("joint", "this is the best, or as near to it as the ceiling says", "block by block"),
    ("sequential", "given what the blocks before release", "this is the best"),
    ("per-attribute", "How much each may tell was set so that all blocks together, as measured, keep the promise. "
     "Nothing is claimed about how close this comes to the best", "were lowered"),
])  # fmt: skip
def test_side_knowledge_says_which_way_was_taken(solve: str, claim: str, no_claim: str) -> None:
    joint = two_columns() if solve == "joint" else sample.census("sex", "race", "income")
    release = sample.sample(joint, [sample.response(block, 1.0) for block in joint.blocks], "srlip",
                            mechanism="optimal", parameters=Parameters(solve=solve))  # fmt: skip
    bounded = release.stating(utility=replace(release.manifest.utility, upper_bound=0.9))
    text = bounded.published()["drawing"]["sentences"][0]
    assert claim in text and no_claim not in text


def test_the_usual_ldp_is_promised_for_all_columns_to_anyone() -> None:
    content = about("ldp-x")
    assert (
        "odds between any two true values of town, and so between any two values of illness"
        in (content["promise"]["sentence"])
    )
    assert "does not rest on the table’s distribution" in content["promise"]["observer"]
    text = text_of(content)
    assert "not the released columns themselves" not in text and "columns is not bounded" not in text
    assert (
        "releases whose draws are independent add up" in text
        and "Leakage about a secret does not add up" not in text
    )


def test_blocks_of_the_usual_ldp_are_not_said_to_depend_on_each_other() -> None:
    joint = sample.census("sex", "race", "income")
    protocols = [sample.response(block, 1.0) for block in joint.blocks]
    release = sample.sample(joint, protocols, "ldp-x", mechanism="optimal")
    text = release.published()["drawing"]["sentences"][0]
    assert "each block by itself" in text and "before release" not in text


def test_robust_privacy_names_its_set_and_the_chance_that_the_truth_is_in_it() -> None:
    promise = about("rldp")["promise"]
    assert "every distribution near it" in promise["sentence"]
    assert "order 2" in promise["strength"] and "0.0123 nats" in promise["strength"]
    assert "about 95%" in promise["strength"] and "outside, and nothing is promised" in promise["strength"]
    text = text_of(about("rldp"))
    assert "that no record has was taken to be impossible" in text
    assert "under the distribution as counted" in text


def test_a_radius_that_was_given_claims_no_probability() -> None:
    joint = two_columns()
    given_radius = Parameters(order=2.0, radius=0.5)
    release = sample.sample(joint, [sample.response(joint.blocks[0], 1.0)], "rldp", parameters=given_radius)
    strength = release.published()["promise"]["strength"]
    assert "No probability is claimed" in strength and "%" not in strength


@pytest.mark.parametrize(("radius", "said"), [(0.012356, "0.012356"), (0.0123456789, "0.0123456"), (1e-9, "1e-9")])
def test_a_set_is_not_called_larger_than_it_is(radius: float, said: str) -> None:
    """The bound is for this radius, and a larger one holds distributions that it is not for."""
    joint = two_columns()
    given = Parameters(order=2.0, radius=radius)
    release = sample.sample(joint, [sample.response(joint.blocks[0], 1.0)], "rldp", parameters=given)
    assert f"is at most {said} nats." in release.published()["promise"]["strength"]


def test_robust_optimum_is_not_called_the_best() -> None:
    joint = two_columns()
    for mechanism in ("optimal", "polyopt"):
        release = sample.sample(joint, [sample.response(joint.blocks[0], 1.0)], "rldp", mechanism=mechanism)
        assert "another protocol may keep more" in release.published()["drawing"]["sentences"][0]


def test_epsilon_of_a_bound_on_rises_is_no_factor_of_falls() -> None:
    for notion in ("pml", "alip"):
        (told,) = [one["meaning"] for one in about(notion)["glossary"] if one["term"].startswith("ε")]
        assert "exp(ε) is the factor by which beliefs may rise" in told and "odds" not in told


def test_what_epsilon_means_is_about_whom_the_promise_is_made_against() -> None:
    """Under LIP who starts from another belief than the table's may be moved by the square of the factor."""
    for notion in ("lip", "ldp"):
        told = text_of(about(notion))
        assert "Someone against whom the promise is made, and who gives a value of illness a probability of 10%" in told


def test_chances_that_shares_were_searched_for_are_not_said_to_be_free_of_counts() -> None:
    """With several blocks: the shares that were found show in them."""
    joint = Joint.from_table([[400, 200, 100], [150, 250, 300]], "illness", "town")
    two = Joint(joint.secret, (*joint.blocks, Alphabet(("job",), joint.blocks[0].values)),
                joint.cells[:, [0, 1, 1]], joint.counts)  # fmt: skip
    for one, said in ((joint, False), (two, True)):
        protocols = [sample.response(block, 1.0) for block in one.blocks]
        told = text_of(sample.sample(one, protocols, "ldp-x").published())
        assert "The published chances depend on ε and the number of values, not on the counts" in told
        assert ("unless shares of ε were searched for: by the counts, and they show in the chances" in told) is said
        assert ("as long as the values that there can be do, and the shares of ε" in told) is said
        assert ("other values, another ε or other shares of it bring" in told) is said


def test_what_only_bounds_rises_says_that_values_may_be_ruled_out() -> None:
    content = about("pml")
    assert "may be able to rule a value out" in content["promise"]["sentence"]
    assert content["measured"]["falls"] is None and content["scale"][0]["factor"] == "× 1.11"
    assert row(content, "Rise of any belief about illness")["because"] == "this is the promise"
    assert row(content, "Change of the odds")["implied"] == "no bound follows"


def test_two_bounds_are_told_apart() -> None:
    joint = two_columns()
    release = sample.sample(joint, [sample.response(joint.blocks[0], 1.0)], "alip", epsilon=0.5,
                            parameters=Parameters(lower=2.0))  # fmt: skip
    content = release.published()
    assert content["promise"]["sentence"].endswith(
        "a factor of 1.65, and lower it by at most a factor of 7.39."
    )
    assert (content["measured"]["falls"], content["measured"]["rises"]) == (2.0, 0.5)
    assert row(content, "Change of any belief")["implied"] == "at most 2 nats"
    assert row(content, "Change of the odds")["implied"] == "at most 2.5 nats"
    assert content["scale"][1]["factor"] == "× 1.65 or ÷ 7.39"


# Mutual information: no picture, no table suggests a bound for single beliefs.


def test_measured_changes_of_an_average_are_shown_without_an_allowed_band() -> None:
    content = about("mutual-information", public=False)
    assert all(entry["promised"] is None for entry in content["evidence"]["secrets"])
    assert content["scale"][0]["from"] is None
    assert content["measured"]["kind"] == "average"
    strongest = content["measured"]["leakage"]["lip"]
    assert content["evidence"]["width"] >= strongest
    assert f"{math.exp(strongest):.2f}"[:3] in content["measured"]["sentence"]


def test_an_average_that_rules_out_a_value_says_so() -> None:
    joint = Joint.from_table([[400, 0], [300, 300]], "illness", "town")
    same = Protocol(joint.blocks[0], joint.blocks[0], 1, np.array([[2, 0], [0, 2]])[:, None, :])
    swap = Protocol(joint.blocks[0], joint.blocks[0], 1, np.array([[0, 2], [2, 0]])[:, None, :])
    for protocol in (same, swap):
        content = sample.sample(joint, [protocol], "mutual-information").full()
        assert content["measured"]["leakage"]["lip"] is None
        assert "rules out a value of illness altogether" in content["measured"]["sentence"]
        assert "single released values change beliefs without limit" in content["headline"][1]["note"]
        assert "no bound" in text_of(content)
        assert min(one["moves"][0] for one in content["evidence"]["secrets"]) == -1.0


# Consequences: what is implied is a theorem, and nothing else is implied.


@st.composite
def channels(draw: st.DrawFn) -> tuple[Joint, list[Protocol]]:
    """Any joint of full support with any protocol without zeros."""
    c, a, b = (draw(st.integers(2, 4)) for _ in range(3))
    table = np.array(draw(st.lists(st.integers(1, 40), min_size=c * a, max_size=c * a))).reshape(c, a)
    joint = Joint.from_table(table)
    parts = np.array(draw(st.lists(st.integers(1, 60), min_size=a * b, max_size=a * b)), np.int64).reshape(
        b, a
    )
    parts[0] += 256 - parts.sum(axis=0)
    outputs = Alphabet(("Y",), tuple((f"y{i}",) for i in range(b)))
    return joint, [Protocol(joint.blocks[0], outputs, 8, parts[:, None, :])]


def test_bounds_of_independent_draws_add_up_and_those_under_one_key_do_not() -> None:
    """Two protocols under one key share their uniform: what both answer together may rule a value out."""
    first, second = np.array([[0.5, 0.6], [0.5, 0.4]]), np.array([[0.55, 0.5], [0.45, 0.5]])
    spreads = [math.log((q.max(axis=1) / q.min(axis=1)).max()) for q in (first, second)]
    apart = np.einsum("ax,bx->abx", first, second).reshape(4, 2)
    assert math.log((apart.max(axis=1) / apart.min(axis=1)).max()) <= sum(spreads)
    ends = [np.vstack([np.zeros(2), np.cumsum(q, axis=0)]) for q in (first, second)]
    shared = [np.maximum(0, np.minimum(ends[0][a + 1], ends[1][b + 1]) - np.maximum(ends[0][a], ends[1][b]))
              for a in range(2) for b in range(2)]  # fmt: skip
    assert any(row.min() < 1e-12 and row.max() > 0.05 for row in shared), "one value is ruled out"
    one = sample.one_block()
    said = sample.sample(one.joint, one.protocols, "ldp-x").published()
    (several,) = [one["text"] for one in said["limits"] if one["title"] == "Several releases"]
    assert "bounds of releases whose draws are independent add up" in several


@given(channels())
def test_ldp_of_x_bounds_ldp_and_lip_of_the_secret(release: tuple[Joint, list[Protocol]]) -> None:
    joint, protocols = release
    table = released_table(joint, protocols)
    most = sample.spread(protocols[0]) + 1e-9
    assert ldp(table).nats <= most and lip(table).nats <= most


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_ldp_of_x_bounds_what_is_learnt_beside_any_side_knowledge(seed: int, power: int) -> None:
    """ε-LDP of X gives ε-SRLIP: P(y|s,x_J) and P(y|x_J) are averages of the same Q(y|x)."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(2 * 3 * 3, 0.2)).reshape(2, 3, 3) + 1e-6
    rows = rng.uniform(0.01, 1, (4, 9)) ** power
    rows /= rows.sum(axis=0)
    most = np.log(rows.max(axis=1) / rows.min(axis=1)).max()
    kept = rows.reshape(4, 3, 3)
    for known in ((), (1,), (2,)):
        other = tuple(axis for axis in (1, 2) if axis not in known)
        sent = np.einsum("yab,sab->ysab", kept, joint)
        by_secret = sent.sum(axis=tuple(a + 1 for a in other)) / joint.sum(axis=other)
        at_all = sent.sum(axis=(1, *(a + 1 for a in other))) / joint.sum(axis=(0, *other))
        ratio = np.log(by_secret / at_all[:, None])
        assert np.abs(ratio).max() <= most + 1e-9


@given(channels(), st.integers(0, 10**6), st.floats(0.1, 50))
def test_theorem_1_of_pf_bounds_the_gain_under_any_cost(
    release: tuple[Joint, list[Protocol]], seed: int, limit: float
) -> None:
    """ΔC <= 2√2·L·√I(S;Y) with I in nats, for the best of finitely many acts at costs within ±L."""
    joint, protocols = release
    table = released_table(joint, protocols).astype(float)
    p = table / table.sum()
    costs = np.random.default_rng(seed).uniform(-limit, limit, (len(p), 6))
    before = (p.sum(axis=1) @ costs).min()
    after = sum((p[:, y] @ costs).min() for y in range(p.shape[1]))
    assert before - after <= 2 * math.sqrt(2) * limit * math.sqrt(mutual_information(table)) + 1e-9


def row(content: dict[str, Any], start: str) -> dict[str, Any]:
    (found,) = [one for one in content["consequences"] if one["claim"].startswith(start)]
    return found


@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_the_gain_under_any_cost_is_told_at_the_measured_information(notion: str) -> None:
    content = about(notion)
    information = content["measured"]["leakage"]["mutual_information"]
    told = row(content, "Average gain of anyone")["implied"]
    if not information:
        assert told == "0"
        return
    factor = float(told.removeprefix("at most ").removesuffix("\u00a0×\u00a0L"))
    assert 0 <= factor - 2 * math.sqrt(2 * information) <= 1.0001e-4


def test_stronger_notions_pass_on_their_bounds() -> None:
    joint = two_columns()
    for notion, odds in (("srlip", 2), ("ldp-x", 1), ("rldp", 1), ("lip", 2), ("ldp", 1)):
        content = about(notion, joint=joint)
        epsilon = content["promise"]["epsilon"]
        assert (
            row(content, "Change of any belief about illness (LIP)")["implied"] == f"at most {epsilon:g} nats"
        )
        bound = row(content, "Change of the odds between two values of illness (LDP)")["implied"]
        assert bound == f"at most {odds * epsilon:g} nats"
        assert row(content, "Information on illness")["implied"] == f"at most {epsilon:g} nats"
        promised = [one for one in content["consequences"] if one["because"] == "this is the promise"]
        assert len(promised) == 1 and promised[0]["implied"] == f"at most {epsilon:g} nats"


@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_what_a_template_says_to_follow_is_what_the_notion_says(notion: str) -> None:
    """The words state numbers of their own: they are those of the notions' chains of implications."""
    release = sample.sample(two_columns(), [sample.response(two_columns().blocks[0], 1.0)], notion)
    epsilon = 0.0 if notion == "perfect" else 0.7
    said = words.notion(Facts(replace(release.manifest, epsilon=epsilon), release.protocols))
    asked = {name: value for name, value in vars(release.manifest.parameters).items() if value is not None}
    given_bound = implications.bound(notion, epsilon, asked)
    for block, implied in (("belief", "lip"), ("odds", "ldp"), ("information", "mutual-information")):
        least = implications.least(given_bound, implied)
        assert (float(said[block]) if said[block] else None) == pytest.approx(least), block


def test_a_bound_on_the_average_implies_none_on_single_beliefs() -> None:
    """I(S;Y) tends to 0 while LIP stays infinite: a secret value that one released value gives away, ever rarer."""
    for rare in (1000, 100_000):
        joint = Joint.from_table([[rare, rare, 0], [rare, rare, 10]])
        protocol = Protocol(joint.blocks[0], joint.blocks[0], 0, np.eye(3, dtype=np.int64)[:, None, :])
        table = released_table(joint, [protocol])
        assert mutual_information(table) < 10 / rare and lip(table).ratio is None
    content = about("mutual-information")
    assert row(content, "Change of any belief")["implied"] == "no bound follows"
    assert row(content, "Change of the odds")["implied"] == "no bound follows"
    assert row(content, "Change of any belief")["measured"].endswith(" nats")


# Resampled truths.


@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_truths_are_resampled_for_robust_privacy_alone(notion: str) -> None:
    assert (about(notion, public=False)["evidence"]["realised"] is not None) == (notion == "rldp")


def test_resampled_leakages_are_those_of_the_definition() -> None:
    """One distribution, by the definition: max over y, s, s' of P(y|s)/P(y|s')."""
    content = about("rldp", public=False)
    found, measured = content["evidence"]["realised"], content["measured"]["leakage"]["ldp"]
    assert found["resamples"] == 1000
    assert found["median"] < found["p95"] < found["largest"]
    assert found["median"] == pytest.approx(measured, rel=0.15)


def test_resampled_truths_close_in_on_the_counts() -> None:
    """With very many records the truth is the counted distribution, and leaks what was measured."""
    joint = Joint.from_table(np.array([[5, 2, 3], [1, 4, 2]]) * 10**9)
    protocols = [sample.response(joint.blocks[0], 1.0)]
    facts = Facts(sample.manifest(joint, protocols, "rldp"), tuple(protocols))
    found = realised(facts, joint)
    exact = ldp(released_table(joint, protocols)).nats
    assert found["median"] == pytest.approx(exact, abs=0.002)
    assert found["largest"] == pytest.approx(exact, abs=0.01) and found["share_above"] == 0


def test_a_release_without_room_leaks_above_epsilon_for_about_half_of_the_truths() -> None:
    joint = Joint.from_table([[400, 200], [150, 250]], "illness", "town")
    protocols = [sample.response(joint.blocks[0], 1.0)]
    exact = ldp(released_table(joint, protocols)).nats
    found = realised(Facts(sample.manifest(joint, protocols, "rldp", epsilon=exact), tuple(protocols)), joint)
    assert found["share_above"] == pytest.approx(0.5, abs=0.1)


def test_another_release_draws_other_truths() -> None:
    joint = two_columns()
    release = sample.sample(joint, [sample.response(joint.blocks[0], 1.0)], "rldp")
    other = release.stating(release="20261122T112034Z-000000")
    medians = [one.full()["evidence"]["realised"]["median"] for one in (release, release, other)]
    assert medians[0] == medians[1] != medians[2]


# The secret among the released columns, merged blocks, merged values.


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("notion", ["lip", "ldp", "ldp-x", "rldp"])
def test_a_secret_that_is_released_too_is_said_to_be(notion: str, published: bool) -> None:
    joint = with_secret()
    content = about(notion, joint=joint, public=published)
    text = text_of(content)
    assert (
        "The secret itself is released, randomised" in text
        and "Protected illness, 3 values; released too" in text
    )
    assert "Illness and town are drawn together, as one value" in text
    assert "Hidden" not in text and "Illness itself, every other column" not in text
    if notion != "ldp-x":
        assert "protects illness, not the other released columns" in text


def test_beliefs_in_a_secret_that_is_released_too_follow_bayes_rule() -> None:
    joint = with_secret()
    (protocol,) = protocols = [sample.response(joint.blocks[0], 1.0)]
    content = sample.sample(joint, protocols, "ldp").full()
    both = np.zeros((3, len(protocol.outputs)))
    for (s, x), count in zip(joint.cells.tolist(), joint.counts.tolist(), strict=True):
        both[s] += count * protocol.probabilities()[:, 0, x]
    after = both / both.sum(axis=0)
    for entry in content["evidence"]["secrets"]:
        s = int(entry["value"][1])
        assert entry["lowest"] == pytest.approx(after[s].min(), abs=1e-6)
        assert entry["highest"] == pytest.approx(after[s].max(), abs=1e-6)


def test_a_secret_that_is_all_that_is_released_makes_a_page() -> None:
    joint = Joint.from_table(np.diag([300, 200, 100]), "illness", "illness")
    protocols = [sample.response(joint.blocks[0], 1.0)]
    content = sample.sample(joint, protocols, "ldp").published()
    assert "what they say about illness is what the promise bounds." in text_of(content)
    assert not [one for one in content["limits"] if one["title"].startswith("The true")]


def test_a_block_of_columns_is_said_to_be_drawn_together() -> None:
    assert "Town and job are drawn together, as one value" in text_of(about("lip", joint=two_columns()))
    assert "drawn together" not in text_of(about("lip"))


def test_true_values_are_not_said_to_be_drawn_together_or_apart() -> None:
    joint = two_columns()
    block = joint.blocks[0]
    other = Alphabet(("area", "work"), block.values)
    parted = Joint(joint.secret, (block, other), joint.cells[:, [0, 1, 1]], joint.counts)
    true = Protocol(block, block, 0, np.eye(len(block), dtype=np.int64)[:, None, :])
    alone = text_of(sample.sample(joint, [true], "lip", epsilon=9).published())
    assert "Town and job are taken together, as one value" in alone and "drawn together" not in alone
    apart = sample.sample(joint, [sample.response(block, 1.0)], "lip", epsilon=9, mechanism="independent-reporting")
    assert "Town and job are taken together, as one value" in text_of(apart.published())
    pairs = np.array([[1, 0, 1, 1], [0, 1, 0, 0]])[:, None, :]
    merged = Protocol(block, Alphabet(block.columns, block.values[:2]), 0, pairs)
    for protocols in ([merged], [merged, Protocol(other, other, 0, true.weights)]):
        certain = text_of(sample.sample(parted if protocols[1:] else joint, protocols, "lip", epsilon=9).published())
        for untrue in ("drawn together", "is drawn for independently", "lies on its bounds"):
            assert untrue not in certain
    also = Protocol(other, other, 0, true.weights)
    one, two = sample.response(block, 1.0), sample.response(other, 1.0)
    for protocols, said in (
        ([true, also], "Every figure about leakage is for all of them seen together."),
        ([true, two], "Each block that is not released as it is is drawn for independently;"),
        ([one, two], "Each block is drawn for independently;"),
    ):
        assert f"form 2 blocks. {said}" in text_of(sample.sample(parted, protocols, "lip", epsilon=9).published())



def test_merging_without_chance_is_told_as_what_it_is() -> None:
    joint = Joint.from_table([[400, 300, 200], [300, 300, 300]], "illness", "town")
    outputs = Alphabet(("town",), joint.blocks[0].values[:2])
    merged = Protocol(joint.blocks[0], outputs, 0, np.array([[1, 0, 1], [0, 1, 0]])[:, None, :])
    release = sample.sample(joint, [merged], "mutual-information", mechanism="greedy-funnel")
    text = text_of(release.published())
    assert "records with the same true value always show the same released value" in text
    assert "no key plays a part" in text and "narrow down its true values" not in text
    assert "3 true values became 2 groups" in text and "the draws pull them away" not in text
    assert "Draws are permanent" not in text
    assert "The rest of the table" not in text and "how many others show the same value" not in text


def test_an_average_that_was_rounded_up_is_said_to_be_the_most() -> None:
    """Few records leave few decimals: of 3,000, an average of 0.0004 nats is stated as 0.01."""
    joint = Joint.from_table([[400, 300, 200], [300, 300, 300]], "illness", "town")
    release = sample.sample(joint, [sample.response(joint.blocks[0], 1.0)], "mutual-information")
    assert release.manifest.decimals < 3
    text = text_of(release.published())
    assert "An average record tells at most " in text and "by up to a factor of" in text
    assert "at most 2.6% of the bound, on average" in text


def test_a_step_that_is_all_of_a_small_bound_is_not_said_to_be_measured() -> None:
    """0.0011 nats of 0.002 are 54 %, and stated as 0.002."""
    joint = Joint.from_table([[785, 715], [715, 785]], "illness", "town")
    _, protocols = _reads(joint)
    release = sample.sample(joint, protocols, "mutual-information", epsilon=0.002)
    assert release.manifest.decimals == 2
    stated = release.stating(leakage=release.manifest.leakage | {"mutual_information": 0.002})
    assert "at most 100.0% of the bound, on average" in text_of(stated.published())
    assert "at most 0.002 nats" in {row["measured"] for row in stated.published()["consequences"]}


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_the_report_of_a_ready_policy_makes_the_promise_of_its_notion_and_no_other(path: Path) -> None:
    policy = funnel.load(path)
    privacy, columns = policy.privacy, [name for block in policy.public for name in block.columns]
    values = tuple(tuple(f"{name}{i}" for name in columns) for i in range(3))
    joint = Joint.from_table([[400, 200, 100], [150, 250, 300]])
    secret = Alphabet(policy.sensitive, tuple(tuple(f"s{i}" for _ in policy.sensitive) for i in range(2)))
    joint = Joint(secret, (Alphabet(tuple(columns), values),), joint.cells, joint.counts)
    protocols = [sample.response(joint.blocks[0], 0.0 if privacy.notion == "perfect" else 1.0)]
    kind = "optimal" if policy.mechanism.kind == "auto" else policy.mechanism.kind
    release = sample.sample(
        joint, protocols, privacy.notion, epsilon=privacy.epsilon, mechanism=kind, name=policy.name
    )
    text = text_of(release.published())
    promise = promised(release, privacy.notion)
    assert promise in text
    assert not [one for one in {promised(release, name) for name in NOTIONS} - {promise} if one in text]
    foreign = ONLY_WORST_CASE if privacy.notion in AVERAGE else ONLY_AVERAGE[:2]
    assert [phrase for phrase in foreign if phrase in text] == []


def promised(release: sample.Sample, notion: str) -> str:
    """What another notion would promise of the release."""
    m = release.manifest
    leakage = m.leakage | dict.fromkeys(("srlip", "rldp", "ldp_x", "pml", "alip"), 0.5)
    stated = replace(
        m, notion=notion, leakage=leakage, parameters=sample.PARAMETERS.get(notion, Parameters())
    )
    return words.notion(Facts(stated, release.protocols))["promise"]
