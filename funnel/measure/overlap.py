"""Draws that share their uniform numbers, as one law: what several protocols release together for each input.

With inverse distribution functions protocol i releases y_i where u lies in an interval of [0, 2^bits_i), so the joint
law of (y_1, …, y_m) given x is the overlap of these intervals, whose lengths are whole numbers once every protocol is
counted in parts of 2^-max(bits). A record has a uniform of its own for each name that its value was drawn for under:
protocols that knew its value share one, and those that took it for `other` (`Pooling`) share another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.data.alphabet import Label
from funnel.data.joint import IntArray
from funnel.data.protocol import Protocol

MOST_OVERLAPS = 1 << 26
"""Interval ends times protocols that are overlapped: about 400 protocols of sixteen values under one key."""
MOST_BITS = 800
"""Bits of a composed weight: together with the counts they stay within the range of floats."""
_MOST_ENDS = 1 << 18
_MOST_CHANCES = 1 << 24
"""Ends of intervals over all inputs, and chances of the tuples, that are held at once."""
_MOST_PIECES = 1 << 20
"""Overlaps of all inputs together, where some protocols drew under another name: half of what the auditor allows."""

POOL: Label = ("other",)
"""What records with a value that was not named are drawn for."""

Weights = npt.NDArray[Any]
"""W[y, s|1, x] in int64, or in Python integers where 62 bits do not hold them."""
Input = tuple[Label | None, Label]
"""The labels of the secret, None where it is not read, and of x."""


@dataclass(frozen=True, eq=False)
class Pooling(Protocol):
    """A protocol of one column, seen from values that it does not all know: those were drawn for as `POOL`."""

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Apart from the protocol itself, which answers nothing for the values that it does not know."""
        return ("pooling", *super().fingerprint)


@dataclass(frozen=True, eq=False)
class Law:
    """Chances W[y, input] / 2^bits of tuples y (r, inputs)."""

    rows: Weights
    bits: int


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Answers (r, m) of m protocols for one input, -1 where they are not part of it, and their weights (r,)."""

    answers: IntArray
    weights: list[int]


def all_inputs(protocol: Any) -> list[Input]:
    """What a protocol draws for, in the order of its codes."""
    hidden: Sequence[Label | None] = protocol.secret.values if protocol.secret else (None,)
    return [(s, x) for s in hidden for x in protocol.inputs.values]


def drawn_as(protocol: Any, asked: Sequence[Input]) -> list[Input | None]:
    """The input that each of `asked` was drawn for under a protocol; None where it was not drawn for at all."""
    known = set(all_inputs(protocol))
    names = [(s, POOL) if isinstance(protocol, Pooling) and (s, x) not in known else (s, x) for s, x in asked]
    return [name if name in known else None for name in names]


def overlap(protocols: Sequence[Protocol], asked: Sequence[Input]) -> Law | None:
    """Tuples of what protocols release for inputs, (r, len(asked)); None where there are too many.

    u draws the first y whose cumulative weight exceeds it, so y_i is constant between two neighbours among all the
    cumulative weights, once these are counted in parts of 2^-max(bits): the words that u is cut from are the same.
    """
    ends = sum(len(one.outputs) for one in protocols)
    if ends * len(asked) > _MOST_ENDS or ends * len(asked) * len(protocols) > MOST_OVERLAPS:
        return None
    bits = max(one.bits for one in protocols)
    names = [drawn_as(one, asked) for one in protocols]
    apart = [_sharing([name[column] for name in names]) for column in range(len(asked))]
    whole = bits * max(map(len, apart), default=1)
    if whole > MOST_BITS:
        return None
    ends_of = [dict(zip(all_inputs(one), one.thresholds() << (bits - one.bits), strict=True)) for one in protocols]
    pieces = [[_one_uniform(ends_of, places, bits) for places in one] for one in apart]
    if sum(math.prod(len(one.weights) for one in parts) for parts in pieces) > _MOST_PIECES:
        return None
    columns = [_beside(parts) for parts in pieces]
    return _as_law(
        [(one, whole - bits * len(parts)) for one, parts in zip(columns, pieces, strict=True)], whole
    )


def _sharing(names: Sequence[Input | None]) -> list[list[tuple[int, Input]]]:
    """The protocols that drew for one input, by the name that they drew for; those of one name share their uniform."""
    found: dict[Input, list[tuple[int, Input]]] = {}
    for i, name in enumerate(names):
        if name is not None:
            found.setdefault(name, []).append((i, name))
    return list(found.values()) or [[]]


def _one_uniform(
    ends: Sequence[dict[Input, IntArray]], places: Sequence[tuple[int, Input]], bits: int
) -> _Pieces:
    """What protocols at `places` release from one uniform on [0, 2^bits)."""
    drawn = [(i, ends[i][name]) for i, name in places]
    cuts = np.unique(np.concatenate([np.array([1 << bits], np.int64), *(one for _, one in drawn)]))
    starts = np.concatenate([[0], cuts[cuts > 0][:-1]])
    answers = np.full((len(starts), len(ends)), -1, np.int64)
    for i, own in drawn:
        answers[:, i] = np.searchsorted(own, starts, side="right")
    return _Pieces(answers, np.diff(starts, append=1 << bits).tolist())


def _beside(parts: Sequence[_Pieces]) -> _Pieces:
    """Independent pieces, which are about different protocols."""
    found = parts[0]
    for other in parts[1:]:
        answers = np.maximum(found.answers[:, None, :], other.answers[None, :, :])
        weights = [one * two for one in found.weights for two in other.weights]
        found = _Pieces(answers.reshape(-1, answers.shape[-1]), weights)
    return found


def _as_law(columns: Sequence[tuple[_Pieces, int]], bits: int) -> Law | None:
    """The law of tuples from their pieces for each input, which lack some bits."""
    tuples: dict[bytes, int] = {}
    entries: list[tuple[int, int, int]] = []
    for column, (pieces, lacking) in enumerate(columns):
        for answer, weight in zip(pieces.answers.astype(np.int32), pieces.weights, strict=True):
            entries.append((tuples.setdefault(answer.tobytes(), len(tuples)), column, weight << lacking))
    if len(tuples) * len(columns) > _MOST_CHANCES:
        return None
    rows = np.zeros((len(tuples), len(columns)), np.int64 if bits <= 62 else object)
    row, column_of, weight_of = zip(*entries, strict=True)
    rows[list(row), list(column_of)] = weight_of
    return Law(rows, bits)


def merged(rows: Weights) -> Weights:
    """Rows that are multiples of one another added up, and no row of zeros; the sums stay what they are."""
    rows = rows[(rows != 0).any(axis=1)]
    times = np.gcd.reduce(rows, axis=1)
    found: dict[tuple[int, ...], int] = {}
    for direction, weight in zip((rows // times[:, None]).tolist(), times.tolist(), strict=True):
        key = tuple(direction)
        found[key] = found.get(key, 0) + weight
    together = np.array(list(found), object) * np.array(list(found.values()), object)[:, None]
    exact: Weights = together.astype(rows.dtype)
    return exact
