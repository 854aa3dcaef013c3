"""The benchmark of optima runs, and its table says what it measured. No assertion depends on time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "examples" / "benchmark"


def run(*options: str) -> str:
    program = [sys.executable, str(BENCHMARK), "optimal", "--case", "theorem-2", "--quick", *options]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return [json.loads(line) for line in run("--json").splitlines()]


def test_every_row_is_an_object_with_what_was_asked_and_reached(rows):
    assert len(rows) == 2
    for row in rows:
        assert row["case"] == "theorem-2"
        assert row["gap"] <= row["asked_gap"]
        assert 0 < row["utility"] <= row["bound"] <= row["entropy"]
        assert row["seconds"] > 0
        assert row["reached"]


def test_the_known_optimum_is_among_them(rows):
    """golden: (c, a) = (2, 3), LDP, ε = 0.5, the table as counts of a million records."""
    assert rows[0]["utility"] == pytest.approx(0.6353506656, abs=1e-5)


def test_what_is_not_reached_has_no_tick(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK))
    from measuring import Row

    def row(**asked):
        return Row("a problem", 0.9, 1.0, 0.95, 2.0, 1, "columns", faster=10.0, better=3.0, **asked)

    assert row().reached
    assert row(asked_gap=0.1, asked_seconds=3.0, asked_faster=9.0, asked_better=3.0).reached
    for asked in ({"asked_gap": 0.01}, {"asked_seconds": 1.0}, {"asked_faster": 11.0}, {"asked_better": 4.0}):
        assert not row(**asked).reached
    unfinished = Row("a problem", 0.9, 1.0, None, 2.0, 1, "columns", asked_faster=9.0)
    assert not unfinished.reached
    assert unfinished.gap is None


def test_the_table_has_a_line_for_each_under_a_head(rows):
    lines = [line for line in run().splitlines() if line]
    assert len(lines) == 2 + len(rows)
    assert lines[1].startswith("problem")
    assert all(line.endswith("✓") for line in (text.rstrip() for text in lines[2:]))
