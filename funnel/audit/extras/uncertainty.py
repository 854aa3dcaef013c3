"""How large an uncertainty set has to be for its confidence ([RLDP] section III, equation 9).

The kernel shows robust LDP over the set that the manifest names. That the truth is in such a set with a confidence is
statistics, true of large tables: B = ln(1 + q/n) at order 2, else αq/2n, q the quantile of χ² with a degree of freedom
less than S x U has cells.
"""

from __future__ import annotations

import math

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.noise import noisy, width
from funnel.audit.kernel.records import Joint
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, counted
from funnel.format.counts import Private
from funnel.format.manifest import NAME

CLAIM = "uncertainty"
TITLE = "the set of distributions protected against is as large as its confidence asks for, if records are a sample"
PRIVATE = True
_ROUNDING = 1e-9
"""Relative: by how much a radius may fall short, for a quantile is a float."""


def check(opened: Release) -> str | Unchecked:
    """The radius is the one needed, or larger. Raises Broken."""
    asked = opened.manifest.parameters
    if opened.manifest.notion != "rldp" or asked.confidence is None or asked.radius is None or asked.order is None:
        return Unchecked(NOT_CLAIMED + "no confidence is stated")
    cells, least = needed(opened, opened.joint, asked.confidence, asked.order)
    if not asked.radius >= least * (1 - _ROUNDING):
        raise Broken(NAME, "the uncertainty set is too small for its confidence", least, asked.radius)
    return f"radius {asked.radius:.6g} nats, {least:.6g} needed for {asked.confidence:g} over {counted(cells, 'cell')}"


def needed(opened: Release, joint: Joint, confidence: float, order: float) -> tuple[int, float]:
    """The cells of S x U, and the radius in nats that a confidence asks for at some counts of them. Raises Broken."""
    private = opened.counts.private
    secret, values = joint.alphabets[0], joint.alphabets[1]
    named = secret.columns if set(secret.columns) <= set(values.columns) else ()
    own = [values.columns.index(name) for name in named]
    rest = {tuple(part for place, part in enumerate(one) if place not in own) for one in values.values}
    cells, chance = len(secret.values) * len(rest), 1 - confidence
    if private is not None and order != 2:
        raise Broken(NAME, "what noise adds is known at order 2 alone", 2, order)
    if private is not None:
        return cells, despite_noise(private, confidence)
    spread = _quantile(cells - 1, chance, confidence) / joint.rows if cells > 1 else 0.0
    return cells, math.log1p(spread) if order == 2 else order / 2 * spread


def despite_noise(private: Private, confidence: float) -> float:
    """A radius of order 2 that holds the truth P where noisy counts below 2t were taken to be zero.

    In the norm |v|² = Σ v²/P: the estimate without noise is within r of P, r² = q/n at half the chance; noise moves
    each kept cell by what t allows, over the least P that r leaves it (the lower root of x² - (2p + r²)x + p²); and the
    cells that were dropped weigh P(Z) <= P̂(Z) + r √P(Z).
    """
    _, true, noise = noisy(private)
    wide, rows = width(private, confidence), int(true.sum())
    found = true + noise
    stay = found >= 2 * wide
    half = (1 - confidence) / 2
    square = _quantile(len(found) - 1, half, 1 - half) / rows if len(found) > 1 else 0.0
    low, high, share = (
        (found[stay] - wide) / rows,
        (found[stay] + wide) / rows,
        found[stay] / found[stay].sum(),
    )
    least = low + square / 2 - np.sqrt(square * square / 4 + square * low)
    if not stay.any() or (least <= 0).any():
        return math.inf
    moved = math.sqrt((np.maximum(abs(share - low), abs(share - high)) ** 2 / least).sum())
    dropped = min(float(np.maximum(found[~stay] + wide, 0).sum()) / rows, 1.0)
    gone = (math.sqrt(square) + math.sqrt(square + 4 * dropped)) / 2
    return math.log1p((math.sqrt(square) + moved) ** 2 + min(gone * gone, 1.0))


def _quantile(degrees: int, above: float, below: float) -> float:
    """What χ² with so many degrees of freedom exceeds with one chance, by whichever of both has its digits."""
    from scipy.special import chdtri, gammaincinv

    return float(chdtri(degrees, above) if above < below else 2 * gammaincinv(degrees / 2, below))
