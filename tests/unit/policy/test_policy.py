"""What a policy says once it is read: blocks, shares, defaults, and the file behind it."""

from __future__ import annotations

import math
import random
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from funnel.errors import PolicyError
from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.policy import Attribute, Block, CellLimits, Policy, load, loads
from tests.support.small import SMALL
from tests.unit.policy.pages import GOOD, accepted, good, marked, places, problems, wide


def test_the_smallest_policy_and_its_defaults() -> None:
    policy = accepted(SMALL)
    assert policy.sensitive == ("s",)
    assert policy.source.missing == "error"
    assert policy.source.entity is None
    assert (policy.estimate.minimum, policy.estimate.kind) == (10, "counts")
    assert policy.mechanism == MECHANISMS["optimal"](kind="optimal")
    assert (policy.draws.kind, policy.draws.key) == ("fresh", None)
    assert policy.release.format == "parquet"
    assert policy.shares() == (1.0,)


def test_every_field_of_the_good_policy() -> None:
    policy = accepted(GOOD)
    assert policy.source.model_dump() == {
        "table": "census.parquet",
        "csv": None,
        "filter": "age >= 18",
        "entity": "person_id",
        "missing": "category",
    }
    assert policy.blocks == (
        Block(columns=(Attribute(name="education"),)),
        Block(columns=(Attribute(name="age", bins=(0.0, 25.0, 35.5)),)),
        Block(columns=(Attribute(name="country", top=10),)),
        Block(columns=(Attribute(name="occupation"), Attribute(name="hours"))),
    )
    assert policy.columns == ("marital_status", "education", "age", "country", "occupation", "hours")
    assert (policy.privacy.notion, policy.privacy.epsilon) == ("lip", 1.0)
    assert (policy.draws.kind, policy.draws.key) == ("permanent", "env:FUNNEL_KEY")


def test_a_wide_block_has_one_label_and_columns_of_its_own() -> None:
    (block,) = accepted(wide("cells: 20")).wide
    assert (block.name, block.labels) == ("person", ("person",))
    assert block.columns == ("occupation", "hours")
    assert block.cells == CellLimits(most=20, minimum=50)
    assert accepted(wide("cells: {minimum: 30}")).wide[0].cells == CellLimits(most=200, minimum=30)


def test_a_split_names_a_wide_block_by_its_name() -> None:
    shares = "  split: {education: 0.4, age: 0.2, country: 0.1, person: 0.3}"
    text = wide("cells: 20").replace("  split: equal", shares)
    assert accepted(text).shares() == (0.4, 0.2, 0.1, 0.3)


def test_members_of_a_block_may_have_bins_and_top() -> None:
    policy = accepted(
        GOOD.replace("[occupation, hours]", "[{name: occupation, top: 3}, {name: hours, bins: [0]}]")
    )
    block = policy.blocks[3]
    assert (block.columns, block.name) == (("occupation", "hours"), "occupation+hours")
    assert [(one.top, one.bins) for one in block.attributes] == [(3, None), (None, (0.0,))]


@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_every_notion_can_be_named(notion: str) -> None:
    epsilon = "" if notion == "perfect" else "  epsilon: 0.5"
    mechanism = "mechanism: randomised-response"
    policy = accepted(good(notion=f"  notion: {notion}", epsilon=epsilon, mechanism=mechanism))
    assert type(policy.privacy) is NOTIONS[notion]


@pytest.mark.parametrize("zero", ["0", "0.0", "-0.0", "0e5"])
def test_perfect_may_say_epsilon_zero(zero: str) -> None:
    assert accepted(good(notion="  notion: perfect", epsilon=f"  epsilon: {zero}")).privacy.epsilon == 0


@pytest.mark.parametrize("kind", sorted(MECHANISMS))
def test_a_mechanism_is_a_name_or_a_mapping(kind: str) -> None:
    """Under a notion that it serves, with the secret among the public columns where it needs that."""
    notion = next(name for name in NOTIONS if name in (MECHANISMS[kind].serves or NOTIONS))
    bare, mapping = (
        accepted(_released(kind, good(notion=f"  notion: {notion}", mechanism=f"mechanism: {text}")))
        for text in (kind, f"{{kind: {kind}}}")
    )
    assert type(bare.mechanism) is MECHANISMS[kind]
    assert bare == mapping


