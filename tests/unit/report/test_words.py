"""Sentences: what each notion promises, what is not promised, and names that cannot disturb a page."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import text as spelling
from funnel.data import Joint, Label
from funnel.errors import InternalError
from funnel.format import schema
from funnel.format.manifest import Composed, Draws, Estimate, Locked
from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.report import figures, page, words
from funnel.report.facts import Facts
from tests.unit.report import sample

ONE = sample.one_block()


def facts(
    *public: str, epsilon: float = 1.0, sensitive: tuple[str, ...] = ("marital_status",), **changes: Any
) -> Facts:
    """The facts of a release of these columns, in one block each."""
    blocks = tuple((name,) for name in public or ("education",))
    stated = replace(ONE.manifest, sensitive=sensitive, public=blocks, epsilon=epsilon, **changes)
    return Facts(stated, ONE.protocols * len(blocks))


def promise(notion: str, **changes: Any) -> str:
    return words.notion(facts(notion=notion, parameters=sample.PARAMETERS.get(notion, sample.Parameters()),
                              leakage=LEAKAGE, **changes))["promise"]  # fmt: skip


LEAKAGE = dict.fromkeys(("lip", "ldp", "mutual_information", "srlip", "rldp", "ldp_x", "pml", "alip"), 0.5)


def composed(**changes: Any) -> dict[str, Any]:
    return ONE.stating(**changes).published()


def limit(content: dict[str, Any], title: str) -> str:
    return next(one["text"] for one in content["limits"] if one["title"] == title)


def test_lip_promises_a_factor_for_every_belief() -> None:
    assert promise("lip") == (
        "Whoever sees a record’s released values can raise or lower the probability they give to any "
        "marital status by at most a factor of 2.72."
    )


def test_ldp_promises_a_factor_for_odds_whatever_was_believed() -> None:
    assert promise("ldp", epsilon=0.5) == (
        "Whoever sees a record’s released values can shift the odds between any two values of marital "
        "status by at most a factor of 1.65, whatever they believed before."
    )


def test_perfect_privacy_promises_that_nothing_is_learnt() -> None:
    assert promise("perfect", epsilon=0.0) == (
        "Whoever sees a record’s released values learns nothing about marital status: the probability of any "
        "marital status stays what it was."
    )


def test_several_sensitive_columns_are_promised_together() -> None:
    assert "any combination of marital status and sex" in promise("lip", sensitive=("marital_status", "sex"))
    assert facts(sensitive=("a", "b", "c")).secret == "a, b and c"


@pytest.mark.parametrize("name", sorted(NOTIONS))
def test_every_notion_of_a_policy_has_words(name: str) -> None:
    """A new notion adds one template, and says everything in it that is required."""
    assert promise(name).endswith(".")


def test_every_template_of_a_notion_or_a_mechanism_is_of_one_that_a_policy_can_name() -> None:
    for room, known in (("notions", {*NOTIONS}), ("mechanisms", {*MECHANISMS} - {"auto"})):
        assert {path.stem for path in (words.TEMPLATES / room).glob("*.txt")} == known | {"base"}


def test_a_notion_or_mechanism_without_words_makes_no_report() -> None:
    with pytest.raises(InternalError, match="no words for 'vague'"):
        composed(notion="vague")
    with pytest.raises(InternalError, match="no words for 'new-idea'"):
        composed(mechanism="new-idea")


def test_a_template_that_speaks_of_what_is_not_known_is_an_error() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        words.said("glossary.txt", t=facts())


def test_what_is_promised_depends_on_who_looks() -> None:
    assert "knows nothing else about the person" in composed()["promise"]["observer"]
    assert "may have believed anything" in composed(notion="ldp", epsilon=2.0)["promise"]["observer"]


def test_limits_say_which_defence_is_used() -> None:
    text = limit(composed(), "The distribution behind the promise")
    assert "at least 10 records" in text and "multiples of 1/2¹⁶" in text
    noisy = composed(estimate=Estimate(10, "private", 0.5, 3, 1.5))
    text = limit(noisy, "The distribution behind the promise")
    assert "noise" in text and "at most 1.65 times" in text and "a factor 4.49, ε_est = 1.5 together" in text
    assert "was measured at the noisy counts" in noisy["measured"]["sentence"]
    assert "does not list" in limit(noisy, "People in small groups")


def test_limits_speak_of_fresh_or_permanent_draws() -> None:
    assert "publishing it again adds nothing" in limit(composed(), "Several releases")
    fresh = composed(draws=Draws("fresh", None))
    assert "each further release" in limit(fresh, "Several releases")
    for content in (composed(), fresh):
        assert "does not add up" in limit(content, "Several releases")


def test_the_key_is_spoken_of_only_where_there_is_one() -> None:
    titles = [one["title"] for one in composed(draws=Draws("fresh", None))["limits"]]
    assert "The key" not in titles
    assert "fingerprint" in limit(composed(), "The key")


def test_limits_warn_of_protocols_that_hold_the_distribution() -> None:
    text = limit(sample.awkward().published(), "The distribution behind the promise")
    assert "reads S <i>secret</i> when it draws" in text
    assert "reads" not in limit(composed(), "The distribution behind the promise")


def test_every_limit_that_readers_must_know_is_there() -> None:
    assert [one["title"] for one in composed()["limits"]] == [
        "The true education",
        "Being recognised",
        "Other tables and other columns",
        "Knowledge from elsewhere",
        "Several records of one person, and households",
        "The rest of the table",
        "Several releases",
        "The distribution behind the promise",
        "People in small groups",
        "The key",
    ]


def test_the_auditor_is_named_with_the_exact_command() -> None:
    commands = [one["command"] for one in composed()["audit"]]
    assert commands == [
        "funnel audit 20261121T112034Z-3f9a1c",
        "funnel audit 20261121T112034Z-3f9a1c --private PRIVATE_FOLDER",
    ]
    assert composed(release="a b; rm -rf x")["audit"][0]["command"] == "funnel audit 'a b; rm -rf x'"


def test_hashes_versions_and_draws_are_listed() -> None:
    pairs = {one["what"]: one["value"] for one in composed()["provenance"]}
    assert pairs["Policy, SHA-256"] == "5b0f" * 16
    assert pairs["Key fingerprint"] == "9d1e6f0a42c7b835"
    assert pairs["Draws"] == "permanent" and pairs["Versions"].startswith("duckdb 2.0.0, funnel 0.1.0")
    assert pairs["Terms, SHA-256"] == "77aa" * 16
    assert pairs["Protocol, SHA-256"] == hashlib.sha256(schema.write(ONE.protocol)).hexdigest()


def test_no_sentence_is_left_unfinished() -> None:
    for release in (ONE, sample.two_blocks(), sample.independent()):
        for published in (True, False):
            text = json.dumps(release.content(published), ensure_ascii=False)
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
    text = figures.factor(epsilon)
    mantissa, _, power = text.partition(" × 10^")
    shown = float(mantissa.replace(",", "")) * 10 ** int(power or 0)
    assert math.exp(epsilon) * (1 - 1e-9) <= shown <= math.exp(epsilon) * (1.11 if power else 1.011)


@pytest.mark.parametrize(("epsilon", "text"), [
    (0, "1.00"), (0.1, "1.11"), (1, "2.72"), (2, "7.39"), (3, "20.1"), (5, "149"), (10, "22,100"),
])  # fmt: skip
def test_factors_have_three_digits(epsilon: float, text: str) -> None:
    assert figures.factor(epsilon) == text


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0.0%"), (0.0001, "below 0.1%"), (0.0304, "3.0%"), (0.4601, "46.0%"), (0.99999, "above 99.9%"),
    (1.0, "100.0%"),
])  # fmt: skip
def test_a_share_that_is_not_quite_nothing_or_all_is_not_called_so(value: float, text: str) -> None:
    assert figures.share(value) == text


def test_the_headline_says_for_whom_the_promise_holds() -> None:
    conditions = {
        name: words.notion(facts(notion=name, leakage=LEAKAGE))["condition"]
        for name in ("lip", "ldp", "perfect")
    }
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


def drawing(content: dict[str, Any]) -> str:
    return " ".join(content["drawing"]["sentences"])


def test_chances_are_exact_in_the_protocol_and_rounded_in_the_report() -> None:
    rule = drawing(composed())
    assert "exactly those in protocol.json" in rule and "where the report shows them, they are rounded" in rule
    assert "nobody without the key can tell from chance" in rule


def test_permanent_draws_last_as_long_as_key_protocol_and_true_values() -> None:
    content = composed()
    (word,) = [one["meaning"] for one in content["glossary"] if one["term"] == "Permanent and fresh draws"]
    for text in (drawing(content), word):
        assert "under the same key" in text and "protocol" in text and "true values" in text
    assert "counts change" in drawing(content) and "solved anew" in drawing(content)
    assert "any change of the counts" in limit(content, "Several releases")


def test_under_a_lock_nothing_is_said_to_be_solved_anew() -> None:
    locked = composed(locked=Locked("ab" * 32, "2026-10-01T00:00:00Z"))
    text = json.dumps(locked, ensure_ascii=False)
    assert "solved anew" not in text and "may bring" not in text and "this is the best" not in text
    assert (
        "fixed by a lock, made at 2026-10-01T00:00:00Z" in text and "cannot come while the lock holds" in text
    )
    assert "solved anew" not in text and "any change of the counts" not in text
    assert "Lock" in {one["term"] for one in locked["glossary"]}


def test_a_protocol_that_no_count_bears_on_is_not_said_to_change_with_the_counts() -> None:
    joint = Joint.from_table([[400, 200, 100], [150, 250, 300]], "illness", "town")
    for notion, changes in (("ldp-x", False), ("lip", True)):
        content = sample.sample(joint, [sample.response(joint.blocks[0], 1.0)], notion).published()
        assert ("solved anew" in drawing(content)) == changes
        assert ("any change of the counts" in limit(content, "Several releases")) == changes
        told = limit(content, "The distribution behind the promise")
        assert ("not on the counts" in told) != changes


def test_noisy_counts_are_said_to_be_estimated_anew_after_hours() -> None:
    noisy = composed(estimate=Estimate(10, "private", 0.5, 1, 0.5))
    told = drawing(noisy)
    assert "twelve hours after an estimate of the counts estimates them anew" in told
    assert "counts change" not in told


def test_all_releases_so_far_have_a_figure_at_the_head_of_the_page() -> None:
    assert len(composed()["headline"]) == 3
    for leakage, figure, note in ((1.2, "factor 3.33", "; 1.200 nats"), (None, "no bound known", "2 releases")):
        content = composed(composed=Composed(leakage, "ceiling", 2, ()))
        tile = content["headline"][0 if leakage is None else 3]
        assert tile["label"] == "With all releases so far"
        assert tile["figure"] == figure and note in tile["note"]
        bounded = "bounded by all that there is to tell" in limit(content, "Several releases")
        assert bounded == (leakage is not None)


def test_several_releases_are_reckoned_with_those_of_an_earlier_one_too() -> None:
    """Where that left people out, which this one need not do."""
    for releases in (1, 2):
        told = limit(composed(composed=Composed(1.2, "unchanged", releases, ("values unchanged",))), "Several releases")
        assert "with how values are distributed in the table of this release" in told
        assert ("among those of it who are in an earlier one where that left people out" in told) == (releases > 1)


def test_one_release_with_absence_has_a_figure_of_both_at_the_head_of_the_page() -> None:
    tile = composed(composed=Composed(1.2, "exact", 1, ()))["headline"][3]
    assert (tile["label"], tile["figure"]) == ("With being absent", "factor 3.33")
    assert tile["note"] == "this release, and being absent from it; 1.200 nats"


def test_an_average_over_all_releases_is_no_factor() -> None:
    together = Composed(0.015, "sum", 2, ())
    content = composed(notion="mutual-information", epsilon=0.02, leakage=LEAKAGE, composed=together)
    assert content["headline"][3]["figure"] == "0.015"
    assert content["headline"][3]["note"].endswith("; nats, on average")


@pytest.mark.parametrize("public", [True, False], ids=["published", "full"])
def test_the_head_says_first_that_there_is_no_bound(public: bool) -> None:
    """Before the promise, which must not stand alone; and where a bound holds, nothing of it."""
    assert ONE.stating(composed=Composed(1.2, "sum", 2, ())).content(public)["promise"]["unbounded"] == ""
    for many, why in ((2, "With all releases so far, "), (1, "With what being absent from it tells, ")):
        content = ONE.stating(composed=Composed(None, "sum", many, ())).content(public)
        assert "has no finite bound that is known." in limit(content, "Several releases"), "and not: bounded by a sum"
        said = next(iter(content["promise"].values()))
        assert said.startswith(f"{why}no finite bound is known on what can be learnt about")
        assert said.endswith("What follows is about the values of this release alone.")
        head = html.unescape(page(content).split('<section class="headline"')[1].split("<nav")[0])
        assert head.partition('<p class="promise">')[2].startswith(said)
        assert head.index(said) < head.index(content["promise"]["sentence"])
        assert "no bound known</dd>" in head


def test_records_are_those_left_by_the_policy() -> None:
    assert composed()["scope"]["records"] == (
        "32,561 records, after the policy’s filter and rows left out for missing values, if any; each is drawn "
        "for on its own."
    )


def test_perfect_privacy_says_what_other_knowledge_does() -> None:
    text = limit(sample.independent().published(), "Knowledge from elsewhere")
    assert "any other belief about illness alone" in text and "learns nothing either" in text
    assert "more about the person’s true public values" in text and "may learn something" in text
    assert "starts from the frequencies" not in text


def test_another_belief_about_the_secret_costs_the_square_of_the_factor() -> None:
    """[DS] Lemma 1: ε-LIP gives 2ε-LDP, which holds for every belief about S."""
    assert "7.39" in limit(composed(epsilon=1.0), "Knowledge from elsewhere")


def test_counts_are_not_said_to_be_safe() -> None:
    text = limit(composed(), "The distribution behind the promise")
    assert "table of counts is not published" in text and "narrow the counts down" in text


def test_dates_are_written_out() -> None:
    assert figures.date("2026-11-21T11:20:34Z") == "21 November 2026, 11:20 UTC"


def test_a_figure_that_an_earlier_release_stated_is_not_said_to_hold_for_its_table_still() -> None:
    """The table may be another one: with the distribution of then, both releases may tell more than was stated then."""
    one = sample.one_block()
    told = Composed(0.3, "before", 2, ("values unchanged", "comings and goings tell nothing"))
    said = sample.sample(one.joint, one.protocols).stating(composed=told).published()
    (several,) = [limit["text"] for limit in said["limits"] if limit["title"] == "Several releases"]
    assert "as an earlier release stated; at the counts of this one it is no more" in several
    assert "with that distribution, this release too may make it more" in several
    assert "It is reckoned with" not in several


def test_a_figure_over_noisy_counts_is_not_said_to_be_reckoned_with_the_table() -> None:
    """With how values are distributed in the table, all releases may tell several times as much."""
    for how in ("unchanged", "before"):
        told = Composed(0.3, how, 2, ("values unchanged", "comings and goings tell nothing"))
        said = limit(composed(composed=told, estimate=Estimate(10, "private", 0.5, 2, 1.0)), "Several releases")
        assert "noisy counts" in said
        assert "in the table of this release" not in said and "in its own table" not in said
