"""A protocol has the form of the mechanism that the release names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.unit.audit import samples
from tests.unit.audit.forge import Block, Forgery, as_report, forge
from tests.unit.audit.samples import detail, failures, lies
from tests.unit.audit.test_robust import PAIRS, TOLD, responses

Labels = list[list[str | None]]
NUMBERS: Labels = [["10"], ["20"], ["30"], ["45"]]
MERGED = Block(["education"], samples.EDUCATION, samples.EDUCATION[1:3], 3, [[8, 8, 0, 0], [0, 0, 8, 8]])
GRID = Block(["hours"], NUMBERS, [["-2.5"], ["0"], ["7.5"]], 3, [[6, 4, 2, 1], [1, 2, 3, 3], [1, 2, 3, 4]])


def side_by_side() -> Block:
    """Randomised response on s and on u, 3 : 1 and 5 : 3."""
    rows = [
        [(3 if x // 2 == y // 2 else 1) * (5 if x % 2 == y % 2 else 3) for x in range(4)] for y in range(4)
    ]
    return Block(["secret", "u"], PAIRS, PAIRS, 5, rows)


HONEST: dict[str, tuple[Any, Block]] = {
    "randomised-response": (samples.ONE, samples.keep_or_spread(["education"], samples.EDUCATION, 7, 71)),
    "secret-randomised-response": (TOLD, responses(1.2)),
    "independent-reporting": (TOLD, side_by_side()),
    "greedy-funnel": (samples.ONE, MERGED),
    "gaussian-funnel": (samples.ONE, GRID),
    "polyopt": (samples.ONE, GRID),
    "non-robust": (TOLD, side_by_side()),
}


def release(mechanism: str, block: Block | None = None, **options: Any) -> Forgery:
    """A release by one mechanism; its notion is LDP, under which the secret may be public."""
    counts, own = HONEST[mechanism]
    told: dict[str, Any] = {
        "notion": "ldp",
        "mechanism": mechanism,
        "epsilon": 1.2 if "response" in mechanism else 9.0,
    }
    return forge(counts, [block or own], **told | options)


def moved(mechanism: str, y: int, x: int, other: int, by: int = 1) -> Block:
    """The mechanism's protocol with some weight of input x moved from one output to another."""
    block = copy.deepcopy(HONEST[mechanism][1])
    block.weights[y][x] -= by
    block.weights[other][x] += by
    return block


@pytest.mark.parametrize("mechanism", HONEST)
def test_the_forms_of_all_mechanisms_pass(mechanism: str, tmp_path: Path) -> None:
    report = lies(
        release(mechanism, epsilon=9.0 if "funnel" in mechanism or "poly" in mechanism else 1.2), tmp_path
    )
    assert "mechanism" not in failures(report), detail(report, "mechanism")


def renamed(block: Block, outputs: Labels) -> Block:
    found = copy.deepcopy(block)
    found.outputs = outputs
    return found


def regrown(epsilon: float) -> Block:
    """Secret randomised response of another strength."""
    return responses(epsilon)


