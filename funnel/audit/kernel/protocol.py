"""Protocols as integer weights, what was released of them and drawn by them: each sound in itself, fitting the others.

All functions raise Broken where that is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, groupby
from math import prod

import numpy as np

from funnel.audit.kernel.exact import ExactArray, IntArray
from funnel.audit.kernel.files import array, labels, table
from funnel.audit.kernel.verdict import Broken, agree
from funnel.format import draws, protocol, released
from funnel.format.fields import Alphabet, Label
from funnel.format.manifest import Manifest

Ratio = Fraction | None
"""A ratio of chances, None where it is infinite."""
MOST_VALUES = 62
"""Of a set: its code is one word."""


@dataclass(frozen=True, eq=False)
class Block:
    """W[y, s, x] (b, c or 1, a): y given s and x_axis = x has chance W / 2^bits; c where the draw reads a `secret`.

    `odds`, of a block that says whether a set holds one value: how many times likelier a set is under a value that it
    holds than under one that it lacks.
    """

    axis: int
    columns: tuple[str, ...]
    inputs: tuple[Label, ...]
    bits: int
    weights: ExactArray
    secret: Alphabet | None = None
    odds: Fraction | None = None

    @property
    def outputs(self) -> int:
        """How many there are."""
        return len(self.weights)

    @property
    def reads(self) -> bool:
        """Whether the draw depends on the secret, too."""
        return self.secret is not None or int(self.weights.shape[1]) > 1

    def spread(self) -> Ratio:
        """max of Q(y|x)/Q(y|x') over inputs and outputs, of which are sets, if the block is of one."""
        if self.odds:
            return self.odds if len(self.inputs) > 1 else Fraction(1)
        rows = [(int(row.max()), int(row.min())) for row in self.weights.reshape(self.outputs, -1)]
        return largest(Fraction(high, low) if low else None for high, low in rows if high)


def by_axis(blocks: Iterable[Block]) -> list[list[Block]]:
    """The blocks drawn for x_1, for x_2 and so on, which is their order."""
    return [list(group) for _, group in groupby(blocks, key=lambda one: one.axis)]


def largest(ratios: Iterable[Ratio]) -> Ratio:
    """The largest of ratios, one at least; None where one is infinite."""
    worst = Fraction(1)
    for ratio in ratios:
        if ratio is None:
            return None
        worst = max(worst, ratio)
    return worst


def blocks(file: protocol.ProtocolFile, manifest: Manifest) -> tuple[Block, ...]:
    """Every protocol: its labels distinct, its chances sums of one, its sizes and columns the manifest's."""
    for one in file.blocks:
        labels(protocol.NAME, one.columns, one.inputs)
    parts = [_coins(axis, one) if isinstance(one, protocol.Sets) else [_block(axis, one)]
             for axis, one in enumerate(file.blocks)]  # fmt: skip
    sizes, hidden = manifest.alphabet, (manifest.sensitive, manifest.alphabet.sensitive)
    secrets = {(one.secret.columns, len(one.secret.values)) for one, *_ in parts if one.secret}
    agree(protocol.NAME, [
        ("columns", manifest.public, tuple(one.columns for one in file.blocks)),
        ("numbers of inputs", sizes.public, tuple(len(one.inputs) for one in file.blocks)),
        ("numbers of outputs", sizes.released, tuple(prod(one.outputs for one in part) for part in parts)),
        ("secret", {hidden}, secrets or {hidden}),
    ])  # fmt: skip
    return tuple(chain.from_iterable(parts))


def _block(axis: int, one: protocol.Weights) -> Block:
    labels(protocol.NAME, one.columns, one.outputs)
    if one.secret:
        labels(protocol.NAME, one.secret.columns, one.secret.values)
    secret = (len(one.secret.values),) if one.secret else ()
    weights = array(protocol.NAME, one.weights, (len(one.outputs), *secret, len(one.inputs)))
    if (weights.sum(axis=0, dtype=object) != 1 << one.bits).any():
        raise Broken(protocol.NAME, f"weights of {', '.join(one.columns)} do not sum to 2^bits", one.bits, "others")
    weights = weights.reshape(len(one.outputs), -1, len(one.inputs))
    return Block(axis, one.columns, one.inputs, one.bits, weights, one.secret)


def _coins(axis: int, one: protocol.Sets) -> list[Block]:
    """Whether a set holds x', for every value x' in turn: output 1 where it does."""
    a, whole = len(one.inputs), 1 << one.bits
    if not 0 < one.absent < one.present < whole or a > MOST_VALUES:
        raise Broken(protocol.NAME, "the chances of a set are none", "0 < absent < present < 2^bits", one.present)
    held = np.where(np.eye(a, dtype=bool), one.present, one.absent)
    odds = Fraction(one.present * (whole - one.absent), one.absent * (whole - one.present))
    coins = (np.array([[whole - row], [row]]) for row in held)
    return [Block(axis, one.columns, one.inputs, one.bits, coin, None, odds) for coin in coins]


def rows(file: released.ReleasedFile, blocks: tuple[Block, ...], manifest: Manifest) -> IntArray:
    """Released rows [y_1, …, y_k, count], an output of every axis, as many records as stated."""
    found = table(released.NAME, file.rows, (prod(one.outputs for one in group) for group in by_axis(blocks)))
    if (number := sum(found[:, -1].tolist())) != manifest.rows:
        raise Broken(released.NAME, "another number of rows was released", manifest.rows, number)
    return found


def answers(rows: IntArray, blocks: tuple[Block, ...]) -> IntArray:
    """The same with an output of every block, none impossible: in the code of a set, value x stands at bit a-1-x."""
    columns = [
        rows[:, axis, None] >> np.arange(len(group))[::-1] & 1 if group[0].odds else rows[:, axis, None]
        for axis, group in enumerate(by_axis(blocks))
    ]
    found = np.column_stack([*columns, rows[:, -1]])
    for place, block in enumerate(blocks):
        if not block.weights[np.unique(found[:, place])].any(axis=(1, 2)).all():
            raise Broken(released.NAME, "a value was released that no input can produce", block.columns, "weight 0")
    return found


def drawn(file: draws.DrawsFile, blocks: tuple[Block, ...]) -> tuple[IntArray, ...]:
    """For every block rows [input, output, count]; an input is x, or s*a + x where the block reads s."""
    axes, found = by_axis(blocks), list[IntArray]()
    if len(file.blocks) != len(axes):
        raise Broken(draws.NAME, "the draws do not cover the blocks", len(axes), len(file.blocks))
    for grid, (block, *others) in zip(file.blocks, axes, strict=True):
        inputs = len(block.inputs) * block.weights.shape[1]
        rows = table(draws.NAME, grid, (inputs, inputs + 1 if block.odds else block.outputs))
        found += _held(rows, 1 + len(others)) if block.odds else [rows]
    return tuple(found)


def _held(rows: IntArray, values: int) -> Iterator[IntArray]:
    """From rows [x, x', sets that held x'], where x' = a counts all sets, those of the block of every value x'."""
    table = np.zeros((values, values + 1), np.int64)
    table[rows[:, 0], rows[:, 1]] = rows[:, 2]
    for held in table[:, :-1].T:
        both = np.stack([table[:, -1] - held, held], axis=1)
        if (both < 0).any():
            raise Broken(draws.NAME, "a value is in more sets than were drawn", "at most all", int(both.min()))
        yield np.column_stack([np.argwhere(both), both[both > 0]])
