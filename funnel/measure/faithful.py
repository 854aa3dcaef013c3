"""How true a released row is to its person, and its totals at face value; and the same figures at ε = 0.

A table whose rows belong to nobody can be had at ε = 0: every row is drawn for nobody in particular, Q(y|x) = p_y for
each block, and its totals are right on average. What a larger ε buys beyond that is told here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.data.joint import FloatArray, IntArray, Joint
from funnel.data.unary import AnyProtocol
from funnel.measure.recovery import recovered


@dataclass(frozen=True, eq=False)
class Faithful:
    """What one release leaves as it is, on average over its draws.

    `unchanged`: the share of records of which every released value is the true one. `accuracy`: by column, the share
    that shows its own value there. For each block, of the values told and those that never are, in records: `errors`,
    standard errors of the raw totals, and `biases`, by how much these are too high on average.
    """

    unchanged: float
    accuracy: dict[str, float]
    errors: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    @property
    def mean_accuracy(self) -> float:
        """The mean over columns."""
        return math.fsum(self.accuracy.values()) / len(self.accuracy)

    @property
    def error(self) -> float:
        """How far a raw total is from the true one, in records: root mean square, bias and all, over all values."""
        return math.sqrt(float(np.mean(np.concatenate([*self.errors, *self.biases]) ** 2)) * 2)


@dataclass(frozen=True)
class FaithfulFigures:
    """The same in four figures: shares of records, and how far a total is off in records, in quadratic mean.

    `accuracy` is the mean over columns, `face` of a raw total, `estimated` of an unbiased estimate from the released
    ones; None where some value has none.
    """

    unchanged: float
    accuracy: float
    face: float
    estimated: float | None


def told(joint: Joint, protocols: Sequence[AnyProtocol]) -> FaithfulFigures:
    """Of a release."""
    found = faithful(joint, protocols)
    return FaithfulFigures(found.unchanged, found.mean_accuracy, found.error, estimation_error(joint, protocols))


def told_at_zero(joint: Joint) -> FaithfulFigures:
    """At ε = 0, where raw totals are right on average and nothing is to be estimated from them."""
    found = at_zero(joint)
    return FaithfulFigures(found.unchanged, found.mean_accuracy, found.error, found.error)


def faithful(joint: Joint, protocols: Sequence[AnyProtocol]) -> Faithful:
    """The figures of a release."""
    errors, biases = zip(*map(_raw, map(joint.table, range(len(protocols))), protocols), strict=True)
    return Faithful(share_unchanged(joint, protocols), column_accuracy(joint, protocols), errors, biases)


def at_zero(joint: Joint) -> Faithful:
    """Those of the release of the same blocks at ε = 0: Q(y|x) = p_y."""
    priors = [joint.table(index).sum(axis=0) / joint.rows for index in range(len(joint.blocks))]
    chance = joint.counts / joint.rows
    for prior, codes in zip(priors, joint.cells.T[1:], strict=True):
        chance = chance * prior[codes]
    accuracy = {
        column: _collision([value[place] for value in block.values], prior)
        for block, prior in zip(joint.blocks, priors, strict=True)
        for place, column in enumerate(block.columns)
    }
    errors = tuple(np.sqrt(joint.rows * prior * (1 - prior)) for prior in priors)
    return Faithful(math.fsum(chance), accuracy, errors, tuple(map(np.zeros_like, errors)))


def estimation_error(joint: Joint, protocols: Sequence[AnyProtocol]) -> float | None:
    """The standard error of an unbiased estimate of a true total, in records: quadratic mean over all values."""
    found = [_estimated(joint.table(index), protocol) for index, protocol in enumerate(protocols)]
    known = [one for one in found if one is not None]
    return None if len(known) < len(found) else math.sqrt(float(np.mean(np.concatenate(known) ** 2)))


def share_unchanged(joint: Joint, protocols: Sequence[AnyProtocol]) -> float:
    """The share of records expected to be released as they are, in every block."""
    chance = joint.counts.astype(float)
    for index, protocol in enumerate(protocols):
        secret = joint.cells[:, 0] if protocol.reads_secret else 0
        chance = chance * protocol.alike()[secret, joint.cells[:, 1 + index]]
    return math.fsum(chance) / joint.rows


def column_accuracy(joint: Joint, protocols: Sequence[AnyProtocol]) -> dict[str, float]:
    """By column of all blocks, the share of records expected to show their own value in it."""
    return {
        column: math.fsum((joint.table(index) * protocol.alike(place)).ravel()) / joint.rows
        for index, protocol in enumerate(protocols)
        for place, column in enumerate(protocol.inputs.columns)
    }


def _collision(parts: Sequence[str | None], prior: FloatArray) -> float:
    """The chance that two draws from `prior` (a,) agree in this part of their values."""
    _, code = np.unique([repr(part) for part in parts], return_inverse=True)
    return math.fsum(np.bincount(code, prior) ** 2)


def _estimated(counts: IntArray, protocol: AnyProtocol) -> FloatArray | None:
    """Of one block with N[s, x] (c, a): the standard errors (a,), as from the totals that are to be expected."""
    records = counts if protocol.reads_secret else counts.sum(axis=0, keepdims=True)
    found = recovered(protocol, np.einsum("sx,ysx->y", records, protocol.telling()), int(counts.sum()))
    return found.error if len(found.count) == len(protocol.inputs) else None


def _raw(counts: IntArray, protocol: AnyProtocol) -> tuple[FloatArray, FloatArray]:
    """Of one block with N[s, x] (c, a): the roots of Σ N[s,x] Q(y|s,x) (1 - Q(y|s,x)), for records are drawn
    independently, and Σ N[s,x] Q(y|s,x) - N[y], of b values told and behind them of those that are never told, of
    which there are N[x] too few."""
    chances = protocol.telling()
    records = counts if protocol.reads_secret else counts.sum(axis=0, keepdims=True)
    true = dict(zip(protocol.inputs.values, counts.sum(axis=0).tolist(), strict=True))
    own = np.array([true.pop(value, 0) for value in protocol.told.values])
    spread, mean = (np.einsum("sx,ysx->y", records, one) for one in (chances * (1 - chances), chances))
    untold = np.array([*true.values()])
    return np.sqrt(np.append(spread, 0.0 * untold)), np.append(mean - own, -untold)
