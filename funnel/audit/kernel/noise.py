"""The claim about a private estimate: its counts are the true ones with lawful noise.

Theorem 3 (Dwork, McSherry, Nissim, Smith, Calibrating Noise to Sensitivity in Private Data Analysis, Proposition 1;
Ghosh, Roughgarden, Sundararajan, Universally Utility-Maximizing Privacy Mechanisms, section 2). Where one record of a
given number takes other values, two counts change by one; so counts with discrete Laplace noise of rate ε_est/2 on
every cell are ε_est-differentially private. Its size is what is tested; that it was drawn once, no file can show.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from funnel.audit.kernel.chance import FALSE_ALARM
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import counts
from funnel.format.counts import Private

SENSITIVITY = 2
"""Counts that change, by one each, when one of a given number of records takes other values."""


def lawful(opened: Opened) -> str | Unchecked:
    """The counts that claims are about are true ones with the noise of a private estimate on every combination.

    Counts below one become one; under a robust notion those below 2t are dropped (`width`).
    """
    private, joint = opened.counts.private, opened.joint
    if private is None:
        return Unchecked(NOT_CLAIMED + "the counts are the table’s own")
    columns: dict[str, set[str | None]] = {}
    for alphabet in joint.alphabets:
        for place, name in enumerate(alphabet.columns):
            columns.setdefault(name, set()).update(value[place] for value in alphabet.values)
    cells, true, noise = noisy(private)
    used, stay = np.maximum(true + noise, 1), np.ones(len(cells), bool)
    if opened.manifest.notion == "rldp":
        used, stay = true + noise, true + noise >= 2 * width(private, opened.manifest.parameters.confidence or 0)
    agree(counts.NAME, [
        ("combinations", math.prod(map(len, columns.values())), len(cells)),
        ("counts with their noise", sorted(np.column_stack([cells, used])[stay].tolist()),
         np.column_stack([joint.cells, joint.number]).tolist()),
    ])  # fmt: skip
    chance = _chance(noise, float(Fraction(private.epsilon) / SENSITIVITY))
    if not chance >= FALSE_ALARM:
        raise Broken(counts.NAME, "the noise is not as large as stated", f"p >= {FALSE_ALARM}", f"p <= {chance:.2g}")
    return f"{counted(len(cells), 'cell')} with noise of ε_est = {private.epsilon}, p >= {chance:.2g}"


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


def _chance(noise: IntArray, rate: float) -> float:
    """A bound of the chance that |Z| sums to as little, or as much (Chernoff).

    E e^(t|Z|) = (1-p)/(1+p) (1+r)/(1-r) for p = e^-rate and r = pe^t < 1; the best r has 2r/(1-r²) = Σ|Z| / cells.
    """
    total, cells = int(abs(noise).sum()), len(noise)
    best = total / (cells + math.hypot(cells, total))
    spent = total * (math.log(best) + rate) if total else 0.0
    return math.exp(min(cells * math.log(math.tanh(rate / 2) * (1 + best) / (1 - best)) - spent, 0.0))
