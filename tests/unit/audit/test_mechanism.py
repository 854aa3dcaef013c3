"""A protocol has the form of the mechanism that the release names."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from funnel.audit.extras import mechanism
from funnel.audit.kernel.verdict import Broken
from funnel.data.convert import rule_of
from funnel.format.fields import Alphabet
from funnel.format.manifest import Candidate
from funnel.format.protocol import ProtocolFile, Sets, Weights
from tests.kernel.samples import alphabet, coins, conditional, response

BITS = 12
X, PAIRS = alphabet("x", 4), Alphabet(("secret", "u"), tuple((f"s{s}", f"u{u}") for s in range(2) for u in range(2)))
NUMBERS = Alphabet(("hours",), (("10",), ("20",), ("30",)))


def block(inputs: Alphabet, outputs: Any, table: Any) -> Weights:
    rows = tuple(map(tuple, np.array(table).tolist()))
    return Weights("weights", inputs.columns, None, inputs.values, outputs, BITS, rows)


def pairs(same: int, kept: int, other: int, far: int | None = None) -> Weights:
    """Weights for (s, u) unchanged, s kept, u kept, neither; the first takes what rounding leaves."""
    far = other if far is None else far
    table = np.array(
        [[same if x == y else kept if x // 2 == y // 2 else other if x % 2 == y % 2 else far for x in range(4)]
         for y in range(4)]
    )  # fmt: skip
    return block(PAIRS, PAIRS.values, table)


def strengths(epsilon: float) -> tuple[int, int, int]:
    """Secret randomised response, e^ε : e^-ε : 1 on 2^30."""
    whole = (1 << 30) / (math.exp(epsilon) + math.exp(-epsilon) + 2)
    return round(whole * math.exp(epsilon)), round(whole * math.exp(-epsilon)), round(whole)


MERGED = block(X, X.values[1:3], [[4096, 4096, 0, 0], [0, 0, 4096, 4096]])
GRID = (("-2.5",), ("0",), ("7.5",))
STEPS = [[2048, 1024, 0], [1024, 2048, 2048], [1024, 1024, 2048]]
HONEST: dict[str, Any] = {
    "randomised-response": response(X, 0.8),
    "conditional-reporting": conditional(X, alphabet("secret", 2)),
    "unary-encoding": coins(X),
    "invariant": response(X, 0.8),
    "secret-randomised-response": pairs(*strengths(1.2)),
    "independent-reporting": pairs(15 * 170, 9 * 170, 5 * 170, 3 * 170),
    "greedy-funnel": MERGED,
    "gaussian-funnel": block(NUMBERS, GRID, STEPS),
    "optimal": block(NUMBERS, GRID, STEPS),
    "polyopt": pairs(1, 2, 3, 4),
}


def asked(name: str, one: Any, **changes: Any) -> str:
    """What the claim says of one block under a mechanism's name."""
    utility = SimpleNamespace(normalised=0.5)
    told = {"mechanism": name, "sensitive": ("secret",), "epsilon": 1.2, "candidates": None, "utility": utility}
    told |= {"step": 1e-4, "locked": None}
    manifest = SimpleNamespace(**(told | changes))
    protocol = ProtocolFile("f", rule_of((one,)), (one,))
    return mechanism.check(SimpleNamespace(manifest=manifest, blocks=(), partitioned=(), protocol=protocol))


@pytest.mark.parametrize("name", HONEST)
def test_the_forms_of_all_mechanisms_pass(name: str) -> None:
    assert asked(name, HONEST[name]).startswith(name)


def test_a_lock_leaves_room_to_secret_randomised_response() -> None:
    """Its protocol was made at less than the policy's ε, or at more where it is kept and leaks less than it might."""
    name = "secret-randomised-response"
    locked, kept_on = SimpleNamespace(fixed=None), SimpleNamespace(fixed="2026-11-01T00:00:00Z")
    for epsilon, passing, failing in ((1.14, (locked, kept_on), (None,)), (1.3, (kept_on,), (None, locked))):
        for lock in passing:
            assert asked(name, pairs(*strengths(epsilon)), locked=lock).startswith(name)
        for lock in failing:
            with pytest.raises(Broken):
                asked(name, pairs(*strengths(epsilon)), locked=lock)
    same, kept, other = strengths(1.14)
    for wrong in (pairs(same + other, kept, 0), pairs(same + kept // 2, kept // 2, other)):
        for lock in (locked, kept_on):
            with pytest.raises(Broken):
                asked(name, wrong, locked=lock)


def moved(one: Weights, y: int, x: int, other: int, by: int = 1) -> Weights:
    """Some weight of input x, one that is read under the first secret value, moved from one output to another."""
    table = np.array(one.weights)
    column = table[:, 0, x] if one.secret else table[:, x]
    column[y] -= by
    column[other] += by
    rows = tuple(tuple(map(tuple, row)) if one.secret else tuple(row) for row in table.tolist())
    return Weights(**(vars(one) | {"weights": rows}))


def named(one: Weights, *outputs: Any) -> Weights:
    return Weights(**(vars(one) | {"outputs": tuple(outputs)}))


WRONG: dict[str, tuple[str, Any]] = {
    "a weight of randomised response": ("randomised-response", moved(HONEST["randomised-response"], 0, 0, 1)),
    "lies more than not": ("randomised-response", response(X, -0.8)),
    "other outputs": ("randomised-response", named(HONEST["randomised-response"], *X.values[:3], ("other",))),
    "one weight more elsewhere": ("conditional-reporting", moved(HONEST["conditional-reporting"], 0, 0, 1)),
    "the secret not read": ("conditional-reporting", response(X, 0.8)),
    "the secret read": ("optimal", HONEST["conditional-reporting"]),
    "coins that are not fair": ("unary-encoding", Sets(**(vars(coins(X)) | {"present": 2047}))),
    "sets of another mechanism": ("optimal", coins(X)),
    "neither sets nor values as they are": ("unary-encoding", MERGED),
    "a weight of secret randomised response": (
        "secret-randomised-response", moved(HONEST["secret-randomised-response"], 0, 0, 2)),
    "another strength": ("secret-randomised-response", pairs(*strengths(1.1))),
    "the secret not among the columns": ("secret-randomised-response", response(X, 1.2)),
    "no product": ("independent-reporting", pairs(15 * 170, 9 * 170, 5 * 170, 3 * 171)),
    "a partition with a chance": ("greedy-funnel", moved(MERGED, 0, 0, 1)),
    "a part named by another's member": ("greedy-funnel", named(MERGED, X.values[2], X.values[1])),
    "numbers off the grid": ("gaussian-funnel", named(HONEST["gaussian-funnel"], ("-2.5",), ("0",), ("7",))),
    "words for numbers": ("gaussian-funnel", named(HONEST["gaussian-funnel"], ("low",), ("0",), ("7.5",))),
    "a missing number": ("gaussian-funnel", named(HONEST["gaussian-funnel"], (None,), ("0",), ("7.5",))),
    "no mechanism": ("none", MERGED),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_another_form_fails(what: str) -> None:
    with pytest.raises(Broken):
        asked(*WRONG[what])


def test_of_the_mechanisms_compared_the_one_used_keeps_most() -> None:
    two = (Candidate("optimal", 0.5, None), Candidate("polyopt", 0.4, None), Candidate("non-robust", None, "no"))
    assert asked("optimal", MERGED, candidates=two)
    for wrong in (two[1:], (two[0], Candidate("polyopt", 0.6, None)), (Candidate("optimal", 0.7, None),)):
        with pytest.raises(Broken):
            asked("optimal", MERGED, candidates=wrong)
