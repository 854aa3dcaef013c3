"""What was drawn: for every record once, into the released table, never the impossible, and by chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from funnel.audit.coins import bit_totals, coins, untied
from funnel.audit.evidence import Evidence
from funnel.audit.exact import ExactArray
from funnel.audit.fields import IntArray
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken, counted
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Block, Blocks
from funnel.audit.unary import UnaryBlock

FloatArray = npt.NDArray[np.float64]
FALSE_ALARM = 1e-9
"""Chance with which an honest release may fail a test of fit."""

TOO_EVEN = 1e-12
"""The same for draws that follow the chances too closely to have been drawn at all."""

_EXPECTED = 10.0
"""Cells with a smaller expected count are pooled."""

_CORRECTION = 0.25
"""Over E: by how much G exceeds its chi-square; 1/6 in mean (Williams 1976), 0.22 in spread at E = 10."""

_DEGREES_EVEN = 30


def every_record(evidence: Evidence, blocks: Blocks) -> str:
    """In each block, each input was drawn for as often as it was counted. Raises AuditFailure."""
    for axis, (block, draws) in enumerate(zip(blocks, evidence.draws, strict=True), start=1):
        expected, found = _inputs(evidence, axis, block), Counter[int]()
        for code, output, count in draws.tolist():
            if not isinstance(block, UnaryBlock) or output == len(block.inputs):
                found[code] += count
        if expected != found:
            code = min(code for code in expected | found if expected[code] != found[code])
            raise broken(
                "evidence.json",
                f"{_name(block)}: input {code} was not drawn for as often as it occurs",
                expected=expected[code],
                found=found[code],
            )
    where = "one block" if len(blocks) == 1 else f"each of {len(blocks)} blocks"
    return f"{counted(evidence.rows, 'record')} in {where}"


def _inputs(evidence: Evidence, axis: int, block: Block | UnaryBlock) -> Counter[int]:
    """Records by input code: x, or s*a + x where the block reads the secret."""
    codes = evidence.cells[:, axis]
    if block.secret:
        codes = codes + evidence.cells[:, 0] * len(block.inputs)
    found = Counter[int]()
    for code, count in zip(codes.tolist(), evidence.counts.tolist(), strict=True):
        found[code] += count
    return found


def into_table(evidence: Evidence, blocks: Blocks, released: dict[tuple[int, ...], int]) -> str:
    """In each block, each output was drawn as often as the table holds it. Raises AuditFailure."""
    for axis, (block, draws) in enumerate(zip(blocks, evidence.draws, strict=True)):
        expected, found = Counter[int](), Counter[int]()
        for row, count in released.items():
            expected[row[axis]] += count
        if isinstance(block, UnaryBlock):
            expected = bit_totals(expected, block)
        for _, code, count in draws.tolist():
            found[code] += count
        if expected != found:
            code = min(code for code in expected | found if expected[code] != found[code])
            raise broken(
                "evidence.json",
                f"{_name(block)}: output {code} was drawn another number of times than released",
                expected=expected[code],
                found=found[code],
            )
    agree = "agrees" if len(released) == 1 else "agree"
    return f"{counted(len(released), 'distinct row')} {agree}, column by column"


def possible(evidence: Evidence, blocks: Blocks) -> tuple[Evidence, str]:
    """The evidence, once no pair was drawn that has weight zero or a code too high. Raises AuditFailure."""
    for block, draws in zip(blocks, evidence.draws, strict=True):
        if isinstance(block, UnaryBlock):
            coins(draws, block)
            continue
        flat = block.weights.reshape(len(block.outputs), -1)
        inside = (draws[:, 0] < flat.shape[1]) & (draws[:, 1] < len(flat))
        weights = np.zeros(len(draws), np.int64)
        weights[inside] = flat[draws[inside, 1], draws[inside, 0]]
        if not weights.all():
            code, output, count = draws[weights.argmin()].tolist()
            raise broken(
                "evidence.json",
                f"{_name(block)}: output {output} was drawn for input {code}",
                expected="a positive weight",
                found=f"weight 0, drawn {counted(count, 'time')}",
            )
    pairs = counted(sum(map(len, evidence.draws)), "pair")
    return evidence, f"{pairs} of input and output, each with a positive weight"


def fits(evidence: Evidence, blocks: Blocks) -> str | Unchecked:
    """Draws against the chances of their inputs, block by block: each input, and all inputs together.

    The second test sees what the first cannot where every cell of an input is small. Counts by input cannot
    show a drawer that looked at more than the input. Raises AuditFailure.
    """
    if not any(map(_random, blocks)):
        return "nothing is left to chance"
    least, degrees = 1.0, 0
    for block, draws in zip(blocks, evidence.draws, strict=True):
        inputs, outputs = _fitted(block, draws)
        least = min(least, inputs.refuse(_name(block), even=True), outputs.refuse(_name(block), even=False))
        degrees += inputs.degrees + outputs.degrees
    if not degrees:
        return Unchecked("too few draws to tell")
    return f"G tests with {_freedom(degrees)}, p = {least:.2g}"


def _random(block: Block | UnaryBlock) -> bool:
    """Whether anything is left to chance."""
    if isinstance(block, UnaryBlock):
        return True
    return bool(((block.weights > 0) & (block.weights < 1 << block.bits)).any())


def _fitted_coins(block: UnaryBlock, draws: IntArray) -> tuple[Fit, Fit]:
    """The test of every coin, input by input, and that of each value's coins over all inputs."""
    each, together = Fit(), Fit()
    drawn, chances = coins(draws, block), block.chances
    records = drawn[:, -1]
    for x in range(len(block.inputs)):
        ones, means = drawn[:, x], chances[:, x] * records
        for one, mean, total in zip(ones.tolist(), means.tolist(), records.tolist(), strict=True):
            each.add(np.array([mean, total - mean]), np.array([one, total - one]))
        sums = np.array([means.sum(), records.sum() - means.sum()])
        together.add(sums, np.array([ones.sum(), records.sum() - ones.sum()]))
    return each, together


