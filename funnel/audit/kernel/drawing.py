"""Claims about what was drawn: for every record once, into the released table, never the impossible, and by chance.

Counts by input cannot show a drawer that looked at more than the input, nor that nobody chose among several drawings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from funnel.audit.kernel.chance import FALSE_ALARM, Fit
from funnel.audit.kernel.channel import Block, Coins
from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.opened import Once, Opened
from funnel.audit.kernel.verdict import Broken, Unchecked, counted
from funnel.format import draws

_AT_ONCE = 1 << 14
"""Sets that are taken apart at a time."""


def every_record(opened: Opened) -> str:
    """Every record was drawn for exactly once, in every block."""
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
            ones = np.sum([number @ bits for bits, number in _bits(rows, axis, block)], axis=0)
            released = {x: one for x, one in enumerate([*ones.tolist(), opened.manifest.rows]) if one}
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
    """Within each block the draws follow the protocol's chances.

    G tests of each input by itself, and of all inputs together, which sees what the first cannot where every cell of an
    input is small.
    """
    possible(opened)  # what has no weight is pooled with what has little, and would not show
    least, degrees = 1.0, 0
    for block, rows in zip(opened.blocks, opened.drawn, strict=True):
        each, together = Fit(), Fit()
        for group in _groups(block, rows):
            for means, seen in group:
                each.add(means, seen)
            means, seen = (np.sum(parts, axis=0) for parts in zip(*group, strict=True))
            together.add(means, seen)
        name = f"what was drawn of {', '.join(block.columns)}"
        least = min(least, each.refuse(name, even=True), together.refuse(name, even=False))
        degrees += each.degrees + together.degrees
    if degrees:
        return f"G tests with {counted(degrees, 'degree of freedom', 'degrees of freedom')}, p = {least:.2g}"
    if any(map(_random, opened.blocks)):
        return Unchecked("too few draws to tell")
    return "nothing is left to chance"


def independent(opened: Opened) -> str | Unchecked:
    """Across blocks the draws are as independent as the channel says, and so are the coins within a set.

    G tests of released rows against the distribution of outputs Σ_s T[s, y…], also for each pair of blocks. Rows are
    independent but not alike, so their counts vary less than a multinomial's: an honest release fails less often than
    stated. Blocks that shared their randomness miss the product.
    """
    blocks, rows, least, degrees = opened.blocks, opened.answers, 1.0, 0
    for axis, block in enumerate(blocks):
        if isinstance(block, Coins):
            least = min(least, _untied(opened, axis, block))
    if len(blocks) == 1:
        return f"pairs of values within sets, p >= {least:.2g}" if opened.channel.sets else "one block"
    masses = replace(opened.channel, counts=opened.records.dense()).table.sum(axis=0)
    whole: list[int] = masses.ravel().tolist()  # of any size, for the products may need more than a word
    total = sum(whole)
    expected = np.array([opened.manifest.rows * mass / total for mass in whole]).reshape(masses.shape)
    observed = np.zeros(masses.shape, np.int64)
    observed[tuple(rows[:, :-1].T)] = rows[:, -1]
    axes = range(len(blocks))
    for group in {tuple(axes), *combinations(axes, 2)}:
        test, rest = Fit(), tuple(axis for axis in axes if axis not in group)
        test.add(expected.sum(axis=rest).astype(float).ravel(), observed.sum(axis=rest).ravel())
        names = " with ".join(", ".join(blocks[axis].columns) for axis in group)
        least = min(least, test.refuse(f"what was drawn of {names}", even=False))
        degrees += test.degrees
    if not degrees:
        return Unchecked("too few rows to tell")
    return f"G tests with {counted(degrees, 'degree of freedom', 'degrees of freedom')}, p = {least:.2g}"


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


def _random(block: Block | Coins) -> bool:
    return isinstance(block, Coins) or bool(((block.weights > 0) & (block.weights < 1 << block.bits)).any())


Group = list[tuple[FloatArray, IntArray]]
"""Expected and observed counts over the same outcomes, by input."""


def _groups(block: Block | Coins, rows: IntArray) -> Iterator[Group]:
    """All inputs' draws; of sets, for each value whether they held it."""
    if isinstance(block, Coins):
        held, sets = _coins(rows, block)
        for ones, chances in zip(held.T, block.chances.T, strict=True):
            means, seen = chances * sets, np.stack([ones, sets - ones], axis=1)
            yield [*zip(np.stack([means, sets - means], axis=1), seen, strict=True)]
        return
    codes, starts = np.unique(rows[:, 0], return_index=True)
    chances = block.weights.reshape(block.outputs, -1) / float(1 << block.bits)
    group = []
    for code, (start, end) in zip(codes, pairwise([*starts, len(rows)]), strict=True):
        seen = np.zeros(block.outputs, np.int64)
        seen[rows[start:end, 1]] = rows[start:end, 2]
        group.append((chances[:, code] * seen.sum(), seen))
    yield group


def _coins(rows: IntArray, block: Coins) -> tuple[IntArray, IntArray]:
    """M[x, x'], the sets drawn for x that hold x' (a, a), and all that were drawn for x (a,)."""
    held = np.zeros((len(block.inputs), len(block.inputs) + 1), np.int64)
    held[rows[:, 0], rows[:, 1]] = rows[:, 2]
    return held[:, :-1], held[:, -1]


def _bits(rows: IntArray, axis: int, block: Coins) -> Iterator[tuple[IntArray, IntArray]]:
    """0 or 1 for every released set and value (m, a), and how often it was released (m,), a part at a time."""
    places = np.arange(len(block.inputs) - 1, -1, -1)
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        yield (part[:, axis, None] >> places) & 1, part[:, -1]


def _untied(opened: Opened, axis: int, block: Coins) -> float:
    """Chance of the strongest tie between the coins of two values, if there is none. Raises Broken where it is tiny.

    Σ (b - p)(b' - p') over all records has mean zero and terms of size at most one: by Bernstein's inequality it
    passes t with chance 2 exp(-t²/(2V + 2t/3)) at most, V its variance; times the number of pairs.
    """
    a, chances = len(block.inputs), block.chances
    ones, sets = (one.astype(float) for one in _coins(opened.drawn[axis], block))
    both = np.zeros((a, a))
    for bits, number in _bits(opened.answers, axis, block):
        both += bits.T.astype(float) @ (bits * number[:, None])
    records = sets[:, None]
    total = both - ones.T @ chances - chances.T @ ones + chances.T @ (records * chances)
    variance = (chances * (1 - chances)).T @ (records * chances * (1 - chances))
    exponent = total**2 / (2 * variance + 2 * abs(total) / 3)
    np.fill_diagonal(exponent, 0)
    chance = min(a * (a - 1) * math.exp(-exponent.max()), 1.0)
    if not chance >= FALSE_ALARM:
        name = ", ".join(block.columns)
        raise Broken(draws.NAME, f"{name}: coins do not fall independently", f"p >= {FALSE_ALARM}", f"p = {chance:.2g}")
    return chance