def _released(kind: str, text: str) -> str:
    """The policy with its secret released too where the mechanism does that."""
    return text.replace("- education", "- marital_status") if MECHANISMS[kind].releases_secret else text


@pytest.mark.parametrize("kind", sorted(MECHANISMS))
@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_a_mechanism_that_does_not_serve_the_notion_is_refused_with_those_that_do(
    kind: str, notion: str
) -> None:
    text = good(
        notion=f"  notion: {notion}",
        epsilon="" if notion == "perfect" else "  epsilon: 0.5",
        mechanism=f"mechanism: {kind}",
    )
    reason = MECHANISMS[kind].misfit(notion, secret_public=False)
    if reason is None:
        return
    with pytest.raises(PolicyError) as caught:
        loads(text)
    (problem,) = caught.value.problems
    assert problem.code == "mechanism-notion"
    offered = (
        (problem.suggestion or "").removeprefix("Mechanisms that fit here: ").removesuffix(".").split(", ")
    )
    assert offered
    assert all(MECHANISMS[name].misfit(notion, secret_public=False) is None for name in offered)


@pytest.mark.parametrize(
    ("notion", "public", "release", "out"),
    [
        ("srlip", "public: [age, [occupation, hours]]", "", "unary-encoding"),
        ("lip", "public: [age, hours]", "  partition: age\n", "unary-encoding"),
        ("mutual-information", "public: [{name: age, round: 5}, hours]", "", "gaussian-funnel"),
    ],
)
def test_a_mechanism_that_the_rest_of_the_policy_does_not_allow_is_not_said_to_fit(
    notion: str, public: str, release: str, out: str
) -> None:
    text = f"""\
version: 1
name: a
source: {{table: t.csv}}
sensitive: [income]
{public}
privacy: {{notion: {notion}, epsilon: 0.5}}
mechanism: MECHANISM
release:
  to: out
  private: private
{release}"""
    wrong = next(kind for kind in MECHANISMS if MECHANISMS[kind].misfit(notion, secret_public=False) is not None)
    with pytest.raises(PolicyError) as caught:
        loads(text.replace("MECHANISM", wrong))
    (problem,) = (one for one in caught.value.problems if one.code == "mechanism-notion")
    offered = (problem.suggestion or "").removeprefix("Mechanisms that fit here: ").removesuffix(".").split(", ")
    assert out not in offered
    for kind in offered:
        loads(text.replace("MECHANISM", kind))


def test_the_default_mechanism_must_serve_the_notion_too() -> None:
    with pytest.raises(PolicyError) as caught:
        loads(good(notion="  notion: mutual-information", mechanism=""))
    assert [problem.code for problem in caught.value.problems] == ["mechanism-notion"]


def test_options_of_a_mechanism() -> None:
    policy = accepted(good(mechanism="mechanism: {kind: optimal, time_limit: 5}"))
    assert policy.mechanism.model_dump() == {"kind": "optimal", "time_limit": 5.0, "gap": 1e-6}


# draws


def test_draws_are_permanent_where_an_entity_is_given() -> None:
    text = SMALL.replace("t.csv", "t.csv, entity: id") + "draws: {key: env:K}\n"
    assert accepted(text).draws.kind == "permanent"


def test_fresh_draws_for_persons_must_be_asked_for() -> None:
    assert (
        accepted(SMALL.replace("t.csv", "t.csv, entity: id") + "draws: {kind: fresh}\n").draws.kind == "fresh"
    )


@pytest.mark.parametrize("entity", ["", ", entity: id"])
def test_a_key_may_wait_beside_fresh_draws(entity: str) -> None:
    """Whoever switches to fresh draws for a day need not take the key out and put it back."""
    policy = accepted(
        SMALL.replace("t.csv", f"t.csv{entity}") + "draws: {kind: fresh, key: file:my keys/k.key}\n"
    )
    assert (policy.draws.kind, policy.draws.key) == ("fresh", "file:my keys/k.key")


# split


@pytest.mark.parametrize("name", ["occupation+hours", "occupation,hours"])
def test_a_split_names_blocks_and_keeps_their_order(name: str) -> None:
    policy = accepted(good(split=f"  split: {{'{name}': 0.4, country: 0.3, education: 0.2, age: 0.1}}"))
    assert policy.shares() == (0.2, 0.1, 0.3, 0.4)


