"""Who knows the exact counts and sees all rows: the full report's figure, from the definition and in other ways.

P(s | y, M) = Σ_x P(s|x) E[K_xy | M] / M_y (mathematics, section 9). Where it is told exactly, Z(N, M) = P(M | N) is
worked out from the characteristic function of M at roots of unity, or, where these are too many, it has to lie within
the bounds. These are worked out anew by Bernstein's inequality, in floats, and what is told as a bound may not be below
them all. What is told as estimated proves nothing.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import FloatArray
from funnel.audit.kernel.verdict import Broken
from funnel.format.protocol import Sets, Weights

CLAIM = "whole-table"
TITLE = "who knows the exact counts and sees all rows is moved by no more than the full report says"
PRIVATE = True
REPORT = "report.json"
CHANCE = 1e-6
"""Over the draws, that a bound does not hold."""
MOST, MOST_STEPS, MOST_POINTS = 4_000_000, 200_000_000, 1_000_000
"""Chances that are listed, numbers gone through for closer bounds, and roots of unity times kinds of records."""
_NEAR = 1e-4
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Observation:
    """Records T[s, x] (c, a) by kinds that answer alike, Q(y|x) (b, a), and M_y (b,)."""

    table: FloatArray
    chances: FloatArray
    totals: FloatArray

    @property
    def shares(self) -> FloatArray:
        """P(s|x)."""
        return np.asarray(self.table / self.table.sum(axis=0))

    @property
    def prior(self) -> FloatArray:
        """P(s) as a column."""
        return np.asarray(self.table.sum(axis=1, keepdims=True) / self.table.sum())


def check(opened: Release) -> str:
    """What the private report tells of the whole table follows from the files. Raises Broken."""
    told = json.loads(opened.read(REPORT))["evidence"]["observer"]
    seen = _seen(opened)
    if seen is None or told["how"] == "ceiling":
        ends = _ceiling(opened)
        return _no_less(told, *ends, "which is what the true values themselves tell")
    if told["how"] == "bound":
        return _no_less(told, *_bounds(seen), f"a bound but for a chance of {CHANCE:g} over the draws")
    if (factor := _factors(seen)) is not None:
        return _no_less(told, factor, factor, "as all outcomes show")
    low, high = _bounds(seen)
    return _no_less(told, high, low, "which the bounds allow: the outcomes are too many to go through them again")


def _no_less(told: dict[str, Any], low: FloatArray, high: FloatArray, why: str) -> str:
    """P(s|y,M)/P(s) (c, m) as low and as high as this needs what is told to be as large. Raises Broken."""
    for name, nats in _moves(low, high).items():
        if (told[name] is None) < math.isinf(nats) or (told[name] is not None and told[name] < nats - _NEAR):
            raise Broken(REPORT, f"what is told of the whole table is too little: {name}", nats, told[name])
    ends = (told["rises"], told["falls"])
    rises, falls = ("without a bound" if one is None else f"by {one} nats" for one in ends)
    return f"up {rises}, down {falls}, {why}"


def _factors(seen: Observation) -> FloatArray | None:
    """P(s|y,M)/P(s) (c, m) where it can be worked out."""
    expected, there = _by_roots(seen), seen.totals > 0
    if expected is None:
        return None
    return np.asarray(np.maximum(seen.shares @ expected[there].T / seen.totals[there] / seen.prior, 0.0))


def _moves(low: FloatArray, high: FloatArray) -> dict[str, float]:
    """Nats from P(s|y,M)/P(s) between (c, m) and (c, m), the worst of all outputs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        up, down = np.log(high.max(axis=0)), -np.log(np.maximum(low.min(axis=0), 0))
    odds = up + down if len(low) > 1 else up * 0
    return {"rises": float(up.max()), "falls": float(down.max()), "odds": float(odds.max())}


