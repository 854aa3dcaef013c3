"""A classifier: naive Bayes, trained on outside people whose secret is known, on the rows released of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.trials.attacking.published import Codes, Floats

TOP = (0.01, 0.02, 0.05, 0.10)


def beliefs(columns: Sequence[Codes], secret: Codes, outside: Codes, inside: Codes) -> Floats:
    """P(s | row) for the people inside (c, i), learned from those outside; every count begins at one."""
    values = int(secret.max()) + 1
    found = np.log(np.bincount(secret[outside], minlength=values) + 1.0)[:, None] + np.zeros(len(inside))
    for codes in columns:
        counts = np.ones((values, int(codes.max()) + 1))
        np.add.at(counts, (secret[outside], codes[outside]), 1.0)
        found += np.log(counts / counts.sum(axis=1, keepdims=True))[:, codes[inside]]
    chances = np.exp(found - found.max(axis=0))
    return np.asarray(chances / chances.sum(axis=0))


def right(belief: Floats, has: Codes, parts: Sequence[float] = TOP) -> list[tuple[int, float]]:
    """Of the part of the people (i,) for whom a value is believed most: how many, and the share that have it."""
    order = np.argsort(-belief, kind="stable")
    sizes = [max(1, round(part * len(order))) for part in parts]
    return [(size, float(has[order[:size]].mean())) for size in sizes]


def ceiling(prior: float, nats: float) -> float:
    """What a belief may become under LIP: at most e^ε times the first one, nor the contrary less than e^-ε times."""
    return min(float(np.exp(nats) * prior), float(1 - np.exp(-nats) * (1 - prior)))
