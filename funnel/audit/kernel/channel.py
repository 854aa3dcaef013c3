"""What an output tells whom: protocols as integer weights, and the chances of outputs under what somebody knows.

Two kinds of protocols have one interface. `Block`: weights that are listed. `Coins`: unary encoding, which releases a
set of values, one coin for each; its 2^a sets are listed only where other blocks are released beside them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from funnel.audit.kernel.exact import ExactArray, FloatArray, IntArray, released_table
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

    @property
    def likelihood(self) -> FloatArray:
        """P(y|s,x), (b, c or 1, a)."""
        return np.asarray(self.weights / float(1 << self.bits))

    def spread(self) -> Ratio:
        """max of Q(y|x)/Q(y|x') over outputs and inputs."""
        rows = [(int(row.max()), int(row.min())) for row in self.weights.reshape(self.outputs, -1)]
        if any(low == 0 < high for high, low in rows):
            return None
        return max((Fraction(high, low) for high, low in rows if low), default=Fraction(1))


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
    def odds(self) -> tuple[int, int]:
        """Up to a factor of the set alone, its chance where it lacks the true value, and where it holds it."""
        whole = 1 << self.bits
        return self.absent * (whole - self.present), self.present * (whole - self.absent)

    @property
    def chances(self) -> FloatArray:
        """P(x' is in the set | x), (a, a), by x and x'."""
        chances = np.full((len(self.inputs),) * 2, self.absent / (1 << self.bits))
        np.fill_diagonal(chances, self.present / (1 << self.bits))
        return chances

    @property
    def likelihood(self) -> FloatArray:
        """P(set|x), (2^a, 1, a); asked for only where 2^a is small."""
        return _listed(self.chances, 1.0)

    @property
    def weights(self) -> ExactArray:
        """The same times 2^precision, exactly."""
        a = len(self.inputs)
        held = [[self.present if other == x else self.absent for other in range(a)] for x in range(a)]
        return _listed(np.array(held, object), 1 << self.bits)

    def spread(self) -> Fraction:
        """max of Q(y|x)/Q(y|x') over sets and values: sets that hold x and lack x'."""
        low, high = self.odds
        return Fraction(high, low) if len(self.inputs) > 1 else Fraction(1)


def _listed(held: ExactArray, whole: float) -> ExactArray:
    """The chance of every set for every value (2^a, 1, a), from how likely it holds each (a, a), out of a whole."""
    table = np.ones((1, len(held)), held.dtype)
    for one in held.T:  # the first value is the highest bit of the code
        table = np.stack([table * (whole - one), table * one], axis=1).reshape(-1, len(held))
    return table[:, None, :]


class Case(ABC):
    """The outputs as one sees them who knows x_J: rows for every secret value that occurs then, and last for anyone."""

    secrets: range

    @property
    def anyone(self) -> int:
        """The row in which the secret is not known."""
        return len(self.secrets)

    @abstractmethod
    def largest(self, above: int, below: int, least: Fraction) -> Ratio:
        """max over outputs of P(y|above)/P(y|below) for two rows, or `least` where that is larger."""


class Listed(Case):
    """Outputs that are listed: masses (c, b), proportional to P(s, y, x_J)."""

    def __init__(self, masses: ExactArray) -> None:
        seen = masses[masses.any(axis=1)][:, masses.any(axis=0)]
        self.secrets = range(len(seen))
        self._masses = np.concatenate([seen, seen.sum(axis=0, keepdims=True)])
        self._totals = [int(row.sum()) for row in self._masses]
        parts = zip(self._masses, self._totals, strict=True)
        self._chances = np.array([(row / total).astype(float) for row, total in parts])
        if (self._chances[self._masses > 0] < np.finfo(float).tiny).any():
            raise Broken("protocol.json", "a chance is too small to be measured: nothing is proven", "floats", "less")

    def largest(self, above: int, below: int, least: Fraction) -> Ratio:
        """See `Case`; floats say where, whole numbers how large."""
        one, other = self._chances[above], self._chances[below]
        if (other[one > 0] == 0).any():
            return None
        ratios = np.divide(one, other, out=np.zeros_like(one), where=other > 0)
        near = np.flatnonzero(ratios >= max(ratios.max(), float(least)) * _NEAR)
        totals = self._totals[below], self._totals[above]
        pairs = zip(self._masses[above][near].tolist(), self._masses[below][near].tolist(), strict=True)
        return max([least, *(Fraction(up * totals[0], down * totals[1]) for up, down in set(pairs))])


class Sets(Case):
    """Outputs that are sets: counts N[s, x] (c, a), and the odds of holding the true value."""

    def __init__(self, counts: IntArray, coins: Coins) -> None:
        seen = counts[counts.any(axis=1)]
        self.secrets = range(len(seen))
        self._rows: list[list[int]] = np.concatenate([seen, seen.sum(axis=0, keepdims=True)]).tolist()
        self._odds = coins.odds

    def largest(self, above: int, below: int, least: Fraction) -> Ratio:
        """See `Case`. With u, v the chances of x, a set has (low + gain Σ u)/(low + gain Σ v), sums over its values.

        A set beats λ most where it holds just the x with u > λv; so the largest is among those that hold the values of
        the largest u/v, however many ([DS] section VII; mathematics, section 7).
        """
        one, other = self._rows[above], self._rows[below]
        total, low, gain = (sum(one), sum(other)), self._odds[0], self._odds[1] - self._odds[0]
        terms = [(u * total[1], v * total[0]) for u, v in zip(one, other, strict=True)]
        up = down = low * total[0] * total[1]
        for u, v in sorted(terms, key=lambda term: Fraction(*term) if term[1] else math.inf, reverse=True):
            up, down = up + gain * u, down + gain * v
            least = max(least, Fraction(up, down))
        return least


@dataclass(frozen=True, eq=False)
class Channel:
    """All blocks together, seen from counts N[s, x_1, …, x_k]; of a robust notion its proof, and which x go with s."""

    counts: IntArray
    blocks: tuple[Block | Coins, ...]
    parameters: Parameters
    certificate: RobustFile | None = None
    possible: npt.NDArray[np.bool_] | None = None

    @property
    def sets(self) -> Coins | None:
        """The block, if it is the only one and releases sets."""
        only = self.blocks[0]
        return only if len(self.blocks) == 1 and isinstance(only, Coins) else None

    @cached_property
    def table(self) -> ExactArray:
        """T[s, y_1, …, y_k], records times weights. Raises Broken where it is too large."""
        steps = [len(self.counts), *(max(len(one.inputs), one.outputs) for one in self.blocks)]
        bits = sum(one.precision for one in self.blocks)
        if math.prod(steps) > MOST_CELLS or bits > _MOST_BITS:
            what = "the blocks together have too many values to be measured: nothing is proven"
            raise Broken("protocol.json", what, f"at most {MOST_CELLS} combinations", math.prod(steps))
        return released_table(self.counts, [one.weights for one in self.blocks])

    @cached_property
    def unknown(self) -> Case:
        """The outputs as one sees them who knows nothing yet."""
        coins = self.sets
        return Sets(self.counts, coins) if coins else Listed(self.table.reshape(len(self.counts), -1))

    def knowing(self) -> Iterator[Case]:
        """The same for every set J of public columns and every x_J that occurs. Raises Broken where these are too many.

        Who knows all of x learns nothing about s from draws that do not read s: those cases are left out.
        """
        known = [list(_known(block)) for block in self.blocks]
        if (cases := math.prod(map(len, known))) > MOST_CASES:
            what = "there is too much that may be known beforehand to be measured: nothing is proven"
            raise Broken("protocol.json", what, f"at most {MOST_CASES} cases", cases)
        reads = any(block.reads for block in self.blocks)
        for places in product(*known):
            if reads or any(len(one) > 1 for one in places):
                part = self._within(places)
                if part.counts.any():
                    yield part.unknown

    def _within(self, places: Sequence[IntArray]) -> Channel:
        """Of the records with some inputs of each block alone."""
        counts, blocks = self.counts, list[Block | Coins]()
        for axis, (block, inside) in enumerate(zip(self.blocks, places, strict=True), start=1):
            counts = counts.take(inside, axis)
            blocks.append(block if self.sets else Block((), (), block.precision, block.weights.take(inside, 2)))
        return replace(self, counts=counts, blocks=tuple(blocks))


def _known(block: Block | Coins) -> Iterator[IntArray]:
    """The inputs that agree with x_J, for every set J of the block's columns and every x_J."""
    for width in range(len(block.columns) + 1):
        for places in combinations(range(len(block.columns)), width):
            told = [tuple(label[place] for place in places) for label in block.inputs]
            for value in dict.fromkeys(told):
                yield np.array([x for x, one in enumerate(told) if one == value])
