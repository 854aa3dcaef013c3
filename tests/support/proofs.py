"""What a proof by boxes leaves over."""

from __future__ import annotations

import numpy as np

from funnel.optimise.certificate import Proof

MARGIN = 1e-9


def xlogx(t: np.ndarray) -> np.ndarray:
    return t * np.log(np.where(t > 0, t, 1.0))


def excess(proof: Proof, linear: np.ndarray, peak: float) -> float:
    """By how much (nats) a box that is not split may exceed the peak, going by the multipliers alone."""
    count, size = proof.boxes, len(linear)
    assert ((proof.value >= 0) | (proof.index >= len(proof.inequalities) - proof.equalities)).all()
    children: list[list[int]] = [[] for _ in range(count)]
    for box in range(1, count):
        assert proof.parent[box] < box
        children[proof.parent[box]].append(box)
    worst, waiting = -np.inf, [(0, np.zeros(size), np.ones(size))]
    while waiting:
        box, lower, upper = waiting.pop()
        if (lower > upper).any():
            continue
        width = upper - lower
        chord = np.divide(xlogx(upper) - xlogx(lower), width, out=np.zeros(size), where=width > 0)
        part = slice(proof.starts[box], proof.starts[box + 1])
        rate = chord - linear - proof.value[part] @ proof.inequalities[proof.index[part]] - proof.level[box]
        top = (xlogx(lower) - chord * lower).sum() + proof.level[box]
        over = top + np.maximum(rate * lower, rate * upper).sum() - peak
        if not children[box]:
            worst = max(worst, over)
        if not children[box] or over <= 0:
            continue
        reach = over / np.maximum(np.abs(rate), 1e-300) + MARGIN
        left, right = children[box]
        assert (proof.which[left], proof.at[left]) == (proof.which[right], proof.at[right])
        assert proof.upper[left] != proof.upper[right]
        for child in (left, right):
            least = np.where(rate > 0, np.maximum(lower, upper - reach), lower)
            most = np.where(rate < 0, np.minimum(upper, lower + reach), upper)
            if proof.upper[child]:
                least[proof.which[child]] = max(least[proof.which[child]], proof.at[child])
            else:
                most[proof.which[child]] = min(most[proof.which[child]], proof.at[child])
            waiting.append((child, least, most))
    return float(worst)
