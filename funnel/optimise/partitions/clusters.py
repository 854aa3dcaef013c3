"""Clusters of values in one or several tables: what they tell of S, and what joining them costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.columns.chords import xlogx

_LEAST = 1e-300
"""Added before a logarithm, so that 0 ln 0 = 0."""


class Clusters:
    """Masses of b clusters of the values x of k tables N_k[s, x] (c_k, a), and the information they carry in nats.

    `cells` (Σ c_k, b) and `sums` (k, b) are shares of all records, `told` (k, b) is Σ_s p ln p - p_y ln p_y of each,
    `mass` (b,) the share of each cluster in all tables together, `public` I(X;Y) under that, `secret` (k,) I(S;Y) in
    each table. Raises ValueError where a value or a table has no records.
    """

    def __init__(self, tables: Sequence[npt.ArrayLike], owner: IntArray | None = None) -> None:
        arrays = [np.asarray(table, float) for table in tables]
        counts = np.vstack(arrays)
        if not (counts.any(axis=0).all() and all(array.any() for array in arrays)):
            raise ValueError("some value, or some table, has no records")
        self._starts = np.cumsum([0, *(len(array) for array in arrays[:-1])])
        self.values = counts / counts.sum()
        self.cells = self.values.copy() if owner is None else _gathered(self.values, owner)
        self.sums = self._by_table(self.cells)
        self.told = self.tells(self.cells)
        self.mass = self.sums.sum(axis=0)
        self.weights = self.sums.sum(axis=1)
        self.public = float(-xlogx(self.mass).sum())
        self.secret = self._secret()

    def tells(self, cells: FloatArray) -> FloatArray:
        """Σ_s p ln p - p_y ln p_y of clusters (Σ c_k, m) in each table, (k, m)."""
        return np.asarray(self._by_table(xlogx(cells)) - xlogx(self._by_table(cells)))

    def drops(self, one: int, others: IntArray) -> tuple[FloatArray, FloatArray]:
        """How much joining cluster `one` with each of `others` (m,) lowers I(S;Y) and I(X;Y) ([PF] Proposition 1).

        The first (k, m) in each table, times the table's share of all records; the second (m,).
        """
        joined = self.tells(self.cells[:, [one]] + self.cells[:, others])
        secret = self.told[:, [one]] + self.told[:, others] - joined
        return np.maximum(secret, 0.0), confusion(self.mass[one], self.mass[others])

    def join(self, kept: int, gone: int) -> None:
        """Put cluster `gone` into `kept`; it stays behind empty."""
        secret, public = self.drops(kept, np.array([gone]))
        self.public -= float(public[0])
        self.secret = np.maximum(self.secret - secret[:, 0] / self.weights, 0.0)
        for part in (self.cells, self.sums, self.mass):
            part[..., kept] += part[..., gone]
            part[..., gone] = 0
        self.told[:, [kept]] = self.tells(self.cells[:, [kept]])
        self.told[:, gone] = 0

    def _by_table(self, cells: FloatArray) -> FloatArray:
        """Sums over s in each table, (k, m)."""
        if len(self._starts) == 1:
            return np.asarray(cells.sum(axis=0, keepdims=True))
        return np.asarray(np.add.reduceat(cells, self._starts, axis=0))

    def _secret(self) -> FloatArray:
        """I(S;Y) in each table, (k,)."""
        whole = self.tells(self.cells.sum(axis=1, keepdims=True))[:, 0]
        told: FloatArray = (self.told.sum(axis=1) - whole) / self.weights
        return np.maximum(told, 0.0)


def confusion(one: npt.ArrayLike, others: npt.ArrayLike) -> FloatArray:
    """What joining clusters of these masses takes off I(X;Y): the entropy of which of the two, times their mass."""
    p, q = np.asarray(one, float), np.asarray(others, float)
    both = np.maximum(p + q, _LEAST)
    return np.asarray(-both * (xlogx(p / both) + xlogx(q / both)))


def _gathered(values: FloatArray, owner: IntArray) -> FloatArray:
    """Columns (r, a) added up by owner (a,), (r, b)."""
    gathered = np.zeros((owner.max() + 1, len(values)))
    np.add.at(gathered, owner, values.T)
    return np.ascontiguousarray(gathered.T)
