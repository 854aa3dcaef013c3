"""Claims about what was drawn: for every record once, into the released table, never the impossible, and by chance.

Counts by input cannot show a drawer that looked at more than the input, nor that nobody chose among several drawings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from funnel.audit.kernel.chance import follows
from funnel.audit.kernel.channel import Block, Coins
from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.opened import Once, Opened
from funnel.audit.kernel.verdict import Broken, Unchecked, counted
from funnel.format import draws

_AT_ONCE = 1 << 14
"""Sets that are taken apart at a time."""
UNTOLD = "nothing is left to chance, or there are too few draws to tell"
Trial = tuple[str, FloatArray, IntArray]
"""What was drawn, in words; how often each outcome is expected, and how often it was drawn: rows of tables (m, b)."""


def every_record(opened: Opened) -> str:
    """Every record was drawn for exactly once, in every block: Σ_y K[s, x, y] = N[s, x]."""
    joint = opened.records
    for axis, (block, rows) in enumerate(zip(opened.blocks, opened.drawn, strict=True), start=1):
        own = rows[rows[:, 1] == len(block.inputs)] if isinstance(block, Coins) else rows
        codes = joint.cells[:, axis] + (len(block.inputs) * joint.cells[:, 0] if block.reads else 0)
        _same(block, "inputs", _totals(codes, joint.number), _totals(own[:, 0], own[:, 2]))
    return f"{counted(joint.rows, 'record')} in {counted(len(opened.blocks), 'block')}"


def into_table(opened: Opened) -> str:
    """The drawn values are those that were released, block by block."""
    rows = opened.answers
    for axis, (block, drawn) in enumerate(zip(opened.blocks, opened.drawn, strict=True)):
        released = _totals(rows[:, axis], rows[:, -1])
        if isinstance(block, Coins):
            ones = np.diag(_together(rows, axis, block)).tolist()
            released = {x: one for x, one in enumerate([*ones, opened.manifest.rows]) if one}
        _same(block, "outputs", released, _totals(drawn[:, 1], drawn[:, 2]))
    return f"{counted(len(rows), 'distinct row')} agree, block by block"


@Once
def possible(opened: Opened) -> str:
    """Nothing was drawn that the protocol gives no weight; no value is in more sets than were drawn."""
    for block, rows in zip(opened.blocks, opened.drawn, strict=True):
        if isinstance(block, Coins):
            held, sets = _coins(rows, block)
            wrong = held > sets[:, None]
        else:
            wrong = block.weights.reshape(block.outputs, -1)[rows[:, 1], rows[:, 0]] == 0
        if wrong.any():
            name = ", ".join(block.columns)
            raise Broken(draws.NAME, f"{name}: something impossible was drawn", "positive weights", int(wrong.sum()))
    return f"{counted(sum(map(len, opened.drawn)), 'pair')} of input and output, each with a positive weight"


def fits(opened: Opened) -> str | Unchecked:
    """Within each block the draws follow the protocol's chances (Theorem 2), input by input and all together."""
    possible(opened)  # what has no weight is pooled with what has little, and would not show
    return _tried(by_block(opened))


def independent(opened: Opened) -> str | Unchecked:
    """Across blocks the draws are as independent as the channel says, and so are the coins within a set (Lemma 4)."""
    return _tried(across(opened))


def _tried(trials: Iterator[Trial]) -> str | Unchecked:
    found = [follows(draws.NAME, *trial) for trial in trials]
    if not found:
        return "one block"
    if not any(degrees for _, degrees in found):
        return Unchecked(UNTOLD)
    chance, degrees = min(chance for chance, _ in found), sum(degrees for _, degrees in found)
    return f"{counted(degrees, 'degree of freedom', 'degrees of freedom')}, p >= {chance:.2g}"