def _seen(opened: Release) -> Observation | None:
    """Kinds of records by how each block draws for them; None where their answers are too many."""
    blocks, records = opened.protocol.blocks, opened.records
    sizes = [1 << len(one.inputs) if isinstance(one, Sets) else len(one.outputs) for one in blocks]
    if math.prod(sizes) * len(records.cells) > MOST:
        return None
    kinds: dict[tuple[Any, ...], FloatArray] = {}
    for (s, *values), number in zip(records.cells.tolist(), records.number.tolist(), strict=True):
        kind = tuple(_draw(block, s, x) for block, x in zip(blocks, values, strict=True))
        kinds.setdefault(kind, np.zeros(records.shape[0]))[s] += number
    chances = [_joined([_chances(b, draw) for b, draw in zip(blocks, kind, strict=True)]) for kind in kinds]
    totals = np.zeros(sizes)
    totals[tuple(opened.rows[:, :-1].T)] = opened.rows[:, -1]
    table = np.stack(list(kinds.values()), axis=1)
    return Observation(table[table.any(axis=1)], np.stack(chances, axis=1), totals.ravel())


def _draw(block: Weights | Sets, s: int, x: int) -> tuple[int, ...]:
    """What tells how a block draws for (s, x): its weights by output, or the value that a set is drawn for."""
    if isinstance(block, Sets):
        return (x,)
    return tuple(row[s][x] if block.secret else row[x] for row in block.weights)


def _chances(block: Weights | Sets, draw: tuple[int, ...]) -> FloatArray:
    """Q(y|x) (b,) of one kind."""
    whole = float(1 << block.bits)
    if isinstance(block, Weights):
        return np.array(draw, float) / whole
    coins = [block.present if place == draw[0] else block.absent for place in range(len(block.inputs))]
    return _joined([np.array([1 - coin / whole, coin / whole]) for coin in coins])


def _joined(parts: list[FloatArray]) -> FloatArray:
    found = np.ones(1)
    for part in parts:
        found = np.multiply.outer(found, part).ravel()
    return found


def _ceiling(opened: Release) -> tuple[FloatArray, FloatArray]:
    """P(s|x)/P(s) at the least and at most, (c, 1): for pairs (s, x) where a draw reads s."""
    records = opened.records
    reads = any(isinstance(block, Weights) and block.secret for block in opened.protocol.blocks)
    kinds: dict[tuple[int, ...], FloatArray] = {}
    for codes, number in zip(records.cells.tolist(), records.number.tolist(), strict=True):
        kinds.setdefault(tuple(codes[0 if reads else 1 :]), np.zeros(records.shape[0]))[codes[0]] += number
    table = np.stack(list(kinds.values()), axis=1)
    table = table[table.any(axis=1)]
    factor = table / table.sum(axis=0) * table.sum() / table.sum(axis=1, keepdims=True)
    return factor.min(axis=1, keepdims=True), factor.max(axis=1, keepdims=True)


def _by_roots(seen: Observation) -> FloatArray | None:
    """E[K_xy | M] (b, a) from E exp(i θ·M) = Π_x (Σ_y Q(y|x) exp(i θ_y))^N_x; None where that is too much, or Z small.

    The most frequent output needs no angle of its own, for its total follows from the others.
    """
    counts, told = seen.table.sum(axis=0), np.argsort(-seen.totals, kind="stable")[: (seen.totals > 0).sum()]
    free = told[1:]
    sizes = ((seen.chances[free] > 0) @ counts + 1).astype(int).tolist()
    if math.prod(sizes) * len(counts) > MOST_POINTS:
        return None
    grid = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0))
    angles = 2j * np.pi * grid / np.array(sizes)
    turns = np.exp(angles)
    one = turns @ seen.chances[free] + seen.chances[told[0]]  # (points, a)
    back = np.exp(-angles @ seen.totals[free])
    with np.errstate(divide="ignore", invalid="ignore"):
        every = np.prod(one**counts, axis=1)
    total = float((every * back).mean().real)
    if total < _LEAST:
        return None
    found = np.zeros(seen.chances.shape)
    for x, number in enumerate(counts):
        rest = np.prod(np.delete(one**counts, x, axis=1), axis=1) * one[:, x] ** (number - 1) * back
        for place, y in enumerate(told):
            turned = rest if place == 0 else rest * turns[:, place - 1]
            found[y, x] = number * seen.chances[y, x] * turned.mean().real / total
    return found


