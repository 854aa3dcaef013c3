"""Draws of one block in several releases as one block: laws of tuples of answers, in whole numbers.

Permanent draws of a block under one key pick the output in whose interval of weights one and the same number lies,
so what several protocols answer changes only where one of their intervals ends. All else is independent; so are the
numbers for two names of one value, its own and `other`, where a protocol did not know it yet (`Pool`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np

from funnel.audit.fields import IntArray, Label
from funnel.audit.findings import broken
from funnel.audit.protocols import Block
from funnel.audit.unary import UnaryBlock

AnyBlock = Block | UnaryBlock
Asked = tuple[Label | None, Label]
"""A value of the secret, None where it is not read, and one of x."""

OTHER: Label = ("other",)
MOST_ENDS = 1 << 28
MOST_PRODUCTS = 1 << 21
"""Several times what a writer composes: beyond that nothing is checked."""


@dataclass(frozen=True)
class Law:
    """Rows of chances, one for each input, in lowest terms, with how many parts of 2^-bits each of them stands for."""

    rows: dict[tuple[int, ...], int]
    bits: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], bits: int) -> Law:
        """From rows of weights; those that are multiples of one another say the same and are added up."""
        found = Counter[tuple[int, ...]]()
        for row in rows:
            common = math.gcd(*row)
            if common:
                found[tuple(weight // common for weight in row)] += common
        return cls(dict(found), bits)

    def beside(self, other: Law) -> Law:
        """Both, drawn independently. Raises AuditFailure where that is too large."""
        if len(self.rows) * len(other.rows) * len(next(iter(self.rows))) > MOST_PRODUCTS:
            raise too_large()
        found = Counter[tuple[int, ...]]()
        for row, times in self.rows.items():
            for second, more in other.rows.items():
                both = [one * two for one, two in zip(row, second, strict=True)]
                common = math.gcd(*both)
                if common:
                    found[tuple(weight // common for weight in both)] += common * times * more
        return Law(dict(found), self.bits + other.bits)

    def spread(self) -> Fraction | None:
        """The largest quotient within a row; None where it is infinite."""
        if any(0 in row for row in self.rows):
            return None
        return max((Fraction(max(row), min(row)) for row in self.rows), default=Fraction(1))


def too_large() -> Exception:
    """The figure cannot be checked."""
    return broken(
        "ledger.jsonl",
        "the releases together have too many values to be measured: nothing is proven",
        expected="what can be composed",
        found="more",
    )


@dataclass(frozen=True)
class Pool(Block):
    """A block that took values which it does not know for `OTHER`."""


def inputs_of(block: AnyBlock) -> list[Asked]:
    """What a block is drawn for, by code."""
    return [(s, x) for s in (block.secret or (None,)) for x in block.inputs]


def names_of(block: AnyBlock, asked: Sequence[Asked]) -> dict[Asked, Asked]:
    """The names under which a block was drawn for; without those for which it was not."""
    known = set(inputs_of(block))
    taken = {one: (one[0], OTHER) if isinstance(block, Pool) and one not in known else one for one in asked}
    return {one: name for one, name in taken.items() if name in known}


def shared(blocks: Sequence[Block], asked: Sequence[Asked]) -> Law:
    """What blocks of one key release for each input; where a block does not know it, nothing, which shows."""
    bits = max(block.bits for block in blocks)
    ends = [
        np.cumsum(block.weights.reshape(len(block.outputs), -1), axis=0) << (bits - block.bits)
        for block in blocks
    ]
    if sum(map(len, ends)) * len(asked) * len(blocks) > MOST_ENDS:
        raise too_large()
    places = [{one: code for code, one in enumerate(inputs_of(block))} for block in blocks]
    names = [names_of(block, asked) for block in blocks]
    found: list[dict[bytes, int]] = []
    depths = []
    for one in asked:
        columns: dict[Asked, dict[int, IntArray]] = {}
        for i, name in enumerate(known.get(one) for known in names):
            if name is not None:
                columns.setdefault(name, {})[i] = ends[i][:, places[i][name]]
        found.append(_column(list(columns.values()), len(blocks), bits))
        depths.append(max(len(columns), 1))
    deepest = max(depths, default=1)
    answers = list(dict.fromkeys(answer for column in found for answer in column))
    rows = [
        [
            column.get(answer, 0) << bits * (deepest - depth)
            for column, depth in zip(found, depths, strict=True)
        ]
        for answer in answers
    ]
    return Law.of(rows, bits * deepest)


def _column(apart: Sequence[dict[int, IntArray]], blocks: int, bits: int) -> dict[bytes, int]:
    """For one input, the weights of what the blocks answer; `apart` holds the ends of those that share a number."""
    nothing = np.full(blocks, -1, np.int32)
    if not apart:
        return {nothing.tobytes(): 1 << bits}
    pieces = []
    for ends in apart:
        starts = np.unique(np.concatenate([np.zeros(1, np.int64), *ends.values()]))
        starts = starts[starts < 1 << bits]
        told = np.tile(nothing, (len(starts), 1))
        for i, end in ends.items():
            told[:, i] = np.searchsorted(end, starts, side="right")
        pieces.append(list(zip(told, np.diff(np.append(starts, 1 << bits)).tolist(), strict=True)))
    if math.prod(map(len, pieces)) > MOST_PRODUCTS:
        raise too_large()
    # Each block answers in one of the pieces only, and is silent, -1, in the others.
    return {
        np.max([answer for answer, _ in some], axis=0).tobytes(): math.prod(length for _, length in some)
        for some in product(*pieces)
    }


def shared_coins(blocks: Sequence[UnaryBlock]) -> Law:
    """One value's coin under blocks that share it: a column for the true value, one for another."""
    sides: tuple[Label, ...] = (("own",), ("other",))
    two = [
        Block(("coin",), None, None, sides, (("1",), ("0",)), block.bits, np.array(
            [[[block.present, block.absent]],
             [[(1 << block.bits) - block.present, (1 << block.bits) - block.absent]]], np.int64
        )) for block in blocks
    ]  # fmt: skip
    return shared(two, [(None, side) for side in sides])


