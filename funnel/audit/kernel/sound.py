"""From the records of files to what can be counted with: each sound in itself, and fitting the others.

All functions raise Broken where that is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, pairwise
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from funnel.audit.kernel.channel import MOST_CELLS, Block, by_axis
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.files import sha256
from funnel.audit.kernel.known import Known
from funnel.audit.kernel.verdict import Broken, agree
from funnel.format import counts, draws, journal, protocol, released
from funnel.format.canonical import FormatError
from funnel.format.cells import NAME as CELLS
from funnel.format.fields import Alphabet, Label
from funnel.format.known import NAME as KNOWN
from funnel.format.known import KnownFile
from funnel.format.manifest import Manifest
from funnel.format.schema import Grid, read

T = TypeVar("T")
MOST_VALUES = 62
"""Of a set: its code is one word."""
MOST_NOISY = 1 << 40
"""Of a count or its noise under a private estimate, so that no sum of them overflows a word."""


@dataclass(frozen=True, eq=False)
class Joint:
    """Counts N[s, x_1, …, x_k]: `cells` (m, 1+k) of codes, `number` (m,) of records, over alphabets S, X_1, …, X_k."""

    alphabets: tuple[Alphabet, ...]
    cells: IntArray
    number: IntArray

    def __post_init__(self) -> None:
        """A column that is both secret and public has one value in a cell. Raises Broken."""
        secret = self.alphabets[0]
        for axis, block in enumerate(self.alphabets[1:], start=1):
            for name in set(block.columns) & set(secret.columns):
                if (_of(secret, name)[self.cells[:, 0]] != _of(block, name)[self.cells[:, axis]]).any():
                    raise Broken(counts.NAME, f"{name} has two values in one cell", "one value", "two")

    @property
    def rows(self) -> int:
        """Records in all."""
        return sum(self.number.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        """(c, a_1, …, a_k)."""
        return tuple(len(one.values) for one in self.alphabets)

    def dense(self) -> IntArray:
        """N as an array of its shape, of at most MOST_CELLS."""
        if prod(self.shape) > MOST_CELLS:
            raise Broken(counts.NAME, "too many cells to be measured: nothing is proven", MOST_CELLS, self.shape)
        table = np.zeros(self.shape, np.int64)
        table[tuple(self.cells.T)] = self.number
        return table

    def of_axis(self, axis: int) -> IntArray:
        """Records of each value of S (axis 0) or of a block."""
        found = np.zeros(self.shape[axis], np.int64)
        np.add.at(found, self.cells[:, axis], self.number)
        return found

    def possible(self) -> npt.NDArray[np.bool_]:
        """Which values x of the first block can occur with which s (c, a): all, unless x = (s, u) holds all of s."""
        (names, secrets), (columns, values) = ((one.columns, one.values) for one in self.alphabets[:2])
        own = [columns.index(name) for name in names] if set(names) <= set(columns) else []
        return np.array([[not own or tuple(x[i] for i in own) == s for x in values] for s in secrets])


def _of(alphabet: Alphabet, name: str) -> npt.NDArray[Any]:
    """What every value says of one column."""
    return np.array([value[alphabet.columns.index(name)] for value in alphabet.values], object)


def parsed(record: type[T], name: str, raw: bytes) -> T:
    """A record from canonical bytes."""
    try:
        return read(record, name, raw)
    except FormatError as error:
        what = f"{error.path or 'the content'} is not as its format says"
        raise Broken(name, what, error.expected, error.found) from None


def blocks(file: protocol.ProtocolFile, manifest: Manifest) -> tuple[Block, ...]:
    """Every protocol: its labels distinct, its chances sums of one, its sizes and columns the manifest's."""
    for one in file.blocks:
        _labels(protocol.NAME, one.columns, one.inputs)
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
    _labels(protocol.NAME, one.columns, one.outputs)
    if one.secret:
        _labels(protocol.NAME, one.secret.columns, one.secret.values)
    secret = (len(one.secret.values),) if one.secret else ()
    weights = _array(protocol.NAME, one.weights, (len(one.outputs), *secret, len(one.inputs)))
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


