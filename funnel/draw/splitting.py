"""Fresh draws of a whole table from its counts: no record is read, and the law is that of drawing one by one.

n records that share their true values draw independent uniforms below 2^bits. How many of them fall into each half of
an interval is Binomial(n, ½), whatever the rest of their bits: so the numbers go down the binary tree of the uniforms,
and an interval that lies inside one output is decided. A Binomial(n, ½) is the number of ones among n random bits.
Blocks are drawn one after the other: given their true values, records of one group are alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from funnel.data import Joint, Protocol
from funnel.data.joint import IntArray

Halves = Callable[[IntArray], IntArray]
"""How many of n records, for each n, fall into the lower half; independent of each other."""
_MOST_BITS = 1 << 27
"""Random bits that are made at a time."""


def fair_halves(numbers: IntArray) -> IntArray:
    """Binomial(n, ½) for each n >= 1 (m,), from the operating system's randomness."""
    found, start = np.empty_like(numbers), 0
    ends = np.cumsum(numbers)
    while start < len(numbers):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _MOST_BITS, side="right")))
        found[start:stop] = _ones(numbers[start:stop])
        start = stop
    return found


def _ones(numbers: IntArray) -> IntArray:
    """The ones among so many random bits each, at least one; every number has bytes of its own, the last may be cut."""
    sizes = (numbers + 7) // 8
    ends = np.cumsum(sizes)
    bits = np.frombuffer(os.urandom(int(ends[-1])), np.uint8).copy()
    cut = numbers % 8 > 0
    bits[ends[cut] - 1] &= ((1 << (numbers[cut] % 8)) - 1).astype(np.uint8)
    return np.asarray(np.add.reduceat(np.bitwise_count(bits), ends - sizes, dtype=np.int64))


def split(
    protocol: Protocol, inputs: IntArray, numbers: IntArray, halves: Halves = fair_halves
) -> tuple[IntArray, IntArray, IntArray]:
    """What groups of records draw: places of groups (m,), output codes (m,), and how many records, none of them 0.

    `inputs` (g,) are the groups' input codes (x, or s·a + x where the protocol reads the secret), `numbers` (g,) their
    records.
    """
    weights = protocol.weights.reshape(len(protocol.outputs), -1).T
    edges = np.concatenate([np.zeros((len(weights), 1), np.int64), np.cumsum(weights, axis=1)], axis=1)
    place, number = np.flatnonzero(numbers), numbers[numbers > 0]
    low, size = np.zeros(len(place), np.int64), 1 << protocol.bits
    decided: list[tuple[IntArray, IntArray, IntArray]] = []
    while len(place):
        first = _containing(edges, inputs[place], low)
        whole = low + (size - 1) < edges[inputs[place], first + 1]
        decided.append((place[whole], first[whole], number[whole]))
        place, low, number, size = place[~whole], low[~whole], number[~whole], size >> 1
        lower = halves(number)
        place, low = np.concatenate([place, place]), np.concatenate([low, low + size])
        number = np.concatenate([lower, number - lower])
        kept = number > 0
        place, low, number = place[kept], low[kept], number[kept]
    found = tuple(np.concatenate(parts) for parts in zip(*decided, strict=True)) if decided else (low,) * 3
    keys, where = np.unique(found[0] * np.int64(len(protocol.outputs)) + found[1], return_inverse=True)
    summed = np.zeros(len(keys), np.int64)
    np.add.at(summed, where, found[2])
    return keys // len(protocol.outputs), keys % len(protocol.outputs), summed


def _containing(edges: IntArray, rows: IntArray, values: IntArray) -> IntArray:
    """The output whose interval holds each value: the last edge of its row that is not above it."""
    below, above = np.zeros(len(rows), np.int64), np.full(len(rows), edges.shape[1] - 1)
    while (above - below > 1).any():
        middle = (below + above) >> 1
        right = edges[rows, middle] <= values
        below, above = np.where(right, middle, below), np.where(right, above, middle)
    return below


def draw_counts(
    protocols: Sequence[Protocol], joint: Joint, halves: Halves = fair_halves
) -> tuple[IntArray, IntArray, list[IntArray]]:
    """The released rows of a table of counts: output codes (m, k) in order, their numbers (m,), and tables (inputs, b)
    of what was drawn for which input of each block.
    """
    reads = any(protocol.reads_secret for protocol in protocols)
    codes = joint.cells if reads else np.column_stack([np.zeros(len(joint.cells), np.int64), joint.cells[:, 1:]])
    codes, numbers = _alike(codes, joint.counts)
    tables = [protocol.no_draws() for protocol in protocols]
    for block, (protocol, table) in enumerate(zip(protocols, tables, strict=True), start=1):
        inputs = codes[:, block] + (codes[:, 0] * len(protocol.inputs) if protocol.reads_secret else 0)
        place, outputs, drawn = split(protocol, inputs, numbers, halves)
        np.add.at(table, (inputs[place], outputs), drawn)
        codes = codes[place]
        codes[:, block] = outputs
        codes, numbers = _alike(codes, drawn)
    return (*_alike(codes[:, 1:], numbers), tables)


def _alike(codes: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Rows (m, k) in order, each once, and the sums of their numbers."""
    order = np.lexsort(codes.T[::-1])
    codes, numbers = codes[order], numbers[order]
    first = np.flatnonzero(np.append(True, (codes[1:] != codes[:-1]).any(axis=1))[: len(codes)])
    return codes[first], np.add.reduceat(numbers, first) if len(first) else numbers
