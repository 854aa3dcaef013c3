"""Noise of private estimates: looks that are averaged, and draws so improbable that a check might refuse them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import funnel
from funnel.errors import FunnelError
from funnel.ledger import estimates
from tests.trials.attacking.averaging import averaged
from tests.trials.attacking.row import Row

NAME = "noise"
ROWS, RARE, LOOKS = 3000, 303, 30
IMPROBABLE = (60, -(1 << 40))
TERMS: dict[str, Any] = {
    "version": 1, "name": "noisy", "source": {"table": "people.parquet"}, "sensitive": ["s"], "public": ["x"],
    "privacy": {"notion": "lip", "epsilon": 0.5}, "mechanism": "optimal", "draws": {"kind": "fresh"},
    "estimate": {"kind": "private", "epsilon": 1.0, "budget": 1.0, "minimum": 1,
                 "values": {"s": ["s0", "s1"], "x": ["x0", "x1"]}},
    "release": {"to": "releases", "private": "private"},
}  # fmt: skip


def own(folder: Path) -> Iterator[Row]:
    """One count of 3,000 records, from what thirty looks print; and noise that hardly ever is as large."""
    path = _policy(folder / "looks")
    told = averaged(
        [funnel.run(path, dry_run=True).as_dict()["utility"]["entropy"] for _ in range(LOOKS)], ROWS
    )
    entered = funnel.read_ledger(path).as_dict()["estimates"]["number"]
    alike = told.error == 0 and entered == 1
    yield Row(NAME, f"{LOOKS} dry runs, averaged", f"{entered} estimate", f"{told.count:.2f} ± {told.error:.2f}", alike)
    for size in IMPROBABLE:
        path = _policy(folder / f"rare {size}")
        with mock.patch.object(estimates, "discrete_laplace", lambda rate, dice, size=size: size):
            yield Row(NAME, f"noise of {size:,}", "released", *_released(path))


def _released(path: Path) -> tuple[str, bool]:
    """Whether the run released what it drew, without a word that others would not have had."""
    try:
        made = funnel.run(path)
    except FunnelError as error:
        return f"refused: {error.code}", False
    return ("released, with a warning", False) if made.warnings else ("released", True)


def _policy(folder: Path) -> Path:
    folder.mkdir(parents=True)
    people = {"s": [f"s{i % 2}" for i in range(ROWS)], "x": [f"x{int(i < RARE)}" for i in range(ROWS)]}
    pq.write_table(pa.table(people), folder / "people.parquet")
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(TERMS))
    return path