@settings(deadline=None)
@given(st.integers(1, 12))
def test_equal_shares_sum_to_one(count: int) -> None:
    shares = accepted(SMALL.replace("[x]", str([f"x{i}" for i in range(count)]))).shares()
    assert shares == (1 / count,) * count
    assert math.fsum(shares) == pytest.approx(1, abs=1e-15)


@settings(deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6))
def test_any_positive_shares_that_sum_to_one_are_taken_as_given(parts: list[int]) -> None:
    shares = [part / sum(parts) for part in parts]
    names = [f"x{i}" for i in range(len(parts))]
    split = dict(zip(names, shares, strict=True))
    text = SMALL.replace("[x]", str(names)).replace("epsilon: 1", f"epsilon: 1, split: {split}")
    assert accepted(text).shares() == tuple(shares)


@settings(deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=2, max_size=6), st.floats(1e-6, 0.5))
def test_shares_that_miss_one_are_refused(parts: list[int], missed: float) -> None:
    names = [f"x{i}" for i in range(len(parts))]
    split = {name: part / sum(parts) * (1 - missed) for name, part in zip(names, parts, strict=True)}
    text = SMALL.replace("[x]", str(names)).replace("epsilon: 1", f"epsilon: 1, split: {split}")
    assert [code for _, _, code in places(text)] == ["split"]


def test_a_name_that_could_mean_two_blocks_is_refused() -> None:
    text = SMALL.replace("[x]", "['a+b', [a, b]]").replace(
        "epsilon: 1", "epsilon: 1, split: {‸a+b: 0.5, 'a,b': 0.5}"
    )
    clean, expected = marked(text, "split")
    assert places(clean) == expected


# bins


@settings(deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8, unique=True))
def test_increasing_bins_are_taken_and_any_other_order_is_not(edges: list[int]) -> None:
    text = SMALL.replace("[x]", "[{name: x, bins: EDGES}]")
    assert accepted(text.replace("EDGES", str(sorted(edges)))).blocks[0].attributes[0].bins == tuple(
        sorted(edges)
    )
    if edges != sorted(edges):
        assert [code for _, _, code in places(text.replace("EDGES", str(edges)))] == ["bins"]


@pytest.mark.parametrize("edge", ["0.30000000000000004", "1234567890123456.7", "12345678901234567"])
def test_an_edge_that_its_name_would_not_give_back_is_refused(edge: str) -> None:
    """A database groups by the edge, and the bins are told by its name: 0.3 was below it there and not here."""
    text = SMALL.replace("[x]", f"[{{name: x, bins: [0, {edge}]}}]")
    (problem,) = problems(text)
    assert (problem.code, "has at most 15 digits: write " in problem.message) == ("bins", True)
    edge = problem.message.split()[-1]
    assert accepted(SMALL.replace("[x]", f"[{{name: x, bins: [0, {edge}]}}]")).blocks[0].attributes[0].bins


def test_without_a_header_the_columns_of_a_csv_are_named() -> None:
    """Its first record was taken for their names, and was lost."""
    text, expected = marked(SMALL.replace("t.csv", "t.csv, csv: {header: ‸false}"), "wrong-value")
    assert places(text) == expected
    assert accepted(text.replace("false", "false, names: [s, x]")).source.csv is not None
    assert accepted(text.replace("false", "true")).source.csv is not None


# the same policy, written otherwise


