"""Whatever is wrong is found at its line and column, under its code, together with everything else."""

from __future__ import annotations

import re

import pytest

from tests.support.spoilt import SPOILT
from tests.unit.policy.pages import GOOD, accepted, good, marked, places, private, problems


def test_the_good_policy_is_good() -> None:
    assert accepted(GOOD).name == "census-education"
    assert accepted(private("  budget: 0.5\n")).estimate.values["education"] == ("1", "2")


@pytest.mark.parametrize("case", SPOILT)
def test_one_mistake_is_one_problem_at_its_place(case: str) -> None:
    text, code = SPOILT[case]
    clean, expected = marked(text, code)
    found = problems(clean)
    assert [(one.line, one.column, one.code) for one in found] == expected
    # No jargon of the library that validates.
    said = " ".join(one.text().lower() for one in found)
    assert not any(word in said for word in ("pydantic", "input", "dictionary", "tuple", "string", "instance"))


def test_all_mistakes_come_at_once_in_file_order() -> None:
    """Syntax that can be read around, types, values and what lies between sections, all in one error."""
    text, expected = marked(
        """\
version: 1
name: ‸a b
source:
  table: ‸db://x
  ‸tabel: y
  ‸table: z
sensitive: [age, ‸AGE]
public:
  - ‸age
  - name: size
    bins: [3, ‸2]
  - name: ‸&anchor colour
privacy:
  notion: lip
  epsilon: ‸-1
  split: {age: ‸2}
mechanism: ‸optimum
draws: {kind: ‸permanent, key: ‸sesame}
‸release:
  to: out
  format: ‸012
""",
        "wrong-value",
        "unsupported",
        "unknown-key",
        "duplicate-key",
        "duplicate-column",
        "sensitive-public",
        "bins",
        "policy-alias",
        "epsilon",
        "split",
        "wrong-value",
        "missing-key",
        "wrong-value",
        "missing-key",
        "wrong-value",
    )
    assert places(text) == expected


def test_mistakes_of_unrelated_sections_do_not_hide_each_other() -> None:
    """Any two of the mistakes that touch different lines are both found."""
    singles = {
        "version: 1": ("version: ‸0", "wrong-value"),
        "minimum: 10": ("minimum: ‸0", "wrong-value"),
        "epsilon: 1.0": ("epsilon: ‸0", "epsilon"),
        "split: equal": ("split: ‸equally", "split"),
        "[occupation, hours]": ("[occupation, ‸occupation]", "duplicate-column"),
        "private: out/private": ("private: ‸out/public", "release-path"),
        "env:FUNNEL_KEY": ("‸FUNNEL_KEY", "wrong-value"),
    }
    text, codes = GOOD, []
    for old, (new, _) in singles.items():
        text = text.replace(old, new)
    for line in text.splitlines():
        codes += [code for new, code in singles.values() if new in line]
    clean, expected = marked(text, *codes)
    assert len(expected) == len(singles)
    assert places(clean) == expected


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (good(missing="  mising: drop"), "`missing`"),
        (good(notion="  notion: LIP"), "`lip`"),
        (good(notion="  notion: lpi"), "`lip`"),
        (good(mechanism="mechanism: randomized-response"), "`randomised-response`"),
        (good(format="  format: parque"), "`parquet`"),
        (good(format="  format: ods"), "`parquet` or `csv`"),
        (good(description="epsilon: 2"), "under `privacy`"),
        (good(missing="  name: x"), "at the top"),
        (good(name="name: My Census!"), "`my-census`"),
        (good(epsilon='  epsilon: "1"'), "Remove the quotes"),
        (good(name="name: 2026"), "quotes"),
        (good(description="description: Education: adults"), "quotes"),
        (good(key=""), "funnel key new"),
        (good(description="metadata: {url: www.city.org}"), "https://…"),
        (good(description="metadata: {license: CC BY 4.0}"), "such as CC-BY-4.0"),
        (good(description="metadata: {publisher: {url: city.org}}"), "https://…"),
        (good(description="metadata: {publisher: {}}"), "Name of the publisher"),
        (good(description="engine: spark\nspark: {foo: 1}"), "such as spark.master"),
        (good(split="  split: {eduction: .4, age: .2, country: .2, occupation+hours: .2}"), "`education`"),
    ],
)
def test_a_problem_says_what_to_do(text: str, meant: str) -> None:
    assert any(meant in (problem.suggestion or "") for problem in problems(text))


def test_a_text_of_another_form_is_not_called_blank_and_a_large_epsilon_not_infinite() -> None:
    (found,) = problems(good(description="metadata: {url: www.city.org}"))
    assert found.message == "`metadata.url` cannot be the text 'www.city.org'"
    (found,) = problems(good(epsilon="  epsilon: 101"))
    assert "a positive number of nats, 100 at most, not the number 101" in found.message


def test_a_column_may_be_called_as_what_is_to_be_done() -> None:
    text = f"{GOOD[: GOOD.index('public:')]}public: [TODO, TODO_date]\n{GOOD[GOOD.index('privacy:') :]}"
    accepted(text)
    clean, expected = marked(good(description="description: ‸TODO say what for"), "unfinished")
    assert places(clean) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (good(split="  split: {education: 0.25, age: 0.25, country: 0.25, place: 0.25}"), "`occupation+hours`"),
        (good(notion="  notion: srlip\n  knows: [age, agee]"), None),
    ],
)
def test_what_is_there_already_is_not_what_was_meant(text: str, told: str | None) -> None:
    (found,) = problems(text)
    assert "`age`" not in (found.suggestion or "")
    assert told is None or told in (found.suggestion or "")