def _bounds(seen: Observation) -> tuple[FloatArray, FloatArray]:
    """P(s|y,M)/P(s) from below and above (c, m): what every bound that may be chosen leaves."""
    c, b = len(seen.table), len(seen.totals)
    size = math.log(2 * c * b / CHANCE)
    there = np.flatnonzero(seen.totals)
    close = c * seen.chances.size * len(there) <= MOST_STEPS
    inverse = np.asarray(np.linalg.pinv(_covariance(seen), rcond=1e-11, hermitian=True), float) if close else None
    low, high = np.zeros((c, len(there))), np.ones((c, len(there)))
    for place, y in enumerate(there.tolist()):
        for s in range(c):
            low[s, place], high[s, place] = _between(seen, s, y, inverse, size)
    least, most = low.sum(axis=0), high.sum(axis=0)
    low, high = np.maximum(low, 1 - (most - high)), np.minimum(high, 1 - (least - low))
    return low / seen.prior, high / seen.prior


def _covariance(seen: Observation) -> FloatArray:
    """Of M, kind after kind of records."""
    found = np.zeros((len(seen.totals), len(seen.totals)))
    for number, column in zip(seen.table.sum(axis=0), seen.chances.T, strict=True):
        found += number * (np.diag(column) - np.outer(column, column))
    return found


def _between(seen: Observation, s: int, y: int, inverse: FloatArray | None, size: float) -> tuple[float, float]:
    """P(s|y,M) from below and above, by its mean over x, by M_y, and by all of M."""
    counts, share, own = seen.table.sum(axis=0), seen.shares[s], seen.chances[y]
    flow = counts * own
    ends = [(float(share[own > 0].min()), float(share[own > 0].max()))]
    # By M_y: the parts differ from their mean by what P(s|x) differs from P(s|y), where y is drawn and where it is not.
    mean = float(share @ flow / flow.sum())
    off = np.where(own > 0, share - mean, 0.0)
    width = _width(float(off**2 * (1 - own) @ flow), float((np.abs(off) * np.maximum(own, 1 - own)).max()), size)
    ends.append((mean - width / float(seen.totals[y]), mean + width / float(seen.totals[y])))
    if inverse is not None:
        also = -seen.chances @ (flow * share)
        also[y] += flow @ share
        ends.append(_by_all(seen, s, y, inverse @ also, size))
    return max(one for one, _ in ends), min(one for _, one in ends)


def _width(variance: float, most: float, size: float) -> float:
    """Bernstein's inequality for a sum of independent parts, each within `most` of its mean."""
    return math.sqrt(2 * variance * size) + most * size / 3


def _by_all(seen: Observation, s: int, y: int, g: FloatArray, size: float) -> tuple[float, float]:
    """By parts w(x, y') = P(s|x) 1{y' = y} - g_y' of a sum over the records, less their means."""
    counts = seen.table.sum(axis=0)
    parts = np.subtract.outer(np.zeros(len(counts)), g).T
    parts[y] += seen.shares[s]
    means = (parts * seen.chances).sum(axis=0)
    off = np.where(seen.chances > 0, parts - means, 0.0)
    width = _width(float((off**2 * seen.chances).sum(axis=0) @ counts), float(np.abs(off).max()), size)
    middle = float(g @ seen.totals + means @ counts)
    return (middle - width) / float(seen.totals[y]), (middle + width) / float(seen.totals[y])