def group_law(blocks: Sequence[AnyBlock], inputs: Sequence[Label], secret: Sequence[Label]) -> Law:
    """What one group of blocks releases for all pairs of secret and public value, the secret's first."""
    sets = [block for block in blocks if isinstance(block, UnaryBlock)]
    if sets:
        return _wide(_sets_law(sets, inputs), len(secret))
    plain = [block for block in blocks if isinstance(block, Block)]
    if plain[0].secret is not None:
        return shared(plain, [(s, x) for s in secret for x in inputs])
    return _wide(shared(plain, [(None, x) for x in inputs]), len(secret))


def _wide(law: Law, times: int) -> Law:
    """The same for every value of the secret."""
    return Law({row * times: weight for row, weight in law.rows.items()}, law.bits)


def _sets_law(blocks: Sequence[UnaryBlock], inputs: Sequence[Label]) -> Law:
    """All sets, coin by coin."""
    if any(block.inputs != tuple(inputs) for block in blocks):
        raise too_large()
    coin = shared_coins(blocks)
    coins = [
        Law.of(
            [
                [weight * (row[0] if x == own else row[1]) for x in range(len(inputs))]
                for row, weight in coin.rows.items()
            ],
            coin.bits,
        )
        for own in range(len(inputs))
    ]
    return reduce(Law.beside, coins)


def group_spread(blocks: Sequence[AnyBlock], values: Sequence[Label] | None = None) -> Fraction | None:
    """max P(y|x)/P(y|x') of one group over `values` of x, or over all; x and x' in the releases that know both."""
    sets = [block for block in blocks if isinstance(block, UnaryBlock)]
    if sets:
        if max(len(block.inputs) for block in sets) == 1:
            return Fraction(1)
        rows = shared_coins(sets).rows
        if any(0 in row for row in rows):
            return None
        quotients = [Fraction(own, other) for own, other in rows]
        return max(quotients) / min(quotients)
    plain = [block for block in blocks if isinstance(block, Block)]
    every = set[Asked]().union(*map(inputs_of, plain))
    asked = [one for one in every if values is None or one[1] in values]
    known = [set(names_of(block, asked)) for block in plain]
    told = {one: frozenset(i for i, some in enumerate(known) if one in some) for one in asked}
    worst = Fraction(1)
    for both in {one & other for one in set(told.values()) for other in set(told.values())}:
        if both:
            inside = [one for one in asked if both <= told[one]]
            ratio = shared([plain[i] for i in sorted(both)], inside).spread()
            if ratio is None:
                return None
            worst = max(worst, ratio)
    return worst


def as_block(law: Law, like: AnyBlock, inputs: tuple[Label, ...], secret: tuple[Label, ...],
             names: tuple[str, ...], reads: bool) -> Block:  # fmt: skip
    """The law as a block whose outputs are numbered."""
    kind = np.int64 if law.bits <= 62 else object
    flat = np.array([[part * times for part in row] for row, times in law.rows.items()], object).astype(kind)
    weights = flat.reshape(len(flat), len(secret), len(inputs))
    outputs: tuple[Label, ...] = tuple((str(y),) * len(like.columns) for y in range(len(flat)))
    kept = weights if reads else weights[:, :1]
    return Block(
        like.columns, names if reads else None, secret if reads else None, inputs, outputs, law.bits, kept
    )


def as_it_is(columns: tuple[str, ...], inputs: tuple[Label, ...]) -> Block:
    """X released as it is."""
    return Block(columns, None, None, inputs, inputs, 0, np.eye(len(inputs), dtype=np.int64)[:, None, :])
