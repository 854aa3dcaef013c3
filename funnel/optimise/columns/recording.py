"""Boxes of a branch and bound, written down as they come."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray
from funnel.optimise.certificate import Proof

MOST = 200_000
"""Boxes up to which a proof is kept; larger ones take too long to read again."""


class Record:
    """The boxes of one search: where each comes from, and the multipliers that bound it."""

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._cuts: list[tuple[int, int, float, bool]] = []
        self._levels: list[float] = []
        self._support: list[np.ndarray[tuple[int, ...], np.dtype[np.intp]]] = []
        self._values: list[FloatArray] = []

    def box(self, parent: int, which: int, at: float, *, upper: bool) -> int:
        """One more box, which nothing bounds yet; its number."""
        if len(self._cuts) >= MOST:
            self._kept = False
            self._support.clear()
            self._values.clear()
        self._cuts.append((parent, which, at, upper))
        if self._kept:
            self._levels.append(0.0)
            self._support.append(np.zeros(0, np.intp))
            self._values.append(np.zeros(0))
        return len(self._cuts) - 1

    def bounded(self, box: int, weight: FloatArray, level: float) -> None:
        """The multipliers (m,) of the inequalities and that of Σ w = 1 which bound a box."""
        support = np.flatnonzero(weight)
        self.sparse(box, support, weight[support], level)

    def sparse(self, box: int, index: npt.NDArray[np.intp], weight: FloatArray, level: float) -> None:
        """The same by the inequalities `index` and their multipliers (k,), of which those above zero are kept."""
        if self._kept:
            held = np.flatnonzero(weight)
            self._support[box], self._values[box], self._levels[box] = index[held], weight[held], level

    def proof(self, inequalities: FloatArray, equalities: int) -> Proof | None:
        """All of it; None where there are too many boxes, or none was to be kept."""
        if not self._kept:
            return None
        parent, which, at, upper = zip(*self._cuts, strict=True)
        return Proof(
            inequalities,
            equalities,
            np.array(parent),
            np.array(which),
            np.array(at),
            np.array(upper),
            np.cumsum([0, *map(len, self._support)]),
            np.concatenate(self._support),
            np.concatenate(self._values),
            np.array(self._levels),
        )
