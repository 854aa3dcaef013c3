"""The numbers that show a bound on robust leakage, written down for a checker that does not search.

For every output y and two secrets s ≠ s' the inequality P(y|s) <= K P(y|s') over F = {P : D_α(P̂||P) <= B} follows from
the ends of the two rows of weights alone, of which nothing is written; or from two shifts and two tangents
(`certificate` (*)). Where two secrets may each have the whole radius, the tangents touch there.
"""

from __future__ import annotations

from collections.abc import Container
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.data.joint import IntArray
from funnel.format.robust import Pair, RobustFile
from funnel.measure.certificate import Numbers
from funnel.measure.extremes import whole
from funnel.measure.robust import Search

Triple = tuple[int, int, int]
"""An output y, and secrets s and s'."""


def robust_certificate(
    table: IntArray,
    weights: IntArray,
    possible: npt.NDArray[np.bool_],
    radius: Fraction,
    order: Fraction,
    bound: Fraction,
) -> RobustFile:
    """What shows P(y|s) <= bound P(y|s') for all y, s ≠ s' and P of F; arguments as for `robust_leakage`.

    It does show it where `robust_leakage` is at most `bound`. Of a radius of zero nothing is written: the
    estimate alone is a sum. ValueError as for `Ball`.
    """
    if radius == 0:
        return RobustFile("funnel-robust/1", ())
    outputs = np.flatnonzero(weights.any(axis=(1, 2)))
    search = Search.of(table, weights[outputs], possible, radius, order)
    found = _together(search, float(bound))
    found |= _apart(search, float(bound), found.keys())
    pairs = (Pair(int(outputs[y]), s, other, *vars(one).values()) for (y, s, other), one in sorted(found.items()))
    return RobustFile("funnel-robust/1", tuple(pairs))


def _together(search: Search, bound: float) -> dict[Triple, Numbers]:
    """Numbers for the triples that take both secrets together; none below order one half."""
    found: dict[Triple, Numbers] = {}
    for pairs in search.candidates(bound) if 2 * search.ball.order >= 1 else ():
        places = pairs.y, pairs.first, pairs.second
        for index in np.flatnonzero(search.outer[places] > bound).tolist():
            y, s, other = (int(place[index]) for place in places)
            found[y, s, other] = Numbers.of(search.ball, search.rows, pairs, index)
    return found


def _apart(search: Search, bound: float, covered: Container[Triple]) -> dict[Triple, Numbers]:
    """Numbers for all others that the ends of the rows may not show: each secret spends all it can."""
    ball, rows = search.ball, search.rows
    needed = rows.peak[:, :, None] > bound * (1 - 2.0**-50) * rows.base[:, None, :]
    (above, _), (below, _) = whole(ball, rows)
    above, below = above * rows.scale[:, None], below * rows.scale[:, None]
    most = np.minimum(ball.spendable, -(1 - 2.0**-40) / ball.exponent if ball.exponent < 0 else np.inf).tolist()
    triples = (tuple(one) for one in np.argwhere(needed & ~np.eye(len(ball.table), dtype=bool)).tolist())
    return {
        (y, s, other): Numbers(float(above[y, s]), float(below[y, other]), most[s], most[other])
        for y, s, other in triples
        if (y, s, other) not in covered
    }
