"""What is believed about the secret before and after the release: P(s) and P(s|y), from exact counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.data import Joint
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.measure.figures import round_up
from funnel.report.facts import Facts
from funnel.report.figures import factor, nearest
from funnel.report.promise import within
from funnel.report.words import nats_in
from funnel.text import label

MAP_CELLS = 3600
"""Largest map of beliefs, in cells."""
WIDTHS = (1.25, 1.5, 2.0, 5.0, 10.0)
"""Factors that pictures of beliefs span where the notion has no bound for them."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The secret's values with their records, and how the notion looks at the change of a belief.

    `kind`: by its `factor` or its `odds`, or on `average`; `falls` and `rises`: how far it may, in nats. `width` is the
    change that pictures show in full: the larger bound, and where there is not one both ways a round factor at least.
    """

    values: tuple[str, ...]
    records: Sequence[int]
    kind: str
    quantity: str
    falls: float
    rises: float
    width: float

    @classmethod
    def of(cls, t: Facts, notion: Mapping[str, str], joint: Joint, records: Sequence[int]) -> Beliefs:
        """The beliefs about the secret of one release."""
        falls, rises, worst = nats_in(notion["falls"]), nats_in(notion["rises"]), t.m.leakage["lip"]
        finite = [one for one in (falls, rises) if math.isfinite(one)]
        wide = [math.log(one) for one in WIDTHS]
        if len(finite) < 2:
            finite.append(next((one for one in wide if worst is not None and one >= worst), wide[-1]))
        values = tuple(label(value) for value in joint.secret.values)
        return cls(values, records, notion["kind"], notion["quantity"], falls, rises, max(finite))

    @property
    def order(self) -> list[int]:
        """The values, most frequent first."""
        return sorted(range(len(self.values)), key=lambda s: -self.records[s])

    def secrets(self, table: ReleasedTable) -> list[dict[str, Any]]:
        """One entry per value: belief before, lowest and highest after all blocks, what the promise allows."""
        total = sum(self.records)
        if isinstance(table, Subsets):
            low, high = table.changes()
            ends = [
                (self.records[s] / total * low[s], self.records[s] / total * high[s]) for s in range(len(low))
            ]
        else:
            after = _after(table)
            ends = [(row.min(), row.max()) for row in after]
        return [
            self._entry(s, self.records[s] / total, *map(float, ends[s]))
            for s in self.order
            if self.records[s]
        ]

    def _entry(self, s: int, before: float, low: float, high: float) -> dict[str, Any]:
        moves = [self._change(before, low), self._change(before, high)]
        worst, ends = max(map(abs, moves)), (-self.falls, self.rises)
        used = max(_part(move, end) for move, end in zip(moves, ends, strict=True))
        promised = None if self.kind == "average" else within(self.kind, before, self.falls, self.rises)
        return {
            "value": self.values[s],
            "records": self.records[s],
            "before": nearest(before, 6),
            "lowest": nearest(low, 6),
            "highest": nearest(high, 6),
            "promised": None if promised is None else [nearest(end, 6) for end in promised],
            "change": _moved(worst) if math.isfinite(worst) else None,
            "factor": _factor(worst),
            "used": nearest(used, 4) if math.isfinite(used) else None,
            "moves": self._parts(moves),
            "allowed": None if promised is None else self._parts([self._change(before, end) for end in promised]),
        }

    def _parts(self, ends: Sequence[float]) -> list[float]:
        """Changes in nats as parts of the width, none beyond it."""
        return [round(max(-1.0, min(1.0, one / self.width)) if self.width else 0.0, 3) + 0.0 for one in ends]

    def _change(self, before: float, after: float) -> float:
        """The change of a belief in nats: ln P(s|y)/P(s), or of its odds."""
        if before == after:
            return 0.0
        odds = self.kind == "odds"
        if after == 0 or (odds and after == 1):
            return math.inf if after else -math.inf
        change = math.log(after / before)
        return change - math.log((1 - after) / (1 - before)) if odds and before < 1 else change

    def map(self, table: ReleasedTable, outputs: Sequence[str]) -> dict[str, Any] | None:
        """How each released value of one block alone moves the belief in each secret value, in nats.

        None in place of an infinite change. None where nothing can move, or the map would be too large.
        """
        if isinstance(table, Subsets) or table.size > MAP_CELLS or self.width == 0:
            return None
        seen = [y for y, column in enumerate(table.T) if column.any()]
        if len(seen) < 2:
            return None
        after, total, order = _after(table), sum(self.records), [s for s in self.order if self.records[s]]
        changes = [[self._change(self.records[s] / total, float(one)) for one in after[s]] for s in order]
        return {
            "secret": [self.values[s] for s in order],
            "released": [outputs[y] for y in seen],
            "quantity": self.quantity,
            "bound": self.width,
            "change": [
                [_moved(one) if math.isfinite(one) else None for one in row] for row in changes
            ],
            "factor": [[_factor(one) for one in row] for row in changes],
            "after": [[nearest(one, 6) for one in after[s]] for s in order],
        }


def _moved(nats: float) -> float:
    """A change with four decimals, rounded away from zero, so that what moves at all is not said to stay."""
    return math.copysign(round_up(abs(nats) * (1 - 1e-12)), nats) + 0.0


def _factor(nats: float) -> str | None:
    """e to a change's size, as it is told: rounded up once, not from what was rounded already."""
    return factor(abs(nats)) if math.isfinite(nats) else None


def _part(move: float, end: float) -> float:
    """What a move is of the end that it may reach: infinite where it may not move at all."""
    return 0.0 if not move or math.isinf(end) else move / end if end else math.inf


def _after(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """P(s|y) of exact weights T[s, y…], (c, b) over the outputs that occur."""
    flat = table.reshape(len(table), -1).astype(object)
    total = flat.sum(axis=0)
    return np.asarray(flat[:, total > 0] / total[total > 0], float)
