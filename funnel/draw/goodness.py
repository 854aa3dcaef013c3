"""How well counts fit what was expected, as a G test that stays calibrated far out in its tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray

_LEAST = 12.0
_GROWTH = 1.2


@dataclass(frozen=True)
class Fit:
    """A G statistic, its degrees of freedom, and the chance of one as large when the expectation is right."""

    statistic: float
    freedom: int
    chance: float


def g_test(observed: IntArray, expected: FloatArray, stratum: IntArray) -> Fit:
    """G test of counts (m,) in strata (m,), numbered from 0, whose totals are the same in both.

    Cells with a small expectation are pooled within their stratum, and the statistic is divided by Williams'
    factor (Biometrika 63, 1976), which makes its mean that of χ² up to order 1/E². What is left is about
    E⁻²/5 a cell: it is kept far below the spread √(2·cells) of the sum by pooling up to E ~ cells^(1/4).
    """
    least = max(_LEAST, _GROWTH * len(expected) ** 0.25)
    group = _pool(expected, stratum, least)
    counts = np.bincount(group, weights=observed)
    means = np.bincount(group, weights=expected)
    totals = np.bincount(stratum, weights=expected)
    totals = totals[totals > 0]
    freedom = len(means) - len(totals)
    if freedom <= 0:
        return Fit(0.0, 0, 1.0)
    seen = counts > 0
    statistic = 2.0 * float(counts[seen] @ np.log(counts[seen] / means[seen]))
    williams = 1.0 + float((1.0 / means).sum() - (1.0 / totals).sum()) / (6.0 * freedom)
    return Fit(statistic / williams, freedom, _chi_square_tail(statistic / williams, freedom))


def _chi_square_tail(statistic: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, max(statistic, 0.0)))


def _pool(expected: FloatArray, stratum: IntArray, least: float) -> IntArray:
    """Group numbers (m,) 0, 1, … such that every group expects at least `least`, or is its whole stratum.

    Cells above `least` stay alone. The others are cut, in their order within a stratum, where their running
    sum passes a multiple of 2·least, which leaves at least `least` in every group but the last of a stratum.
    """
    label = np.arange(len(expected))
    small = np.flatnonzero(expected < least)
    if len(small):
        small = small[np.argsort(stratum[small], kind="stable")]
        begins, first = _runs(stratum[small])
        total = np.cumsum(expected[small])
        before = total - expected[small] - (total - expected[small])[begins][first]
        label[small] = small[_starts(first, np.floor(before / (2 * least)))]
        _merge_rest(label, expected, stratum, least)
    return np.unique(label, return_inverse=True)[1]


def _merge_rest(label: IntArray, expected: FloatArray, stratum: IntArray, least: float) -> None:
    """Join each group that still expects too little, one a stratum at most, to the smallest other there."""
    groups, member = np.unique(label, return_inverse=True)
    mass = np.bincount(member, weights=expected)
    owner = stratum[groups]
    # Groups by stratum, then by mass: a group that is too light comes first, the one to join it right after.
    order = np.lexsort((mass, owner))
    light = np.flatnonzero((mass[order][:-1] < least) & (owner[order][:-1] == owner[order][1:]))
    target = groups.copy()
    target[order[light]] = groups[order[light + 1]]
    label[:] = target[member]


def _runs(values: IntArray) -> tuple[IntArray, IntArray]:
    """Where each run of equal values begins, and the run that each value belongs to."""
    new = np.append(True, values[1:] != values[:-1])
    return np.flatnonzero(new), np.cumsum(new) - 1


def _starts(run: IntArray, piece: FloatArray) -> IntArray:
    """The first position of the (run, piece) that each position belongs to."""
    new = np.append(True, (run[1:] != run[:-1]) | (piece[1:] != piece[:-1]))
    position: IntArray = np.flatnonzero(new)[np.cumsum(new) - 1]
    return position
