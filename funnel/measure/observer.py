"""Who knows a table's exact counts and sees every released row: how far that moves beliefs about one row.

Records of kind x, N_x of them, answer y with chance Q(y|x), each by itself; M_y rows say y, and K_xy of these are of
kind x. A row that says y may be any of the M_y, so what is believed of its secret is

    P(s | y, M) = Σ_x P(s|x) E[K_xy | M] / M_y,

exactly so for a single block and for several (y is then all that a row says). A draw that reads the secret has kinds
(s, x). Names of rows, a lock and permanent draws change nothing: without the key, draws of different records are
independent given the counts. Rows of a wide block are filled from their cell alone, so who sees them sees no more than
the cells. Not counted in are earlier releases, and who knows more of a person than the counts (`srlip`).

Exact: `outcomes`. Else a bound: for numbers g(s,y)_y', chosen before anything is drawn, let

    D = Σ_x P(s|x) K_xy - Σ_y' g_y' M_y',   so that   Σ_x P(s|x) E[K_xy | M] = g·M + E[D | M].

D is a sum over the records of independent parts w(x,Y) = P(s|x) 1{Y=y} - g_Y, and Jensen's inequality carries the
moment generating function of D - E D over to E[D | M] - E D. Bernstein's inequality then says, for all s and y at once
with chance 1 - β over the draws,

    | E[D | M] - E D | <= sqrt(2vL) + rL/3,  v = Σ_x N_x Var w(x,Y),  r = max |w(x,y') - E w(x,Y)|,  L = ln(2cb/β)

(mathematics, section 9, has g = 0). g that regresses the sum on M makes v least: where few K fit N and M, v is nearly
0. Besides, P(s | y, M) is a mean of P(s|x) over the x that can say y, and all P(s | y, M) of one y add up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from funnel.data import AnyProtocol, Joint
from funnel.data.joint import FloatArray, IntArray
from funnel.data.unary import UnaryProtocol
from funnel.measure.outcomes import expected

CHANCE = 1e-6
"""β: the chance over the draws that a bound does not hold."""
MOST = 4_000_000
"""Most chances of a row's answers, kinds by outputs, that are gone through; beyond, only the ceiling is told."""
_MOST_STEPS = 200_000_000
"""Most numbers gone through for the best g, and for an estimate."""
_MOST_ANSWERS = 4096
"""Most answers between whose totals covariances are kept, 128 MiB of them; of more, each total is taken by itself."""
_ROUNDS = 500
_SLACK = 1e-9
"""Records by which sums of floats are widened, and the share of a sum; their errors are thousands of times smaller."""


@dataclass(frozen=True, eq=False)
class Whole:
    """N_x (a,), Q(y|x) (b, a) and P(s|x) (c, a) of all kinds of records; and M_y (b,), how often each y is seen."""

    counts: FloatArray
    chances: FloatArray
    shares: FloatArray
    seen: FloatArray

    @property
    def prior(self) -> FloatArray:
        """P(s), (c,)."""
        return np.asarray(self.shares @ self.counts / self.counts.sum())

    @property
    def told(self) -> IntArray:
        """The outputs that are seen, (m,)."""
        return np.flatnonzero(self.seen)


@dataclass(frozen=True, eq=False)
class Observed:
    """P(s | y, M) / P(s) from below and above, (c, m), for outputs that so many `rows` (m,) show; and as estimated.

    `how`: exactly; with chance 1 - CHANCE; or by what the true values themselves tell, whatever is released.
    """

    how: Literal["exact", "bound", "ceiling"]
    low: FloatArray
    high: FloatArray
    rows: IntArray
    estimate: FloatArray | None = None

    @property
    def least(self) -> Observed | None:
        """The estimate as if it were exact."""
        return None if self.estimate is None else Observed("exact", self.estimate, self.estimate, self.rows)

    def rises(self) -> FloatArray:
        """By how many nats a belief of these rows (m,) may rise."""
        return _nats(self.high.max(axis=0))

    def falls(self) -> FloatArray:
        """By how many it may fall."""
        return -_nats(self.low.min(axis=0))

    def odds(self) -> FloatArray:
        """By how many the odds between two secret values may move."""
        with np.errstate(invalid="ignore"):
            return self.rises() + self.falls() if len(self.high) > 1 else np.zeros(len(self.rows))


