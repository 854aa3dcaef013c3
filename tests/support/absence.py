"""An attacker who holds two published tables of the same people and counts: who has vanished, behind which value?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb


@dataclass(frozen=True)
class Vanished:
    """Of people told by a released value alone: how many are certain to be absent, or to be present; and the largest
    finite change of the odds of being absent, in nats."""

    absent: int
    present: int
    odds: float


def released(release: Path) -> Counter[Any]:
    """Rows of a published table, by the values of its only column."""
    rows = duckdb.sql(f"SELECT * FROM '{release}/data.parquet'").fetchall()
    return Counter(value for (value,) in rows)


def vanished(first: Path, second: Path) -> Vanished:
    """What two tables tell that were drawn alike: `second` has those of `first` who are still there."""
    before, after = released(first), released(second)
    gone = {y: (before[y] - after[y], after[y]) for y in before}
    absent, present = (sum(pair[side] for pair in gone.values()) for side in (0, 1))
    moved = [abs(math.log(Fraction(a * present, b * absent))) for a, b in gone.values() if a > 0 and b > 0]
    return Vanished(
        sum(a for a, b in gone.values() if a > 0 == b),
        sum(b for a, b in gone.values() if a == 0 < b),
        max(moved, default=0.0),
    )


def odds_moved(
    people: Iterable[tuple[str, Any, bool]], chances: dict[Any, dict[Any, Fraction]]
) -> float:
    """How far odds of the secret move for who sees one answer and whether somebody is in the other release (nats).

    `people` are (s, x, present), `chances` P(y|x) of the release that everybody is in. From the definition: the largest
    ln P(present, y|s) / P(present, y|s'), which what both releases tell together is no less than.
    """
    seen: dict[Any, Fraction] = defaultdict(Fraction)
    rows: Counter[str] = Counter()
    for s, x, present in people:
        rows[s] += 1
        for y, chance in chances[x].items():
            if chance:
                seen[s, y, present] += chance
    worst = 0.0
    for y, present in {(y, present) for _, y, present in seen}:
        given = [seen[s, y, present] / many for s, many in rows.items()]
        worst = max(worst, math.inf if min(given) == 0 else math.log(max(given) / min(given)))
    return worst
