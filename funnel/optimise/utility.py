"""What an output value is worth: the information μ of its row, in nats.

μ is convex and homogeneous, μ(t·v) = t·μ(v) for t >= 0, so an optimal protocol uses extreme rays only
("Mechanisms for Robust Local Differential Privacy" [RLDP], Theorem 3, after Kairouz, Oh and Viswanath).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from funnel.data.joint import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK = 64
"""Rows of a dense protocol that are looked at together."""


def information(rays: csr_array, prior: FloatArray) -> FloatArray:
    """μ(v) = Σ_x p_x v_x ln(v_x / Σ_x' p_x' v_x') in nats; summed over a protocol's rows it is I(X;Y)."""
    mass = rays.data * prior[rays.indices]
    terms = mass * np.log(np.where(rays.data > 0, rays.data, 1.0))
    owner = np.repeat(np.arange(rays.shape[0]), np.diff(rays.indptr))
    inner = np.bincount(owner, terms, rays.shape[0])
    total = np.bincount(owner, mass, rays.shape[0])
    return np.asarray(inner - total * np.log(np.where(total > 0, total, 1.0)))


def information_slope(matrix: FloatArray, prior: FloatArray) -> FloatArray:
    """The gradient of μ at each row of a protocol (b, a): p_x ln(v_x / Σ_x' p_x' v_x'), zero where v_x is.

    μ is convex and homogeneous, so for any row w with the same zeros μ(w) >= slope·w.
    """
    chance = matrix @ prior
    ratio = np.divide(matrix, chance[:, None], out=np.ones_like(matrix), where=matrix > 0)
    return np.asarray(prior * np.log(ratio))


def worth(matrix: FloatArray | IntArray, prior: FloatArray) -> float:
    """I(X;Y) of a whole protocol (b, a) of any scale: the sum of μ over its rows."""
    return sum(_information(matrix[start : start + _BLOCK], prior) for start in range(0, len(matrix), _BLOCK))


def _information(rows: FloatArray | IntArray, prior: FloatArray) -> float:
    """Σ μ over rows (k, a) that may have no zeros: a few at a time, so that they stay close to the processor."""
    chance = rows @ prior
    inner = (rows * np.log(np.where(rows > 0, rows, 1.0))) @ prior
    return float(inner.sum() - chance @ np.log(np.where(chance > 0, chance, 1.0)))
