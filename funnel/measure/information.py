"""Information measures in nats.

What unary encoding tells are sums over 2^a sets, done on a grid with a certified error. Let bits be 1 with chance q
each, whatever x. Seen against these, the chance of a set y given a distribution p of values is r0 + (r1 - r0) W with
W the probability of the values that y holds, r1 = present/q and r0 = (1 - present)/(1 - q). So both informations are
differences of means of ψ(t) = t ln t. Splitting each step of W between the two next grid points keeps every mean and
spreads W, so that the mean of the convex ψ can only rise: each is computed from above, and by at most ½ max ψ'' (r1 -
r0)² times the variance added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, Joint
from funnel.data.subsets import Subsets
from funnel.data.unary import AnyProtocol

_ERROR = 1e-9
"""Nats of error that a grid aims at."""
_FINEST = 1 << 20
_COARSEST = 1 << 10
_WORK = 1 << 30
"""Most steps of all grids together."""


def entropy(distribution: npt.ArrayLike) -> float:
    """H = -Σ p ln p of non-negative weights of any shape; they are normalised first."""
    p = np.asarray(distribution, float).ravel()
    p = p[p > 0] / p.sum()
    return abs(float(p @ np.log(p)))


def mutual_information(table: npt.ArrayLike | Subsets) -> float:
    """I between the first axis and all others of a table of non-negative weights; of sets, from above."""
    if isinstance(table, Subsets):
        found = secret_information(_occurring(table.counts), *table.protocol.shares)
        return min(found.high, entropy(table.counts.sum(axis=1)))
    flat = np.asarray(table, float).reshape(np.shape(table)[0], -1)
    total = entropy(flat.sum(axis=1)) + entropy(flat.sum(axis=0)) - entropy(flat)
    return max(total, 0.0)


def kept_information(prior: FloatArray, protocol: FloatArray) -> float:
    """I(X;Y) of a row matrix Q (b, a) under p_x (a,)."""
    return mutual_information((protocol * prior).T)


def public_entropy(joint: Joint) -> float:
    """H(X) of all blocks together."""
    _, code = np.unique(joint.cells[:, 1:], axis=0, return_inverse=True)
    return entropy(np.bincount(code.ravel(), weights=joint.counts))


def released_information(
    joint: Joint, protocols: Sequence[AnyProtocol], released: npt.ArrayLike | Subsets
) -> float:
    """I(X;Y) of the product channel, where `released` is its table T[s, y_1, …, y_k].

    I(X;Y) <= I(S,X;Y), with equality unless a mechanism reads S. Y's coordinates are independent given
    (s, x), so H(Y|S,X) = Σ_j H(Y_j|S,X_j); a protocol that reads S is first averaged over s given x.
    Of sets (unary encoding of a single block) it is a lower bound.
    """
    if isinstance(released, Subsets):
        prior = released.counts.sum(axis=0) / joint.rows
        return public_information(prior, *released.protocol.shares).low
    table = np.asarray(released, float)
    if any(protocol.reads_secret for protocol in protocols):
        return _averaged_information(joint, protocols, table)
    noise = sum(_noise(joint, index, protocol) for index, protocol in enumerate(protocols))
    return max(entropy(table.sum(axis=0)) - noise, 0.0)


def _occurring(counts: npt.ArrayLike) -> FloatArray:
    """N[s, x] / n, without secret values that have no records."""
    table = np.asarray(counts, float)
    return np.asarray(table[table.any(axis=1)] / table.sum())


def _noise(joint: Joint, index: int, protocol: AnyProtocol) -> float:
    """H(Y_j | X_j) of one block."""
    prior = joint.table(index).sum(axis=0) / joint.rows
    return float(sum(number * entropy(part) for number, part in protocol.noise(prior)))


def _averaged_information(joint: Joint, protocols: Sequence[AnyProtocol], table: FloatArray) -> float:
    """I(X;Y) where draws read s: P(y|x) = Σ_s P(s|x) Π_j Q_j(y_j|s,x_j), one value of X at a time."""
    matrices = [
        np.broadcast_to(p.probabilities(), (p.size, len(joint.secret), len(p.inputs))) for p in protocols
    ]
    if len(matrices) == 1:
        return mutual_information(np.einsum("sx,ysx->yx", joint.table(), matrices[0]))
    values, code = np.unique(joint.cells[:, 1:], axis=0, return_inverse=True)
    code = code.ravel()
    noise = 0.0
    for index in range(len(values)):
        mixture = np.zeros(table.shape[1:])
        for cell, count in zip(joint.cells[code == index], joint.counts[code == index], strict=True):
            mixture += count * _product([m[:, cell[0], x] for m, x in zip(matrices, cell[1:], strict=True)])
        noise += mixture.sum() / joint.rows * entropy(mixture)
    return max(entropy(table.sum(axis=0)) - noise, 0.0)


def _product(factors: Sequence[FloatArray]) -> FloatArray:
    """The outer product of the blocks' output distributions."""
    result = factors[0]
    for factor in factors[1:]:
        result = np.multiply.outer(result, factor)
    return result


