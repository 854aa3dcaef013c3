"""The leakage that a robust release would have if the truth were not the counted distribution but one near it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from funnel.data import Protocol
from funnel.data.joint import FloatArray
from funnel.data.sending import through
from funnel.errors import InternalError
from funnel.report.case import Case
from funnel.report.figures import epsilon_text, share

RESAMPLES = 1000
"""Distributions drawn around the counted one."""

_CELLS = 200_000_000
"""Most cells that are looked at in all, so that a large table makes a report with fewer resamples."""


def realised(case: Case) -> dict[str, Any] | None:
    """Quantiles of the LDP leakage over resampled truths, in nats, and the share of these above ε; None if not asked.

    The truth is drawn from the Dirichlet distribution with the counts as parameters: the posterior, without prior
    counts, given the records. The generator is seeded from the release's name, so that a report can be made
    again to the last byte; nobody's privacy rests on it. Published: leakages up to two decimals, the share to 1 %.
    """
    if case.manifest["notion"] != "rldp":
        return None
    found = np.sort(np.fromiter(_leakages(case), float))
    places = {"median": 0.5, "p95": 0.95, "largest": 1.0}
    at = {name: found[math.ceil(part * len(found)) - 1] for name, part in places.items()}
    above = float((found > case.epsilon * (1 + 1e-12)).mean())
    told = {name: _nats(case, value) for name, value in at.items()}
    return {
        "sentence": _sentence(case),
        "resamples": len(found),
        **told,
        "share_above": share(above, 0.01 if case.published else 1e-6),
    }


def _sentence(case: Case) -> str:
    return (
        "The counts come from a limited number of records, so the true distribution is another one. Distributions that "
        "the truth could be were drawn at random around the counts, and for each the leakage that this release would "
        f"then have was computed. It may pass ε = {epsilon_text(case.epsilon)} only where a distribution lies outside "
        "the uncertainty set. Combinations of values that no record has stay impossible in all of them."
    )


def _leakages(case: Case) -> Iterator[float]:
    """max ln P(y|s)/P(y|s') of the release, for one distribution of the true values after another."""
    seed = hashlib.sha256(str(case.manifest["release"]).encode()).digest()
    random = np.random.default_rng(np.frombuffer(seed, np.uint32))
    cells = max(math.prod(case.joint.shape), case.table.size)
    for _ in range(max(50, min(RESAMPLES, _CELLS // cells))):
        table = np.zeros(case.joint.shape)
        table[tuple(case.joint.cells.T)] = random.standard_gamma(case.joint.counts)
        yield _ldp(case, table)


def _ldp(case: Case, table: FloatArray) -> float:
    """The LDP leakage in nats where the true values are distributed as `table` (c, a_1, …, a_k)."""
    sent = table / table.reshape(len(table), -1).sum(axis=1).reshape(-1, *[1] * (table.ndim - 1))
    for axis, protocol in enumerate(case.protocols, start=1):
        if not isinstance(protocol, Protocol):
            raise InternalError("robust privacy is told of weights, not of sets")
        sent = through(sent, axis, protocol.weights) / float(1 << protocol.bits)
    chances = sent.reshape(len(sent), -1)
    chances = chances[:, chances.any(axis=0)]
    if (chances == 0).any():
        return math.inf
    return float(np.log(chances.max(axis=0) / chances.min(axis=0)).max())


def _nats(case: Case, value: float) -> float | None:
    """Rounded up; None where it is infinite."""
    grain = 100 if case.published else 10_000
    return math.ceil(value * grain - 1e-6) / grain + 0.0 if math.isfinite(value) else None
