"""The claim about a private estimate: its counts are the true ones with lawful noise.

That neighbouring tables make noisy counts likely by a factor e^ε_est at most follows from the law of the noise alone,
discrete Laplace of rate ε_est/2 on every cell. Its law is what is tested; that it was drawn once, no file can show.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from funnel.audit.kernel.chance import FALSE_ALARM, Fit
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import counts
from funnel.format.counts import Private

SENSITIVITY = 2
"""Counts that change, by one each, when one of a given number of records takes other values."""
_PLAIN = Unchecked(NOT_CLAIMED + "the counts are the table’s own")
_REACH = 10_000


def lawful(opened: Opened) -> str | Unchecked:
    """The counts that claims are about are true ones with the noise of a private estimate on every combination.

    Counts below one become one; under a robust notion those below 2t are dropped (`width`).
    """
    private, joint = opened.counts.private, opened.joint
    if private is None:
        return _PLAIN
    columns: dict[str, set[str | None]] = {}
    for alphabet in joint.alphabets:
        for place, name in enumerate(alphabet.columns):
            columns.setdefault(name, set()).update(value[place] for value in alphabet.values)
    cells, true, noise = noisy(private)
    found = true + noise
    robust = opened.manifest.notion == "rldp"
    confidence = opened.manifest.parameters.confidence or 0
    stay = found >= 2 * width(private, confidence) if robust else np.ones(len(found), bool)
    used = np.column_stack([cells[stay], found[stay] if robust else np.maximum(found, 1)])
    agree(counts.NAME, [
        ("combinations", math.prod(map(len, columns.values())), len(cells)),
        ("counts with their noise", sorted(used.tolist()), np.column_stack([joint.cells, joint.number]).tolist()),
    ])  # fmt: skip
    chance = _chance(noise, Fraction(private.epsilon) / SENSITIVITY)
    return f"{counted(len(cells), 'cell')} with noise of ε_est = {private.epsilon}, p = {chance:.2g}"


def noisy(private: Private) -> tuple[IntArray, IntArray, IntArray]:
    """Cells [s, x_1, …, x_k], what was counted there, and the noise."""
    rows = np.array(private.cells, np.int64)
    return rows[:, :-3], rows[:, -3], rows[:, -2] - rows[:, -1]


def width(private: Private, confidence: float) -> int:
    """t: no noise of any cell is larger in size, but with half the chance that a confidence leaves.

    P(|Z| > t) < 2e^(-(t+1) rate) for each cell.
    """
    chance, rate = (1 - confidence) / 2, Fraction(private.epsilon) / SENSITIVITY
    return math.ceil(math.log(2 * len(private.cells) / chance) / float(rate)) + 1


def _chance(noise: IntArray, rate: Fraction) -> float:
    """The least chance of noise that fits worse, in size (Chernoff's bound) or in shape. Raises Broken when tiny.

    E e^(t|Z|) = (1-p)/(1+p) (1+pe^t)/(1-pe^t) for p = e^-rate and pe^t < 1; the bound is the least over a grid of t.
    """
    p, sizes = math.exp(-float(rate)), abs(noise)
    total, cells, most = int(sizes.sum()), len(sizes), min(int(sizes.max()), _REACH)
    raised = np.linspace(0, 1, 20_001)[1:-1]
    raised = raised[raised > p] if total * (1 - p * p) > 2 * p * cells else raised[raised < p]
    bound = cells * np.log((1 - p) / (1 + p) * (1 + raised) / (1 - raised)) - total * np.log(raised / p)
    unlikely = math.exp(min(bound.min(initial=0.0), 0.0))
    if not unlikely >= FALSE_ALARM:
        raise Broken(counts.NAME, "the noise is not as large as stated", 2 * p / (1 - p * p), total / cells)
    law = (1 - p) / (1 + p) * p ** np.abs(np.arange(-most, most + 1))
    inside = noise[sizes <= most]
    observed = np.append(np.bincount(inside + most, minlength=len(law)), cells - len(inside))
    test = Fit()
    test.add(np.append(cells * law, cells * max(1 - law.sum(), 0.0)), observed)
    return min(unlikely, test.refuse("the noise", even=True))
