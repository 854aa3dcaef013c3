"""What was drawn for blocks of sets: how often each value's coin fell on present, alone and with another's."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from funnel.audit.evidence import Evidence
from funnel.audit.fields import IntArray
from funnel.audit.findings import broken, counted
from funnel.audit.protocols import Blocks
from funnel.audit.unary import UnaryBlock

_PART = 1 << 14
"""Sets that are taken apart at a time."""


def coins(draws: IntArray, block: UnaryBlock) -> IntArray:
    """M[x, x'], the sets drawn for x that hold x', and in the last column all of them, (a, a + 1).

    Raises AuditFailure where the evidence has other codes, or more ones than records.
    """
    a = len(block.inputs)
    counted = np.zeros((a, a + 1), np.int64)
    if (draws[:, 0] >= a).any() or (draws[:, 1] > a).any():
        raise broken(
            "evidence.json",
            f"{', '.join(block.columns)}: the coins are those of other values",
            expected=f"inputs below {a} and values up to {a}",
            found=draws.max(axis=0)[:2].tolist(),
        )
    counted[draws[:, 0], draws[:, 1]] = draws[:, 2]
    if (counted[:, :a] > counted[:, a:]).any():
        raise broken(
            "evidence.json",
            f"{', '.join(block.columns)}: a value was present more often than it was drawn for",
            expected="no more ones than records",
            found="more",
        )
    return counted


def bit_totals(released: dict[int, int], block: UnaryBlock) -> Counter[int]:
    """How many released sets hold each value, by its place, and under a how many sets there are."""
    codes, counts = (np.array(list(part), np.int64) for part in (released.keys(), released.values()))
    ones = np.zeros(len(block.inputs), np.int64)
    for start in range(0, len(codes), _PART):
        ones += counts[start : start + _PART] @ held(codes[start : start + _PART], block)
    totals = Counter({x: held_by for x, held_by in enumerate(ones.tolist()) if held_by})
    totals[len(block.inputs)] = int(counts.sum())
    return totals


def held(codes: IntArray, block: UnaryBlock) -> IntArray:
    """0 or 1 for every set (m,) and value, (m, a)."""
    a = len(block.inputs)
    return (codes[:, None] >> np.arange(a - 1, -1, -1)) & 1


def strongest_tie(codes: IntArray, counts: IntArray, drawn: IntArray, block: UnaryBlock) -> tuple[float, str]:
    """Chance of the strongest tie between the bits of two values, if there is none: and which values.

    Σ (b - p)(b' - p') over all records has mean zero and terms of size at most one: by Bernstein's inequality it
    passes t with chance 2 exp(-t²/(2V + 2t/3)) at most, V its variance; times the number of pairs.
    """
    a, chances, records = len(block.inputs), block.chances, drawn[:, -1].astype(float)
    both = np.zeros((a, a))
    for start in range(0, len(codes), _PART):
        bits = held(codes[start : start + _PART], block).astype(float)
        both += bits.T @ (bits * counts[start : start + _PART, None])
    worst, pair = 0.0, (0, 0)
    for i in range(a):
        for j in range(i):
            p, other = chances[:, i], chances[:, j]
            total = both[i, j] - drawn[:, i] @ other - drawn[:, j] @ p + records @ (p * other)
            variance = records @ (p * (1 - p) * other * (1 - other))
            exponent = total**2 / (2 * variance + 2 * abs(total) / 3)
            if exponent > worst:
                worst, pair = float(exponent), (j, i)
    names = " and ".join(str(block.inputs[x]) for x in pair)
    return min(a * (a - 1) * math.exp(-worst), 1.0), names


def untied(
    evidence: Evidence, blocks: Blocks, released: dict[tuple[int, ...], int], false_alarm: float
) -> str:
    """Each pair of values in released sets, whose coins are to fall apart; "" where no block releases sets.

    An honest release fails with no larger chance than `false_alarm`. Raises AuditFailure.
    """
    least, told = 1.0, 0
    for axis, (block, draws) in enumerate(zip(blocks, evidence.draws, strict=True)):
        if not isinstance(block, UnaryBlock):
            continue
        codes = np.array([row[axis] for row in released], np.int64)
        counts = np.array(list(released.values()), np.int64)
        chance, pair = strongest_tie(codes, counts, coins(draws, block), block)
        if chance < false_alarm:
            raise broken(
                "evidence.json",
                f"{', '.join(block.columns)}: the coins of {pair} do not fall independently",
                expected=f"p >= {false_alarm}",
                found=f"p = {chance:.2g}",
            )
        least, told = min(least, chance), told + len(block.inputs) * (len(block.inputs) - 1) // 2
    return f"{counted(told, 'pair')} of values within sets, p >= {least:.2g}" if told else ""
