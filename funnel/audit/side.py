"""Leakage to those who know some public columns already, and between public values: [DS] Definition 3, and LDP of X.

Every set of known columns is looked at in one table: each block's axis lists what may be known of it together
with what it puts out, so that a cell holds the records with x_J, s and y, whatever J.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from funnel.audit.evidence import Evidence
from funnel.audit.exact import ExactArray, through
from funnel.audit.fields import IntArray
from funnel.audit.findings import broken
from funnel.audit.protocols import Block, Blocks
from funnel.audit.unary import UnaryBlock, value_ratio

MOST_CASES = 400_000_000
"""Combinations of s, x_J and y beyond which nothing is measured, so nothing is proven."""
_AT_ONCE = 1_000_000
_NEAR = 1 - 1e-9
"""Floats err by less than 1e-14 here; ratios nearer to the largest than this are compared exactly."""
_MOST_BITS = 1000


@dataclass(frozen=True, eq=False)
class _Axis:
    """A block's axis of pairs (x_K, y), K any set of its columns.

    `sent` (r, c or 1, a) holds W[y, s, x] where x agrees with x_K, else 0; `known` (r, a) one there, else 0.
    """

    sent: IntArray
    known: IntArray


def srlip_ratio(evidence: Evidence, blocks: Blocks) -> Fraction | None:
    """max of P(y|s, x_J)/P(y|x_J) or its inverse over all J, x_J, s, y that occur; None where it is infinite.

    Raises AuditFailure where there are too many of them.
    """
    axes = [_axis(block) for block in blocks]
    cases = len(evidence.secret.values) * math.prod(len(axis.known) for axis in axes)
    wide = evidence.rows.bit_length() + sum(block.bits for block in blocks) > _MOST_BITS
    if cases > MOST_CASES or wide:
        raise broken(
            "protocol.json",
            "there is too much that may be known and released together to be measured: nothing is proven",
            expected=f"at most {MOST_CASES} combinations",
            found=cases,
        )
    worst = Fraction(1)
    counts = evidence.dense()
    for sent, known in _tables(counts, counts, axes, 1):
        largest = _largest(sent.reshape(len(sent), -1), known.reshape(len(known), -1), worst)
        if largest is None:
            return None
        worst = max(worst, largest)
    return worst


def _axis(block: Block | UnaryBlock) -> _Axis:
    """All (x_K, y): where the whole of x is known and s is not read, y is noise, and one row stands for all."""
    size, sent, known = len(block.inputs), [], []
    for width in range(len(block.columns) + 1):
        noise = width == len(block.columns) and block.secret is None
        weights = np.ones((1, 1, size), np.int64) if noise else block.weights
        for places in combinations(range(len(block.columns)), width):
            for mask in _agreeing(block, places):
                sent.append(weights * mask)
                known.append(np.repeat(mask[None], len(weights), axis=0))
    if block.secret is not None:
        return _Axis(np.concatenate(sent), np.concatenate(known))
    return _Axis(np.concatenate([part[:, :1] for part in sent]), np.concatenate(known))


def _agreeing(block: Block | UnaryBlock, places: Sequence[int]) -> Iterator[IntArray]:
    """For each value of some columns of the block: a one for every input that has it, (a,)."""
    told = [tuple(label[place] for place in places) for label in block.inputs]
    for value in dict.fromkeys(told):
        yield np.array([one == value for one in told], np.int64)


def _tables(
    sent: ExactArray, known: ExactArray, axes: Sequence[_Axis], place: int
) -> Iterator[tuple[ExactArray, ExactArray]]:
    """Records with s, x_J and y, and with s and x_J alone, cell by cell alike, a part at a time."""
    if place > len(axes):
        yield sent, known
        return
    axis = axes[place - 1]
    beside = math.prod(sent.shape[:place]) * math.prod(len(other.known) for other in axes[place:])
    step = max(1, _AT_ONCE // beside)
    for start in range(0, len(axis.known), step):
        part = slice(start, start + step)
        yield from _tables(
            through(sent, place, axis.sent[part]),
            through(known, place, axis.known[part, None, :]),
            axes,
            place + 1,
        )


def _largest(sent: ExactArray, known: ExactArray, least: Fraction) -> Fraction | None:
    """The largest ratio of a part, or `least` where none comes near it; both tables (c, cells)."""
    whole, group = sent.sum(axis=0), known.sum(axis=0)
    asked = (known > 0) & (whole > 0)
    if (asked & (sent == 0)).any():
        return None
    s, cell = np.nonzero(asked)
    if not len(s):
        return least
    above = _floats(sent[s, cell]) * _floats(group[cell])
    below = _floats(known[s, cell]) * _floats(whole[cell])
    ratio = np.maximum(above / below, below / above)
    found = least
    for place in np.flatnonzero(ratio >= max(float(ratio.max()), float(least)) * _NEAR).tolist():
        i, j = s[place], cell[place]
        one, other = int(sent[i, j]) * int(group[j]), int(known[i, j]) * int(whole[j])
        high, low = max(one, other), min(one, other)
        if high * found.denominator > found.numerator * low:
            found = Fraction(high, low)
    return found


def _floats(numbers: ExactArray) -> npt.NDArray[np.float64]:
    return numbers.astype(np.float64)


def public_ratio(blocks: Blocks) -> Fraction | None:
    """Product over the blocks of max Q(y|x)/Q(y|x') over all inputs and outputs; None where it is infinite."""
    worst = Fraction(1)
    for block in blocks:
        one = _between_inputs(block)
        if one is None:
            return None
        worst *= one
    return worst


def _between_inputs(block: Block | UnaryBlock) -> Fraction | None:
    """The same for one block; an input is a pair (s, x) where the secret is read."""
    if isinstance(block, UnaryBlock):
        return value_ratio(block)
    worst = Fraction(1)
    for row in block.weights.reshape(len(block.outputs), -1).tolist():
        high, low = max(row), min(row)
        if high and not low:
            return None
        if high:
            worst = max(worst, Fraction(high, low))
    return worst
