"""True counts from released ones: which totals can be estimated without bias, the estimates and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.data.unary import AnyProtocol, UnaryProtocol

_PRIMES = (2_147_483_647, 2_147_483_629)
"""Below 2^31, so that products fit 64 bits. The rank modulo a prime is never above the true one."""

_CANCELLED = 1e-10
"""A difference this small a part of the two numbers that it is one of is zero."""
_APART = 2
"""Answers that true values can have, one value after the other, as a part of all, above which those are taken for one
that draws connect."""
_CONNECTED = 4_000_000
"""Cells of a protocol above which all values are taken for connected."""
_NEAR = 1e-9
"""Of the weight of an answer that follows from a value with certainty what rounding may add."""
Choices = tuple[IntArray, IntArray]
"""Answers that one record can have, those of one true value after those of another, and where those of each begin."""
_FEW = 0.7
"""Part of an error above which one record's answer makes it: about two records had such a one, or none."""
_MUCH = 0.25
"""Part of a total above which one record's answer counts for much."""
HOPELESS = 1e12
"""Condition number above which no estimate would mean anything."""


@dataclass(frozen=True, eq=False)
class Recovered:
    """What the released counts of a block tell of its true ones.

    `groups` (a,) names for each value the group, from 0 on, whose total has an unbiased estimate; `count` and `error`
    (g,) are these and their standard errors, and `one` what a single draw can change of them, all empty where nothing
    but the number of rows can be estimated.
    """

    rank: int
    condition: float
    groups: IntArray
    count: FloatArray
    error: FloatArray
    one: FloatArray

    def members(self) -> list[list[int]]:
        """The values of each group that is estimated."""
        return [np.flatnonzero(self.groups == group).tolist() for group in range(len(self.count))]

    @property
    def vague(self) -> npt.NDArray[np.bool_]:
        """Whether the error of each total (g,) may be far too small (`is_vague`)."""
        return is_vague(self.count, self.error, self.one)


@dataclass(frozen=True, eq=False)
class Inverse:
    """How what a block's answers say is undone: Σ_y matrix[y, x] Q(y|x') is 1 where x' = x, else 0, where that can be.

    `matrix` (m, a) has a row for each answer. With f (a,) a number for each value, `matrix @ f` is for each answer a
    number whose mean over the draws is f(x), whatever x is, if and only if f @ `residual` is zero. No residual: every
    f. `groups` as in `Recovered`. `possible`: which answers a record can have (`choices`).
    """

    rank: int
    condition: float
    groups: IntArray
    matrix: FloatArray
    possible: Choices
    residual: FloatArray | None = None

    @property
    def members(self) -> FloatArray:
        """0 or 1 (g, a): the values of every group."""
        return np.asarray(self.groups == np.arange(int(self.groups.max()) + 1)[:, None], float)

    @property
    def hopeless(self) -> bool:
        """Whether nothing but the number of rows can be estimated."""
        return (len(self.groups) > 1 and not self.groups.any()) or self.condition > HOPELESS


