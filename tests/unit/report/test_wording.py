"""Sentences: what each notion promises, what is not promised, and names that cannot disturb a page."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.data import Label
from funnel.errors import InternalError
from funnel.notions import NOTIONS as REGISTERED
from funnel.report import compose, figures, wording
from funnel.report import text as spelling
from tests.unit.report import sample


def terms(epsilon: float, *public: str, **parameters: Any) -> wording.Terms:
    return wording.Terms.of(["marital_status"], public or ["education"], epsilon, parameters)


PAIR = wording.Terms.of(["marital_status", "sex"], ["education"], 1.0)
ONE = sample.one_block()


def composed(**changes: Any) -> dict[str, Any]:
    about, protocols, joint = ONE
    return compose(about | changes, protocols, joint, published=True)


def limit(content: dict[str, Any], title: str) -> str:
    return next(one["text"] for one in content["limits"] if one["title"] == title)


def test_lip_promises_a_factor_for_every_belief() -> None:
    assert wording.notion("lip").promise(terms(1.0)) == (
        "Whoever sees a record’s released values can raise or lower the probability they give to any "
        "marital status by at most a factor of 2.72."
    )


def test_ldp_promises_a_factor_for_odds_whatever_was_believed() -> None:
    assert wording.notion("ldp").promise(terms(0.5)) == (
        "Whoever sees a record’s released values can shift the odds between any two values of marital "
        "status by at most a factor of 1.65, whatever they believed before."
    )


def test_perfect_privacy_promises_that_nothing_is_learnt() -> None:
    assert wording.notion("perfect").promise(terms(0.0)) == (
        "Whoever sees a record’s released values learns nothing about marital status: the probability of any "
        "marital status stays what it was."
    )


def test_several_sensitive_columns_are_promised_together() -> None:
    assert "any combination of marital status and sex" in wording.notion("lip").promise(PAIR)
    assert wording.Terms.of(["a", "b", "c"], ["x"], 1.0).secret == "a, b and c"


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_every_notion_of_a_policy_has_words(name: str) -> None:
    assert wording.notion(name).promise(terms(1.0)).endswith(".")


def test_a_notion_without_words_makes_no_report() -> None:
    with pytest.raises(InternalError, match="no wording for the notion 'vague'"):
        composed(notion="vague")


def test_a_mechanism_without_words_is_named() -> None:
    assert "“new-idea”" in composed(mechanism="new-idea")["drawing"]["mechanism"]
    assert "“" not in composed(mechanism="optimal")["drawing"]["mechanism"]


@given(st.floats(0.001, 0.999), st.floats(0.001, 5))
def test_ranges_are_what_the_definitions_allow(before: float, epsilon: float) -> None:
    """At either end the belief, or that in all other values, has moved by exactly ε; all lie within 0..1."""
    for name in ("lip", "ldp"):
        words = wording.notion(name)
        low, high = words.within(before, epsilon)
        assert 0 <= low <= before <= high <= 1
        pairs = ((before, low), (before, high), (1 - before, 1 - low), (1 - before, 1 - high))
        ends = [words.change(np.array([p]), np.array([q]))[0] for p, q in pairs]
        assert max(abs(end) for end in ends) <= epsilon * (1 + 1e-6) + 1e-9
        for lower, upper in ((ends[0], ends[2]), (ends[1], ends[3])):
            assert max(abs(lower), abs(upper)) == pytest.approx(epsilon, rel=1e-5)


def test_the_range_of_odds_is_narrower_than_that_of_factors() -> None:
    for before in (0.01, 0.3, 0.9):
        low, high = wording.notion("ldp").within(before, 1.0)
        wide_low, wide_high = wording.notion("lip").within(before, 1.0)
        assert wide_low <= low and high <= wide_high


def test_what_is_promised_depends_on_who_looks() -> None:
    assert "knows nothing else about the person" in composed()["promise"]["observer"]
    assert "may have believed anything" in composed(notion="ldp", epsilon=2.0)["promise"]["observer"]


def test_limits_say_which_defence_is_used() -> None:
    text = limit(composed(), "The distribution behind the promise")
    assert "at least 10 records" in text and "multiples of 1/2¹⁶" in text
    spent = {"epsilon": 0.5, "estimates": 3, "spent": 1.5}
    noisy = composed(estimate={"minimum": 10, "kind": "private", **spent})
    text = limit(noisy, "The distribution behind the promise")
    assert "noise" in text and "at most 1.65 times" in text and "a factor 4.49, ε_est = 1.5 together" in text
    assert "was measured at the noisy counts" in noisy["measured"]["sentence"]
    assert "does not list" in limit(noisy, "People in small groups")


def test_limits_speak_of_fresh_or_permanent_draws() -> None:
    assert "publishing again adds nothing" in limit(composed(), "Several releases")
    fresh = composed(draws={"kind": "fresh", "key_fingerprint": None})
    assert "each further release" in limit(fresh, "Several releases")
    for content in (composed(), fresh):
        assert "does not add up" in limit(content, "Several releases")


def test_the_key_is_spoken_of_only_where_there_is_one() -> None:
    titles = [one["title"] for one in composed(draws={"kind": "fresh", "key_fingerprint": None})["limits"]]
    assert "The key" not in titles
    assert "fingerprint" in limit(composed(), "The key")


def test_limits_warn_of_protocols_that_hold_the_distribution() -> None:
    text = limit(compose(*sample.awkward(), published=True), "The distribution behind the promise")
    assert "reads S <i>secret</i> when it draws" in text
    assert "reads" not in limit(composed(), "The distribution behind the promise")


def test_every_limit_that_readers_must_know_is_there() -> None:
    assert [one["title"] for one in composed()["limits"]] == [
        "The true education",
        "Being recognised",
        "Other tables and other columns",
        "Knowledge from elsewhere",
        "Several records of one person, and households",
        "Several releases",
        "The distribution behind the promise",
        "People in small groups",
        "The key",
    ]


def test_the_auditor_is_named_with_the_exact_command() -> None:
    commands = [one["command"] for one in composed()["audit"]["commands"]]
    assert commands == [
        "funnel audit 20261121T112034Z-3f9a1c",
        "funnel audit 20261121T112034Z-3f9a1c --private PRIVATE_FOLDER",
    ]
    assert (
        composed(release="a b; rm -rf x")["audit"]["commands"][0]["command"] == "funnel audit 'a b; rm -rf x'"
    )


def test_hashes_versions_and_draws_are_listed() -> None:
    pairs = {one["what"]: one["value"] for one in composed()["provenance"]}
    assert pairs["Policy, SHA-256"] == "5b0f" * 16
    assert pairs["Key fingerprint"] == "9d1e6f0a42c7b835"
    assert pairs["Draws"] == "permanent" and pairs["Versions"].startswith("funnel 0.1.0, python")
    assert "Protocol, SHA-256" not in pairs


def test_no_sentence_is_left_unfinished() -> None:
    for release in (ONE, sample.two_blocks(), sample.independent()):
        for published in (True, False):
            text = json.dumps(compose(*release, published=published), ensure_ascii=False)
            assert "  " not in text and " ," not in text and ".." not in text.replace("...", "")
            assert not re.search(r"\b(None|nan|inf)\b", text)


@pytest.mark.parametrize(("column", "human"), [
    ("marital_status", "marital status"), ("age", "age"), ("_", "_"), ("a__b", "a b"), ("", "(empty)"),
    ("x\ny", "x y"), ("S\u202e", "S\\u202e"),
])  # fmt: skip
def test_columns_are_spoken_of_as_people_do(column: str, human: str) -> None:
    assert spelling.human(column) == human


@pytest.mark.parametrize(("value", "text"), [
    (("a", None), "a, (missing)"), (("",), "(empty)"), ((" ",), "(blank)"), (("a\u0000b",), "a\\u0000b"),
    (("\ud800",), "\\ud800"), (("漢字",), "漢字"),
])  # fmt: skip
def test_values_are_spelt_out(value: Label, text: str) -> None:
    assert spelling.label(value) == text


@given(st.text(st.characters()))
def test_printable_text_has_nothing_invisible_and_can_be_written(text: str) -> None:
    shown = spelling.printable(text)
    shown.encode("utf-8")
    assert shown and shown.strip()
    assert all(unicodedata.category(letter)[0] != "C" for letter in shown)


@given(st.floats(0, 20))
def test_factors_are_never_understated(epsilon: float) -> None:
    text = figures.factor_text(epsilon)
    mantissa, _, power = text.partition(" × 10^")
    shown = float(mantissa.replace(",", "")) * 10 ** int(power or 0)
    assert shown >= math.exp(epsilon) * (1 - (0.05 if power else 1e-9))
    assert shown <= math.exp(epsilon) * (1.06 if power else 1.011)


@pytest.mark.parametrize(("epsilon", "text"), [
    (0, "1.00"), (0.1, "1.11"), (1, "2.72"), (2, "7.39"), (3, "20.1"), (5, "149"), (10, "22,100"),
])  # fmt: skip
def test_factors_have_three_digits(epsilon: float, text: str) -> None:
    assert figures.factor_text(epsilon) == text


@pytest.mark.parametrize(("value", "text"), [
    (0.0001, "below 0.1%"), (0.0304, "3.0%"), (0.4601, "46%"), (0.91, "91.0%"), (0.99999, "above 99.9%"),
])  # fmt: skip
def test_published_beliefs_have_two_digits_and_a_floor(value: float, text: str) -> None:
    assert figures.belief_text(figures.belief(value, published=True), published=True) == text


@given(st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_intervals_are_rounded_outwards(one: float, other: float, published: bool) -> None:
    low, high = sorted((one, other))
    shown = figures.around(low, high, 0.001 if published else figures.EXACT)
    assert 0 <= shown[0] <= low + 1e-8 and high - 1e-8 <= shown[1] <= 1


@pytest.mark.parametrize(("value", "step", "text"), [
    (0.03, 0.05, "below 5%"), (0.97, 0.05, "above 95%"), (0.07, 0.05, "5%"), (0.05, 0.05, "5%"),
    (0.0011, 0.002, "below 0.2%"), (0.0304, 0.002, "3.0%"), (0.46, 0.002, "46%"), (0.6, 1.0, "below 100%"),
])  # fmt: skip
def test_beliefs_of_small_tables_have_coarser_steps(value: float, step: float, text: str) -> None:
    assert figures.belief_text(figures.belief(value, True, step), True, step) == text


def test_the_headline_says_for_whom_the_promise_holds() -> None:
    conditions = {name: wording.notion(name).condition(terms(1.0)) for name in wording.NOTIONS}
    assert conditions["lip"] == (
        "This holds for someone who knows how the values are distributed in the table, and nothing else about the "
        "person."
    )
    assert conditions["ldp"].startswith(
        "This holds whatever was believed about the person’s marital status before"
    )
    assert conditions["perfect"] == conditions["ldp"]
    assert composed()["promise"]["condition"] == conditions["lip"]


def test_the_unit_of_nothing_is_epsilon() -> None:
    assert composed(epsilon=2.0)["headline"][0]["note"] == "a factor of 7.39; epsilon 0 would tell nothing"


def test_chances_are_exact_in_the_protocol_and_rounded_in_the_report() -> None:
    rule = composed()["drawing"]["rule"]
    assert "exactly those in protocol.json" in rule and "shown here are rounded" in rule
    assert "nobody without the key can tell from chance" in rule


def test_permanent_draws_last_as_long_as_key_protocol_and_true_values() -> None:
    content = composed()
    (word,) = [one["meaning"] for one in content["glossary"] if one["term"] == "Permanent and fresh draws"]
    for text in (content["drawing"]["draws"], word):
        assert "under the same key" in text and "protocol" in text and "true values" in text
        assert "counts change" in text and "solved anew" in text
    assert "any change of the counts" in limit(content, "Several releases")


def test_records_are_those_left_by_the_policy() -> None:
    assert composed()["scope"]["records"] == (
        "32,561 records, after the policy’s filter and rows left out for missing values, if any; each is drawn "
        "for on its own"
    )


def test_perfect_privacy_says_what_other_knowledge_does() -> None:
    text = limit(compose(*sample.independent(), published=True), "Knowledge from elsewhere")
    assert "any other belief about illness alone" in text and "learns nothing either" in text
    assert "more about the person’s true public values" in text and "may learn something" in text
    assert "starts from the frequencies" not in text


def test_another_belief_about_the_secret_costs_the_square_of_the_factor() -> None:
    """[DS] Lemma 1: ε-LIP gives 2ε-LDP, which holds for every belief about S."""
    assert "7.39" in limit(composed(epsilon=1.0), "Knowledge from elsewhere")


def test_counts_are_not_said_to_be_safe() -> None:
    text = limit(composed(), "The distribution behind the promise")
    assert "table of counts is not published" in text and "narrow the counts down" in text
    assert "steps of 0.1%" in text and "counts themselves are not published" not in text


@given(st.floats(0, 30))
def test_leakages_are_rounded_up(nats: float) -> None:
    assert nats - 1e-9 <= figures.nats(nats) <= nats + 1.0001e-4


def test_dates_are_written_out() -> None:
    assert figures.date_text("2026-11-21T11:20:34Z") == "21 November 2026, 11:20 UTC"
