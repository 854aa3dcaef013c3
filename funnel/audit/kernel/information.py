"""Averages in nats: I(S;Y) from above, in fractions, where it is a promise; elsewhere figures to compare, in floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from funnel.audit.kernel.channel import MOST_CELLS, Channel
from funnel.audit.kernel.exact import ExactArray, FloatArray, weighted_logs

_MARGIN = Fraction(1, 10**40)


def information_above(table: ExactArray) -> Fraction:
    """A fraction at or above I(S;Y), by less than 10^-30, from T[s, y…] of sum n.

    n·I = Σ T ln T + n ln n - Σ_s T_s ln T_s - Σ_y T_y ln T_y.
    """
    flat = table.reshape(len(table), -1).astype(object)
    total = flat.sum()
    gained = weighted_logs([*flat.ravel().tolist(), total])
    lost = weighted_logs([*flat.sum(axis=1).tolist(), *flat.sum(axis=0).tolist()])
    return max((gained - lost) / int(total) + _MARGIN, Fraction(0))


def information(joint: FloatArray) -> float:
    """I between rows and columns of a joint distribution."""
    return max(entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint), 0.0)


def entropy(chances: FloatArray) -> float:
    """-Σ p ln p."""
    p = chances[chances > 0]
    return float(-(p * np.log(p)).sum())


def secret_and_public(channel: Channel) -> tuple[FloatArray, FloatArray] | None:
    """P(s, y) and P(x, y), y all blocks together and x every value that occurs; None where they are too large."""
    cells = np.argwhere(channel.counts.any(axis=0))
    outputs = np.prod([float(block.outputs) for block in channel.blocks])
    if outputs * max(len(cells), len(channel.counts)) > MOST_CELLS:
        return None
    likelihoods = [np.asarray(block.weights / (1 << block.precision), float) for block in channel.blocks]
    secret, public = np.zeros((len(channel.counts), int(outputs))), np.zeros((len(cells), int(outputs)))
    for place, x in enumerate(cells):
        chances = np.ones((len(channel.counts), 1))
        for block, code in zip(likelihoods, x, strict=True):
            chances = (chances[:, :, None] * block[:, :, code].T[:, None, :]).reshape(len(chances), -1)
        seen = channel.counts[(slice(None), *x)][:, None] / channel.counts.sum() * chances
        secret, public[place] = secret + seen, seen.sum(axis=0)
    return secret, public
