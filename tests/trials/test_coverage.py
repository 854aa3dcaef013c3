"""Intervals over redraws in small, and that one that is too narrow is seen."""

from __future__ import annotations

import pytest

from tests.trials import coverage


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    found = coverage.run(1500, sizes=(3_000, 30_000), seed=7)
    assert all(coverage.settled(found, 1500).values()), found


def test_an_interval_that_is_too_narrow_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = coverage.total
    monkeypatch.setattr(coverage, "total", lambda value, variance, *rest: original(value, variance * 0.8, *rest))
    found = coverage.run(3000, sizes=(30_000,), seed=7)
    assert coverage.settled(found, 3000)["a count"] is None