def is_vague(count: FloatArray, error: FloatArray, one: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether the errors of totals, of which one record's answer counts for `one` at most, may be far too small.

    They are worked out from the answers that were seen, and one that counts for much may be missing by chance.
    """
    return np.asarray((one > _FEW * error) & (one > _MUCH * np.maximum(count, 0.0)) & (one > _NEAR * np.abs(count)))


def inverse_of(protocol: AnyProtocol, codes: IntArray) -> Inverse:
    """The inverse of a block's protocol for answers with these codes (m,).

    A protocol that reads the secret is taken as one on pairs (s, x): a number for each x has to be right for every s.
    """
    a = len(protocol.inputs)
    if not isinstance(protocol, UnaryProtocol):
        weights = protocol.weights.reshape(protocol.size, -1)
        found = inverted(weights, protocol.bits, a)
        return replace(found, matrix=found.matrix[codes], possible=choices(weights[codes] > 0))
    present, absent = protocol.coins
    held = np.stack([protocol.outputs.holds(codes, x) for x in range(a)], axis=1)
    own = (held - absent) / (present - absent)
    # Each row is free of bias as it is; shifted to sum one it varies less, and counts of values add up to all.
    matrix = own + (1 - own.sum(axis=1, keepdims=True)) / a
    return Inverse(a, _condition(a, present, absent), np.arange(a), matrix, choices(np.ones((len(codes), 1), bool)))


def inverted(weights: IntArray, bits: int, a: int) -> Inverse:
    """The inverse of integer weights (b, k) of a values, or of pairs (s, x) as s*a + x, with a row for each output.

    matrixᵀ = (Qᵀ D⁻¹ Q)⁺ Qᵀ D⁻¹ with D = diag(Q 1): equal to Q⁻¹ where Q is square and regular, and otherwise of least
    variance among linear ones when N is uniform, where T has covariance D - Q Qᵀ (up to scale). Weights fitted to T
    would vary less but not be free of bias. Q's columns sum to one, so those of the inverse do: the total is kept.
    """
    owner = np.arange(weights.shape[1]) % a
    chances = weights / float(1 << bits)
    rank, groups = identifiable(weights, owner, a)
    plain = np.linalg.svd(chances, compute_uv=False)
    condition = float(plain[0] / max(plain[rank - 1], np.finfo(float).tiny))
    possible = choices(weights > 0)
    if condition > HOPELESS:  # what is the same for all values is known, and nothing else
        return Inverse(rank, condition, groups, np.full((len(weights), a), 1 / a), possible, np.eye(a) - 1 / a)
    scale = np.sqrt(np.maximum(chances.sum(axis=1), np.finfo(float).tiny))
    left, sizes, right = np.linalg.svd(chances / scale[:, None], full_matrices=False)
    own = np.asarray(owner == np.arange(a)[:, None], float)
    matrix = own @ ((right[:rank].T / sizes[:rank]) @ left[:, :rank].T / scale)
    residual = None if rank == len(owner) else own - (own @ right[:rank].T) @ right[:rank]
    return Inverse(rank, condition, groups, np.ascontiguousarray(matrix.T), possible, residual)


def recovered(protocol: AnyProtocol, seen: IntArray | FloatArray, rows: int) -> Recovered:
    """What is known of a block's true counts where its answers told of values so often (b,), `rows` records in all.

    Where they are expected to so often, the errors are those that are to be expected.
    """
    a = len(protocol.inputs)
    if protocol.coins is None:
        return recover(protocol.telling_weights.reshape(len(seen), -1), protocol.bits, seen, a)
    present, absent = protocol.coins
    count, error = from_bits(seen, rows, present, absent)
    coin = np.full(a, 1 / (present - absent))
    return Recovered(a, _condition(a, present, absent), np.arange(a), count, error, coin)


def _condition(a: int, present: float, absent: float) -> float:
    """Of the matrix of coins."""
    return 1 + a * absent / (present - absent)


def recover(weights: IntArray, bits: int, released: IntArray | FloatArray, a: int) -> Recovered:
    """Estimates from integer weights (b, k) of a values, or of pairs (s, x) as s*a + x, and counts (b,) of outputs."""
    found = inverted(weights, bits, a)
    if found.hopeless:
        return Recovered(found.rank, found.condition, found.groups, np.zeros(0), np.zeros(0), np.zeros(0))
    one = [swing(each, [found.possible]) for each in found.members @ found.matrix.T]
    return Recovered(found.rank, found.condition, found.groups, *linear(found, released), np.array(one))


def choices(possible: npt.NDArray[np.bool_]) -> Choices:
    """From which answers (m,) each true value (k,) can have: those of one value after those of another."""
    kinds = np.unique(possible, axis=1)
    kinds = kinds[:, kinds.any(axis=0)]
    if kinds.sum() > _APART * len(kinds):
        kinds = _together(kinds)
    value, answer = np.nonzero(kinds.T)
    return answer, np.searchsorted(value, np.arange(kinds.shape[1]))


def _together(kinds: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which answers (m,) each set of values (c,) can have that draws connect, from those of each value (m, k)."""
    if kinds.size > _CONNECTED:
        return np.ones((len(kinds), 1), bool)
    names, far = np.arange(len(kinds)), len(kinds)
    while True:
        values = np.where(kinds, names[:, None], far).min(axis=0)
        nearest = np.where(kinds, values, far).min(axis=1)
        if (nearest == names).all():
            return np.asarray(names[:, None] == np.unique(values), bool)
        names = nearest


def swing(numbers: FloatArray, possible: Sequence[Choices]) -> float:
    """The most that another answer to one record changes a total of numbers (m_1, …) for answers."""
    high = low = numbers
    for answer, starts in possible:  # takes the first axis and puts the new one last
        high = np.moveaxis(np.maximum.reduceat(high[answer], starts), 0, -1)
        low = np.moveaxis(np.minimum.reduceat(low[answer], starts), 0, -1)
    return float((high - low).max(initial=0.0))


def linear(found: Inverse, released: IntArray | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimated totals of the groups and their standard errors, each (g,), from counts (b,) of outputs.

    Both the totals and the squares of the errors are free of bias (see `functionals.Tally.covariance`).
    """
    weights = found.matrix @ found.members.T
    count = released @ weights
    count += (released.sum() - count.sum()) / len(count)  # what floating point lost of the total
    variance = [
        seen(spread(released, one, own), one, [found.possible])
        for one, own in zip(weights.T, count.tolist(), strict=True)
    ]
    return count, np.sqrt(variance)


def seen(variance: float, weights: FloatArray, possible: Sequence[Choices]) -> float:
    """A variance; where it is nothing only because no record shows another answer, that of one record which does.

    A total is exact where all answers that one record can have count for the same, whatever others count for.
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if variance > _CANCELLED * largest**2:
        return variance
    one = swing(weights, possible)
    return variance if one <= _NEAR * largest else one**2


def spread(released: IntArray | FloatArray, weights: FloatArray, own: float) -> float:
    """Var Σ M c over the draws as estimated from M (…), for c whose mean is f(x); `own` estimates Σ N f².

    Records are drawn independently: the variance is Σ_x N_x (E[c²|x] - f(x)²), of which Σ M c² - Σ N f² is an unbiased
    estimate. Where that comes out negative, it is the largest that the variance could be: that of records drawn anew,
    too.
    """
    squares = float((released * weights**2).sum())
    if abs(squares - own) <= _CANCELLED * (squares + abs(own)):
        return 0.0
    return squares - own if squares > own else anew(released, weights, weights)


def anew(released: IntArray | FloatArray, first: FloatArray, second: FloatArray) -> float:
    """Cov(Σ M c, Σ M d) where the records, too, are drawn anew from those at hand: never less than over the draws."""
    rows = float(released.sum())
    both = float((released * first * second).sum())
    means = float((released * first).sum()) * float((released * second).sum()) / rows
    found = (both - means) * rows / max(rows - 1, 1.0)
    return max(found, 0.0) if first is second else found  # no rounding makes a variance negative


def from_bits(ones: IntArray | FloatArray, rows: int, present: float, absent: float) -> tuple[FloatArray, FloatArray]:
    """Estimated counts of values and their standard errors, (a,) each, from unary encoding of `rows` records.

    `ones` (a,) are the sets that hold each value, with chance `present` if it is the true one, else `absent`: with
    mean N_x present + (n - N_x) absent, which is solved for N_x; what is then missing of n is spread over the values.
    The variance is that of the coins, each weighed as the estimate weighs it.
    """
    a, apart = len(ones), present - absent
    count: FloatArray = np.asarray((ones - rows * absent) / apart, np.float64)
    count += (rows - count.sum()) / a
    likely = np.clip(count, 0, rows)
    coin, more = absent * (1 - absent), present * (1 - present) - absent * (1 - absent)
    own = likely * (1 - 1 / a) ** 2 + (rows - likely) / a**2
    error: FloatArray = np.sqrt(np.maximum(rows * (1 - 1 / a) * coin + own * more, 0)) / apart
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
