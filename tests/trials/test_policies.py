"""A small slice of what `python -m tests.trials policies` tries, and that it would notice what it looks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import PolicyError, Problem
from funnel.policy import loads
from tests.trials import policies as fuzz


def test_a_slice_of_the_fuzzer_finds_nothing() -> None:
    tally = fuzz.fuzz(250, seed=0)
    assert tally.findings == []
    assert tally.outcomes.total() == 250
    assert tally.outcomes["accepted"] > 0, "mutations that break everything test nothing beyond the parser"
    assert len(tally.outcomes) > 6


def test_the_same_seed_is_the_same_case() -> None:
    assert [fuzz.case(seed) for seed in range(30)] == [fuzz.case(seed) for seed in range(30)]
    assert len({fuzz.case(seed)[2] for seed in range(30)}) == 30


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (Problem("no-such-code", "x", "f", 1, 1), "code"),
        (Problem("epsilon", "x", "f", 99, 1), "line 99"),
        (Problem("epsilon", "x" * 5000, "f", 1, 1), "5000 characters"),
        (Problem("epsilon", "\x1b[2J", "f", 1, 1), "control character"),
        (Problem("epsilon", "fine", "f", 1, 1), None),
    ],
)
def test_a_refusal_that_nobody_could_use_is_a_finding(problem: Problem, told: str | None) -> None:
    found = fuzz.wrong(PolicyError([Problem("bins", "x", "f", 0, 0), problem]), b"version: 1\n")
    assert (found is None) if told is None else told in (found or "")


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError(), MemoryError(), SystemExit(3)])
def test_whatever_is_raised_is_a_finding(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise error

    monkeypatch.setattr(fuzz, "attempt", fail)
    assert fuzz.guarded(b"", Path(), {}, Path())[0].startswith(f"finding: {type(error).__name__}")


FOUND = {
    "a tab where a section belongs": 'version: 1\nrelease: "\\t"\n',
    "a letter that turns the line round": "version: 1\nname: a\u202eb\n",
    "declared values and no column at all": "version: 1\nestimate: {kind: private, epsilon: 1, values: {x: [a]}}\n",
}
"""What it found, at its smallest."""


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_what_it_found_stays_found(text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        loads(text)
    assert fuzz.wrong(caught.value, text.encode()) is None
    assert all(one.message.isprintable() for one in caught.value.problems)
