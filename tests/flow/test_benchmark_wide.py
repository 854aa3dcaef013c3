"""The benchmark of wide releases in small: every side is judged, figures that must be so are. None depends on time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARK = Path(__file__).parents[2] / "examples" / "benchmark"


@pytest.fixture(scope="module")
def rows() -> dict[str, dict]:
    program = [
        sys.executable,
        str(BENCHMARK),
        "wide",
        "--people",
        "2500",
        "--cells",
        "12",
        "--seconds",
        "0",
        "--json",
    ]
    told = subprocess.run(program, capture_output=True, text=True, check=True, timeout=300).stdout
    return {row["side"]: row for row in map(json.loads, told.splitlines())}


@pytest.mark.long
def test_every_side_has_its_row(rows):
    assert list(rows) == [
        "the true rows", "a bootstrap of them", "wide block, 12 cells", "the same cells, ε = 0", "4 narrow blocks",
        "column by column (PRAM)", "MST", "AIM",
    ]  # fmt: skip
    for name in ("MST", "AIM"):
        assert rows[name]["note"].startswith(("pip install", "not finished"))


@pytest.mark.long
def test_true_rows_are_at_no_distance_and_names_make_rows_truer(rows):
    true, wide, zero = (
        rows[name] for name in ("the true rows", "wide block, 12 cells", "the same cells, ε = 0")
    )
    assert set(true["quantiles"].values()) == set(true["own"].values()) == {0.0}
    assert true["accuracy"] == 1
    assert wide["labels"] > 0.8
    assert zero["labels"] < 0.3
    assert wide["accuracy"] > zero["accuracy"] + 0.05
    assert 0.24 < wide["bound"] < 0.7
    for row in (wide, zero):
        assert 0 < row["quantiles"]["pairs"] < row["quantiles"]["largest"] < row["own"]["largest"] < 1


def test_columns_are_coded_by_quantiles_of_the_true_rows(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK))
    from judging import Coder, accuracies, ceiling

    ages = Coder(np.array([1, 1, 1, 2, 3, 3, 9, 9]))
    assert ages.own(np.array([1, 2, 9, 4])).tolist() == [0, 1, 3, 4]
    assert ages.coarse(np.array([0, 1, 2, 8, 99])).tolist() == [0, 0, 1, 2, 3]
    texts = Coder(np.array(["a", "b", "b"]))
    assert texts.coarse(np.array(["b", "z"])).tolist() == [1, 2]
    true, other = {"c": np.array(["a", "b", "b", "b"])}, {"c": np.array(["b", "b", "b", "a"])}
    assert accuracies(true, other, named=True) == {"c": 0.5}
    assert accuracies(true, other, named=False) == {"c": pytest.approx(0.75**2 + 0.25**2)}
    assert ceiling(0.24, 1.0) == pytest.approx(0.24 * np.e)
