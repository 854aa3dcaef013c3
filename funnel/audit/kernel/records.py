"""Protocols, counts and draws as arrays that fit each other, or Broken; what a file says by itself its record shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, groupby
from math import prod

import numpy as np

from funnel.audit.kernel.exact import MOST_CELLS, BoolArray, ExactArray, IntArray
from funnel.audit.kernel.verdict import Broken, agree
from funnel.format import counts, draws, protocol, released
from funnel.format.fields import Alphabet, Label
from funnel.format.manifest import Manifest
from funnel.format.schema import Rows


@dataclass(frozen=True, eq=False)
class Block:
    """W[y, s, x] (b, c or 1, a): y given s and x_axis = x has chance W / 2^bits; c where the draw reads a `secret`.

    `odds`, of a block that says whether a set holds one value: p(1-q)/(q(1-p)), p the chance to hold the true value and
    q any other; so many times likelier is a set under a value that it holds than under one that it lacks.
    """

    axis: int
    columns: tuple[str, ...]
    inputs: tuple[Label, ...]
    bits: int
    weights: ExactArray
    secret: Alphabet | None = None
    odds: Fraction | None = None

    @property
    def reads(self) -> bool:
        """Whether the draw depends on the secret, too."""
        return self.secret is not None or int(self.weights.shape[1]) > 1

    @property
    def flat(self) -> ExactArray:
        """W by output and input (b, inputs); an input is x, or s*a + x where the draw reads s."""
        return self.weights.reshape(len(self.weights), -1)


def by_axis(blocks: Iterable[Block]) -> list[list[Block]]:
    """The blocks drawn for x_1, for x_2 and so on, which is their order."""
    return [list(group) for _, group in groupby(blocks, key=lambda one: one.axis)]


def blocks(file: protocol.ProtocolFile, manifest: Manifest) -> tuple[Block, ...]:
    """Every protocol, of the columns and sizes that the manifest states."""
    parts = [_parts(axis, one) for axis, one in enumerate(file.blocks)]
    sizes, hidden = manifest.alphabet, (manifest.sensitive, manifest.alphabet.sensitive)
    secrets = {(one.secret.columns, len(one.secret.values)) for one, *_ in parts if one.secret}
    agree(protocol.NAME, [
        ("columns", manifest.public, tuple(one.columns for one in file.blocks)),
        ("numbers of inputs", sizes.public, tuple(len(one.inputs) for one in file.blocks)),
        ("numbers of outputs", sizes.released, tuple(prod(len(one.weights) for one in part) for part in parts)),
        ("secret", {hidden}, secrets or {hidden}),
    ])  # fmt: skip
    return tuple(chain.from_iterable(parts))


def _parts(axis: int, one: protocol.Weights | protocol.Sets) -> list[Block]:
    """One block; of sets a block for every value x' in turn, whose output 1 says that a set holds x'."""
    if isinstance(one, protocol.Weights):
        weights = np.array(one.weights, np.int64)
        weights = weights if one.secret else weights[:, None]
        return [Block(axis, one.columns, one.inputs, one.bits, weights, one.secret)]
    whole = 1 << one.bits
    odds = Fraction(one.present * (whole - one.absent), one.absent * (whole - one.present))
    held = np.where(np.eye(len(one.inputs), dtype=bool), one.present, one.absent)
    coins = np.stack([whole - held, held], axis=1)[:, :, None]
    return [Block(axis, one.columns, one.inputs, one.bits, coin, None, odds) for coin in coins]


def table(file: str, rows: Rows, sizes: Sequence[int]) -> IntArray:
    """Rows [code, …, count] (m, k+1), codes below k sizes."""
    found = np.array(rows, np.int64)
    if found.shape[1] != len(sizes) + 1 or (found[:, :-1] >= np.array(sizes)).any():
        raise Broken(file, "a code is of no value, or there are others", f"codes below {sizes}", "others")
    return found


def rows(file: released.ReleasedFile, blocks: tuple[Block, ...], manifest: Manifest) -> IntArray:
    """Released rows [y_1, …, y_k, count], an output of every axis, as many records as stated."""
    found = table(released.NAME, file.rows, [prod(len(one.weights) for one in group) for group in by_axis(blocks)])
    agree(released.NAME, [("number of rows", manifest.rows, int(found[:, -1].sum()))])
    return found


def answers(rows: IntArray, blocks: tuple[Block, ...]) -> IntArray:
    """The same with an output of every block: in the code of a set, value x stands at bit a-1-x.

    Any x_1, …, x_k may meet, so a row is possible where W_j[y_j, s, x] > 0 for one s, all j and some x of each.
    """
    columns = [
        rows[:, axis, None] >> np.arange(len(group))[::-1] & 1 if group[0].odds else rows[:, axis, None]
        for axis, group in enumerate(by_axis(blocks))
    ]
    found, possible = np.column_stack([*columns, rows[:, -1]]), np.ones((len(rows), 1), bool)
    for place, block in enumerate(blocks):
        possible = possible & (block.weights.max(axis=2)[found[:, place]] > 0)
    if not possible.any(axis=1).all():
        raise Broken(released.NAME, "a row was released that no input can produce", "positive weights", "weight 0")
    return found


def drawn(file: draws.DrawsFile, blocks: tuple[Block, ...]) -> tuple[IntArray, ...]:
    """For every block K (inputs, b): how often each output was drawn for each input, which are as in `Block.flat`.

    Of sets draws.json counts for each x how many held x', and as x' = a how many there were.
    """
    axes, found = by_axis(blocks), list[IntArray]()
    agree(draws.NAME, [("number of blocks", len(axes), len(file.blocks))])
    for told, (block, *_) in zip(file.blocks, axes, strict=True):
        inputs = block.flat.shape[1]
        seen = np.zeros((inputs, inputs + 1 if block.odds else len(block.weights)), np.int64)
        *codes, number = table(draws.NAME, told, seen.shape).T
        seen[tuple(codes)] = number
        held, of = seen[:, :-1].T, seen[:, -1]
        if block.odds and (held > of).any():
            raise Broken(draws.NAME, "a value is in more sets than were drawn", "at most all", "more")
        found += [*np.stack([of - held, held], axis=2)] if block.odds else [seen]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Joint:
    """Counts N[s, x_1, …, x_k]: `cells` (m, 1+k) of codes, `number` (m,) of records, over alphabets S, X_1, …, X_k."""

    alphabets: tuple[Alphabet, ...]
    cells: IntArray
    number: IntArray

    @property
    def rows(self) -> int:
        """Records in all."""
        return int(self.number.sum())

    @property
    def shape(self) -> tuple[int, ...]:
        """(c, a_1, …, a_k)."""
        return tuple(len(one.values) for one in self.alphabets)

    def dense(self) -> IntArray:
        """N as an array of its shape, of at most MOST_CELLS."""
        if prod(self.shape) > MOST_CELLS:
            raise Broken(counts.NAME, "too many cells to be measured: nothing is proven", MOST_CELLS, self.shape)
        return sums(self.cells, self.number, self.shape)

    def of_axis(self, axis: int) -> IntArray:
        """Records of each value of S (axis 0) or of a block."""
        return sums(self.cells[:, [axis]], self.number, self.shape[axis : axis + 1])

    def possible(self) -> BoolArray:
        """Which values x of the first block can occur with which s (c, a): all, unless x = (s, u) holds all of s."""
        (names, secrets), (columns, values) = ((one.columns, one.values) for one in self.alphabets[:2])
        own = [columns.index(name) for name in names] if set(names) <= set(columns) else []
        return np.array([[not own or tuple(x[i] for i in own) == s for x in values] for s in secrets])


def sums(codes: IntArray, number: IntArray, shape: Sequence[int]) -> IntArray:
    """Numbers (m,) added up by their codes (m, k), as a table of a shape."""
    found = np.zeros(shape, np.int64)
    np.add.at(found, tuple(codes.T), number)
    return found


def joint(file: counts.CountsFile, blocks: tuple[Block, ...], manifest: Manifest) -> Joint:
    """The counts that claims are about, over the secret and the protocols' inputs."""
    agree(counts.NAME, [
        ("secret", (manifest.sensitive, manifest.alphabet.sensitive), (file.secret.columns, len(file.secret.values))),
        ("secret that is read", {file.secret}, {one.secret for one in blocks if one.secret} or {file.secret}),
        ("inputs", [(one.columns, one.inputs) for one, *_ in by_axis(blocks)],
         [(one.columns, one.values) for one in file.blocks]),
        ("kind of estimate", manifest.estimate.kind == "private", file.private is not None),
    ])  # fmt: skip
    rows = np.array(file.cells, np.int64)
    return Joint((file.secret, *file.blocks), rows[:, :-1], rows[:, -1])


def records(file: counts.CountsFile, joint: Joint, manifest: Manifest) -> Joint:
    """The records themselves, as many as were released: the counts, or what stands beside those of an estimate."""
    if file.private:
        cells, number = np.array(file.private.cells, np.int64), np.array(file.private.records, np.int64)
        joint = Joint(joint.alphabets, cells[number > 0, :-3], number[number > 0])
    agree(counts.NAME, [("number of records", manifest.rows, joint.rows)])
    return joint
