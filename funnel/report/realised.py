"""The leakage that a robust release would have if the truth were not the counted distribution but one near it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from funnel.data import AnyProtocol, Joint
from funnel.data.joint import FloatArray
from funnel.data.sending import through
from funnel.report.facts import Facts

RESAMPLES = 1000
"""Distributions drawn around the counted one."""

_CELLS = 200_000_000
"""Most cells that are looked at in all, so that a large table makes a report with fewer resamples."""


def realised(t: Facts, joint: Joint) -> dict[str, Any] | None:
    """Quantiles of the LDP leakage over resampled truths in nats, and the share of these above ε.

    None unless the notion is about distributions near the counted one, which has a radius. The truth is drawn from the
    Dirichlet distribution with the counts as parameters: the posterior, without prior counts, given the records. The
    generator is seeded from the release's name, so that a report can be made again; nobody's privacy rests on it.
    """
    if t.m.parameters.radius is None:
        return None
    found = np.sort(np.fromiter(_leakages(t.m.release, t.protocols, joint), float))
    places = {"median": 0.5, "p95": 0.95, "largest": 1.0}
    at = {name: float(found[math.ceil(part * len(found)) - 1]) for name, part in places.items()}
    return {
        "resamples": len(found),
        **{name: round(value, 4) + 0.0 if math.isfinite(value) else None for name, value in at.items()},
        "share_above": round(float((found > t.epsilon * (1 + 1e-12)).mean()), 6),
    }


def _leakages(release: str, protocols: Sequence[AnyProtocol], joint: Joint) -> Iterator[float]:
    """max ln P(y|s)/P(y|s') of the release, for one distribution of the true values after another."""
    seed = hashlib.sha256(release.encode()).digest()
    random = np.random.default_rng(np.frombuffer(seed, np.uint32))
    cells = max(math.prod(joint.shape), len(joint.secret) * math.prod(one.size for one in protocols))
    for _ in range(max(50, min(RESAMPLES, _CELLS // cells))):
        table = np.zeros(joint.shape)
        table[tuple(joint.cells.T)] = random.standard_gamma(joint.counts)
        yield _ldp(protocols, table)


def _ldp(protocols: Sequence[AnyProtocol], table: FloatArray) -> float:
    """The LDP leakage in nats where the true values are distributed as `table` (c, a_1, …, a_k)."""
    rows = table.reshape(len(table), -1).sum(axis=1)
    sent = (table.reshape(len(table), -1)[rows > 0] / rows[rows > 0, None]).reshape(-1, *table.shape[1:])
    for axis, protocol in enumerate(protocols, start=1):
        weights, bits = protocol.likelihoods()
        sent = through(sent, axis, weights) / 2.0**bits
    chances = sent.reshape(len(sent), -1)
    chances = chances[:, chances.any(axis=0)]
    if (chances == 0).any():
        return math.inf
    return float(np.log(chances.max(axis=0) / chances.min(axis=0)).max())