def test_of_a_column_with_most_frequent_values_no_rare_ones_are_left_to_merge() -> None:
    """Else `rare: bin` is answered by the advice of `rare: other`, which is refused as well."""
    public = "public: [{name: age, top: 3, rare: bin}]"
    text = f"{GOOD[: GOOD.index('public:')]}{public}\n{GOOD[GOOD.index('privacy:') :]}"
    (found,) = problems(text)
    assert "leave one of the two out" in found.message


def test_columns_of_a_csv_are_named_once() -> None:
    clean, expected = marked(good(missing="  csv: {names: [age, size, ‸Age]}"), "duplicate-column")
    assert places(clean) == expected


def test_the_sets_of_a_block_are_called_as_no_other_column() -> None:
    """What a run would find out once everything is drawn follows from the policy alone."""

    def written(public: str, form: str) -> str:
        text = f"{GOOD[: GOOD.index('public:')]}public: {public}\n{GOOD[GOOD.index('privacy:') :]}"
        return re.sub("mechanism: .*", f"mechanism: {{kind: unary-encoding, release: {form}}}", text)

    for public in ("[[age, size], ‸Age+Size]", "‸[[age, 'b+c'], ['age+b', c]]"):
        text = written(public, "set")
        short = re.sub("mechanism: .*", "mechanism: unary-encoding", text)
        for same in (text, text.replace(", release: set", ""), short):
            clean, expected = marked(same, "duplicate-column")
            assert places(clean) == expected
    accepted(written("[[age, size], age+size]", "bits"))
    accepted(written("[age, size, age+size]", "set"))


@pytest.mark.parametrize(
    ("public", "code"),
    [
        ("[age, ‸3]", "wrong-type"),
        ("[age, ‸age]", "duplicate-column"),
        ("‸[]", "wrong-value"),
        ("[age, ‸~]", "wrong-type"),
        ("[age, {‸nam: size}]", "unknown-key"),
    ],
)
def test_a_split_is_not_blamed_for_the_blocks_it_names(public: str, code: str) -> None:
    text = f"{GOOD[: GOOD.index('public:')]}public: {public}\n{GOOD[GOOD.index('privacy:') :]}"
    clean, expected = marked(text.replace("split: equal", "split: {age: 0.5, size: 0.5}"), code)
    assert places(clean) == expected


@pytest.mark.parametrize(
    ("share", "code"), [("‸~", "wrong-type"), ("‸01", "wrong-value"), ("‸!!float 2", "policy-alias")]
)
def test_a_share_that_cannot_be_read_is_one_problem(share: str, code: str) -> None:
    split = f"  split: {{education: 0.4, age: 0.2, country: 0.2, occupation+hours: {share}}}"
    clean, expected = marked(good(split=split), code)
    assert places(clean) == expected


def test_a_misspelt_required_key_is_one_problem_not_two() -> None:
    text, expected = marked(good(epsilon="  ‸epsilom: 1"), "unknown-key")
    assert places(text) == expected
    text, expected = marked(GOOD.replace("release:", "‸relase:"), "unknown-key")
    assert places(text) == expected


def test_a_required_key_in_the_wrong_section_is_one_problem() -> None:
    text, expected = marked(good(epsilon="", description="‸epsilon: 1.0"), "unknown-key")
    assert places(text) == expected


@pytest.mark.parametrize(
    ("section", "codes"),
    [
        ("privacy: {notion: ‸lipp, epsilon: ‸-1, ‸epsilom: 2, split: ‸half}",
         ["wrong-value", "epsilon", "unknown-key", "split"]),
        ("privacy: {notion: ‸lipp, epsilon: ‸\"1\", confidence: ‸7, order: 2, solve: ‸fast}",
         ["wrong-value", "epsilon", "wrong-value", "wrong-value"]),
        ("privacy: {notion: ‸perfct, epsilon: ‸1}", ["wrong-value", "epsilon"]),
        ("‸privacy: {epsilon: ‸0}", ["missing-key", "epsilon"]),
        ("privacy: {notion: ‸3, epsilon: ‸.inf}", ["wrong-value", "epsilon"]),
        ("mechanism: {kind: ‸optimum, time_limit: ‸0, gap: 0.1, ‸speed: 1}",
         ["wrong-value", "wrong-value", "unknown-key"]),
    ],
)  # fmt: skip
def test_a_wrong_notion_or_mechanism_hides_nothing_beside_it(section: str, codes: list[str]) -> None:
    name = section.removeprefix("‸").partition(":")[0]
    start, end = GOOD.index(f"{name}:"), GOOD.index({"privacy": "mechanism:", "mechanism": "draws:"}[name])
    text, expected = marked(f"{GOOD[:start]}{section}\n{GOOD[end:]}", *codes)
    assert sorted(places(text)) == sorted(expected)


def test_a_misspelt_notion_key_is_one_problem() -> None:
    text, expected = marked(good(notion="  notoin: lip").replace("privacy:", "‸privacy:"), "missing-key")
    assert places(text) == expected


def test_equal_keys_name_both_places() -> None:
    (problem,) = problems(good(kind="  minimum: 20"))
    assert (problem.line, problem.column) == (11, 3)
    assert "line 10, column 3" in problem.message


def test_a_column_in_two_roles_names_the_first_line() -> None:
    (problem,) = problems(GOOD.replace("- education", "- marital_status"))
    assert "line 12" in problem.message


def test_what_might_be_a_key_is_never_repeated() -> None:
    (problem,) = problems(good(key="  key: c2VzYW1lIG9wZW4="))
    assert "c2VzYW1l" not in problem.text()


def test_a_problem_names_its_file() -> None:
    assert {problem.file for problem in problems(good(version="version: 0"), "some/where.yaml")} == {
        "some/where.yaml"
    }