def _fitted(block: Block | UnaryBlock, draws: IntArray) -> tuple[Fit, Fit]:
    """The test of every input's draws, and that of all outputs together."""
    if isinstance(block, UnaryBlock):
        return _fitted_coins(block, draws)
    inputs, outputs = Fit(), Fit()
    expected, observed = np.zeros(len(block.outputs)), np.zeros(len(block.outputs), np.int64)
    chances = block.weights.reshape(len(block.outputs), -1) / float(1 << block.bits)
    for code, drawn in _by_input(draws, len(block.outputs)):
        means = chances[:, code] * drawn.sum()
        inputs.add(means, drawn)
        expected, observed = expected + means, observed + drawn
    outputs.add(expected, observed)
    return inputs, outputs


def repeat(manifest: Manifest) -> Unchecked:
    """Whether the same record answers the same way again is known only to who holds the key."""
    if manifest.draws == "fresh":
        return Unchecked(NOT_CLAIMED + "every release draws anew")
    return Unchecked("needs the key, which an auditor never sees")


def _by_input(draws: IntArray, outputs: int) -> Iterator[tuple[int, IntArray]]:
    """Drawn counts (b,) of every input that occurs."""
    ordered = draws[np.argsort(draws[:, 0], kind="stable")]
    codes, starts = np.unique(ordered[:, 0], return_index=True)
    for code, part in zip(codes.tolist(), np.split(ordered, starts[1:]), strict=True):
        observed = np.zeros(outputs, np.int64)
        observed[part[:, 1]] = part[:, 2]
        yield code, observed