def _labels(file: str, columns: Sequence[str], labels: Sequence[Label]) -> None:
    """Distinct columns; labels one or more, distinct, and as wide."""
    for what, given in (("columns", columns), ("values", labels)):
        if not given or len(set(given)) < len(given):
            raise Broken(file, f"{what} of {', '.join(columns)} are not distinct", "distinct ones", given)
    if any(len(label) != len(columns) for label in labels):
        raise Broken(file, "a value has not one text for each column", columns, labels)


def _array(file: str, grid: Grid, shape: tuple[int, ...]) -> IntArray:
    """A grid of numbers as an array of just this shape."""
    try:
        found = np.array(grid, np.int64)
    except (ValueError, OverflowError):
        found = np.zeros(0, np.int64)
    if found.shape != shape:
        raise Broken(file, "numbers do not stand in rows of one length", shape, found.shape)
    return found


def _rows(file: str, grid: Grid, sizes: Iterable[int]) -> IntArray:
    """Rows [code, …, count]: in the order of their codes, each once, below these sizes; counts positive."""
    limits = [*sizes]
    rows = _array(file, grid, (len(grid), len(limits) + 1))
    listed = [row[:-1] for row in rows.tolist()]
    if any(before >= after for before, after in pairwise(listed)):
        raise Broken(file, "rows are not in order, each once", "ascending codes", "others")
    # Below 2^62 together, so that no sum of counts overflows.
    small = len(rows) and rows[:, -1].min() > 0 and sum(rows[:, -1].tolist()) < 1 << 62
    if not small or (rows[:, :-1] >= np.array(limits, object)).any():
        raise Broken(file, "a code or a count is out of range", f"codes below {limits}, positive counts", "others")
    return rows


def rows(file: released.ReleasedFile, blocks: tuple[Block, ...], manifest: Manifest) -> IntArray:
    """Released rows [y_1, …, y_k, count], an output of every axis, as many records as stated."""
    found = _rows(released.NAME, file.rows, (prod(one.outputs for one in group) for group in by_axis(blocks)))
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


def joint(file: counts.CountsFile, blocks: tuple[Block, ...], manifest: Manifest) -> Joint:
    """The counts that claims are about, over the secret and the protocols' inputs."""
    alphabets = (file.secret, *file.blocks)
    for one in alphabets:
        _labels(counts.NAME, one.columns, one.values)
    agree(counts.NAME, [
        ("secret", (manifest.sensitive, manifest.alphabet.sensitive), (file.secret.columns, len(file.secret.values))),
        ("secret that is read", {file.secret}, {one.secret for one in blocks if one.secret} or {file.secret}),
        ("inputs", [(one.columns, one.inputs) for one, *_ in by_axis(blocks)],
         [(one.columns, one.values) for one in file.blocks]),
        ("kind of estimate", manifest.estimate.kind == "private", file.private is not None),
    ])  # fmt: skip
    rows = _rows(counts.NAME, file.cells, (len(one.values) for one in alphabets))
    return Joint(alphabets, rows[:, :-1], rows[:, -1])


def records(file: counts.CountsFile, joint: Joint, manifest: Manifest) -> Joint:
    """The records themselves, as many as were released: the counts, or what a private estimate added its noise to."""
    found = joint
    if file.private:
        cells = _array(counts.NAME, file.private.cells, (len(file.private.cells), len(joint.shape) + 3))
        own = file.private.records
        agree(counts.NAME, [("records under a lock", manifest.locked is not None, own is not None)])
        number = cells[:, -3] if own is None else _array(counts.NAME, own, (len(cells),))
        codes = cells[:, :-3]
        if cells[:, -3:].max(initial=0) >= MOST_NOISY:
            raise Broken(counts.NAME, "a noisy count is too large to be honest", f"below {MOST_NOISY}", "more")
        if (codes >= np.array(joint.shape)).any() or len(np.unique(codes, axis=0)) < len(codes):
            raise Broken(counts.NAME, "noisy cells are not distinct ones of the alphabets", joint.shape, "others")
        found = replace(Joint(joint.alphabets, codes, number), cells=codes[number > 0], number=number[number > 0])
    if found.rows != manifest.rows:
        raise Broken(counts.NAME, "counts are not of as many records as were released", manifest.rows, found.rows)
    return found


