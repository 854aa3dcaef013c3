"""A small table of people, and nights on which it is released."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np

SMALL = {
    "source": {"table": "people.parquet", "entity": "id"},
    "sensitive": ["s"],
    "public": ["x"],
    "mechanism": "randomised-response",
    "privacy": {"notion": "ldp", "epsilon": 0.2},
}


MONDAY = [[60, 40, 30], [30, 50, 45]]


TUESDAY = [[66, 40, 30], [30, 50, 45]]


def people(folder: Path, counts: Sequence[Sequence[int]]) -> None:
    """A table of N[s, x] people with ids."""
    rows = [(s, x) for s, row in enumerate(counts) for x, many in enumerate(row) for _ in range(many)]
    values = ", ".join(f"({i}, 's{s}', 'x{x}')" for i, (s, x) in enumerate(rows))
    target = folder / "people.parquet"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES {values}) t(id, s, x)) TO '{target}' (FORMAT parquet)")


def ceiling(counts: Sequence[Sequence[int]]) -> float:
    """max ln p(x|s)/p(x|s')."""
    given = np.array(counts, float) / np.sum(counts, axis=1, keepdims=True)
    return float(np.log(given.max(axis=0) / given.min(axis=0)).max())


FRESH = {"draws": {"kind": "fresh"}, "source": {"table": "people.parquet"}}
