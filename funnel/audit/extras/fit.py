"""G tests of what was drawn: sharper than the kernel's bound, by the limit law of large numbers of draws.

The kernel refuses what no chance would do, by a bound that holds of every number of draws. χ² is nearer the truth where
counts are large, so it sees smaller faults; and it sees what is too even to have been drawn at all.
"""

from __future__ import annotations

import math

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.extras.chi_square import tails
from funnel.audit.extras.noise import noisy, sorted_by_size
from funnel.audit.kernel.drawing import FALSE_ALARM, UNTOLD, across, by_block
from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.verdict import Broken, Unchecked, counted
from funnel.format import counts, draws

CLAIM = "draw-chances"
TITLE = (
    "draws, and the noise of a private estimate, stray from their chances no more than chance does; nor less, input by"
    " input and of the noise, where they are many (30 degrees of freedom)"
)
PRIVATE = True
TOO_EVEN = 1e-12
"""Chance with which honest draws may follow their chances too closely; FALSE_ALARM that they stray too far."""
_EXPECTED = 10.0
"""Cells with a smaller expected count are pooled."""
_CORRECTION = 0.25
"""Over E: by how much G exceeds its chi-square; 1/6 in mean (Williams 1976), 0.22 in spread at E = 10."""
_LIMIT = 0.1
"""By how much the limit law may be wrong so far out: of two outcomes, up to a factor of 2.5 was found."""
_DEGREES_EVEN = 30
_CELLS, _BINS = 20, 1000
"""Of a private estimate, for each bin of noise, at least; bins, at most."""


def check(opened: Release) -> str | Unchecked:
    """Every trial of the kernel; draws that are alike may not be too even either. Raises Broken, as improbable."""
    often = 2 * len(opened.blocks) + math.comb(len(opened.blocks), 2) + 2  # at most: all together, and the noise
    least = [refuse(draws.NAME, *one, even="input by input" in one[0], often=often) for one in by_block(opened)]
    least += [refuse(draws.NAME, *trial, even=False, often=often) for trial in across(opened)]
    if private := opened.counts.private:
        sizes = sorted_by_size(noisy(private)[2], private.epsilon, min(len(private.cells) // _CELLS, _BINS))
        least.append(refuse(counts.NAME, "the noise", *sizes, even=True, often=often))
    known = [one for one in least if one is not None]
    return f"p = {min(known):.2g}, of {counted(len(known), 'trial')}" if known else Unchecked(UNTOLD)


def refuse(
    file: str, what: str, expected: FloatArray, observed: IntArray, *, even: bool, often: int = 1
) -> float | None:
    """The chance of a fit this bad, None where nothing can be told. Rows are independent tables.

    Raises Broken, as improbable, where that is tiny for what is tried so `often`; with `even`, also for a fit too good.
    """
    statistic, degrees, excess = np.sum([_row(*row) for row in zip(expected, observed, strict=True)], axis=0)
    if not degrees:
        return None
    (_, worse), (better, _) = tails(degrees, statistic / (1 + excess / degrees)), tails(degrees, statistic)
    if not worse >= (least := FALSE_ALARM * _LIMIT / often):
        told = f"{what} does not follow its chances"
        raise Broken(file, told, f"p >= {least:.2g}", f"p = {worse:.2g}", improbable=True)
    if even and degrees >= _DEGREES_EVEN and not better >= (least := TOO_EVEN / often):
        told = f"{what} is too even to be random"
        raise Broken(file, told, f"p >= {least:.2g}", f"p = {better:.2g}", improbable=True)
    return worse


def _row(expected: FloatArray, observed: IntArray) -> tuple[float, float, float]:
    """G, degrees of freedom and Σ 1/E of one table, of which cells below 10 are joined into one."""
    order = np.argsort(expected, kind="stable")
    means, seen = expected[order], observed[order]
    small = int(np.searchsorted(means, _EXPECTED))
    if 0 < small < len(means) and means[:small].sum() < _EXPECTED:
        small += 1
    if small:
        means, seen = (np.append(one[:small].sum(), one[small:]) for one in (means, seen))
    if len(means) == 1:
        return 0.0, 0.0, 0.0
    some = seen > 0
    statistic = 2 * float((seen[some] * np.log(seen[some] / means[some])).sum())
    return statistic, len(means) - 1, _CORRECTION * float((1 / means).sum())