def known(file: KnownFile, joint: Joint, manifest: Manifest) -> Known:
    """The same counts by what may be known of columns: released values as they are, where enough records share them."""
    knows, axes, minimum = manifest.parameters.knows, len(joint.shape), manifest.estimate.minimum
    if knows is None:
        raise Broken(KNOWN, "the notion does not say what may be known", "a number or columns", knows)
    rows = _rows(KNOWN, file.cells, (*joint.shape, *(len(level.values) + 1 for level in file.levels)))
    found = np.zeros(joint.shape, np.int64)
    np.add.at(found, tuple(rows[:, :axes].T), rows[:, -1])
    if (found != joint.dense()).any():
        raise Broken(KNOWN, "records are counted otherwise than in counts.json", joint.rows, int(rows[:, -1].sum()))
    for axis, alphabet in enumerate(joint.alphabets[1:], start=1):
        for column in alphabet.columns:
            places = [place for place, level in enumerate(file.levels) if level.column == column]
            if not places and CELLS not in manifest.files:
                raise Broken(KNOWN, "nothing is told of a released column", column, "no level")
            for place in places[-1:]:
                told = rows[:, axes + place], file.levels[place].values
                _as_released(_of(alphabet, column)[rows[:, axis]].tolist(), *told, rows[:, -1].tolist(), minimum)
    return Known(file.levels, rows[:, :axes], rows[:, axes:-1], rows[:, -1], knows, minimum)


def _as_released(
    values: list[str | None], codes: IntArray, named: tuple[str | None, ...], number: list[int], minimum: int
) -> None:
    """The coarsest level of a column is its released value, wherever at least so many records share that."""
    shared: dict[str | None, int] = {}
    for value, records in zip(values, number, strict=True):
        shared[value] = shared.get(value, 0) + records
    for value, code in zip(values, codes.tolist(), strict=True):
        if (shared[value] >= minimum) != (code > 0) or (code and named[code - 1] != value):
            raise Broken(KNOWN, "what may be known of a column is not what is released of it", value, code)


def drawn(file: draws.DrawsFile, blocks: tuple[Block, ...]) -> tuple[IntArray, ...]:
    """For every block rows [input, output, count]; an input is x, or s*a + x where the block reads s."""
    axes, found = by_axis(blocks), list[IntArray]()
    if len(file.blocks) != len(axes):
        raise Broken(draws.NAME, "the draws do not cover the blocks", len(axes), len(file.blocks))
    for grid, (block, *others) in zip(file.blocks, axes, strict=True):
        inputs = len(block.inputs) * block.weights.shape[1]
        rows = _rows(draws.NAME, grid, (inputs, inputs + 1 if block.odds else block.outputs))
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


def ledger(raw: bytes, head: bytes) -> tuple[journal.Line, ...]:
    """Lines of the ledger, each naming the hash of the one before, as far as the head says.

    A last line without its end is what a crash left of something that never happened; one line beyond the head is what
    a crash kept from being confirmed.
    """
    lines, hashes = [], [journal.START]
    for number, text in enumerate(raw.split(b"\n")[:-1], start=1):
        line = parsed(journal.Line, f"{journal.NAME}:{number}", text + b"\n")
        if (line.sequence, line.previous) != (number, hashes[-1]):
            raise Broken(f"{journal.NAME}:{number}", "the chain is broken here", hashes[-1], line.previous)
        lines.append(line)
        hashes.append(sha256(text + b"\n"))
    told = parsed(journal.Head, journal.HEAD, head)
    if told.sequence >= len(hashes) or hashes[told.sequence] != told.sha256 or len(lines) > told.sequence + 1:
        raise Broken(journal.NAME, "the head confirms other lines", told.sequence, len(lines))
    return tuple(lines)
