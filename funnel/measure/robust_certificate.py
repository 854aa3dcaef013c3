"""The numbers that show a bound on robust leakage, written down for a checker that does not search.

For every output y and two secrets s ≠ s' the inequality P(y|s) <= K P(y|s') over F = {P : D_α(P̂||P) <= B} follows from
the ends of the two rows of weights alone; or from a shift of each (`Single`: both secrets have the whole radius); or
from two shifts and two tangents (`Pair`: `certificate` (*), both have the radius together). The weakest that does is
written: most certificates are short.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.data.joint import IntArray
from funnel.format.robust import Pair, RobustFile, Single
from funnel.measure.certificate import Numbers
from funnel.measure.extremes import whole
from funnel.measure.robust import Search


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
        return RobustFile("funnel-robust/1", (), ())
    outputs = np.flatnonzero(weights.any(axis=(1, 2)))
    search = Search.of(table, weights[outputs], possible, radius, order)
    pairs, covered = _pairs(search, float(bound), outputs)
    return RobustFile("funnel-robust/1", _singles(search, float(bound), covered, outputs), pairs)


def _pairs(search: Search, bound: float, outputs: IntArray) -> tuple[tuple[Pair, ...], npt.NDArray[np.bool_]]:
    """The triples that take both secrets together, and which (b, c, c) these are: none below order one half."""
    covered = np.zeros(search.outer.shape, bool)
    if 2 * search.ball.order < 1:
        return (), covered
    found = []
    for pairs in search.candidates(bound):
        places = pairs.y, pairs.first, pairs.second
        for index in np.flatnonzero(search.outer[places] > bound).tolist():
            y, s, other = (int(place[index]) for place in places)
            shown = Numbers.of(search.ball, search.rows, pairs, index)
            found.append(
                Pair(int(outputs[y]), s, other, shown.above, shown.below, shown.spent, shown.other_spent)
            )
            covered[y, s, other] = True
    return tuple(sorted(found, key=lambda one: (one.output, one.secret, one.other))), covered


def _singles(
    search: Search, bound: float, covered: npt.NDArray[np.bool_], outputs: IntArray
) -> tuple[Single, ...]:
    """Shifts for what pairs do not cover, and the ends of the rows may not show."""
    rows = search.rows
    apart = rows.peak[:, :, None] > bound * (1 - 2.0**-50) * rows.base[:, None, :]
    needed = apart & ~covered & ~np.eye(len(search.ball.table), dtype=bool)
    (above, _), (below, _) = whole(search.ball, rows)
    scale = rows.scale[:, None]
    shifts = np.stack([above * scale, below * scale], axis=-1)
    used = np.argwhere(needed.any(axis=2) | needed.any(axis=1))
    return tuple(Single(int(outputs[y]), int(s), *shifts[y, s].tolist()) for y, s in used)
