"""Information measures in nats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, Joint
from funnel.data.subsets import Subsets
from funnel.data.unary import AnyProtocol
from funnel.measure import splitting


def entropy(distribution: npt.ArrayLike) -> float:
    """H = -Σ p ln p of non-negative weights of any shape; they are normalised first."""
    p = np.asarray(distribution, float).ravel()
    p = p[p > 0] / p.sum()
    return abs(float(p @ np.log(p)))


def mutual_information(table: npt.ArrayLike | Subsets) -> float:
    """I between the first axis and all others of a table of non-negative weights; of sets, from above."""
    if isinstance(table, Subsets):
        found = splitting.secret_information(_occurring(table.counts), *table.protocol.shares)
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
        return splitting.public_information(prior, *released.protocol.shares).low
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