def observed(joint: Joint, protocols: Sequence[AnyProtocol], codes: IntArray, rows: IntArray) -> Observed:
    """What they learn who know `joint` and see rows (m, k) of output codes, each so many times (m,)."""
    whole = whole_of(joint, protocols, codes, rows)
    if whole is None:
        return _ceiling(joint, protocols)
    prior, told = whole.prior[:, None], whole.told
    number = whole.seen[told].astype(np.int64)
    exact = expected(whole.counts.astype(np.int64), whole.chances, whole.seen.astype(np.int64))
    if exact is not None:
        factor = whole.shares @ exact[told].T / whole.seen[told] / prior
        return Observed("exact", factor * (1 - _SLACK), factor * (1 + _SLACK), number)
    low, high = bounds(whole)
    fitted = np.clip(whole.shares @ fit(whole)[told].T / whole.seen[told], low, high)
    return Observed("bound", low / prior, high / prior, number, fitted / prior)


def whole_of(
    joint: Joint, protocols: Sequence[AnyProtocol], codes: IntArray, rows: IntArray
) -> Whole | None:
    """Kinds of records that answer alike as one, and what is seen; None where the answers are too many."""
    sizes = [protocol.size for protocol in protocols]
    if math.prod(sizes) * len(joint.cells) > MOST:
        return None
    reads = any(protocol.reads_secret for protocol in protocols)
    kinds, kind = np.unique(joint.cells[:, 0 if reads else 1 :], axis=0, return_inverse=True)
    secret = kinds[:, 0] if reads else np.zeros(len(kinds), np.int64)
    parts = [
        _chances(one)[:, secret if one.reads_secret else 0, x]
        for one, x in zip(protocols, kinds[:, -len(protocols) :].T, strict=True)
    ]
    every = reduce(lambda one, other: (one[:, None] * other).reshape(-1, len(kinds)), parts)
    chances, alike = np.unique(every, axis=1, return_inverse=True)
    table = np.zeros((len(joint.secret), chances.shape[1]))
    np.add.at(table, (joint.cells[:, 0], alike.reshape(-1)[kind.reshape(-1)]), joint.counts)
    seen = np.zeros(len(chances))
    np.add.at(seen, np.ravel_multi_index(tuple(codes.T), tuple(sizes)), rows)
    counts = table.sum(axis=0)
    return Whole(counts, chances, (table / counts)[table.any(axis=1)], seen)


def bounds(whole: Whole, chance: float = CHANCE) -> tuple[FloatArray, FloatArray]:
    """P(s | y, M) from below and above, (c, m), for the outputs that are seen, with chance 1 - `chance`."""
    size = math.log(2 * len(whole.prior) * len(whole.seen) / chance)
    steps = len(whole.shares) * whole.chances.size * len(whole.told)
    able = steps <= _MOST_STEPS and len(whole.chances) <= _MOST_ANSWERS
    best = _regressed(whole) if able else [None] * len(whole.told)
    ends = [_ends(whole, y, g, size) for y, g in zip(whole.told.tolist(), best, strict=True)]
    low, high = (np.array(end).T for end in zip(*ends, strict=True))
    rest = high.sum(axis=0) - high, low.sum(axis=0) - low
    # Sums of floats: what is left of one is nothing rather than a rounding error above it.
    return np.maximum(low, 1 - rest[0] - _SLACK), np.minimum(high, 1 - rest[1] + _SLACK)


def _ends(whole: Whole, y: int, g: FloatArray | None, size: float) -> tuple[FloatArray, FloatArray]:
    """P(s | y, M) from below and above, (c,): by the g that, beforehand, lets the sum deviate least."""
    middle, width = _by_own_total(whole, y, size)
    if g is not None:
        also, wide = _by_all_totals(whole, y, g, size)
        middle, width = np.where(wide < width, also, middle), np.minimum(wide, width)
    side = whole.shares[:, whole.chances[y] > 0]
    low, high = (middle - width) / whole.seen[y], (middle + width) / whole.seen[y]
    return np.maximum(low, side.min(axis=1)), np.minimum(high, side.max(axis=1))


def _by_own_total(whole: Whole, y: int, size: float) -> tuple[FloatArray, FloatArray]:
    """g·M + E D with g_y = P(s|y) and nothing elsewhere, so that E D = 0; and the width, (c,) each in records."""
    own = whole.chances[y]
    flow = own * whole.counts
    share = whole.shares @ flow / flow.sum()
    off = np.where(own > 0, whole.shares - share[:, None], 0.0)
    most = (np.abs(off) * np.maximum(own, 1 - own)).max(axis=1)
    return share * whole.seen[y], _width(off**2 @ (flow * (1 - own)), most, size)