WRONG: dict[str, tuple[str, Callable[[], Block]]] = {
    "a weight of randomised response moved by one": (
        "randomised-response", lambda: moved("randomised-response", 0, 0, 1)),
    "randomised response that lies more than not": (
        "randomised-response", lambda: samples.keep_or_spread(["education"], samples.EDUCATION, 7, 2)),
    "randomised response with other outputs": (
        "randomised-response",
        lambda: renamed(HONEST["randomised-response"][1], [*samples.EDUCATION[:3], ["other"]])),
    "a weight of secret randomised response moved by one": (
        "secret-randomised-response", lambda: moved("secret-randomised-response", 0, 0, 2)),
    "secret randomised response of another strength": ("secret-randomised-response", lambda: regrown(1.1)),
    "a product that is none": ("independent-reporting", lambda: responses(1.0)),
    "a weight of a product moved by one": (
        "independent-reporting", lambda: moved("independent-reporting", 0, 0, 3)),
    "a partition with a chance": ("greedy-funnel", lambda: moved("greedy-funnel", 0, 0, 1)),
    "a part named by a member of another": (
        "greedy-funnel", lambda: renamed(MERGED, [samples.EDUCATION[2], samples.EDUCATION[1]])),
    "numbers off the grid": ("gaussian-funnel", lambda: renamed(GRID, [["-2.5"], ["0"], ["7"]])),
    "words for numbers": ("gaussian-funnel", lambda: renamed(GRID, [["low"], ["0"], ["7.5"]])),
    "a missing number": ("gaussian-funnel", lambda: renamed(GRID, [[None], ["0"], ["7.5"]])),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_another_form_fails(case: str, tmp_path: Path) -> None:
    mechanism, block = WRONG[case]
    assert "mechanism" in failures(lies(release(mechanism, block()), tmp_path))


def test_the_secret_must_be_released_where_the_mechanism_randomises_it(tmp_path: Path) -> None:
    forgery = release("secret-randomised-response", hidden="income")
    assert "mechanism" in failures(lies(forgery, tmp_path))


def test_conditional_reporting_adds_to_x_itself_and_to_nothing_else(tmp_path: Path) -> None:
    assert not failures(lies(samples.reads_secret(), tmp_path / "honest"))
    for index, (s, x, y, other) in enumerate(((0, 0, 0, 1), (1, 2, 1, 3))):
        forgery = samples.reads_secret()
        weights = forgery.protocol["blocks"][0]["weights"]
        weights[y][s][x] -= 1
        weights[other][s][x] += 1
        assert "mechanism" in failures(lies(forgery, tmp_path / str(index)))


# --- auto: the best of those compared


def compared(
    *found: tuple[str, float | None], used: str = "randomised-response"
) -> Callable[[Forgery], None]:
    def change(forgery: Forgery) -> None:
        forgery.manifest["mechanism"] = used
        forgery.manifest["candidates"] = [
            {"mechanism": name, "normalised": share, "reason": None if share else "too slow"}
            for name, share in found
        ]
        policy = yaml.safe_load(forgery.terms) | {"mechanism": "auto"}
        forgery.policy = yaml.safe_dump(policy).encode()

    return change


KEPT = samples.one_block().manifest["utility"]["normalised"]
COMPARED: dict[str, tuple[set[str], Callable[[Forgery], None]]] = {
    "the best": (set(), compared(("optimal", KEPT - 0.1), ("randomised-response", KEPT), ("polyopt", None))),
    "another was better": ({"mechanism"}, compared(("optimal", KEPT + 0.1), ("randomised-response", KEPT))),
    "it kept less than was said": ({"mechanism"}, compared(("randomised-response", round(KEPT + 0.01, 4)))),
    "one that was not compared": ({"mechanism"}, compared(("optimal", KEPT))),
    "one that was not solved": ({"mechanism"}, compared(("randomised-response", None))),
    "one twice": ({"manifest"}, compared(("optimal", 0.1), ("randomised-response", KEPT), ("optimal", 0.1))),
    "none": ({"manifest"}, compared()),
}


@pytest.mark.parametrize("case", COMPARED)
def test_auto_uses_what_keeps_most(case: str, tmp_path: Path) -> None:
    claims, change = COMPARED[case]
    forgery = samples.one_block()
    change(forgery)
    failed = failures(lies(forgery, tmp_path))
    assert claims <= failed and bool(claims) == bool(failed)


def test_a_mechanism_that_the_policy_named_was_not_chosen(tmp_path: Path) -> None:
    forgery = samples.one_block()
    compared(("randomised-response", KEPT))(forgery)
    forgery.policy = yaml.safe_dump(
        yaml.safe_load(forgery.policy) | {"mechanism": "randomised-response"}
    ).encode()
    assert failures(lies(forgery, tmp_path / "named")) == {"policy-terms"}
    forgery = samples.one_block()
    forgery.policy = yaml.safe_dump(yaml.safe_load(forgery.terms) | {"mechanism": "auto"}).encode()
    assert failures(lies(forgery, tmp_path / "auto")) == {"policy-terms"}


def test_a_report_tells_of_the_candidates_as_the_manifest_does(tmp_path: Path) -> None:
    for place, share in (("honest", KEPT - 0.1), ("lie", KEPT - 0.2)):
        forgery = samples.one_block()
        compared(("optimal", round(KEPT - 0.1, 4)), ("randomised-response", KEPT))(forgery)
        forgery.report = as_report(forgery.manifest, forgery.protocol)
        told = [{**one, "used": one["mechanism"] != "optimal"} for one in forgery.manifest["candidates"]]
        told[0]["normalised"] = round(share, 4)
        forgery.report["drawing"] = {"candidates": told}
        assert failures(lies(forgery, tmp_path / place)) == ({"report-figures"} if place == "lie" else set())


# --- blocks put together

JOINED = np.array([[100, 200, 50, 80], [150, 60, 90, 40]])


def joined(**options: Any) -> Forgery:
    """Two columns of the policy as one block of four combinations, under SRLIP."""
    pairs: Labels = [["f", "0"], ["f", "1"], ["m", "0"], ["m", "1"]]
    block = samples.keep_or_spread(["sex", "old"], pairs, 8, 100)
    told: dict[str, Any] = {
        "notion": "srlip",
        "parameters": {"solve": "joint"},
        "epsilon": 2.0,
        "minimum": 10,
    }
    return forge(JOINED, [block], **told | options)


def policy_of(forgery: Forgery, **privacy: Any) -> bytes:
    """The policy names two columns, each by itself."""
    policy = yaml.safe_load(forgery.terms) | {"public": ["sex", "old"]}
    policy["privacy"] = {
        key: value for key, value in (policy["privacy"] | privacy).items() if value is not None
    }
    return yaml.safe_dump(policy).encode()


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ({}, True),
        ({"solve": None}, True),
        ({"solve": "auto"}, True),
        ({"solve": "auto", "split": {"sex": 0.3, "old": 0.7}}, True),
        ({"solve": "sequential"}, False),
        ({"notion": "lip", "solve": None}, False),
    ],
)
def test_srlip_may_make_one_alphabet_of_all_columns(changes: Any, passes: bool, tmp_path: Path) -> None:
    forgery = joined()
    forgery.policy = policy_of(forgery, **changes)
    assert failures(lies(forgery, tmp_path)) == (set() if passes else {"policy-terms"})


