"""Fewer inequalities for odds: what lies within a factor of each other lies within that factor of the least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Odds


class Compact:
    """Rows (2c, a) on w = prior·v, of each odds in turn, with an auxiliary h for each in `lift`:

    given·v <= ratio·h and h <= given·v. They cut out the same w as `matrix` (m, a), the inequalities of the odds on
    w in order, whatever positive scale these have.
    """

    def __init__(self, odds: Sequence[Odds], matrix: FloatArray, prior: FloatArray) -> None:
        self._odds = odds
        size = [np.abs(one.rows() / prior).max(axis=1) for one in odds]
        self._size = np.concatenate(size) / np.abs(matrix).max(axis=1)
        blocks, lifts = [], []
        for k, one in enumerate(odds):
            given, auxiliary = one.given / prior, np.zeros((2, len(one.given), len(odds)))
            auxiliary[0, :, k], auxiliary[1, :, k] = -one.ratio, 1.0
            blocks += [given, -given]
            lifts += [*auxiliary]
        self.matrix, self.lift = np.vstack(blocks), np.vstack(lifts)

    def spread(self, weight: FloatArray) -> FloatArray:
        """Multipliers (m,) of the inequalities that do what these (2c…,) do, as far as those leave no h over."""
        parts, start = [], 0
        for one in self._odds:
            count = len(one.given)
            above, below = weight[start : start + count], weight[start + count : start + 2 * count]
            parts.append(_transport(above, below / one.ratio))
            start += 2 * count
        return np.asarray(np.concatenate(parts) * self._size)


def _transport(supply: FloatArray, demand: FloatArray) -> FloatArray:
    """Non-negative flows from every s to every t ≠ s, s slowest, by filling demands in turn; (c(c-1),).

    What would flow from s to itself is left out.
    """
    flows = np.zeros((len(supply), len(demand)))
    targets = ((int(t), float(demand[t])) for t in np.flatnonzero(demand > 0))
    target, wanted = next(targets, (0, 0.0))
    for origin in map(int, np.flatnonzero(supply > 0)):
        left = float(supply[origin])
        while left > 0 and wanted > 0:
            moved = min(left, wanted)
            flows[origin, target] += moved
            left, wanted = left - moved, wanted - moved
            if wanted <= 0:
                target, wanted = next(targets, (0, 0.0))
    return flows[~np.eye(len(supply), dtype=bool)]
