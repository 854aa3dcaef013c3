"""A Bayesian attacker who knows p(S,X), Q and the release never moves a belief further than promised."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import funnel
from tests.support.policies import write_policy

TABLES = [
    ({"sensitive": ["marital_status"], "public": ["education"]}, 1.0),
    ({"sensitive": ["sex"], "public": ["relationship"]}, 0.5),
    ({"sensitive": ["income", "sex"], "public": ["workclass"], "estimate": {"minimum": 1}}, 0.3),
    ({"sensitive": ["sex"], "public": ["race", {"name": "age", "bins": [0, 30, 50]}]}, 0.6),
]
MECHANISMS = ["optimal", "randomised-response", "conditional-reporting"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("table", "epsilon"),
    TABLES,
    ids=lambda value: "+".join(value["sensitive"]) if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("notion", ["lip", "ldp"])
def test_no_belief_moves_further_than_promised(tmp_path, key, monkeypatch, table, epsilon, mechanism, notion):
    monkeypatch.setenv("FUNNEL_KEY", key)
    path = write_policy(
        tmp_path, **table, mechanism=mechanism, privacy={"notion": notion, "epsilon": epsilon}
    )
    release = Path(funnel.run(path).release)
    blocks = json.loads((release / "protocol.json").read_text())["blocks"]
    cells = json.loads((tmp_path / "private" / release.name / "counts.json").read_text())["cells"]
    prior = beliefs({cell[0]: 0 for cell in cells}, cells, lambda cell: 1)
    seen = duckdb.sql(f"SELECT DISTINCT * FROM '{release}/data.parquet'").fetchall()
    assert seen
    worst = Fraction(1)
    for row in seen:
        outputs = find_outputs(blocks, row)
        posterior = beliefs(dict.fromkeys(prior, 0), cells, lambda cell, y=outputs: chance(blocks, y, cell))
        moved = [posterior[s] / prior[s] for s in prior]
        assert all(moved), "some value of the secret is ruled out"
        worst = max(
            [worst, *(max(m, 1 / m) for m in moved)] if notion == "lip" else [worst, max(moved) / min(moved)]
        )
    assert float(worst) <= math.exp(epsilon) * (1 + 1e-12)
    assert worst > 1


def beliefs(start, cells, likelihood) -> dict[int, Fraction]:
    """P(s) or P(s|y) by Bayes' rule over the counted records."""
    weights = dict(start)
    for cell in cells:
        weights[cell[0]] += cell[-1] * likelihood(cell)
    total = sum(weights.values())
    return {s: Fraction(weight, total) for s, weight in weights.items()}


def chance(blocks, outputs, cell) -> int:
    """The weight with which a record of this cell releases these outputs."""
    weight = 1
    for block, y, x in zip(blocks, outputs, cell[1:-1], strict=True):
        row = block["weights"][y]
        weight *= row[cell[0]][x] if block["secret"] else row[x]
    return weight


def find_outputs(blocks, row) -> list[int]:
    """Output codes of a released row, whose columns come block by block."""
    texts, outputs = iter(None if value is None else str(value) for value in row), []
    for block in blocks:
        label = list(itertools.islice(texts, len(block["columns"])))
        outputs.append(block["outputs"].index(label))
    return outputs
