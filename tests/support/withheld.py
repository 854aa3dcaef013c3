"""What a release of a shipped policy withholds: figures as coarse as they must be, counts that stay open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.trials.attacking.counts import open_counts

NARROWED: dict[str, tuple[int, int] | None] = {
    "perfect": None,
    "alip": (1, 42), "average": (2, 32), "conditional-reporting": (42, 42), "identify": (2, 90),
    "invariant": (14, 98), "marital-status": (16, 112), "non-robust": (10, 12), "race-and-sex": (17, 90),
    "randomised-response": (16, 112), "secret-randomised-response": (2, 4),
    "gaussian-funnel": None, "private-estimate": None, "regions": None, "unary-encoding": None, "wide": None,
}  # fmt: skip
"""SECURITY.md's numbers: counts narrowed to fewer than the minimum, of how many; of policies not named, none."""

MOST = 40
"""Public values whose counts are tried: all, but for wide blocks."""


def withheld(folder: Path) -> None:
    """Nothing published is finer than release.json says; each count keeps a range of the minimum, from files alone."""
    stated = json.loads((folder / "release.json").read_text())
    rows, minimum = stated["rows"], stated["estimate"]["minimum"]
    step = Fraction(1, 10 ** min(4, len(str(rows // (2 * minimum))) - 1))
    asked = {stated["epsilon"], *stated["split"], *(stated["parameters"][key] for key in ("radius", "confidence"))}
    figures = set(_floats([stated["leakage"], stated["utility"], stated["composed"], stated["candidates"]])) - asked
    assert all((Fraction(str(one)) / step).denominator == 1 for one in figures), figures
    for name in ("release", "report"):
        for one in set(_floats(json.loads((folder / f"{name}.json").read_text()))) - asked:
            assert round(one, 4) == one, (name, one)
    try:
        found = open_counts(folder, MOST)
    except ValueError:
        return
    assert (found[:, 1] - found[:, 0] >= minimum).all(), found


def _floats(told: Any) -> Iterator[float]:
    if isinstance(told, float):
        yield told
    for part in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        yield from _floats(part)