@dataclass(frozen=True)
class Enclosure:
    """A number of nats between two proven bounds."""

    low: float
    high: float


def public_information(prior: FloatArray, present: float, absent: float) -> Enclosure:
    """I(X;Y) for P(x) = prior (a,), bits that are 1 with chance `present` at x and `absent` elsewhere."""
    inside, outside = present / absent, (1 - present) / (1 - absent)
    noise = present * math.log(inside) + (1 - present) * math.log(outside)
    above, error = _mean(prior, absent, inside, outside, _cells(len(prior), 1, absent, inside, outside))
    return Enclosure(max(noise - above, 0.0), max(noise - above + error, 0.0))


def secret_information(shares: FloatArray, present: float, absent: float) -> Enclosure:
    """I(S;Y) for the joint distribution `shares` (c, a) of S and X."""
    inside, outside = present / absent, (1 - present) / (1 - absent)
    cells = _cells(shares.shape[1], len(shares) + 1, absent, inside, outside)
    by_secret = shares.sum(axis=1)
    whole, spare = _mean(shares.sum(axis=0), absent, inside, outside, cells)
    parts = [_mean(row / row.sum(), absent, inside, outside, cells) for row in shares]
    above = float(by_secret @ np.array([mean for mean, _ in parts]))
    error = float(by_secret @ np.array([error for _, error in parts]))
    return Enclosure(max(above - error - whole, 0.0), max(above - whole + spare, 0.0))


def _mean(p: FloatArray, q: float, inside: float, outside: float, cells: int) -> tuple[float, float]:
    """E[ψ] from above, for values with probabilities p (a,), and how far above it may be."""
    gain, places = inside - outside, p[p > 0] * cells
    chances = np.zeros(cells + len(places) + 2)
    chances[0] = 1.0
    added = 0.0
    for place in places.tolist():
        step = int(place)
        part = place - step
        moved = (1 - q) * chances
        moved[step:] += q * (1 - part) * chances[: len(chances) - step]
        moved[step + 1 :] += q * part * chances[: len(chances) - step - 1]
        chances, added = moved, added + q * part * (1 - part)
    likelihood = outside + gain * np.arange(len(chances)) / cells
    error = 0.5 * gain**2 / min(inside, outside) * added / cells**2
    return float(chances @ (likelihood * np.log(likelihood))), error


def _cells(values: int, grids: int, q: float, inside: float, outside: float) -> int:
    """Grid points that keep the error small, as far as the work allows: each value adds at most q/4 cells²."""
    curve = (inside - outside) ** 2 / min(inside, outside) * q * values / 8
    wanted = 1 << max(math.ceil(math.log2(max(curve / _ERROR, 1.0)) / 2), 0)
    return int(min(max(wanted, _COARSEST), _FINEST, max(_WORK // (values * grids), _COARSEST)))
