"""Small linear programs over boxes of the simplex, many at a time, by the dual simplex method in numpy.

max g·w subject to Σ w = 1, l <= w <= u and rows A w <= 0, for N boxes that share A. A solver called box by box spends
more on the calls than on the arithmetic. Each box has a basis of a constraints, one of them Σ w = 1, the others rows or
bounds, and its inverse. As long as multipliers of rows are not negative a basis bounds the optimum, so it may end at
any time. Bounds let the step be long: it goes on where a multiplier changes sign and the bound becomes the other one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray

BOUND, _SUM, NONE = -1, -2, -3
"""What a place of a basis holds that is no row: a bound, Σ w = 1; and a basis that there is not."""
_TINY = 1e-9
"""By how much constraints may be missed, and pivots that are taken for zero."""
_STEPS = 80
"""Pivots per program at most."""
_ALONE = 200_000
"""Multiplications up to which BLAS works alone."""
_LARGEST = 1e7
"""Entries of an inverse from which it is not begun with."""


@dataclass(frozen=True, eq=False)
class Bases:
    """Per box and place, the row or what else it holds (N, a), and the coordinate where it is a bound (N, a)."""

    kind: IntArray
    which: IntArray

    @classmethod
    def none(cls, count: int, size: int) -> Bases:
        """Of boxes that begin anew."""
        return cls(np.full((count, size), NONE), np.zeros((count, size), np.int64))

    def take(self, boxes: IntArray) -> Bases:
        """Those of some boxes."""
        return Bases(self.kind[boxes], self.which[boxes])


@dataclass(frozen=True, eq=False)
class Answers:
    """Per box a point (N, a), the basis where it ended, the multipliers of its places (N, a), and which are empty (N,).

    Where a box is `empty`, no w of it meets the rows combined by the multipliers.
    """

    point: FloatArray
    bases: Bases
    multipliers: FloatArray
    empty: npt.NDArray[np.bool_]

    @property
    def weights(self) -> FloatArray:
        """Multipliers of rows, not negative, and zero at other places."""
        return np.where(self.bases.kind >= 0, np.maximum(self.multipliers, 0.0), 0.0)


def best_in_boxes(
    rows: FloatArray,
    live: IntArray,
    slope: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    *,
    enough: FloatArray,
    bases: Bases,
) -> Answers:
    """Per box the best point that keeps those of the rows (M, a) that are `live`; begun from its basis if that serves.

    `slope`, `lower`, `upper` are (N, a); rows have length one. It ends where the optimum is at most `enough` (N,).
    """
    work = _Tableaux.begun(rows, slope, lower, upper, enough, bases)
    size = slope.shape
    known = Answers(np.zeros(size), Bases.none(*size), np.zeros(size), np.zeros(len(slope), np.bool_))
    candidates = np.ascontiguousarray(rows[live].T)
    for step in range(_STEPS):
        point = work.points()
        entering = _Entering.of(work, point, rows, live, candidates)
        done = (entering.missed <= _TINY) | (np.einsum("na,na->n", work.slope, point) <= work.enough)
        done |= step == _STEPS - 1
        place, empty = work.leaving(entering)
        empty &= ~done
        work.note(known, done, empty, point, entering)
        go = np.flatnonzero(~(done | empty))
        if not len(go):
            break
        if len(go) < len(done):
            work, entering, place = _some(work, go), _some(entering, go), place[go]
        work.pivot(entering, place)
    return known


def filled(
    rest: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.intp]]:
    """max rest·w over boxes and Σ w = 1 (N,), the multipliers of Σ w = 1 (N,), the coordinates that are filled last."""
    order = np.argsort(-rest, axis=1)
    width, sorted_rest = np.take_along_axis(upper - lower, order, 1), np.take_along_axis(rest, order, 1)
    room, own = 1.0 - lower.sum(axis=1), np.arange(len(rest))
    last = np.minimum((width.cumsum(axis=1) < room[:, None]).sum(axis=1), rest.shape[1] - 1)
    level = sorted_rest[own, last]
    over = (np.maximum(sorted_rest - level[:, None], 0.0) * width).sum(axis=1)
    return (rest * lower).sum(axis=1) + level * room + over, level, order[own, last]


def product(points: FloatArray, candidates: FloatArray) -> FloatArray:
    """points (n, a) @ candidates (a, m), in parts so small that BLAS starts no threads, as waiting costs more."""
    step = max(_ALONE // max(candidates.size, 1), 1)
    if step >= len(points):
        return points @ candidates
    return np.concatenate(
        [points[start : start + step] @ candidates for start in range(0, len(points), step)]
    )


@dataclass(eq=False)
class _Entering:
    """Per box the constraint missed the most, by how much, its normal, and that in terms of the basis."""

    missed: FloatArray
    kind: IntArray
    which: IntArray
    sign: FloatArray
    pull: FloatArray

    @classmethod
    def of(
        cls, work: _Tableaux, point: FloatArray, rows: FloatArray, live: IntArray, candidates: FloatArray
    ) -> _Entering:
        """Found for the points (n, a)."""
        own = np.arange(len(point))
        excess = product(point, candidates)
        first = excess.argmax(axis=1)
        beyond = np.maximum(point - work.upper, work.lower - point)
        which = beyond.argmax(axis=1)
        bound = beyond[own, which] > excess[own, first]
        sign = np.where(bound & (point[own, which] < work.lower[own, which]), -1.0, 1.0)
        normal = np.where(bound[:, None], 0.0, rows[live[first]])
        normal[own[bound], which[bound]] = sign[bound]
        return cls(
            np.where(bound, beyond[own, which], excess[own, first]),
            np.where(bound, BOUND, live[first]),
            np.where(bound, which, 0),
            sign,
            np.einsum("na,nab->nb", normal, work.inverse),
        )


@dataclass(eq=False)
class _Tableaux:
    """Bases (n, a), their inverses (n, a, a), multipliers (n, a), which bounds are upper ones; the programs; whose."""

    inverse: FloatArray
    kind: IntArray
    which: IntArray
    multipliers: FloatArray
    high: npt.NDArray[np.bool_]
    slope: FloatArray
    lower: FloatArray
    upper: FloatArray
    enough: FloatArray
    owner: npt.NDArray[np.intp]

    @classmethod
    def begun(
        cls,
        rows: FloatArray,
        slope: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        enough: FloatArray,
        bases: Bases,
    ) -> _Tableaux:
        """From the bases given where their multipliers of rows are not negative, else from bounds alone."""
        count, size = slope.shape
        own, last = np.arange(count), filled(slope, lower, upper)[2]
        inverse = np.broadcast_to(np.eye(size), (count, size, size)).copy()
        inverse[own, last, :] = -1.0
        inverse[own, last, last] = 1.0
        kind, which = np.full((count, size), BOUND), np.broadcast_to(np.arange(size), (count, size)).copy()
        kind[own, last] = _SUM
        have = np.flatnonzero(bases.kind[:, 0] != NONE)
        if len(have):
            again, serves = _inverted(rows, bases.take(have), slope[have])
            kept = have[serves]
            inverse[kept], kind[kept], which[kept] = again[serves], bases.kind[kept], bases.which[kept]
        multipliers = np.einsum("na,nab->nb", slope, inverse)
        return cls(inverse, kind, which, multipliers, multipliers > 0, slope, lower, upper, enough, own)

    def points(self) -> FloatArray:
        """Where the constraints of each basis meet (n, a)."""
        upper, lower = (np.take_along_axis(side, self.which, 1) for side in (self.upper, self.lower))
        sides = np.where(
            self.kind == BOUND, np.where(self.high, upper, lower), (self.kind == _SUM).astype(float)
        )
        return np.asarray(np.einsum("nab,nb->na", self.inverse, sides))

    def leaving(self, entering: _Entering) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Which place each entering constraint takes (n,), and where none stops it, so that the box is empty (n,)."""
        pull, row, bound = entering.pull, self.kind >= 0, self.kind == BOUND
        real = np.abs(pull) > _TINY
        stops = real & ((row & (pull > 0)) | (bound & ((pull > 0) == self.high)))
        ratio = np.where(stops, np.maximum(self.multipliers / np.where(real, pull, 1.0), 0.0), np.inf)
        width = np.take_along_axis(self.upper - self.lower, self.which, 1)
        fall = np.where(stops, np.where(row, np.inf, np.abs(pull) * width), 0.0)
        order = np.argsort(ratio, axis=1)
        stopped = np.take_along_axis(fall, order, 1).cumsum(axis=1) < entering.missed[:, None]
        last = stopped.sum(axis=1)
        own = np.arange(len(order))
        place = order[own, np.minimum(last, order.shape[1] - 1)]
        return place, (last >= order.shape[1]) | ~np.isfinite(ratio[own, place])

    def note(
        self,
        known: Answers,
        done: npt.NDArray[np.bool_],
        empty: npt.NDArray[np.bool_],
        point: FloatArray,
        entering: _Entering,
    ) -> None:
        """Write down what has ended. In the place of Σ w = 1, an empty box has the constraint that makes it so."""
        some = np.flatnonzero(done | empty)
        owner, place = self.owner[some], (self.kind[some] == _SUM).argmax(axis=1)
        known.point[owner], known.empty[owner] = point[some], empty[some]
        known.bases.kind[owner], known.bases.which[owner] = self.kind[some], self.which[some]
        known.multipliers[owner] = np.where(empty[some, None], -entering.pull[some], self.multipliers[some])
        gone = empty[some]
        known.bases.kind[owner[gone], place[gone]] = entering.kind[some][gone]
        known.multipliers[owner[gone], place[gone]] = 1.0

    def pivot(self, entering: _Entering, place: npt.NDArray[np.intp]) -> None:
        """Let each entering constraint take its place."""
        own, pull = np.arange(len(place)), entering.pull
        step = np.maximum(self.multipliers[own, place] / pull[own, place], 0.0)
        self.multipliers = self.multipliers - step[:, None] * pull
        column = self.inverse[own, :, place] / pull[own, place][:, None]
        self.inverse = self.inverse - column[:, :, None] * pull[:, None, :]
        # A lower bound enters as the coordinate itself, with the other sign.
        self.inverse[own, :, place] = column * entering.sign[:, None]
        self.multipliers[own, place] = step * entering.sign
        self.kind[own, place], self.which[own, place] = entering.kind, entering.which
        self.high = self.multipliers > 0
        self.high[own, place] = entering.sign > 0


def _inverted(rows: FloatArray, bases: Bases, slope: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Inverses of bases (k, a, a), and which of these can be begun with."""
    row, bound = bases.kind >= 0, bases.kind == BOUND
    matrix = np.where(
        row[:, :, None], rows[np.maximum(bases.kind, 0)], 1.0 * (bases.kind == _SUM)[:, :, None]
    )
    box, place = np.nonzero(bound)
    matrix[box, place, bases.which[box, place]] = 1.0
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return matrix, np.zeros(len(matrix), np.bool_)
    multipliers = np.einsum("na,nab->nb", slope, inverse)
    good = (~row | (multipliers >= -_TINY)).all(axis=1) & (np.abs(inverse).max(axis=(1, 2)) < _LARGEST)
    return inverse, np.asarray(good)


Held = TypeVar("Held", _Tableaux, _Entering)


def _some(held: Held, which: npt.NDArray[np.intp]) -> Held:
    """The same for some boxes only."""
    return type(held)(*(getattr(held, one.name)[which] for one in fields(held)))