def _by_all_totals(whole: Whole, y: int, g: FloatArray, size: float) -> tuple[FloatArray, FloatArray]:
    """The same with some g (c, b)."""
    mean = whole.shares * whole.chances[y] - g @ whole.chances
    variance, most = np.zeros(len(g)), np.zeros(len(g))
    for s, row in enumerate(g):
        off = np.repeat(-row[:, None], len(whole.counts), axis=1) - mean[s]
        off[y] += whole.shares[s]
        off[whole.chances == 0] = 0.0
        variance[s], most[s] = (off**2 * whole.chances).sum(axis=0) @ whole.counts, np.abs(off).max()
    terms = np.abs(g) @ (whole.seen + whole.chances @ whole.counts)
    return g @ whole.seen + mean @ whole.counts, _width(variance, most, size) + _SLACK * 1e-3 * terms


def _width(variance: FloatArray, most: FloatArray, size: float) -> FloatArray:
    """Bernstein's sqrt(2vL) + rL/3."""
    return np.asarray((np.sqrt(2 * variance * size) + most * size / 3) * (1 + _SLACK) + _SLACK)


def _regressed(whole: Whole) -> list[FloatArray | None]:
    """For each output that is seen the g (c, b) of the least variance: the covariance with M over that of M.

    To the covariance of M, which no more than b - 1 directions have, little is added, so that it has an inverse.
    """
    told, flow = whole.told, whole.chances * whole.counts
    covariance = np.diag(flow.sum(axis=1)) - flow @ whole.chances.T + np.eye(len(flow)) * (1e-12 * flow.sum())
    parts = whole.shares[None] * flow[told, None]  # (m, c, a)
    with_seen = -parts @ whole.chances.T
    with_seen[np.arange(len(told)), :, told] += parts.sum(axis=2)
    solved = np.linalg.solve(covariance, with_seen.reshape(-1, len(flow)).T).T
    return [*solved.reshape(with_seen.shape)]


def fit(whole: Whole) -> FloatArray:
    """K_xy (b, a) in proportion to Q(y|x) with the totals N and M, nearly: the likeliest K, an estimate of the mean."""
    rounds = max(10, min(_ROUNDS, _MOST_STEPS // whole.chances.size))
    found = whole.chances * whole.counts
    for _ in range(rounds):
        found = found * _over(whole.seen, found.sum(axis=1))[:, None]
        found = found * _over(whole.counts, found.sum(axis=0))
    return np.asarray(found * _over(whole.seen, found.sum(axis=1))[:, None])


def _over(wanted: FloatArray, sums: FloatArray) -> FloatArray:
    return np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)


def _ceiling(joint: Joint, protocols: Sequence[AnyProtocol]) -> Observed:
    """Every P(s | y, M) is a mean of P(s | x), or of certainties where draws read the secret."""
    reads = any(protocol.reads_secret for protocol in protocols)
    _, kind = np.unique(joint.cells[:, 0 if reads else 1 :], axis=0, return_inverse=True)
    kind, secrets = kind.reshape(-1), np.bincount(joint.cells[:, 0], joint.counts, len(joint.secret))
    shares = joint.counts / np.bincount(kind, joint.counts)[kind]
    high, low = np.zeros(len(secrets)), np.full(len(secrets), np.inf)
    np.maximum.at(high, joint.cells[:, 0], shares)
    np.minimum.at(low, joint.cells[:, 0], shares)
    there = np.bincount(joint.cells[:, 0], minlength=len(secrets))
    low = np.where(there < kind.max() + 1, 0.0, low)
    prior, kept = secrets / joint.rows, secrets > 0
    ends = [(end[kept] / prior[kept])[:, None] for end in (low, high)]
    return Observed("ceiling", ends[0], ends[1], np.array([joint.rows]))


def _chances(protocol: AnyProtocol) -> FloatArray:
    """Q[y, s, x] of every answer, (b, c or 1, a); of sets, all of them."""
    if not isinstance(protocol, UnaryProtocol):
        return protocol.probabilities()
    (present, absent), held = protocol.shares, protocol.members()
    others = np.where(held, absent, 1 - absent).prod(axis=1)
    own = np.where(held, present / absent, (1 - present) / (1 - absent))
    return np.asarray((others[:, None] * own)[:, None, :])


def _nats(factor: FloatArray) -> FloatArray:
    """Of totals that no draws can have given, bounds exclude each other: a forger's, for whom there is no figure."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(factor, 0.0)))