def independent(
    evidence: Evidence, blocks: Blocks, table: ExactArray, released: dict[tuple[int, ...], int]
) -> str | Unchecked:
    """Released rows against the channel's output distribution Σ_s T[s, y…]; also for each pair of blocks.

    Before that, for blocks that release sets, each pair of their coins.

    The rows are independent but not alike, so their counts vary less than a multinomial's: an honest release
    fails less often than stated. Blocks that shared their randomness miss the product. Raises AuditFailure.
    """
    pairs = untied(evidence, blocks, released, FALSE_ALARM)
    if len(blocks) == 1:
        return pairs or "one block"
    expected, observed = _expected(table, sum(released.values())), np.zeros(table.shape[1:], np.int64)
    for row, count in released.items():
        observed[row] = count
    axes = range(len(blocks))
    groups = [tuple(axes), *(pair for pair in combinations(axes, 2) if len(blocks) > 2)]
    least, degrees = 1.0, 0
    for group in groups:
        rest = tuple(axis for axis in axes if axis not in group)
        test = Fit()
        test.add(expected.sum(axis=rest).ravel(), observed.sum(axis=rest).ravel())
        least = min(least, test.refuse(" with ".join(_name(blocks[axis]) for axis in group), even=False))
        degrees += test.degrees
    if not degrees:
        return Unchecked("too few rows to tell")
    over = counted(len(groups), "group")
    return f"G tests over {over} of blocks with {_freedom(degrees)}, p = {least:.2g}"


def _freedom(degrees: int) -> str:
    return counted(degrees, "degree of freedom", "degrees of freedom")


def _expected(table: ExactArray, rows: int) -> FloatArray:
    """Expected count of every released tuple, (b_1, …, b_k)."""
    masses = np.zeros(table.shape[1:], object)
    for part in table:
        masses += part.astype(object)
    total = sum(masses.ravel().tolist())
    return np.array([rows * mass / total for mass in masses.ravel().tolist()]).reshape(masses.shape)


class Fit:
    """A G test (likelihood ratio) summed over groups of cells, each group with a given total."""

    def __init__(self) -> None:
        self.statistic = 0.0
        self.degrees = 0
        self._excess = 0.0

    def add(self, expected: FloatArray, observed: IntArray) -> None:
        """One group: expected and observed counts (m,) with equal sums; small cells are pooled."""
        means, counts = _pooled(expected, observed)
        if len(means) < 2:
            return
        seen = counts > 0
        self.statistic += 2 * float((counts[seen] * np.log(counts[seen] / means[seen])).sum())
        self.degrees += len(means) - 1
        self._excess += _CORRECTION * float((1 / means).sum())

    def refuse(self, what: str, *, even: bool) -> float:
        """The chance of a fit this bad. Raises AuditFailure when tiny; with `even`, also for one too good."""
        if not self.degrees:
            return 1.0
        from scipy.special import chdtr, chdtrc

        worse = float(chdtrc(self.degrees, self.statistic / (1 + self._excess / self.degrees)))
        if worse < FALSE_ALARM:
            raise broken(
                "evidence.json",
                f"{what}: the draws do not follow the protocol's chances",
                expected=f"p >= {FALSE_ALARM}",
                found=self._figures(worse),
            )
        better = float(chdtr(self.degrees, self.statistic))
        if even and self.degrees >= _DEGREES_EVEN and better < TOO_EVEN:
            raise broken(
                "evidence.json",
                f"{what}: the draws are too even to be random",
                expected=f"p >= {TOO_EVEN}",
                found=self._figures(better),
            )
        return worse

    def _figures(self, p: float) -> str:
        return f"p = {p:.2g}, G = {self.statistic:.1f}, {self.degrees} degrees of freedom"


def _pooled(expected: FloatArray, observed: IntArray) -> tuple[FloatArray, IntArray]:
    """Cells by ascending expectation, those below 10 joined into one (with the next, if still below)."""
    order = np.argsort(expected, kind="stable")
    means, counts = expected[order], observed[order]
    small = int(np.searchsorted(means, _EXPECTED))
    if 0 < small < len(means) and means[:small].sum() < _EXPECTED:
        small += 1
    if small == 0:
        return means, counts
    return (
        np.concatenate([[math.fsum(means[:small])], means[small:]]),
        np.concatenate([[counts[:small].sum()], counts[small:]]),
    )


def _name(block: Block | UnaryBlock) -> str:
    return ", ".join(block.columns)
