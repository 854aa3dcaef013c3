"""What draws of one block tell together: lengths of overlaps of intervals, found by one walk through [0, 1).

A permanent draw releases the y in whose interval of weights the record's uniform number lies. Several protocols that
share the number release (y_1, …, y_m) where it lies in all their intervals. As it grows from 0 to 1 it comes to the end
of one interval after the other, and there one y_i becomes the next. Numbers of other keys, of other blocks, and of
another name for the value (its own, and `other` where a protocol did not know it yet) are independent and multiply.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate, product

from funnel.format.fields import Label
from funnel.format.protocol import Sets, Weights

Input = tuple[Label | None, Label]
"""A value of the secret, None where it is not read, and one of x."""
Answers = int
"""What each protocol released, as the digits of one number: y + 1 for output y, and 0 where it was not asked."""
OTHER: Label = ("other",)
MOST_WORK = 1 << 23
"""Products of chances beyond which nothing is composed here."""
MOST_DIGITS = 1 << 26
"""Digits of all answers beyond which nothing is composed here."""
MOST_BITS = 800


class TooLarge(Exception):  # noqa: N818 - nothing is wrong
    """There is too much to be composed: the figure is not checked."""


@dataclass(frozen=True, eq=False)
class Drawer:
    """A protocol over single outputs; `pools` where a value that it does not know was drawn for as OTHER."""

    columns: dict[Input, tuple[int, ...]]
    bits: int
    pools: bool = False

    @classmethod
    def of(cls, block: Weights, *, pools: bool = False) -> Drawer:
        """Weights (b,) for every input."""
        if block.secret is None:
            asked: list[Input] = [(None, x) for x in block.inputs]
            columns = dict(zip(asked, zip(*block.weights, strict=True), strict=True))
            return cls(columns, block.bits, pools)
        pairs = {(s, x): (i, j) for i, s in enumerate(block.secret.values) for j, x in enumerate(block.inputs)}
        found: dict[Input, tuple[int, ...]] = {
            asked: tuple(row[i][j] for row in block.weights) for asked, (i, j) in pairs.items()
        }
        return cls(found, block.bits, pools)

    @classmethod
    def coin(cls, block: Sets) -> Drawer:
        """One value's coin, for the record's own value and for another."""
        whole, sides = 1 << block.bits, (("own", block.present), ("other", block.absent))
        return cls({(None, (side,)): (face, whole - face) for side, face in sides}, block.bits)

    def name(self, asked: Input) -> Input | None:
        """What an input was drawn for as; None where it was not drawn for."""
        if asked in self.columns:
            return asked
        pooled = (asked[0], OTHER)
        return pooled if self.pools and pooled in self.columns else None

    def called(self, values: Iterable[Label]) -> tuple[Input | None, ...]:
        """What each of these was drawn for."""
        return tuple(self.name((None, value)) for value in values)

    def merges(self, values: Iterable[Label]) -> bool:
        """Whether several of these had no name but OTHER."""
        return self.pools and self.called(values).count((None, OTHER)) > 1

    @property
    def key(self) -> object:
        """Equal for protocols that draw alike."""
        return self.pools, self.bits, tuple(self.columns.items())


@dataclass(frozen=True, eq=False)
class Law:
    """Chances of answers: rows (r, inputs) of whole numbers in lowest terms, how often each stands for, and 2^bits.

    Answers with proportional rows say the same about every input, so no measure of leakage tells them apart.
    """

    rows: dict[tuple[int, ...], int]
    bits: int

    @classmethod
    def of(cls, rows: Sequence[tuple[Sequence[int], int]], bits: int) -> Law:
        """From rows and how often each stands for."""
        found = Counter[tuple[int, ...]]()
        for row, times in rows:
            if common := math.gcd(*row):
                found[tuple(weight // common for weight in row)] += common * times
        return cls(dict(found), bits)

    def beside(self, other: Law) -> Law:
        """Both, drawn independently. Raises TooLarge."""
        width = len(next(iter(self.rows)))
        if len(self.rows) * len(other.rows) * width > MOST_WORK or self.bits + other.bits > MOST_BITS:
            raise TooLarge
        both = product(self.rows.items(), other.rows.items())
        rows = [([a * b for a, b in zip(one, two, strict=True)], m * n) for (one, m), (two, n) in both]
        return Law.of(rows, self.bits + other.bits)

    def spread(self) -> float:
        """ln of the largest quotient of two chances in one row."""
        if any(0 in row for row in self.rows):
            return math.inf
        return max((log(Fraction(max(row), min(row))) for row in self.rows), default=0.0)


def log(ratio: Fraction) -> float:
    """ln of a positive fraction of any size, in nats."""
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def law_of(drawers: Sequence[Drawer], asked: Sequence[Input]) -> Law:
    """What drawers that share their numbers release for every input asked. Raises TooLarge."""
    bits = max(one.bits for one in drawers)
    ends = sum(len(next(iter(one.columns.values()))) for one in drawers)
    if ends * len(drawers) * len(asked) > MOST_DIGITS:
        raise TooLarge
    pieces = [_answers(drawers, one, bits) for one in asked]
    deepest = max(depth for _, depth in pieces)
    if bits * deepest > MOST_BITS:
        raise TooLarge
    found: dict[Answers, list[int]] = {}
    for place, (chances, depth) in enumerate(pieces):
        for answers, chance in chances.items():
            row = found.setdefault(answers, [0] * len(asked))
            row[place] = chance << bits * (deepest - depth)
    return Law.of([(row, 1) for row in found.values()], bits * deepest)


def _answers(drawers: Sequence[Drawer], asked: Input, bits: int) -> tuple[dict[Answers, int], int]:
    """Chances, in parts of 2^(bits·depth), of what is released for one input; depth: how many numbers were used."""
    width = max(len(next(iter(one.columns.values()))) for one in drawers).bit_length()
    shared: dict[Input, list[tuple[int, Drawer]]] = {}
    for place, drawer in enumerate(drawers):
        if (name := drawer.name(asked)) is not None:
            shared.setdefault(name, []).append((1 << width * place, drawer))
    told = [_swept(name, own, bits) for name, own in shared.items()]
    return reduce(_both, told) if told else {0: 1 << bits}, max(len(told), 1)


def _swept(name: Input, drawers: Sequence[tuple[int, Drawer]], bits: int) -> dict[Answers, int]:
    """The same of drawers that share one number, with their places: as it grows from 0 to 2^bits answers follow."""
    ends = [
        (end << bits - drawer.bits, place) for place, drawer in drawers for end in accumulate(drawer.columns[name])
    ]
    found, low, answers = dict[Answers, int](), 0, sum(place for place, _ in drawers)
    for end, place in sorted(ends):
        if end > low:
            found[answers], low = end - low, end
        answers += place
    return found


def _both(one: dict[Answers, int], two: dict[Answers, int]) -> dict[Answers, int]:
    """Answers from two numbers: each drawer answers in one of them only."""
    if len(one) * len(two) > MOST_WORK:
        raise TooLarge
    return {first + second: p * q for (first, p), (second, q) in product(one.items(), two.items())}


def group_law(blocks: Sequence[Weights | Sets | Drawer], secret: Sequence[Label], inputs: Sequence[Label]) -> Law:
    """What one group of blocks releases for all pairs of secret and public value, by secret. Raises TooLarge."""
    sets = [one for one in blocks if isinstance(one, Sets)]
    if sets:
        return _sets_law(sets, len(secret), inputs)
    drawers = [one if isinstance(one, Drawer) else Drawer.of(one) for one in blocks if not isinstance(one, Sets)]
    if any(s is not None for one in drawers for s, _ in one.columns):
        return law_of(drawers, [(s, x) for s in secret for x in inputs])
    found = law_of(drawers, [(None, x) for x in inputs])
    return Law({row * len(secret): times for row, times in found.rows.items()}, found.bits)


def _sets_law(sets: Sequence[Sets], secrets: int, inputs: Sequence[Label]) -> Law:
    """All sets, coin by coin."""
    if any(one.inputs != tuple(inputs) for one in sets):
        raise TooLarge
    coin = law_of([Drawer.coin(one) for one in sets], _SIDES)
    a = len(inputs)
    coins = [
        Law.of([([row[x != own] for x in range(a)] * secrets, m) for row, m in coin.rows.items()], coin.bits)
        for own in range(a)
    ]
    return reduce(Law.beside, coins)


_SIDES: list[Input] = [(None, ("own",)), (None, ("other",))]


def group_spread(blocks: Sequence[Weights | Sets | Drawer], values: Sequence[Label] | None = None) -> float:
    """max ln P(y|x)/P(y|x') of one group over `values` of x, or over all that occur (nats; inf). Raises TooLarge.

    x and x' are compared in the releases that know both: that is the usual LDP of what two records have in common.
    """
    sets = [one for one in blocks if isinstance(one, Sets)]
    if sets:
        rows = law_of([Drawer.coin(one) for one in sets], _SIDES).rows if len(sets[0].inputs) > 1 else {(1, 1): 1}
        if any(0 in row for row in rows):
            return math.inf
        quotients = [Fraction(own, other) for own, other in rows]
        return log(max(quotients) / min(quotients))
    drawers = [one if isinstance(one, Drawer) else Drawer.of(one) for one in blocks if not isinstance(one, Sets)]
    asked = list(dict.fromkeys(asked for one in drawers for asked in one.columns))
    if values is not None:  # also those without a name of their own
        asked = list(product(dict.fromkeys(s for s, _ in asked), values))
    told = {one: frozenset(i for i, drawer in enumerate(drawers) if drawer.name(one)) for one in asked}
    worst = 0.0
    for both in {one & other for one in set(told.values()) for other in set(told.values())} - {frozenset()}:
        inside = [one for one in asked if both <= told[one]]
        worst = max(worst, law_of([drawers[i] for i in sorted(both)], inside).spread())
    return worst