def test_only_a_joint_solution_puts_blocks_together(tmp_path: Path) -> None:
    forgery = joined(parameters={"solve": "sequential"})
    forgery.policy = policy_of(forgery, solve="auto")
    assert failures(lies(forgery, tmp_path)) == {"policy-terms"}


def test_combinations_count_as_values_for_the_minimum(tmp_path: Path) -> None:
    fewest = int(JOINED.sum(axis=0).min())
    assert not failures(lies(joined(minimum=fewest), tmp_path / "kept"))
    assert failures(lies(joined(minimum=fewest + 1), tmp_path / "lie")) == {"minimum"}


def test_a_record_with_its_secret_is_one_value(tmp_path: Path) -> None:
    forgery = release("polyopt", HONEST["independent-reporting"][1], hidden="income")
    assert not failures(lies(forgery, tmp_path / "as it is"))
    forgery = forge(TOLD, [side_by_side()], notion="ldp", epsilon=9.0, mechanism="independent-reporting")
    policy = yaml.safe_load(forgery.terms) | {
        "public": ["secret", {"name": "u", "bins": [0, 1], "clip": [0, 2]}]
    }
    forgery.policy = yaml.safe_dump(policy).encode()
    assert not failures(lies(forgery, tmp_path / "together"))
    policy["public"] = ["u", "secret"]
    forgery.policy = yaml.safe_dump(policy).encode()
    assert failures(lies(forgery, tmp_path / "another order")) == {"policy-terms"}
