"""True counts from released ones: which totals can be estimated without bias, the estimates and their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.data.unary import AnyProtocol

_PRIMES = (2_147_483_647, 2_147_483_629)
"""Below 2^31, so that products fit 64 bits. The rank modulo a prime is never above the true one."""

_FITTING = 50
_CANCELLED = 1e-10
"""A variance this small a part of the two numbers it is the difference of is zero."""
HOPELESS = 1e12
"""Condition number above which no estimate would mean anything."""


@dataclass(frozen=True, eq=False)
class Recovered:
    """What the released counts of a block tell of its true ones.

    `groups` (a,) names for each value the group, from 0 on, whose total has an unbiased estimate; `count` and `error`
    (g,) are these and their standard errors, both empty where nothing but the number of rows can be estimated.
    """

    rank: int
    condition: float
    groups: IntArray
    count: FloatArray
    error: FloatArray

    def members(self) -> list[list[int]]:
        """The values of each group that is estimated."""
        return [np.flatnonzero(self.groups == group).tolist() for group in range(len(self.count))]


def recovered(protocol: AnyProtocol, seen: IntArray, rows: int) -> Recovered:
    """What is known of a block's true counts where its answers told of values so often (b,), `rows` records in all.

    A protocol that reads the secret is taken as one on pairs (s, x), whose counts are summed over s.
    """
    a = len(protocol.inputs)
    if protocol.coins is None:
        return recover(protocol.telling_weights.reshape(len(seen), -1), protocol.bits, seen, a)
    present, absent = protocol.coins
    return Recovered(a, 1 + a * absent / (present - absent), np.arange(a), *from_bits(seen, rows, present, absent))


def recover(weights: IntArray, bits: int, released: IntArray, a: int) -> Recovered:
    """Estimates from integer weights (b, k) of a values, or of pairs (s, x) as s*a + x, and counts (b,) of outputs."""
    owner = np.arange(weights.shape[1]) % a
    chances = weights / float(1 << bits)
    rank, groups = identifiable(weights, owner, a)
    sizes = np.linalg.svd(chances, compute_uv=False)
    condition = float(sizes[0] / max(sizes[rank - 1], np.finfo(float).tiny))
    found = int(groups.max()) + 1
    if (found == 1 and a > 1) or condition > HOPELESS:
        return Recovered(rank, condition, groups, np.zeros(0), np.zeros(0))
    members = (groups[owner] == np.arange(found)[:, None]).astype(float)
    return Recovered(rank, condition, groups, *linear(chances, members, released, rank))


def linear(
    chances: FloatArray, members: FloatArray, released: IntArray, rank: int
) -> tuple[FloatArray, FloatArray]:
    """Estimated totals M N and their standard errors, each (g,), for Q (b, k), M (g, k), T (b,) and Q's rank.

    M N must be estimable: M's rows in the row space of Q. The estimator is L T with
    L = M (Qᵀ D⁻¹ Q)⁺ Qᵀ D⁻¹, D = diag(Q 1): unbiased for every N since L Q = M, equal to Q⁻¹ where Q is
    square and regular, and otherwise of least variance among linear ones when N is uniform, where T has
    covariance D - Q Qᵀ (up to scale). Weights fitted to T would vary less but not be free of bias. Q's
    columns sum to one, so those of L do where M's do: the total is kept. The variance of L T is
    L diag(Q N) Lᵀ - M diag(N) Mᵀ; the N put in is non-negative, and the estimate itself where that is.
    """
    scale = np.sqrt(np.maximum(chances.sum(axis=1), np.finfo(float).tiny))
    left, sizes, right = np.linalg.svd(chances / scale[:, None], full_matrices=False)
    inverse = (right[:rank].T / sizes[:rank]) @ left[:, :rank].T / scale
    weights = members @ inverse
    count = weights @ released
    count += (released.sum() - count.sum()) / len(count)  # what floating point lost of the total
    likely = np.maximum(inverse @ released, 1.0)
    for _ in range(_FITTING):  # Richardson-Lucy: stays non-negative and approaches Q N = T
        likely *= chances.T @ (released / np.maximum(chances @ likely, np.finfo(float).tiny))
    spread, own = weights**2 @ (chances @ likely), members @ likely
    variance = np.where(spread - own > _CANCELLED * (spread + own), spread - own, 0.0)
    return count, np.sqrt(variance)


def from_bits(ones: IntArray, rows: int, present: float, absent: float) -> tuple[FloatArray, FloatArray]:
    """Estimated counts of values and their standard errors, (a,) each, from unary encoding of `rows` records.

    `ones` (a,) are the sets that hold each value, with chance `present` if it is the true one, else `absent`: with
    mean N_x present + (n - N_x) absent, which is solved for N_x, and the variance of that many coins. Free of bias
    for each value by itself; the estimates add up to n on average only.
    """
    count: FloatArray = np.asarray((ones - rows * absent) / (present - absent), np.float64)
    likely = np.clip(count, 0, rows)
    variance = likely * present * (1 - present) + (rows - likely) * absent * (1 - absent)
    error: FloatArray = np.sqrt(variance) / (present - absent)
    return count, error


def identifiable(weights: IntArray, owner: IntArray, a: int) -> tuple[int, IntArray]:
    """Q's rank and, for each of the values, the group (from 0) whose total has an unbiased estimate.

    `weights` (b, k) is Q on integers, and column j of it belongs to value owner[j]. A total over values is
    estimable when each vector of the null space of Q sums to zero over their columns. As each sums to zero
    over all columns, it does so over any set of values that holds all or none of those where its sums are
    not zero: the groups are the smallest such sets for the null vectors of the reduced echelon form. They are
    single values where those can be told apart, and never split values with equal columns.
    """
    sizes = np.linalg.svd(weights.astype(float), compute_uv=False)
    if len(sizes) == len(owner) and sizes[-1] > 1e-9 * sizes[0]:  # far beyond what rounding can feign
        return len(owner), owner
    ranks, ties = zip(*(_modulo(weights, owner, a, prime) for prime in _PRIMES), strict=True)
    rank = max(ranks)
    tied = sum(tie for own, tie in zip(ranks, ties, strict=True) if own == rank)
    return rank, _connected(tied > 0)


def _connected(tied: npt.NDArray[np.bool_]) -> IntArray:
    """The group of each value, from 0 in the order of their first values: those that ties (a, a) connect."""
    near = tied | np.eye(len(tied), dtype=bool)
    first = np.arange(len(tied))
    while (first != (nearest := np.where(near, first, len(tied)).min(axis=1))).any():
        first = nearest
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _modulo(weights: IntArray, owner: IntArray, a: int, prime: int) -> tuple[int, FloatArray]:
    """Q's rank modulo a prime, and how many null vectors touch both of two values, (a, a)."""
    rest, pivots = weights % prime, list[int]()
    for column in range(rest.shape[1]):
        row = len(pivots)
        nonzero = np.flatnonzero(rest[:, column])
        if not (below := nonzero[nonzero >= row]).size:
            continue
        rest[[row, below[0]]] = rest[[below[0], row]]
        rest[row] = rest[row] * pow(int(rest[row, column]), -1, prime) % prime
        others = np.flatnonzero(rest[:, column])
        others = others[others != row]
        rest[others] = (rest[others] - rest[others, column, None] * rest[row]) % prime
        pivots.append(column)
    free = np.setdiff1d(np.arange(len(owner)), pivots)
    sums = np.zeros((a, len(free)), np.int64)
    np.add.at(sums, owner[pivots], -rest[: len(pivots)][:, free])
    np.add.at(sums, (owner[free], np.arange(len(free))), 1)
    touched = (sums % prime != 0).astype(float)
    return len(pivots), touched @ touched.T
