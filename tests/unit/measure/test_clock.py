"""A time limit around a search is heeded by whatever runs inside it, in steps that are small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from funnel.data import Alphabet, Joint
from funnel.errors import SolverError
from funnel.measure import clock
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.product import protect
from funnel.notions import NOTIONS
from tests.support.census import census

SEARCHES = [
    ("lip", "randomised-response"),
    ("lip", "conditional-reporting"),
    ("lip", "unary-encoding"),
    ("srlip", "randomised-response"),
    ("rldp", "randomised-response"),
    ("rldp", "independent-reporting"),
    ("ldp", "non-robust"),
]


def records() -> Joint:
    """Income and sex released together, income hidden."""
    counts = census("income", "sex").table()
    cells = np.argwhere(counts > 0)
    values = tuple((f"s{s}", f"u{u}") for s, u in cells)
    secret = Alphabet(("S",), tuple((f"s{s}",) for s in range(len(counts))))
    places = np.column_stack([cells[:, 0], np.arange(len(cells))])
    return Joint(secret, (Alphabet(("S", "U"), values),), places, counts[counts > 0])


def solve(notion: str, kind: str) -> None:
    joint = records() if notion in {"rldp", "ldp"} else census("marital_status", "relationship")
    protect(joint, NOTIONS[notion](notion=notion, epsilon=0.5), MECHANISMS[kind](kind=kind), (1.0,))


@pytest.mark.parametrize(("notion", "kind"), SEARCHES)
def test_a_search_ends_soon_after_its_time(notion: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that runs out at the fifth look at the clock: there is a fifth look, and no mechanism goes on after it."""
    looks = 0

    def left() -> float:
        nonlocal looks
        looks += 1
        return math.inf if looks < 5 else -1.0

    monkeypatch.setattr(clock, "left", left)
    with pytest.raises(SolverError) as caught:
        solve(notion, kind)
    assert caught.value.status == "time"
    assert looks <= 6


def test_steps_are_taken_only_in_time() -> None:
    with clock.within(60):
        assert list(clock.in_time(range(3))) == [0, 1, 2]
    with clock.within(0), pytest.raises(SolverError):
        list(clock.in_time(range(3)))
    assert list(clock.in_time(range(3))) == [0, 1, 2]
    assert clock.left() == math.inf


def test_an_inner_limit_does_not_outlast_the_outer() -> None:
    with clock.within(0), clock.within(60):
        assert clock.left() <= 0
