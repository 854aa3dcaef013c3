"""A private estimate: its counts are the true ones with lawful noise.

Theorem 3 (Dwork, McSherry, Nissim, Smith, Calibrating Noise to Sensitivity in Private Data Analysis, Proposition 1;
Ghosh, Roughgarden, Sundararajan, Universally Utility-Maximizing Privacy Mechanisms, section 2). Where one record of a
given number takes other values, two counts change by one; so counts with discrete Laplace noise of rate ε_est/2 on
every cell are ε_est-differentially private. Its size and shape are tested; that it was drawn once, no file can show.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.drawing import FALSE_ALARM, strays
from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import counts
from funnel.format.counts import Private

CLAIM = "estimate-noise"
TITLE = (
    "the counts that claims are about are those kept as true with noise on every combination, which strays from the"
    " size and the shape stated no further than chance does"
)
PRIVATE = True
SENSITIVITY = 2
"""Counts that change, by one each, when one of a given number of records takes other values."""
_CELLS, _BINS = 8, 16
"""For each bin of noise, at least; bins, at most."""


def check(opened: Release) -> str | Unchecked:
    """Counts below one become one; under a robust notion those below 2t are dropped (`width`). Raises Broken."""
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
    chance = as_stated(counts.NAME, noise, private.epsilon)
    none = _chance(np.zeros_like(noise), float(Fraction(private.epsilon) / SENSITIVITY))
    few = "" if none < FALSE_ALARM else "; so few that they would pass without any noise"
    stated = f"noise of ε_est = {private.epsilon}"
    told = f"{counted(len(cells), 'cell')}, {stated}, p <= {min(1.05 * chance, 1):.2g}{few}"  # two digits, rounded up
    gone = int(np.maximum(np.array(private.records) - true, 0).sum())
    some = f"{told}; at least {gone} of the {sum(private.records)} records released"
    return f"{some} are not among those that were counted for it"


def as_stated(name: str, noise: IntArray, epsilon: str) -> float:
    """How likely noise (m,) of a file strays as far from the size and the shape that ε_est asks for. Raises Broken."""
    size = _chance(noise, float(Fraction(epsilon) / SENSITIVITY))
    shape, _ = strays(*sorted_by_size(noise, epsilon, min(len(noise) // _CELLS, _BINS)))
    for what, chance in (("as large as", size), ("spread as", shape)):
        if not chance >= FALSE_ALARM:
            told = f"the noise is not {what} stated"
            raise Broken(name, told, f"p >= {FALSE_ALARM}", f"p <= {1.05 * chance:.2g}", improbable=True)
    return min(size, shape)


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


def sorted_by_size(noise: IntArray, epsilon: str, bins: int) -> tuple[FloatArray, IntArray]:
    """How many of the cells (m,) have noise in each of at most so many bins, expected and observed, (1, bins).

    P(Z <= z) = 1 - p^(z+1)/(1+p) from zero on and p^-z/(1+p) below, p = e^-rate; any ends of bins would do.
    """
    rate = float(Fraction(epsilon) / SENSITIVITY)
    p, shares = math.exp(-rate), np.arange(1, bins) / bins
    sizes = -np.log(np.minimum(shares, 1 - shares) * (1 + p)) / rate
    ends = np.unique(np.floor(np.where(shares < 0.5, -sizes, sizes)))
    below = np.where(ends < 0, p**-ends, 1 + p - p ** (ends + 1)) / (1 + p)
    expected = len(noise) * np.diff(below, prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(ends, noise), minlength=len(expected))
    return expected[None], observed[None]
