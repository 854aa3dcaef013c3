"""Averages, in floats: they compare mechanisms and promise nobody anything, so the kernel leaves them here.

I(S;Y) where a notion bounds it is worked out by the kernel, exactly (`kernel.notions.mutual_information`).
"""

from __future__ import annotations

import numpy as np

from funnel.audit.extras.base import Release, entropy
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.exact import MOST_CELLS, FloatArray
from funnel.audit.kernel.verdict import Broken, Unchecked, agree
from funnel.format.manifest import NAME

CLAIM = "averages-stated"
TITLE = "I(S;Y), I(X;Y), H(X) and their ratio in release.json are those of protocol.json at counts.json, rounded"
PRIVATE = True
_FLOAT = 1e-9


def check(opened: Release) -> str | Unchecked:
    """I(S;Y) is rounded up at the manifest's last decimal, the others to the nearest or not stated. Raises Broken."""
    joint, told, digits = secret_and_public(opened.channel), opened.manifest.utility, opened.manifest.decimals
    if joint is None:
        return Unchecked("an average over so many outputs is no promise, and nobody waits for it")
    (hidden, kept), whole = map(information, joint), entropy(joint[1].sum(axis=1))
    share, half = kept / whole if whole else 1.0, float(opened.manifest.step) / 2  # a constant X loses nothing
    stated: list[tuple[str, float, float | None]] = [
        ("utility.mutual_information", kept, told.mutual_information),
        ("utility.entropy", whole, told.entropy),
        ("utility.normalised", share, told.normalised),
    ]
    if not digits:
        agree(NAME, [(f"{what}, where figures have no decimals", None, figure) for what, _, figure in stated])
        stated = []
    hidden_figure = opened.manifest.leakage["mutual_information"]
    for what, exact, figure in [("leakage.mutual_information", hidden + half, hidden_figure), *stated]:
        if figure is None or not abs(exact - figure) <= half + _FLOAT:
            raise Broken(NAME, f"{what} is not the true one, rounded", f"{exact:.6f}", figure)
    return f"I(S;Y) = {hidden:.6f}, I(X;Y) = {kept:.6f}, H(X) = {whole:.6f} nats, ratio {share:.6f}"


def information(joint: FloatArray) -> float:
    """I between rows and columns of a joint distribution."""
    return max(entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint), 0.0)


def secret_and_public(channel: Channel) -> tuple[FloatArray, FloatArray] | None:
    """P(s, y) and P(x, y), y all blocks together and x every value that occurs; None where they are too large."""
    cells = np.argwhere(channel.counts.any(axis=0))
    outputs = np.prod([float(len(block.weights)) for block in channel.blocks])
    if outputs * max(len(cells), len(channel.counts)) > MOST_CELLS:
        return None
    likelihoods = [np.asarray(block.weights / (1 << block.bits), float) for block in channel.blocks]
    secret, public = np.zeros((len(channel.counts), int(outputs))), np.zeros((len(cells), int(outputs)))
    for place, x in enumerate(cells):
        chances = np.ones((len(channel.counts), 1))
        for block, likelihood in zip(channel.blocks, likelihoods, strict=True):
            given = likelihood[:, :, x[block.axis]]
            chances = (chances[:, :, None] * given.T[:, None, :]).reshape(len(chances), -1)
        seen = channel.counts[(slice(None), *x)][:, None] / channel.counts.sum() * chances
        secret, public[place] = secret + seen, seen.sum(axis=0)
    return secret, public
