"""Why nothing is worth more, or costs less: prices, and a branch and bound that others can go through again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Proof:
    """Why Σ w ln w - linear·w <= peak for all w >= 0 with Σ w = 1 and inequalities @ w <= 0 (rows of a protocol).

    `inequalities` (m, a) are on w = prior·v; the last `equalities` of them are equations, whose multipliers have
    any sign. Boxes come parents first. Box 0 is [0, 1]^a; box k > 0 is the part of box `parent[k]`, after that has
    been shrunk, where coordinate `which[k]` is at most `at[k]` (`upper[k]` false) or at least (true). With chords of
    t ln t over the box and the multipliers y >= 0 of box k (sparse: `starts` (n + 1,), `index`, `value`),
    `level[k]` of Σ w = 1, the price in the box is at most Σ_x base_x + (chord - linear - y·inequalities)·w, which is
    linear: so the box can be shrunk to where that may exceed `peak`, and is closed where it nowhere does.
    A box has two children or none.
    """

    inequalities: FloatArray
    equalities: int
    parent: IntArray
    which: IntArray
    at: FloatArray
    upper: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    starts: IntArray
    index: IntArray
    value: FloatArray
    level: FloatArray

    @property
    def boxes(self) -> int:
        """How many boxes there are."""
        return len(self.parent)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Why no protocol of the cone is worth more than `bound` (nats).

    With λ = `duals` (a,), a row v with prior·v = 1 is worth at most λ·v + `peak`, as the `nodes` boxes of a
    branch and bound prove; the multipliers of a protocol's rows sum to one, so bound = Σ λ + peak.
    `tolerance` is the peak that was aimed for, `proof` the boxes themselves where they were kept.
    """

    duals: FloatArray
    peak: float
    tolerance: float
    nodes: int
    proof: Proof | None = None

    @classmethod
    def of_entropy(cls, prior: FloatArray, tolerance: float) -> Certificate:
        """H(X) bounds every protocol: no row on w is worth more than -w·ln p."""
        return cls(-np.log(prior) * prior, 0.0, tolerance, 0)

    @property
    def bound(self) -> float:
        """Σ λ + peak."""
        return float(self.duals.sum()) + self.peak


@dataclass(frozen=True, eq=False)
class Prices:
    """Why no protocol costs less, whose rows keep inequalities f·v <= 0 and whose totals are T_y = Σ_x p_x Q(y|x).

    `totals` (a,) are the prices of the T_y; row `owner[k]` of the protocol keeps `facets[k]` (k, a), at the price
    `multipliers[k]` >= 0, or of any sign where that is an equation. For any such prices
    Σ p_x d(y, x) Q(y|x) >= Σ_x p_x α_x + Σ_y totals_y T_y, where α_x is the least of
    d(y, x) - totals_y + Σ_{k: owner k = y} multipliers_k f_kx / p_x over all y.
    """

    totals: FloatArray
    owner: IntArray
    facets: FloatArray
    multipliers: FloatArray

    def of_room(self) -> float:
        """What it costs, at first, if every row stays |f| inside of each of its inequalities."""
        return float(self.multipliers @ np.linalg.norm(self.facets, axis=1))
