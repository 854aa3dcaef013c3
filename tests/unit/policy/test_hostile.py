"""Whatever stands in a file, the answer is a policy or a PolicyError."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from funnel.errors import CATALOGUE, PolicyError
from funnel.policy import Policy, loads
from funnel.policy.reader import read
from tests.support.schemas import SCHEMA, fits
from tests.unit.policy.pages import GOOD

SCRAPS = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\t",
        "  ",
        ": ",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "!!str ",
        "!x ",
        "|",
        ">",
        "'",
        '"',
        "\\",
        "#",
        "%",
        "---\n",
        "...\n",
        "<<: ",
        "~",
        "null",
        "true",
        "0",
        "-1",
        "1e400",
        ".nan",
        ".inf",
        "012",
        "9" * 400,
        "x",
        "\0",
        "\ufeff",
        "\u2028",
        "\x85",
        "é",
        "𝄞",
        "version",
        "public: [a, [b]]\n",
        "split: {a: 1}\n",
        "a+b",
        "kind: ",
        "env:",
        "file:",
        "bins: [1]",
        "top: 3",
        "epsilon",
        "optimal",
        "marital_status",
        "person_id",
        "../",
        "out/public",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**31) | st.floats() | SCRAPS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCRAPS | st.just("name"), inner, max_size=3),
    max_leaves=6,
)


def outcome(text: str) -> Policy | None:
    """The policy; or None after a look at every problem."""
    try:
        return loads(text, "p.yaml")
    except PolicyError as error:
        lines = 1 + sum(text.count(end) for end in "\n\r\x85\u2028\u2029")
        for problem in error.problems:
            assert problem.code in CATALOGUE
            assert 1 <= problem.line <= lines
            assert problem.column >= 1
            assert problem.file == "p.yaml"
            assert "\n" not in problem.message
            assert "\n" not in (problem.suggestion or "")
        assert len(set(error.problems)) == len(error.problems)
        assert error.problems == sorted(error.problems, key=lambda one: (one.line, one.column))
        return None


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    outcome(text)


@settings(deadline=None)
@given(st.lists(SCRAPS, max_size=30).map("".join))
@example("? [a]\n: {? }")
@example("%YAML 1.2\n---\n!!map {}")
def test_any_yaml_like_text(text: str) -> None:
    outcome(text)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 25), SCRAPS), min_size=1, max_size=4))
def test_a_good_policy_with_cuts_and_insertions(edits: list[tuple[int, int, str]]) -> None:
    """And whatever the loader still accepts, the schema for editors accepts too."""
    text = GOOD
    for start, length, scrap in edits:
        text = text[:start] + scrap + text[start + length :]
    policy = outcome(text)
    if policy is not None:
        assert fits(read(text, "p.yaml").data, SCHEMA)
        assert policy.blocks
        assert abs(sum(policy.shares()) - 1) < 1e-9


def paths(value: object) -> list[tuple[str | int, ...]]:
    """The way to every part of plain data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *rest) for key, one in inner for rest in paths(one))]


PATHS = [path for path in paths(read(GOOD, "f").data) if path]


@pytest.mark.long
@settings(deadline=None, max_examples=300)
@given(st.sampled_from(PATHS), VALUES)
def test_a_good_policy_with_any_value_anywhere(path: tuple[str | int, ...], value: object) -> None:
    """Replace one value by any other: what the loader accepts, the schema accepts."""
    import json

    data = read(GOOD, "f").data
    assume(not isinstance(value, str) or value.isprintable())
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    text = json.dumps(data, indent=1).replace("NaN", ".nan").replace("Infinity", ".inf")
    policy = outcome(text)
    if policy is not None:
        assert fits(read(text, "p.yaml").data, SCHEMA)


@settings(deadline=None)
@given(st.sampled_from(PATHS))
def test_a_good_policy_without_any_one_part(path: tuple[str | int, ...]) -> None:
    """Only what has no default is missed."""
    import json

    data = read(GOOD, "f").data
    target = data
    for key in path[:-1]:
        target = target[key]
    del target[path[-1]]
    required = {
        ("version",),
        ("name",),
        ("source",),
        ("source", "table"),
        ("source", "entity"),
        ("sensitive",),
        ("sensitive", 0),
        ("public",),
        ("public", 1, "name"),
        ("public", 2, "name"),
        ("privacy",),
        ("privacy", "notion"),
        ("privacy", "epsilon"),
        ("draws",),
        ("draws", "key"),
        ("release",),
        ("release", "to"),
        ("release", "private"),
    }
    assert (outcome(json.dumps(data)) is None) == (path in required)


@pytest.mark.parametrize("text", [
    "id,ill\nann,hiv\n", "- ann\n- hiv\n", "hiv", "012", '"ann", "hiv"\n', "*ann,hiv", "!ann hiv", "- &ann hiv",
    "ann: hiv", "{ann", '{"name": "ann", "ill": "hiv"}\n', "ann:\nhiv: 012\n",
])
def test_a_table_that_is_taken_for_a_policy_is_not_shown(text: str) -> None:
    """What a scheduler mails must not hold values of people."""
    with pytest.raises(PolicyError) as refused:
        loads(text)
    assert not [value for value in ("ann", "hiv", "12") if value in str(refused.value) + str(refused.value.as_dict())]
