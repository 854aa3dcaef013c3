"""Inequalities of exact robust LDP: pairs of distributions that a proof names, each shown to occur in the set.

A robust row has R_1·v_s <= e^ε R_2·v_s' for every pair (R_1, R_2) of P_{X|s}, P_{X|s'} that occur together in F (see
`pairs` for which do). An inequality of a proof is read back into its pair, and what follows from the pair is used.
"""

from __future__ import annotations

import math

import numpy as np

from funnel.audit.ends import FloatArray
from funnel.audit.evidence import Evidence
from funnel.audit.fields import IntArray
from funnel.audit.manifest import Manifest
from funnel.audit.pairs import LEAST_ORDER
from funnel.audit.uncertainty import Seen, Uncertainty, around

_WITHIN = 1e-12
"""Relative error of floats that is forgiven where a pair lies on the border of the set."""


def robust_rows(evidence: Evidence, manifest: Manifest, given: FloatArray) -> FloatArray | None:
    """For inequalities on w that a proof names (k, a), those of their pairs that occur in F, largest coefficient one.

    None where pairs cannot be read back: the secret is not released beside the rest, or the order is below one half.
    """
    known = around(evidence, manifest)
    owner = np.full(given.shape[1], -1)
    for group, seen in enumerate(known.seen):
        if (owner[seen.places] >= 0).any():
            return None
        owner[seen.places] = group
    if known.order < LEAST_ORDER or (owner < 0).any():
        return None
    counts = evidence.dense().sum(axis=0)
    prior, ratio = counts / counts.sum(), math.exp(manifest.epsilon)
    found = (_row(one * prior, owner, known, ratio) for one in given)
    rows = np.array([row / prior for row in found if row is not None]).reshape(-1, given.shape[1])
    return np.asarray(rows / np.abs(rows).max(axis=1, initial=0.0)[:, None])


def _row(given: FloatArray, owner: IntArray, known: Uncertainty, ratio: float) -> FloatArray | None:
    """R_1 - ratio·R_2 on v (a,), with the pair that an inequality on v names; None where it is none that occurs."""
    if not np.isfinite(given).all():
        return None
    high, low = np.maximum(given, 0.0), np.maximum(-given, 0.0)
    groups = [np.unique(owner[part > 0]) for part in (high, low)]
    if len(groups[0]) != 1 or len(groups[1]) != 1 or groups[0][0] == groups[1][0]:
        return None
    one, two = (known.seen[int(group[0])] for group in groups)
    high, low = high / high.sum(), low / low.sum()
    if not occurs(known, (one, high[one.places]), (two, low[two.places])):
        return None
    return np.asarray(high - ratio * low)


def occurs(known: Uncertainty, *pair: tuple[Seen, FloatArray]) -> bool:
    """Whether some P in F has each R (m,) as its P_{X|s}; R sums to one."""
    order, radius = float(known.order), float(known.radius)
    shares = [float(seen.share) for seen, _ in pair]
    if order == 1:
        spent = sum(w * _relative(seen, r) for w, (seen, r) in zip(shares, pair, strict=True))
        return spent <= radius * (1 + _WITHIN)
    limit = math.exp((order - 1) * radius / order) - (1 - sum(shares))
    spent = sum(w * _power(seen, r, order) for w, (seen, r) in zip(shares, pair, strict=True))
    return spent <= limit + _WITHIN if order > 1 else spent >= limit - _WITHIN


@np.errstate(all="ignore")
def _relative(seen: Seen, other: FloatArray) -> float:
    """D(P̂ || R) in nats; infinite where R misses what was seen."""
    kept = seen.chances > 0
    terms = seen.chances[kept] * np.log(seen.chances[kept] / other[kept])
    return float(terms.sum()) if np.isfinite(terms).all() else math.inf


@np.errstate(all="ignore")
def _power(seen: Seen, other: FloatArray, order: float) -> float:
    """(Σ P̂^α R^(1-α))^(1/α); infinite where R misses what was seen and α > 1."""
    kept = seen.chances > 0
    terms = seen.chances[kept] ** order * other[kept] ** (1 - order)
    return float(terms.sum() ** (1 / order)) if np.isfinite(terms).all() else math.inf
