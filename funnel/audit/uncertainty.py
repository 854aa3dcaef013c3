"""The distributions that an estimate leaves possible: F = {P : D_α(P̂ || P) <= B}, seen from each secret value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.audit.evidence import Evidence, Noisy
from funnel.audit.fields import IntArray
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken
from funnel.audit.logarithms import exp_above, power_above, power_below
from funnel.audit.manifest import Manifest

SENSITIVITY = 2
"""Counts that change, by one each, when one of a given number of records takes other values."""
_ROUNDING = 1e-9
"""Relative: by how much a radius may fall short, for a quantile is a float."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What one secret value s says: inputs that can occur with it (m,), its records of each (m,), and bounds.

    `secret` is its code, `share` is P̂_s; `shrink` is a rational at or below e^-B_s, B_s the radius of the
    projection of F to P_{X|s}.
    """

    secret: int
    places: IntArray
    counts: IntArray
    share: Fraction
    shrink: Fraction

    @property
    def records(self) -> int:
        """Records with this secret value."""
        return int(self.counts.sum())

    @property
    def chances(self) -> npt.NDArray[np.float64]:
        """P̂_{X|s}."""
        return np.asarray(self.counts / self.counts.sum(), np.float64)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """F around the counts of one block, its order α and radius B in nats."""

    order: Fraction
    radius: Fraction
    seen: tuple[Seen, ...]


def around(evidence: Evidence, manifest: Manifest) -> Uncertainty:
    """The set that the manifest names, around the counts of the evidence. Raises AuditFailure."""
    order, radius = manifest.parameters.order, manifest.parameters.radius
    if order is None or radius is None or len(evidence.blocks) != 1:
        raise broken(
            "release.json",
            "an uncertainty set is about whole records",
            expected="one block of all public columns, an order and a radius",
            found=f"{len(evidence.blocks)} blocks",
        )
    counts, can = evidence.dense(), _can_occur(evidence)
    seen = []
    for s, (row, allowed) in enumerate(zip(counts, can, strict=True)):
        places = np.flatnonzero(allowed | (row > 0))
        if row.any():
            share = Fraction(int(row.sum()), evidence.rows)
            seen.append(Seen(s, places, row[places], share, _shrink(order, radius, share)))
    return Uncertainty(order, radius, tuple(seen))


def _shrink(order: Fraction, radius: Fraction, share: Fraction) -> Fraction:
    """At or below e^-B_s ([RLDP] Theorem 1): e^B_s = ((e^((α-1)B/α) - 1 + p)/p)^(α/(α-1)), or e^(B/p) at α = 1.

    Zero where a distribution of any shape is within reach, which orders below one allow.
    """
    if radius == 0:
        return Fraction(1)
    if order == 1:
        return 1 / exp_above(radius / share)
    power = order / (order - 1)
    if order > 1:
        base = (exp_above(radius / power) - 1 + share) / share
        return 1 / power_above(base, power)
    base = (1 / exp_above(-radius / power) - 1 + share) / share
    return power_below(base, -power) if base > 0 else Fraction(0)


def _can_occur(evidence: Evidence) -> npt.NDArray[np.bool_]:
    """Which inputs can occur with which secret value (c, a): its own only, where x tells s."""
    told = _told(evidence)
    if told is None:
        return np.ones((len(evidence.secret.values), len(evidence.blocks[0].values)), bool)
    return np.array([[value == one for one, _ in told] for value in evidence.secret.values], bool)


def _told(evidence: Evidence) -> list[tuple[tuple[str | None, ...], tuple[str | None, ...]]] | None:
    """Every input as (s, u) where the secret is released too, else None."""
    columns, hidden = evidence.blocks[0].columns, evidence.secret.columns
    if not set(hidden) <= set(columns):
        return None
    own = [columns.index(name) for name in hidden]
    rest = [place for place in range(len(columns)) if place not in own]
    return [
        (tuple(value[place] for place in own), tuple(value[place] for place in rest))
        for value in evidence.blocks[0].values
    ]


def confident(evidence: Evidence, manifest: Manifest) -> str | Unchecked:
    """The radius is at least what the confidence asks for ([RLDP] section III). Raises AuditFailure.

    B = ln(1 + q/n) at order 2, else αq/2n, q the quantile of χ² with a degree of freedom less than S x X has cells.
    """
    if manifest.notion != "rldp":
        return Unchecked(NOT_CLAIMED + "the notion is about the estimate alone")
    asked, radius = manifest.parameters.confidence, manifest.parameters.radius
    if asked is None or radius is None:
        return Unchecked(NOT_CLAIMED + "the policy names a radius, and no confidence")
    cells = _cells(evidence)
    if evidence.noisy is None:
        needed = _needed(float(asked), cells - 1, evidence.rows, float(manifest.parameters.order or 0))
    else:
        needed = _despite_noise(evidence.noisy, float(asked))
    if float(radius) < needed * (1 - _ROUNDING):
        raise broken(
            "release.json",
            "the uncertainty set is too small for the confidence stated",
            expected=f"a radius of at least {needed:.12g} nats",
            found=float(radius),
        )
    return f"radius {float(radius):.6g} nats, {needed:.6g} needed for {float(asked):g} over {cells} cells"


def _cells(evidence: Evidence) -> int:
    """Cells of S x X, or of S x U where x = (s, u)."""
    c, told = len(evidence.secret.values), _told(evidence)
    if told is None:
        return c * len(evidence.blocks[0].values)
    return c * len({rest for _, rest in told})


def width(noisy: Noisy, confidence: float) -> int:
    """t: no noise of any cell is larger in size, but with half the chance that the confidence leaves.

    P(|Z| > t) < 2e^(-(t+1) rate) for each cell.
    """
    chance = (1 - confidence) / 2
    return math.ceil(math.log(2 * len(noisy.noise) / chance) / float(noisy.epsilon / SENSITIVITY)) + 1


def _despite_noise(noisy: Noisy, confidence: float) -> float:
    """A radius that holds the truth where counts with noise below 2t were taken to be zero, at order 2.

    In the norm |v|² = Σ v²/P: the estimate without noise is within r of the truth, r² = q/n at half the chance; noise
    moves each kept cell by what t allows, over the least P that this leaves; and the cells that were dropped weigh
    P(Z), where P(Z) <= P̂(Z) + r √P(Z).
    """
    from scipy.stats import chi2

    wide, found = width(noisy, confidence), noisy.counted + noisy.noise
    stay, rows = found >= 2 * wide, int(noisy.counted.sum())
    if not stay.any():
        return math.inf
    square = float(chi2.isf((1 - confidence) / 2, len(found) - 1)) / rows if len(found) > 1 else 0.0
    moved = 0.0
    for count in found[stay].tolist():
        low, share = (count - wide) / rows, count / float(found[stay].sum())
        least = low + square / 2 - math.sqrt(square * square / 4 + square * low)
        if least <= 0:
            return math.inf
        moved += max(abs(share - low), abs(share - (count + wide) / rows)) ** 2 / least
    dropped = min(float(np.maximum(found[~stay] + wide, 0).sum()) / rows, 1.0)
    gone = (math.sqrt(square) + math.sqrt(square + 4 * dropped)) / 2
    return math.log1p((math.sqrt(square) + math.sqrt(moved)) ** 2 + min(gone * gone, 1.0))


def _needed(confidence: float, freedom: int, rows: int, order: float) -> float:
    from scipy.stats import chi2

    if freedom == 0:
        return 0.0
    spread = float(chi2.ppf(confidence, freedom)) / rows
    return float(np.log1p(spread)) if order == 2 else order / 2 * spread