@settings(deadline=None, max_examples=20)
@given(st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(order: random.Random) -> None:
    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            keys = order.sample(sorted(value), len(value))
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    text = yaml.safe_dump(shuffled(yaml.safe_load(GOOD)), sort_keys=False)
    assert accepted(text) == accepted(GOOD)


def test_flow_style_quotes_and_comments_do_not_matter() -> None:
    flow = yaml.safe_dump(yaml.safe_load(GOOD), default_flow_style=True, width=40)
    quoted = GOOD.replace("- education", '- "education"').replace("name: age", "'name': 'age'")
    for text in (flow, quoted, f"# said before\n\n{GOOD}# said after\n"):
        assert text != GOOD
        assert accepted(text) == accepted(GOOD)


def test_a_policy_cannot_be_changed() -> None:
    policy = accepted(GOOD)
    with pytest.raises(ValidationError):
        policy.name = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        policy.source.table = "other"  # type: ignore[misc]


# the file behind it


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_the_text_is_verbatim_and_its_hash_is_that_of_the_file(
    tmp_path: Path, start: bytes, ending: bytes
) -> None:
    content = start + GOOD.replace("Education", "Édücation").encode().replace(b"\n", ending)
    file = tmp_path / "policy.yaml"
    file.write_bytes(content)
    policy = load(file)
    assert policy.text.encode() == content
    assert policy.sha256 == sha256(content).hexdigest()
    assert policy.file == str(file)


def test_paths_start_at_the_policy_file() -> None:
    policy = loads(GOOD, "policies/census.yaml")
    assert policy.directory == Path("policies")
    assert policy.path("../data/x.csv") == Path("policies/../data/x.csv")
    assert policy.path("/data/x.csv") == Path("/data/x.csv")


def test_folders_are_compared_as_the_policy_file_sees_them(tmp_path: Path) -> None:
    """Absolute and relative spellings of one folder are the same, also through a symbolic link."""
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    text = SMALL.replace("to: out, private: kept", f"to: out, private: {tmp_path}/link/out/kept")
    with pytest.raises(PolicyError) as caught:
        loads(text, tmp_path / "p.yaml")
    assert [problem.code for problem in caught.value.problems] == ["release-path"]


def test_a_published_folder_may_lie_in_the_private_one() -> None:
    assert (
        accepted(SMALL.replace("to: out, private: kept", "to: kept/out, private: kept")).release.to
        == "kept/out"
    )


def test_folders_with_a_common_beginning_of_their_names_are_apart() -> None:
    assert accepted(SMALL.replace("to: out, private: kept", "to: out, private: out-private"))


@pytest.mark.parametrize("table", ["*.parquet", "data/part-?.csv", "/data/*.csv", "a#1.csv", "out.csv"])
def test_tables_beside_the_published_folder_are_fine(table: str) -> None:
    assert accepted(SMALL.replace("t.csv", f"'{table}'")).source.table == table


def test_later_problems_find_their_place() -> None:
    policy = accepted(GOOD)
    found = {
        name: policy.problem(policy.place(name), "unknown-column", "no such column")
        for name in ("marital_status", "education", "AGE", "hours", "person_id")
    }
    assert {name: (one.line, one.column) for name, one in found.items()} == {
        "marital_status": (12, 13),
        "education": (14, 5),
        "AGE": (15, 11),
        "hours": (19, 18),
        "person_id": (7, 11),
    }
    filtered = policy.problem(("source", "filter"), "filter", "not usable", "Write one predicate.")
    assert (filtered.line, filtered.column, filtered.suggestion) == (6, 11, "Write one predicate.")
    assert PolicyError([filtered]).text().startswith("p.yaml:6:11: not usable [filter]")


def test_what_the_file_does_not_spell_out_is_placed_at_the_nearest_part() -> None:
    policy = accepted(GOOD)
    assert policy.problem(("public", 3, 1, "bins"), "column-type", "x").line == 19
    assert policy.problem(policy.place("stranger"), "unknown-column", "x").line == 1


def test_a_policy_made_by_hand_has_no_place() -> None:
    built = Policy.model_validate(yaml.safe_load(SMALL))
    assert built.problem(("source",), "filter", "x").line == 0
    assert built == accepted(SMALL)


def test_a_secret_that_is_released_too_is_spelt_alike() -> None:
    text = good(notion="  notion: ldp").replace("- education", "- Marital_Status")
    with pytest.raises(PolicyError) as caught:
        loads(text)
    assert [problem.code for problem in caught.value.problems] == ["sensitive-public"]
    assert accepted(text.replace("Marital_Status", "marital_status")).secret_public


@pytest.mark.parametrize("change", ["bins: [0, 5]", "top: 3", "round: 2"])
def test_a_secret_that_is_released_too_is_released_as_it_is(change: str) -> None:
    text = good(notion="  notion: ldp").replace("- education", f"- {{name: marital_status, {change}}}")
    with pytest.raises(PolicyError) as caught:
        loads(text)
    assert [problem.code for problem in caught.value.problems] == ["sensitive-public"]