def by_block(opened: Opened) -> Iterator[Trial]:
    """Draws of each block against its chances: of each input, and of all inputs together.

    The second sees what the first cannot where every cell of an input is small.
    """
    for block, rows in zip(opened.blocks, opened.drawn, strict=True):
        name = f"what was drawn of {', '.join(block.columns)}"
        if isinstance(block, Coins):
            held, sets = _coins(rows, block)
            seen = np.stack([held, sets[:, None] - held], axis=2).swapaxes(0, 1)  # for each x' a row for each x
            chances = np.stack([block.chances, 1 - block.chances], axis=2).swapaxes(0, 1)
        else:
            weights = block.weights.reshape(block.outputs, -1).T
            seen = np.zeros((1, *weights.shape), np.int64)
            seen[0, rows[:, 0], rows[:, 1]] = rows[:, 2]
            chances = weights[None] / float(1 << block.bits)
        means = chances * seen.sum(axis=2, keepdims=True)
        yield f"{name}, input by input,", means.reshape(-1, means.shape[2]), seen.reshape(-1, seen.shape[2])
        yield name, means.sum(axis=1), seen.sum(axis=1)


def across(opened: Opened) -> Iterator[Trial]:
    """Released rows against the distribution of outputs Σ_s T[s, y…], of all blocks and of every two; pairs of coins.

    Rows are independent but not alike. Blocks that shared their randomness miss the product.
    """
    blocks, rows = opened.blocks, opened.answers
    for axis, block in enumerate(blocks):
        if isinstance(block, Coins):
            yield from _coins_by_pairs(opened, axis, block)
    if len(blocks) == 1:
        return
    masses = replace(opened.channel, counts=opened.records.dense()).table.sum(axis=0)
    whole: list[int] = masses.ravel().tolist()  # of any size, for the products may need more than a word
    total = sum(whole)
    expected = np.array([opened.manifest.rows * mass / total for mass in whole]).reshape(masses.shape)
    observed = np.zeros(masses.shape, np.int64)
    observed[tuple(rows[:, :-1].T)] = rows[:, -1]
    axes = range(len(blocks))
    for group in {tuple(axes), *combinations(axes, 2)}:
        rest = tuple(axis for axis in axes if axis not in group)
        names = " with ".join(", ".join(blocks[axis].columns) for axis in group)
        means, seen = (one.sum(axis=rest).reshape(1, -1) for one in (expected, observed))
        yield f"what was drawn of {names}", means, seen


def _coins_by_pairs(opened: Opened, axis: int, block: Coins) -> Iterator[Trial]:
    """For every two values, how many sets held both, one, the other, none."""
    held, sets = _coins(opened.drawn[axis], block)
    ones, rows = held.sum(axis=0), opened.manifest.rows
    both, means = _together(opened.answers, axis, block), block.chances.T @ (sets[:, None] * block.chances)
    single = block.chances.T @ sets
    for x, other in combinations(range(len(block.inputs)), 2):
        parts = [(means[x, other], single[x], single[other]), (both[x, other], ones[x], ones[other])]
        expected, observed = (np.array([[b, one - b, two - b, rows - one - two + b]]) for b, one, two in parts)
        yield f"what was drawn of {', '.join(block.columns)}, values {x} and {other},", expected, observed


def _same(block: Block | Coins, what: str, expected: dict[int, int], found: dict[int, int]) -> None:
    if expected != found:
        code = min(one for one in expected | found if expected.get(one) != found.get(one))
        what = f"{', '.join(block.columns)}: the {what} of the draws are not those of the release, first code {code}"
        raise Broken(draws.NAME, what, expected.get(code, 0), found.get(code, 0))


def _totals(codes: IntArray, numbers: IntArray) -> dict[int, int]:
    """Sums by code."""
    kinds, places = np.unique(codes, return_inverse=True)
    sums = np.zeros(len(kinds), np.int64)
    np.add.at(sums, places, numbers)
    return dict(zip(kinds.tolist(), sums.tolist(), strict=True))


def _coins(rows: IntArray, block: Coins) -> tuple[IntArray, IntArray]:
    """M[x, x'], the sets drawn for x that hold x' (a, a), and all that were drawn for x (a,)."""
    held = np.zeros((len(block.inputs), len(block.inputs) + 1), np.int64)
    held[rows[:, 0], rows[:, 1]] = rows[:, 2]
    return held[:, :-1], held[:, -1]


def _together(rows: IntArray, axis: int, block: Coins) -> IntArray:
    """How many released sets hold each two values (a, a); on the diagonal, each one."""
    places = np.arange(len(block.inputs) - 1, -1, -1)
    both = np.zeros((len(places),) * 2, np.int64)
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        bits = (part[:, axis, None] >> places) & 1
        both += bits.T @ (bits * part[:, -1:])
    return both
