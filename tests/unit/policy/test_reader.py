"""What unquoted scalars mean, what YAML a policy may use, and where its parts stand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import PolicyError
from funnel.policy.reader import MAX_BYTES, MAX_DEPTH, MAX_NODES, is_number, read, resolve
from tests.unit.policy.pages import GOOD, accepted, good, marked, places, problems


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("+1", 1),
        ("-3", -3),
        ("0", 0),
        ("1e-3", 0.001),
        ("1E5", 100000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5e+1", -5.0),
        ("1.0", 1.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("NO", "NO"),
        ("y", "y"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("190:20:30", "190:20:30"),
        ("2026-11-21", "2026-11-21"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("1e", "1e"),
        (".", "."),
        ("-", "-"),
        ("e5", "e5"),
        ("１", "１"),
        ("1 2", "1 2"),
    ],
)
def test_unquoted_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_not_a_number_is_a_float_that_later_checks_refuse() -> None:
    assert math.isnan(resolve(".nan"))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["012", "-01", "00", "+0007"])
def test_leading_zeros_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="octal"):
        resolve(text)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back(number: float) -> None:
    assert resolve(repr(number)) == number
    assert is_number(repr(number))


@settings(deadline=None)
@given(st.integers(-(10**28), 10**28))
def test_every_sensible_integer_reads_back(number: int) -> None:
    assert resolve(str(number)) == number


@settings(deadline=None)
@given(st.integers(31, 5000))
def test_giant_integers_become_harmless_floats(digits: int) -> None:
    assert isinstance(resolve("9" * digits), float)


@pytest.mark.parametrize("word", ["no", "yes", "on", "off", "n"])
def test_a_column_may_be_called_no(word: str) -> None:
    assert accepted(GOOD.replace("- education", f"- {word}")).blocks[0].columns == (word,)


@pytest.mark.parametrize(
    ("written", "epsilon"), [("1e-3", 0.001), ("1E0", 1.0), (".5", 0.5), ("+2", 2.0), ("3", 3.0)]
)
def test_epsilon_is_the_number_that_was_written(written: str, epsilon: float) -> None:
    assert accepted(good(epsilon=f"  epsilon: {written}")).privacy.epsilon == epsilon


YAML_AT_FAULT = {
    "tab": (GOOD.replace("  table:", "‸\ttable:"), "policy-syntax"),
    "colon in a text": (good(description="description: Education‸: adults"), "policy-syntax"),
    "open list": (GOOD + "more: [1, 2\n‸", "policy-syntax"),
    "open quote": (GOOD + 'more: "x\n‸', "policy-syntax"),
    "second document": (GOOD + "‸---\nversion: 1\n", "policy-syntax"),
    "list as a key": (GOOD.replace("  missing:", "  ‸[a]:"), "policy-syntax"),
    "control character": (good(description='description: ‸"a\\0b"'), "policy-syntax"),
    "half a character": (good(description='description: ‸"\\ud800"'), "policy-syntax"),
    "half a character in a path": (
        GOOD.replace("table: census.parquet", 'table: ‸"\\ud834\\udd1e"'),
        "policy-syntax",
    ),
    "escape out of range": ('a: "\\U‸00110000"', "policy-syntax"),
    "version of YAML out of range": (f"%YAML ‸{'1' * 5000}.1\n---\na: b", "policy-syntax"),
    "bell": (good(description="description: a‸\a"), "policy-syntax"),
    "anchor": (good(name="name: ‸&n census"), "policy-alias"),
    "merge key": (GOOD.replace("  missing: category", "  ‸<<: {missing: drop}"), "policy-alias"),
    "tag": (good(name="name: ‸!!str census"), "policy-alias"),
    "tag that asks for a type": (good(name="name: ‸! census"), "policy-alias"),
    "tag that builds an object": (
        good(name="name: ‸!!python/object/apply:os.system ['true']"),
        "policy-alias",
    ),
    "empty": ("‸", "wrong-type"),
    "comment": ("‸# nothing\n", "wrong-type"),
    "a word": ("‸policy", "wrong-type"),
    "a list": ("‸- version: 1", "wrong-type"),
}


@pytest.mark.parametrize("case", sorted(YAML_AT_FAULT))
def test_yaml_that_policies_do_not_need_is_refused_where_it_stands(case: str) -> None:
    text, code = YAML_AT_FAULT[case]
    clean, expected = marked(text, code)
    assert places(clean) == expected


def test_an_alias_and_its_anchor_are_both_named() -> None:
    text, expected = marked(
        good(name="name: ‸&n census", description="description: ‸*n"), "policy-alias", "policy-alias"
    )
    assert places(text) == expected


def test_a_refused_value_is_not_also_reported_for_what_it_holds() -> None:
    text, expected = marked(good(epsilon="  epsilon: ‸!!float -1"), "policy-alias")
    assert places(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 20_000,
        "- " * 50_000,
        "? " * 50_000,
        "a:\n" + "".join(f"{' ' * depth}b:\n" for depth in range(1, 300)),
        "[" + "1," * 60_000 + "]",
        "".join(f"k{i}: 1\n" for i in range(25_000)),
        "x" * (MAX_BYTES + 1),
        "é" * (MAX_BYTES // 2 + 1),
    ],
)
def test_size_and_depth_are_bounded(text: str) -> None:
    assert problems(text)[-1].code == "policy-too-large"


def test_what_is_just_within_bounds_is_read() -> None:
    assert read("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH, "f").problems == []
    assert len(read("[" + "1," * (MAX_NODES - 1) + "]", "f").data) == MAX_NODES - 1


def test_the_billion_laughs_stay_nine_lines() -> None:
    lines = ["a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    found = problems("\n".join(lines))
    assert sum(problem.code == "policy-alias" for problem in found) == 9 + 8 * 9


@pytest.mark.parametrize(
    "text",
    [
        '"\\UFFFFFFFF"',
        '"\\U00110000"',
        f"%YAML {'1' * 5000}.1\n---\na: b",
        "%YAML 3.0\n---\na: b",
        "%TAG ! tag:x,2026:\n---\na: b",
        "\x00",
        "\ufffe",
        "!<",
        "!%FF a",
        "&",
        "*",
        "|9",
        ">-\n\t",
        "'",
        "\ud800",
        "%",
        "%%%\n",
        "--- - -",
        "a: b: c",
        "@",
        "`",
        "\x85",
        "\u2028a: [",
        "? ? ?",
        "{? : }",
        ": :",
        "[a: b: c]",
        "<<: *a",
        '"\\x"',
        "a: |\n  x\n y",
    ],
)
def test_broken_yaml_is_a_policy_error(text: str) -> None:
    assert problems(text)


def test_huge_keys_are_cut_in_messages() -> None:
    (problem,) = problems(GOOD + f"? {'k' * 100_000}\n: 1\n")
    assert problem.code == "unknown-key"
    assert len(problem.text()) < 400


def test_long_lists_are_cut_in_messages() -> None:
    columns = "".join(f"  - column{i}\n" for i in range(1000))
    text = GOOD.replace("privacy:", f"{columns}privacy:").replace("split: equal", "split: {stranger: 1}")
    (problem,) = problems(text)
    assert problem.code == "split"
    assert "988 more" in problem.text()
    assert len(problem.text()) < 500


def test_keys_are_names_even_when_they_look_like_something_else() -> None:
    """A column may be called 2020, no or null, also where a split names it."""
    text = GOOD[: GOOD.index("public:")] + "public: ['2020', no, 'null']\n" + GOOD[GOOD.index("privacy:") :]
    text = text.replace("split: equal", "split: {2020: .5, no: .25, null: 0.25}")
    assert accepted(text).shares() == (0.5, 0.25, 0.25)


def test_a_byte_order_mark_moves_nothing() -> None:
    text, expected = marked(good(version="version: ‸0"), "wrong-value")
    assert places("\ufeff" + text) == expected


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_do_not_move_problems(ending: str) -> None:
    text, expected = marked(good(epsilon="  epsilon: ‸0"), "epsilon")
    assert places(text.replace("\n", ending)) == expected


def test_columns_count_characters_not_bytes() -> None:
    text, expected = marked("version: 1\nname: {é𝄞: ‸*a}\n", "policy-alias")
    assert expected[0] in places(text)


def test_places_of_keys_and_values() -> None:
    document = read("a: 1\nb:\n  - c: x\n    d: [2, 3]\n", "f")
    assert document.data == {"a": 1, "b": [{"c": "x", "d": [2, 3]}]}
    assert document.places.of(("b",), key=True) == (2, 1)
    assert document.places.of(("b",)) == (3, 3)
    assert document.places.of(("b", 0, "d", 1)) == (4, 12)
    assert document.places.of(("b", 0, "d", 7, "e")) == (4, 8)
    assert document.places.of(("z",)) == (1, 1)


@settings(deadline=None)
@given(
    st.recursive(
        st.integers(-5, 5) | st.sampled_from(["x", "no", "a b"]),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_plain_data_survives_and_every_part_has_a_place(data: object) -> None:
    import yaml

    text = yaml.safe_dump(data)
    document = read(text, "f")
    assert document.problems == []
    assert document.data == data
    assert all(_character(text, mark) for mark in document.places.values.values())


def _character(text: str, mark: tuple[int, int]) -> str:
    """The character at a mark."""
    return text.splitlines()[mark[0] - 1][mark[1] - 1]


def test_reading_stops_with_all_problems_so_far() -> None:
    with pytest.raises(PolicyError) as caught:
        read("a: &x 1\nb: *x\nc: [", "f")
    assert [problem.code for problem in caught.value.problems] == [
        "policy-alias",
        "policy-alias",
        "policy-syntax",
    ]
