"""The inequalities of a slice as a solver likes them: scaled, and fewer of them where they are odds.

What lies within a factor of each other lies within that factor of the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Odds
from funnel.optimise.linear.highs import Program

_DEEP = 1e-4
"""Slack at the centre to which inequalities are scaled, where that leaves coefficients below its inverse."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """Inequalities on w and auxiliaries z (m, a + k), scaled so that a solver's tolerance is small against the room.

    `centre` (a + k,) is w = prior with the z that keeps it farthest from every inequality, `scale` (m,) what rows were
    divided by. Equations are left as they are.
    """

    rows: FloatArray
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, lift: FloatArray, prior: FloatArray, *, equations: bool) -> Scaled:
        """Scale matrix (m, a) @ w + lift (m, k) @ z <= 0."""
        both, centre = np.hstack([matrix, lift]), np.append(prior, _deepest(matrix @ prior, lift))
        scale = np.ones(len(both))
        if not equations:
            size = np.abs(both).max(axis=1, initial=0.0)
            scale = size * np.maximum(-both @ centre / size, _DEEP)
        return cls(both / scale[:, None], centre, scale)


def _deepest(limit: FloatArray, lift: FloatArray) -> FloatArray:
    """The z (k,) for which limit + lift @ z is least at its largest."""
    if not lift.shape[1]:
        return np.zeros(0)
    free = np.full(lift.shape[1], np.inf)
    program = Program(
        np.hstack([lift, np.ones((len(lift), 1))]),
        np.full(len(lift), -np.inf),
        -limit,
        np.append(-free, -1.0),
        np.append(free, 1.0),
    )
    program.costs(np.append(np.zeros(lift.shape[1]), 1.0))
    return program.solve().point[:-1]


class Compact:
    """Inequalities (2c, a + 1 each) on w = prior·v and an auxiliary h for each odds in turn, scaled as `rows`:

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
        scaled = Scaled.of(np.vstack(blocks), np.vstack(lifts), prior, equations=False)
        self.rows, self._scale = scaled.rows, scaled.scale

    def spread(self, weight: FloatArray) -> FloatArray:
        """Multipliers (m,) of the inequalities that do what these (2c…,) do, as far as those leave no h over."""
        weight, parts, start = weight / self._scale, [], 0
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
