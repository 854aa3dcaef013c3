"""Rounded beliefs: the protocol keeps its bound for every table whose beliefs and totals lie in the same steps.

The steps are worked out anew from the counts. Of a table in them N[s, x] lies between two ends, and so does every total
of X; for an output with chances v_x the largest P(y|s) = Σ N v / Σ N is the t where Σ l (v - t) + Σ (h - l) max(v-t, 0)
is zero. A limit P(y|s) <= k P(y) holds for all tables if the largest of the one is at most k times the smallest of the
other.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

import numpy as np

from funnel.audit.extras.base import Release, array
from funnel.audit.extras.boxes import FloatArray
from funnel.audit.extras.conditions import beliefs
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked
from funnel.format.manifest import Manifest
from funnel.format.protocol import NAME, Weights

CLAIM = "rounded-beliefs"
TITLE = "the protocol keeps the bound for every table whose beliefs round to the same steps as the counts"
PRIVATE = True
MOST_NUMBERS = 20_000_000
"""Outputs times values times secret values beyond which nobody waits."""
_FLOAT = 1e-9
_ROUNDS = 100


def check(opened: Release) -> str | Unchecked:
    """Every limit, for the worst tables in the steps. Raises Broken."""
    manifest = opened.manifest
    step = manifest.estimate.beliefs
    if step is None:
        return Unchecked(NOT_CLAIMED + "beliefs were not rounded")
    if manifest.locked is not None:
        return Unchecked("it is about the counts that the lock was made from, which no file of this release holds")
    if manifest.notion == "ldp-x":
        return "the bound is one for every table there is"
    limits, rows, counts = _limits(manifest), _rows(opened), opened.table.astype(float)
    if limits is None or rows is None or rows.size * len(counts) > MOST_NUMBERS:
        return Unchecked(f"what {manifest.notion} asks of so many outputs is not written out here")
    minimum, exact = manifest.estimate.minimum, manifest.totals == "kept"
    low, high = ends(counts.reshape(len(counts), -1), step, minimum, exact=exact)
    rows = rows[rows.any(axis=1)]  # what nobody answers says nothing
    top = rows.max(axis=1, keepdims=True)
    largest, smallest = _largest(rows, low, high), np.asarray(top - _largest(top - rows, low, high))
    with np.errstate(divide="ignore"):  # an answer that some belief rules out is beyond any limit
        worst = max(float((largest[:, up] / smallest[:, down]).max()) / ratio for up, down, ratio in limits)
    if worst > 1 + _FLOAT:
        what = "a table whose beliefs round to the same steps exceeds the bound"
        raise Broken(NAME, what, f"a factor of 1 at most, of {manifest.notion}'s limits", f"{worst:.9f}")
    most = math.ceil(worst * 10**6) / 10**6
    told = f"{len(rows)} outputs, steps of at least {step:g}: at most {most:.6f} of what {manifest.notion} allows"
    return f"{told}; that nothing else shaped the protocol no file shows"


def ends(counts: FloatArray, step: float, minimum: int, *, exact: bool) -> tuple[FloatArray, FloatArray]:
    """Least and largest N[s, x], and last the totals of x (c + 1, a), of all tables in the same steps as `counts`.

    Beliefs: 2/(2m + 1) wide, the narrowest that is no less than `step` or 2 (minimum + c) records. Totals: as many
    binary digits as make steps of `step` at least, unless `exact`. Of x with fewer than `minimum` records nothing else
    is known.
    """
    found = [_ends(column, Fraction(repr(step)), minimum, exact) for column in counts.astype(int).T.tolist()]
    return np.array([low for low, _ in found]).T, np.array([high for _, high in found]).T


def _ends(column: list[int], step: Fraction, minimum: int, exact: bool) -> tuple[list[float], list[float]]:
    total, c = sum(column), len(column)
    if total < minimum:
        return [0.0] * (c + 1), [float(minimum - 1)] * (c + 1)
    unit = 1 if exact else 2 ** max(0, math.floor(math.log2(total)) - math.floor(math.log2(1 / step)))
    least = total - total % unit
    most = least + unit - 1
    m = math.floor(min(1 / step, Fraction(least, 2 * (minimum + c))) - Fraction(1, 2))
    if m < 1:
        return [0.0] * c + [float(least)], [float(most)] * (c + 1)
    wide = Fraction(2, 2 * m + 1)
    down = [math.floor(Fraction(one, total) / wide) * wide for one in column]
    up = [min(one + wide, Fraction(1)) for one in down]
    low = [max(a, 1 - sum(up) + b) for a, b in zip(down, up, strict=True)]
    high = [min(b, 1 - sum(down) + a) for a, b in zip(down, up, strict=True)]
    return [*(float(least * one) for one in low), float(least)], [*(float(most * one) for one in high), float(most)]


def _limits(manifest: Manifest) -> list[tuple[int, int, float]] | None:
    """Which side may see an output how many times as often as which other; the last side is everybody."""
    c, ratio = manifest.alphabet.sensitive, math.exp(manifest.epsilon)
    if manifest.notion == "ldp":
        return [(s, t, ratio) for s in range(c) for t in range(c) if s != t]
    within = beliefs(manifest)
    if within is None:
        return None
    least, most = within
    return [(s, c, most) for s in range(c)] + ([] if least is None else [(c, s, 1 / least) for s in range(c)])


def _rows(opened: Release) -> FloatArray | None:
    """The weights of every combination of outputs (b, a) over every combination of values; None where they read S."""
    blocks = opened.protocol.blocks
    if not all(isinstance(block, Weights) and not block.secret for block in blocks):
        return None
    parts = [array(block)[:, 0].astype(float) for block in blocks if isinstance(block, Weights)]
    if math.prod(part.size for part in parts) > MOST_NUMBERS:
        return None
    return np.asarray(reduce(np.kron, parts))


def _largest(rows: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """max Σ N v / Σ N over low <= N <= high, for every row v and side (b, g): Newton's steps from below."""
    value = np.full((len(rows), len(low)), -np.inf)
    for _ in range(_ROUNDS):
        masses = np.where(rows[:, None] > value[..., None], high, low)
        whole = masses.sum(axis=2)
        better = np.einsum("bga,ba->bg", masses, rows) / np.where(whole > 0, whole, 1.0)
        if not (better > value * (1 + 1e-15)).any():
            break
        value = np.maximum(value, better)
    return value
