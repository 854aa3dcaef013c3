"""Averages in nats, in floating point from exact integers: figures to compare, not bounds to keep."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import numpy.typing as npt

from funnel.audit import unary
from funnel.audit.evidence import Evidence
from funnel.audit.exact import ExactArray
from funnel.audit.protocols import Blocks

MOST_WORK = 400_000_000
FloatArray = npt.NDArray[np.float64]


def secret_information(table: ExactArray) -> float:
    """I(S;Y) from T[s, y…]."""
    flat = _shares(table)
    joint = np.outer(flat.sum(axis=1), flat.sum(axis=0))
    seen = flat > 0
    return max(float((flat[seen] * np.log(flat[seen] / joint[seen])).sum()), 0.0)


def public_entropy(evidence: Evidence) -> float:
    """H(X) of all blocks together."""
    return entropy(np.array([sum(by_secret.values()) for by_secret in _by_public(evidence).values()], float))


def public_information(evidence: Evidence, blocks: Blocks, table: ExactArray) -> float | None:
    """I(X;Y) of the channel released, from its T[s, y…]; None where that would take too long.

    Given x the blocks are independent, unless one reads s: then the chances are averaged over s given x.
    """
    if any(block.secret for block in blocks):
        noise = _averaged_noise(evidence, blocks)
    else:
        noise = sum(
            unary.noise(block)
            if isinstance(block, unary.UnaryBlock)
            else _noise(evidence, axis, block.weights[:, 0, :])
            for axis, block in enumerate(blocks, start=1)
        )
    if noise is None:
        return None
    return max(entropy(_shares(table).sum(axis=0)) - noise, 0.0)


def entropy(masses: FloatArray) -> float:
    """-Σ p ln p of non-negative masses, normalised first."""
    p = masses[masses > 0] / masses.sum()
    return float(-(p * np.log(p)).sum())


def _shares(table: ExactArray) -> FloatArray:
    """T[s, y…] as shares of its sum, (c, b); Python divides integers of any size with correct rounding."""
    masses: list[int] = table.ravel().tolist()
    total = sum(masses)
    return np.array([mass / total for mass in masses]).reshape(len(table), -1)


def _noise(evidence: Evidence, axis: int, weights: npt.NDArray[np.int64]) -> float:
    """H(Y_j|X_j) of a block that reads only x."""
    prior = np.bincount(evidence.cells[:, axis], weights=evidence.counts, minlength=weights.shape[1])
    spread = np.array([entropy(column) for column in weights.T.astype(float)])
    return float(prior @ spread / evidence.rows)


def _averaged_noise(evidence: Evidence, blocks: Blocks) -> float | None:
    """H(Y|X) where draws read s, one value of X at a time."""
    if len(evidence.cells) * math.prod(len(block.outputs) for block in blocks) > MOST_WORK:
        return None
    noise = 0.0
    for x, by_secret in _by_public(evidence).items():
        chances = sum(count * _chances(blocks, s, x) for s, count in by_secret.items())
        noise += sum(by_secret.values()) / evidence.rows * entropy(np.asarray(chances, float))
    return noise


def _chances(blocks: Blocks, s: int, x: tuple[int, ...]) -> FloatArray:
    """P(y_1, …, y_k | s, x), flat."""
    chances = np.ones(1)
    for block, code in zip(blocks, x, strict=True):
        column = block.weights[:, s if block.secret else 0, code]
        chances = np.multiply.outer(chances, column / float(1 << block.bits)).ravel()
    return chances


def _by_public(evidence: Evidence) -> dict[tuple[int, ...], dict[int, int]]:
    """Counts by x, then by s."""
    found: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
    for (s, *x), count in zip(evidence.cells.tolist(), evidence.counts.tolist(), strict=True):
        found[tuple(x)][s] = count
    return found
