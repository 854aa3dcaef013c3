"""How far the slice of a cone reaches: along every coordinate of a row, and along auxiliary variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.columns.chords import filled

if TYPE_CHECKING:
    from funnel.optimise.columns.pricing import Slice

_BEYOND = 1e-3, 1e-9
"""How far beyond the reach to cut, as a share of it and at least: the closer, the larger the multipliers."""
_TRUSTED = 0.5
"""Share of itself by which a bound on auxiliaries may depend on itself."""


@dataclass(frozen=True, eq=False)
class Cut:
    """No row of the slice has coordinate `which` above `at` (or below, where not `upper`).

    The multipliers `weight` (m,) of the slice's constraints show it.
    """

    which: int
    at: float
    upper: bool
    weight: FloatArray


def cuts(room: Slice) -> list[Cut]:
    """The cuts that leave the least box around the slice, nearly, inside [0, 1]^a."""
    size = len(room.prior)
    found = [_cut(room, x, upper=upper) for x in range(size) for upper in (True, False)]
    return [cut for cut in found if (cut.at < 1 if cut.upper else cut.at > 0)]


def _cut(room: Slice, which: int, *, upper: bool) -> Cut:
    """One of them; at the end of [0, 1] where the solver fails."""
    size = len(room.prior)
    slope = np.zeros(size)
    slope[which] = 1.0 if upper else -1.0
    answer = room.best(slope)
    if answer.status != "optimal":
        return Cut(which, float(upper), upper, np.zeros(len(room.matrix)))
    weight = room.weight(answer.multipliers)
    limit, _ = filled(slope - weight @ room.matrix, np.zeros(size), np.ones(size))
    limit += room.leftover(weight)
    share, least = _BEYOND
    limit += share * abs(limit) + least
    return Cut(which, limit if upper else -limit, upper, weight)


def widest(room: Slice) -> float:
    """A bound on every auxiliary's absolute value over the slice; infinite where there may be none.

    With z_j = e_j·z and any multipliers y, z_j <= max -(y A)·w + |e_j - y B|·|z|, and the last term is a small share
    of the largest |z|, which is therefore bounded.
    """
    size, count = room.lift.shape[1], len(room.prior)
    most, share = 0.0, 0.0
    for slope in np.vstack([np.eye(size), -np.eye(size)]):
        answer = room.best(np.append(np.zeros(count), slope))
        if answer.status != "optimal":
            return float(np.inf)
        weight = np.maximum(answer.multipliers[:-1], 0.0)
        limit, _ = filled(-(weight @ room.matrix), np.zeros(count), np.ones(count))
        most = max(most, limit)
        share = max(share, float(np.abs(slope - weight @ room.lift).sum()))
    return most / (1 - share) if share <= _TRUSTED else float(np.inf)
