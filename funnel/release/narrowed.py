"""How far published files narrow the counts N[s, x] down: what figures and an optimum that touches its bounds tell.

The reader thought of has protocol.json and released totals, and is told how many records have each value of the secret,
which makes every fact linear in N (mathematics.md, sections 8 and 9), and how far beliefs and odds move at most: an
optimum that touches its bounds tells it, release.json has it rounded. With T = N Q:

- |T_y - E[T_y]| <= 4 standard deviations of the draws, for the released totals (before there are any, for those that
  are expected), for those of some blocks alone, and for sums over values that draws do not leave; where a mechanism
  keeps them, they are those of N on average, as far as they are: the true totals of values are nearly the one solution
  of that;
- e^-f N_s T_y / n <= T[s, y] <= e^r N_s T_y / n, where beliefs fall and rise by f and r at most;
- within NEAR of its bound where a bound is touched, as of odds between two values of the secret,
  T[s, y] N_s' <= e^d T[s', y] N_s: an optimum lies on its bounds, and the reader is taken to know on which;
- the weights of conditional reporting are means of P(y|s) of each block, as near as whole numbers come.

A cell's range is that of two linear programs, and of integer ones where the table is small. Variables are shares of the
records of a secret value, not records: else rows of rare values are so small beside others that the solver's bases are
singular within its tolerance, and where every bound is touched it need not end. Who is told less is left with wider
ranges; that mechanisms choose among vertices tells more, of which nothing is reckoned here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from funnel.data import AnyProtocol, Joint, Protocol
from funnel.data.arrange import possible
from funnel.data.joint import FloatArray, IntArray
from funnel.measure.functionals import tabulated
from funnel.optimise.linear.highs import Program

MOST_CELLS = 300
"""Cells of a table beyond which the linear programs take more than seconds."""
MOST_ROWS = 16_384
"""Bounds on the outputs of each secret value."""
NEAR = 1e-3
"""Nats: a bound this near is touched. Weights are no finer, and bounds that are not touched lie far away."""
DEVIATIONS = 4.0
"""Of the draws; a released total lies outside with a chance below 10^-4."""
_FEW, _SMALL = 12, 250
"""Cells and records up to which the solver looks for integers."""
_NODES = 50
_STEPS = 100_000
"""Of the simplex method, for all cells of a table together: a few for each, also where every bound is touched."""
_ENDLESS = 60.0
"""Seconds of one linear program: none takes as long but where the solver goes round without counting a step."""
_SLACK = 1e-7
_VAGUE = 1e-3
"""Records by which solvers may differ."""

Row = tuple[FloatArray, float, float]


@dataclass(frozen=True)
class Narrowed:
    """Of `cells` counts N[s, x], how many are `narrowed` to fewer records than the minimum.

    Only cells of secret values with as many records count: of others the reader is told as much beforehand.
    """

    cells: int
    narrowed: int


def narrowed(
    joint: Joint,
    protocols: Sequence[AnyProtocol],
    minimum: int,
    *,
    released: IntArray | None = None,
    shown: bool = False,
    kept: bool = False,
) -> Narrowed | None:
    """The count of cells that published files narrow to fewer than `minimum` records; None where nobody waits for it.

    `released` (m, k+1) are rows [y_1, …, y_k, count] of a release, without which totals are the expected ones; `shown`:
    the protocol's weights are those that conditional reporting makes of these counts; `kept`: a release says that
    totals stay as they are. None for sets, for what tells nothing, for many cells, and where the solver does not end.
    """
    table, weights = joint.dense().reshape(len(joint.secret), -1), _weights(protocols)
    large = table.size > MOST_CELLS or (weights is not None and len(weights) * len(table) > MOST_ROWS)
    there = possible(joint) if len(joint.blocks) == 1 else np.ones(table.shape, bool)
    common = there & (table.sum(axis=1, keepdims=True) >= minimum)
    if weights is None or large or _tells_nothing(table, weights):
        return None
    shares = list(_shares(protocols, table.sum(axis=1))) if shown else ()
    sizes = [len(one.telling_weights) for one in protocols]
    seen = None if released is None else tabulated(released[:, :-1], released[:, -1], sizes).ravel()
    moved = _moved(protocols) if kept else ()
    found = ranges(table, weights, there, seen=seen, sums=_sums(protocols), totals=moved, shares=shares)
    if found is None:
        return None
    pinned = found[..., 1] - found[..., 0] < minimum - _VAGUE
    return Narrowed(int(there.sum()), int(pinned[common].sum()))


def _tells_nothing(table: IntArray, weights: FloatArray) -> bool:
    """Whether all secrets answer alike: every bound is touched from both sides, which takes the solver many steps."""
    sent = (weights * table).sum(axis=2) / np.maximum(table.sum(axis=1), 1)
    return bool(np.ptp(sent, axis=1).max() < 1e-9)


def _weights(protocols: Sequence[AnyProtocol]) -> FloatArray | None:
    """Q(y | s, x) of all blocks together, (b, c or 1, a); None of sets, and where there are too many outputs."""
    parts = [one.weights / float(1 << one.bits) for one in protocols if isinstance(one, Protocol)]
    size = float(np.prod([one.shape[0] * one.shape[2] for one in parts]))
    if len(parts) < len(protocols) or size > MOST_CELLS * MOST_ROWS:
        return None
    return reduce(_beside, parts)


def _sums(protocols: Sequence[AnyProtocol]) -> IntArray:
    """Released totals one by one, and sums of them that draws move less (g, b): each a row of 0 and 1 over the outputs.

    The sums are over all that is answered in some blocks, and over a group of values that no draw leaves.
    """
    return reduce(np.kron, [_within(one.telling_weights) for one in protocols])[:-1]  # the last one is of all records


def _within(weights: IntArray) -> IntArray:
    """The outputs of a block with these weights (b, c or 1, a): one by one, by groups that draws do not leave, and all.
    """
    size, answered = len(weights), weights.any(axis=1).astype(np.int64)
    linked = np.matmul(answered, answered.T) > 0  # outputs that some input has both of, and then those that these have
    while (further := np.matmul(linked.astype(np.int64), linked) > 0).sum() > linked.sum():
        linked = further
    groups = np.unique(linked, axis=0).astype(np.int64)
    apart = groups[(groups.sum(axis=1) > 1) & (groups.sum(axis=1) < size)]
    return np.vstack([np.eye(size, dtype=np.int64), apart, np.ones((1, size), np.int64)])


def _moved(protocols: Sequence[AnyProtocol]) -> list[FloatArray]:
    """For every value of every block by how much its expected total is above the true one, for a record of x (a,)."""
    found, sizes = list[FloatArray](), [len(one.inputs) for one in protocols]
    for place, one in enumerate(one for one in protocols if isinstance(one, Protocol) and not one.reads_secret):
        moved = -np.eye(sizes[place])
        named = [one.inputs.values.index(value) for value in one.outputs.values]
        moved[named] += one.probabilities()[:, 0, :]
        shape = [size if axis == place else 1 for axis, size in enumerate(sizes)]
        found += [np.broadcast_to(row.reshape(shape), sizes).ravel() for row in moved if row.any()]
    return found


def _shares(protocols: Sequence[AnyProtocol], records: IntArray) -> Iterator[Row]:
    """What weights of conditional reporting (b, c, a) say of N, where `records` (c,) have each value of the secret.

    But for a record's own value they are, times their sum, the mean of P(y|s') over s' ≠ s in parts of about 2^30,
    rounded by largest remainders.
    """
    sizes, c = [len(one.inputs) for one in protocols], len(records)
    means = (1 - np.eye(c)) / (np.maximum(records, 1) * (c - 1))
    for place, one in enumerate(protocols):
        noise = one.telling_weights.min(axis=2) * (sizes[place] > 1)
        for y, s in np.argwhere(np.broadcast_to(noise.any(axis=0), noise.shape)):
            total = int(noise[:, s].sum())
            near, mean = 1 / total + sizes[place] / (1 << 30), noise[y, s] / total
            row = np.zeros((c, *sizes))
            np.moveaxis(row, place + 1, 0)[y] = means[s].reshape(c, *[1] * (len(sizes) - 1))
            yield row.reshape(c, -1), mean - near, mean + near


def _beside(one: FloatArray, other: FloatArray) -> FloatArray:
    """Two blocks as one."""
    both = one[:, None, :, :, None] * other[None, :, :, None, :]
    return both.reshape(len(one) * len(other), both.shape[2], -1)


def ranges(
    table: IntArray,
    weights: FloatArray,
    there: npt.NDArray[np.bool_],
    steps: int = _STEPS,
    seen: IntArray | None = None,
    sums: IntArray | None = None,
    totals: Sequence[FloatArray] = (),
    shares: Sequence[Row] = (),
) -> FloatArray | None:
    """The least and the largest count of every cell, (c, a, 2), that agrees with all that the reader knows.

    `table` (c, a), `weights` Q(y | s, x) (b, c or 1, a), `there` (c, a) the cells that can have records at all, `seen`
    (b,) the released totals, None for those expected, `sums` (g, b) those of them that are looked at, None for each by
    itself, `totals` (a,) sums over records that are known to be about zero, `shares` what else is known. None where
    that takes more than `steps` of the simplex method.
    """
    sums = np.eye(len(weights), dtype=np.int64) if sums is None else sums
    rows = [*_facts(table, np.broadcast_to(weights, (len(weights), *table.shape)), seen, sums), *shares]
    for one in totals:
        off = abs(float((one * table).sum())) + _SLACK
        rows.append((np.broadcast_to(one, table.shape), -off, off))
    matrix, (low, high) = np.array([row.ravel() for row, _, _ in rows]), np.array([ends for _, *ends in rows]).T
    limits = (table.sum(axis=1, keepdims=True) * there).ravel().astype(float)
    unit = np.maximum(limits, 1.0)
    found = _ends(_program(matrix * unit, low, high, limits / unit, steps=steps))
    if found is None:
        return None
    least, most = np.fmax(found[0] * unit, 0.0), np.fmin(found[1] * unit, limits)
    if table.size <= _FEW and table.sum() <= _SMALL:
        whole = _ends(_program(matrix, low, high, limits, nodes=_NODES))
        least, most = (least, most) if whole is None else (np.fmax(least, whole[0]), np.fmin(most, whole[1]))
    return np.stack([least, most], -1).reshape(*table.shape, 2)


def _program(
    matrix: FloatArray,
    low: FloatArray,
    high: FloatArray,
    limits: FloatArray,
    *,
    nodes: int | None = None,
    steps: int | None = None,
) -> Program:
    """Rows between their limits, scaled so that the largest coefficient is 1, over variables in [0, limits]."""
    scale = np.maximum(np.abs(matrix).max(axis=1), 1e-300)
    bounds = low / scale, high / scale, np.zeros(len(limits)), limits
    return Program(matrix / scale[:, None], *bounds, tolerance=_SLACK, nodes=nodes, steps=steps)


def _ends(program: Program) -> tuple[FloatArray, FloatArray] | None:
    """The least and the largest value of every variable, NaN where the solver finds none; None without an end."""
    low, high, cost = np.full(program.width, np.nan), np.full(program.width, np.nan), np.zeros(program.width)
    for place in range(program.width):
        for sign, ends in ((-1.0, low), (1.0, high)):
            cost[place] = sign
            program.costs(cost)
            answer = program.solve(_ENDLESS)
            if answer.status in ("steps", "time"):
                return None
            if answer.optimal:
                ends[place] = sign * answer.optimum
        cost[place] = 0.0
    return low, high


def _facts(table: IntArray, weights: FloatArray, seen: IntArray | None, sums: IntArray) -> Iterator[Row]:
    """What the reader knows, as rows (c, a) of coefficients with their limits; weights (b, c, a), as `ranges` has them.

    The true table always is among those that agree: where a draw was as rare as that, its total is let off further.
    """
    records, rows = table.sum(axis=1), int(table.sum())
    for s in range(len(table)):
        yield _of(s, np.ones(table.shape[1]), table), float(records[s]), float(records[s])
    expected = (weights * table).sum(axis=(1, 2))
    totals = expected if seen is None else seen.astype(float)
    chances = np.tensordot(sums, weights, 1)
    spread = DEVIATIONS * np.sqrt((np.fmax(chances * (1 - chances), 0.0) * table).sum(axis=(1, 2)))
    widths = np.fmax(spread, np.abs(sums @ (totals - expected)) + _SLACK)
    for weight, total, width in zip(chances, sums @ totals, widths, strict=True):
        yield weight, total - width, total + width
    sent = (weights * table).sum(axis=2)
    yield from _beliefs(table, weights, sent, records, rows)
    yield from _odds(table, weights, sent, records)


def _beliefs(table: IntArray, weights: FloatArray, sent: FloatArray, records: IntArray, rows: int) -> Iterator[Row]:
    """How far beliefs rise and fall: T[s, y] against N_s T_y / n, sent (b, c)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log(sent * rows / (sent.sum(axis=1, keepdims=True) * records))
    known = (sent.sum(axis=1, keepdims=True) > 0) & (records > 0)
    for sign in (1.0, -1.0):
        most = float((sign * change)[known].max())
        if not np.isfinite(most):
            continue
        near = NEAR if most else 0.0
        for y, s in np.argwhere(known):
            share = records[s] / rows * weights[y]
            touched = sign * change[y, s] >= most - near
            yield sign * (_of(s, weights[y, s], table) - np.exp(sign * most) * share), -np.inf, _SLACK
            if touched:
                yield sign * (_of(s, weights[y, s], table) - np.exp(sign * (most - near)) * share), -_SLACK, np.inf


def _odds(table: IntArray, weights: FloatArray, sent: FloatArray, records: IntArray) -> Iterator[Row]:
    """The odds between two values of the secret that are the largest: P(y|s) = e^d P(y|s')."""
    given = sent[:, records > 0] / records[records > 0]
    given, named = given[given.any(axis=1)], np.flatnonzero(records > 0)
    outputs = np.flatnonzero(sent.any(axis=1))
    if (given == 0).any() or len(named) < 2:
        return
    odds = np.log(given[:, :, None] / given[:, None, :])
    most = float(odds.max())
    near = NEAR if most else 0.0
    for y, one, other in np.argwhere(odds >= most - near):
        s, t, out = named[one], named[other], outputs[y]
        if s == t:
            continue
        first, second = _of(s, weights[out, s], table) / records[s], _of(t, weights[out, t], table) / records[t]
        yield first - np.exp(most) * second, -np.inf, _SLACK
        yield first - np.exp(most - near) * second, -_SLACK, np.inf


def _of(s: int, values: FloatArray, table: IntArray) -> FloatArray:
    """Coefficients (c, a) of one secret value alone."""
    row = np.zeros(table.shape)
    row[s] = values
    return row
