"""What an output tells whom: protocols as integer weights, and the chances of outputs under what somebody knows.

Blocks are drawn independently given (s, x), so P(y_1, …, y_k | s) = Σ_x P(x|s) Π_j Q_j(y_j | s, x_j): what several
blocks tell together is measured, never added up. Unary encoding, which releases a set of values, is a block for each
value, all drawn for one x; Theorem 1 says which of its 2^a sets tell most, so that they need not be listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate, permutations

import numpy as np

from funnel.audit.kernel.exact import MOST_CELLS, BoolArray, ExactArray, IntArray, released_table
from funnel.audit.kernel.known import Known, everything
from funnel.audit.kernel.records import Block, Ratio, by_axis
from funnel.audit.kernel.verdict import Broken
from funnel.format.manifest import Parameters
from funnel.format.robust import RobustFile

MOST_CASES = 200_000
"""Of what somebody may know beforehand: beyond, nothing is measured."""
_MOST_BITS = 900
"""Of all weights together, so that a chance is a float."""
_NEAR = 1 - 1e-9
"""Chances are divided in floats, which err by a relative 10^-15, to see where exact ratios need to be looked at."""


class View:
    """The outputs as one sees them who knows x_J: P(y|s) up to a factor of y, for every s that occurs, and for anyone.

    From masses (c, b), proportional to P(s, y, x_J) for each y, and `totals` (c,), proportional to P(s, x_J).
    """

    SECRETS, ANYONE = slice(None, -1), slice(-1, None)
    """Rows in which the secret is known, and that in which it is not."""

    def __init__(self, masses: ExactArray, totals: ExactArray) -> None:
        self._masses, self._totals = masses[:, masses.any(axis=0)], totals.tolist()
        rows = zip(self._masses, self._totals, strict=True)
        self._chances = np.array([(row / total).astype(float) for row, total in rows])
        if (self._chances[self._masses > 0] < np.finfo(float).tiny).any():
            raise Broken("protocol.json", "a chance is too small to be measured: nothing is proven", "floats", "less")

    def rises(self) -> Ratio:
        """max P(s|y)/P(s) = P(y|s)/P(y): how many times surer of a secret value one becomes."""
        return self._most(self.SECRETS, self.ANYONE)

    def falls(self) -> Ratio:
        """max P(s)/P(s|y)."""
        return self._most(self.ANYONE, self.SECRETS)

    def differs(self) -> Ratio:
        """max P(y|s)/P(y|s')."""
        return self._most(self.SECRETS, self.SECRETS)

    def _most(self, above: slice, below: slice) -> Ratio:
        """max over outputs of a chance in rows above over one in rows below; floats say where, integers how large."""
        high, low = self._chances[above].max(axis=0), self._chances[below].min(axis=0)
        if (low[high > 0] == 0).any():
            return None
        ratios = np.divide(high, low, out=np.zeros_like(high), where=low > 0)
        columns = self._masses[:, ratios >= ratios.max() * _NEAR].T.tolist()
        chances = [[*map(Fraction, column, self._totals)] for column in set(map(tuple, columns))]
        return max(max(column[above]) / min(column[below]) for column in chances)


@dataclass(frozen=True, eq=False)
class Channel:
    """All blocks together, seen from counts N[s, x_1, …, x_k]; of a robust notion its proof, and which x go with s.

    `known`: what somebody may know of the records, where the notion says that; else any column's released values.
    """

    counts: IntArray
    blocks: tuple[Block, ...]
    parameters: Parameters
    certificate: RobustFile | None = None
    possible: BoolArray | None = None
    known: Known | None = None

    @property
    def odds(self) -> Fraction | None:
        """Those of a set, if one is all that is released."""
        return self.blocks[0].odds if self.counts.ndim == 2 else None

    @cached_property
    def weights(self) -> list[ExactArray]:
        """W of all that is drawn for each axis, Π b_j outputs. Raises Broken where that is too large to be measured."""
        axes = by_axis(self.blocks)
        steps = [max(math.prod(one.outputs for one in group), group[0].weights.shape[2]) for group in axes]
        size = math.prod([len(self.counts), *steps])
        if size > MOST_CELLS or sum(one.bits for one in self.blocks) > _MOST_BITS:
            what = "the blocks together have too many values to be measured: nothing is proven"
            raise Broken("protocol.json", what, f"at most {MOST_CELLS} combinations", size)
        return [reduce(_both, (one.weights for one in group)) for group in axes]

    @property
    def table(self) -> ExactArray:
        """T[s, y_1, …, y_k], records times weights, the y of one axis as one. Raises Broken."""
        return released_table(self.counts, self.weights)

    @cached_property
    def view(self) -> View:
        """The outputs as one sees them who knows nothing yet; of a set alone, those that tell most."""
        counts = _and_anyone(self.counts.reshape(len(self.counts), -1))
        totals = counts.sum(axis=1)
        if self.odds:
            return View(telling(counts.astype(object), self.odds), totals)
        return View(_and_anyone(self.table.reshape(len(self.counts), -1)), totals)

    def only(self, blocks: Sequence[Block]) -> Channel:
        """The channel of some of the blocks, in their order."""
        axes = sorted({one.axis for one in blocks})
        rest = tuple(axis + 1 for axis in range(self.counts.ndim - 1) if axis not in axes)
        moved = (replace(one, axis=axes.index(one.axis)) for one in blocks)
        return replace(self, counts=self.counts.sum(axis=rest), blocks=tuple(moved))

    def knowing(self) -> Iterator[View]:
        """The same for all that somebody may know beforehand. Raises Broken where that is too much.

        Who knows s learns nothing of it, and who knows all of x nothing from draws that do not read s.
        """
        known = self.known or everything(self.counts, self.blocks)
        reads = any(block.reads for block in self.blocks)
        for number, rows in enumerate(known.groups()):
            codes = known.codes[rows]
            hidden, *shown = (codes != codes[0]).any(axis=0).tolist()
            if hidden and (reads or any(shown)):
                yield self.within(codes, known.number[rows]).view
            if number == MOST_CASES:
                what = "there is too much that may be known beforehand to be measured: nothing is proven"
                raise Broken("protocol.json", what, f"at most {MOST_CASES} cases", "more")

    def within(self, codes: IntArray, number: IntArray) -> Channel:
        """The channel of some records alone, [s, x_1, …, x_k] (m, 1+k), and of the values that they have."""
        axes = [np.unique(one, return_inverse=True) for one in codes.T]
        counts = np.zeros([len(values) for values, _ in axes], np.int64)
        np.add.at(counts, tuple(places for _, places in axes), number)
        blocks = []
        for one in self.blocks:
            weights = one.weights.take(axes[one.axis + 1][0], 2)
            blocks.append(replace(one, weights=weights.take(axes[0][0], 1) if one.reads else weights))
        return replace(self, counts=counts, blocks=tuple(blocks))


def telling(counts: ExactArray, odds: Fraction) -> ExactArray:
    """For each two rows of N[s, x] (c, a) the set that most favours the first: P(set|s) N[s], (c, c(c-1) + 1).

    Up to a factor of the set alone: its chance is `high` where it holds the true value, `low` where it lacks it.
    Theorem 1 ([DS] section VII, Unary Encoding). With u, v the chances of x under two rows and gain = high - low, a set
    has P/P' = (low + gain Σ u)/(low + gain Σ v), sums over its values. That exceeds λ where Σ (u - λv) exceeds
    (λ-1) low/gain, so most by the set of just the x with u > λv: the best holds those of the largest u/v, however many.
    """
    high, low, total = odds.numerator, odds.denominator, counts.sum(axis=1)
    found = [total * high]  # the set of all values, as likely under one row as under another
    for one, other in permutations(range(len(counts)), 2):
        terms = list(zip(counts[one] * total[other], counts[other] * total[one], strict=True))
        held = _favouring(terms, low * total[one] * total[other], high - low)
        found.append(total * low + counts[:, held].sum(axis=1) * (high - low))
    return np.stack(found, axis=1)


def _favouring(terms: list[tuple[int, int]], low: int, gain: int) -> list[int]:
    """The places of the terms (u, v) for which (low + gain Σ u)/(low + gain Σ v) is largest."""
    order = sorted(range(len(terms)), key=lambda x: -Fraction(*terms[x]) if terms[x][1] else -math.inf)
    sums = accumulate((terms[x] for x in order), lambda a, b: (a[0] + b[0], a[1] + b[1]))
    ratios = [Fraction(low + gain * u, low + gain * v) for u, v in sums]
    return order[: ratios.index(max(ratios)) + 1]


def _both(one: ExactArray, other: ExactArray) -> ExactArray:
    """Weights of two draws for one x as of one draw."""
    pairs: ExactArray = one.astype(object)[:, None] * other.astype(object)
    return pairs.reshape(-1, *pairs.shape[2:])


def _and_anyone(rows: ExactArray) -> ExactArray:
    """The rows that are not empty, and last their sum."""
    seen = rows[rows.any(axis=1)]
    return np.concatenate([seen, seen.sum(axis=0, keepdims=True)])
