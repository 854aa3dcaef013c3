"""What an output tells whom: protocols as integer weights, and the chances of outputs under what somebody knows.

Two kinds of protocols have one interface. `Block`: weights that are listed. `Coins`: unary encoding, which releases a
set of values, one coin for each; its 2^a sets are listed only where other blocks are released beside them.

Blocks are drawn independently given (s, x), so P(y_1, …, y_k | s) = Σ_x P(x|s) Π_j Q_j(y_j | s, x_j): composition is
measured, never added up. Theorem 1 below says which sets of a unary encoding tell most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations, permutations, product

import numpy as np
import numpy.typing as npt

from funnel.audit.kernel.exact import ExactArray, FloatArray, IntArray, released_table
from funnel.audit.kernel.known import Known
from funnel.audit.kernel.verdict import Broken
from funnel.format.fields import Alphabet, Label
from funnel.format.manifest import Parameters
from funnel.format.robust import RobustFile

Ratio = Fraction | None
"""A ratio of chances, None where it is infinite."""
MOST_CELLS = 8_000_000
"""Combinations of secret and outputs beyond which nothing is measured, and so nothing is proven."""
MOST_CASES = 200_000
"""The same of what somebody may know beforehand."""
_MOST_BITS = 900
"""Of all weights together, so that a chance is a float."""
_NEAR = 1 - 1e-9
"""Chances are divided in floats, which err by a relative 10^-15, to see where exact ratios need to be looked at."""


@dataclass(frozen=True, eq=False)
class Block:
    """W[y, s, x] (b, c or 1, a): the chance of y given s and x is W / 2^bits; c where the draw reads a `secret`."""

    columns: tuple[str, ...]
    inputs: tuple[Label, ...]
    bits: int
    weights: ExactArray
    secret: Alphabet | None = None

    @property
    def outputs(self) -> int:
        """How many there are."""
        return len(self.weights)

    @property
    def precision(self) -> int:
        """Weights are out of 2^precision."""
        return self.bits

    @property
    def reads(self) -> bool:
        """Whether the draw depends on the secret, too."""
        return self.secret is not None or int(self.weights.shape[1]) > 1

    def spread(self) -> Ratio:
        """max of Q(y|x)/Q(y|x') over outputs and inputs."""
        rows = [(int(row.max()), int(row.min())) for row in self.weights.reshape(self.outputs, -1)]
        return largest(Fraction(high, low) if low else None for high, low in rows if high)


@dataclass(frozen=True, eq=False)
class Coins:
    """Sets of values: x' is in the set with chance present / 2^bits if it is the true one, else absent / 2^bits.

    0 < absent < present < 2^bits. The code of a set has value x at bit a-1-x.
    """

    columns: tuple[str, ...]
    inputs: tuple[Label, ...]
    bits: int
    present: int
    absent: int
    secret = None
    reads = False

    @property
    def outputs(self) -> int:
        """How many sets there are."""
        return 1 << len(self.inputs)

    @property
    def precision(self) -> int:
        """Weights are out of 2^precision."""
        return self.bits * len(self.inputs)

    @property
    def chances(self) -> FloatArray:
        """P(x' is in the set | x), (a, a), by x and x'."""
        chances = np.full((len(self.inputs),) * 2, self.absent / (1 << self.bits))
        np.fill_diagonal(chances, self.present / (1 << self.bits))
        return chances

    @property
    def weights(self) -> ExactArray:
        """The chance of every set times 2^precision, (2^a, 1, a), exactly; asked for only where 2^a is small."""
        places, whole = range(len(self.inputs)), 1 << self.bits
        table = np.ones((1, len(places)), object)
        for other in places:  # the first value is the highest bit of the code
            held = np.array([self.present if x == other else self.absent for x in places], object)
            table = np.stack([table * (whole - held), table * held], axis=1).reshape(-1, len(places))
        return table[:, None, :]

    def spread(self) -> Ratio:
        """max of Q(y|x)/Q(y|x') over sets and values: sets that hold x and lack x'."""
        low, high = self.odds
        return Fraction(high, low) if len(self.inputs) > 1 else Fraction(1)

    @property
    def odds(self) -> tuple[int, int]:
        """Up to a factor of the set alone, its chance where it lacks the true value, and where it holds it."""
        whole = 1 << self.bits
        return self.absent * (whole - self.present), self.present * (whole - self.absent)

    def telling(self, counts: ExactArray) -> ExactArray:
        """For each two rows of N[s, x] (c, a) the set that most favours the first: P(set|s) N[s], (c, c(c-1) + 1).

        Up to a factor of the set alone. Theorem 1 ([DS] section VII, Unary Encoding). With u, v the chances of x under
        two rows, a set has P/P' = (low + gain Σ u)/(low + gain Σ v), sums over its values. That exceeds λ where
        Σ (u - λv) exceeds (λ-1) low/gain, so most by the set of just the x with u > λv: the best set holds the values
        of the largest u/v, however many.
        """
        (low, high), total = self.odds, counts.sum(axis=1)
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


def largest(ratios: Iterable[Ratio]) -> Ratio:
    """The largest of ratios, one at least; None where one is infinite."""
    worst = Fraction(1)
    for ratio in ratios:
        if ratio is None:
            return None
        worst = max(worst, ratio)
    return worst


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
    blocks: tuple[Block | Coins, ...]
    parameters: Parameters
    certificate: RobustFile | None = None
    possible: npt.NDArray[np.bool_] | None = None
    known: Known | None = None

    @property
    def sets(self) -> Coins | None:
        """The block, if it is the only one and releases sets."""
        only = self.blocks[0]
        return only if len(self.blocks) == 1 and isinstance(only, Coins) else None

    @cached_property
    def weights(self) -> list[ExactArray]:
        """W_j of every block. Raises Broken where together they are too large to be measured."""
        steps = [len(self.counts), *(max(len(one.inputs), one.outputs) for one in self.blocks)]
        bits = sum(one.precision for one in self.blocks)
        if math.prod(steps) > MOST_CELLS or bits > _MOST_BITS:
            what = "the blocks together have too many values to be measured: nothing is proven"
            raise Broken("protocol.json", what, f"at most {MOST_CELLS} combinations", math.prod(steps))
        return [one.weights for one in self.blocks]

    @property
    def table(self) -> ExactArray:
        """T[s, y_1, …, y_k], records times weights. Raises Broken."""
        return released_table(self.counts, self.weights)

    @cached_property
    def view(self) -> View:
        """The outputs as one sees them who knows nothing yet; of sets, those that tell most."""
        counts = _and_anyone(self.counts.reshape(len(self.counts), -1))
        totals = counts.sum(axis=1)
        if self.sets:
            return View(self.sets.telling(counts.astype(object)), totals)
        return View(_and_anyone(self.table.reshape(len(self.counts), -1)), totals)

    def knowing(self) -> Iterator[View]:
        """The same for every set J of public columns and every x_J that occurs. Raises Broken where these are too many.

        Who knows all of x learns nothing about s from draws that do not read s: those cases are left out.
        """
        if self.known is not None:
            yield from self._agreeing(self.known)
            return
        known = [list(_known(block)) for block in self.blocks]
        if (cases := math.prod(map(len, known))) > MOST_CASES:
            what = "there is too much that may be known beforehand to be measured: nothing is proven"
            raise Broken("protocol.json", what, f"at most {MOST_CASES} cases", cases)
        reads = any(block.reads for block in self.blocks)
        for places in product(*known):
            if reads or any(len(one) > 1 for one in places):
                part = self._within(places)
                if part.counts.any():
                    yield part.view

    def _agreeing(self, known: Known) -> Iterator[View]:
        """Of the records that agree on what the notion says may be known, where more than one secret value is left."""
        for rows in known.groups():
            codes = known.codes[rows]
            if (codes[1:, 0] != codes[0, 0]).any():
                counts = np.zeros_like(self.counts)
                np.add.at(counts, tuple(codes.T), known.number[rows])
                yield replace(self, counts=counts).view

    def _within(self, places: Sequence[IntArray]) -> Channel:
        """Of the records with some inputs of each block alone."""
        counts, blocks = self.counts, self.blocks
        for axis, inside in enumerate(places, start=1):
            counts = counts.take(inside, axis)
        if not self.sets:
            parts = zip(blocks, self.weights, places, strict=True)
            blocks = tuple(Block((), (), one.precision, weights.take(inside, 2)) for one, weights, inside in parts)
        return replace(self, counts=counts, blocks=blocks)


def _known(block: Block | Coins) -> Iterator[IntArray]:
    """The inputs that agree with x_J, for every set J of the block's columns and every x_J."""
    for width in range(len(block.columns) + 1):
        for places in combinations(range(len(block.columns)), width):
            told = [tuple(label[place] for place in places) for label in block.inputs]
            for value in dict.fromkeys(told):
                yield np.array([x for x, one in enumerate(told) if one == value])


def _and_anyone(rows: ExactArray) -> ExactArray:
    """The rows that are not empty, and last their sum."""
    seen = rows[rows.any(axis=1)]
    return np.concatenate([seen, seen.sum(axis=0, keepdims=True)])
