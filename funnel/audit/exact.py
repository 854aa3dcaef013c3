"""Leakage in whole numbers and fractions: no rounding anywhere between the counts and the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.audit.fields import IntArray

ExactArray = npt.NDArray[Any]
"""int64 where that cannot overflow, else Python integers."""

_POINT = 384
_SAFE_BITS = 62


def exp_below(exponent: Fraction) -> Fraction:
    """A rational at or below e^exponent (exponent >= 0), within a factor 1 - 10^-90.

    Taylor's series of e^(exponent / 2^k) <= e on a fixed point of 384 bits, then k squarings; every step
    rounds down, and a sum or product of positive numbers rounded down stays below.
    """
    halvings = math.ceil(exponent).bit_length()
    point = _POINT + 2 * halvings
    small = (exponent.numerator << point) // (exponent.denominator << halvings)
    total = term = 1 << point
    order = 0
    while term:
        order += 1
        term = (term * small >> point) // order
        total += term
    for _ in range(halvings):
        total = total * total >> point
    return Fraction(total, 1 << point)


def at_most_exp(ratio: Fraction, exponent: Fraction) -> bool:
    """Whether ratio <= e^exponent, for a ratio >= 1; in doubt (within 10^-90) the answer is no.

    e^x grows, so an exponent may be cut at a point beyond ln(ratio) without turning a no into a yes.
    """
    return ratio <= 1 or ratio <= exp_below(min(exponent, Fraction(ratio.numerator.bit_length())))


def released_table(counts: IntArray, weights: Sequence[IntArray]) -> ExactArray:
    """T[s, y_1, …, y_k] = Σ_x N[s, x_1, …, x_k] Π_j W_j[y_j, s, x_j], exactly.

    `counts` is N, (c, a_1, …, a_k); weights W_j are (b_j, c or 1, a_j). One block is summed out at a time.
    """
    table: ExactArray = counts
    for axis, block in enumerate(weights, start=1):
        table = through(table, axis, block)
    return table


def through(table: ExactArray, axis: int, weights: IntArray) -> ExactArray:
    """Axis x_j of T[s, …] summed out against weights W[y, s, x_j] (b, c or 1, a), exactly; y_j takes its place."""
    moved = np.moveaxis(table, axis, -1)
    if weights.shape[1] == 1:
        sent = _product(moved.reshape(-1, moved.shape[-1]), weights[:, 0, :].T)
    else:
        parts = [
            _product(part.reshape(-1, part.shape[-1]), weights[:, s, :].T) for s, part in enumerate(moved)
        ]
        sent = np.stack(parts)
    return np.moveaxis(sent.reshape(*moved.shape[:-1], -1), -1, axis)


def largest_step(counts: Sequence[int], released: Sequence[int]) -> int:
    """Cells of the largest table that `released_table` goes through; shapes (c, a_1, …) and (b_1, …)."""
    c, *public = counts
    return max(c * math.prod(released[:done]) * math.prod(public[done:]) for done in range(len(public) + 1))


def _product(left: ExactArray, right: IntArray) -> ExactArray:
    """The matrix product, exactly: in one go where 62 bits hold it, else in limbs that each fit."""
    spare = left.shape[1].bit_length()
    if int(left.max()).bit_length() + int(right.max()).bit_length() + spare <= _SAFE_BITS:
        return left.astype(np.int64) @ right
    width = (_SAFE_BITS - spare) // 2
    total: ExactArray = np.zeros((left.shape[0], right.shape[1]), object)
    for i, high in enumerate(_limbs(left, width)):
        for j, low in enumerate(_limbs(right, width)):
            total += (high @ low).astype(object) << (width * (i + j))
    return total


def _limbs(table: ExactArray, width: int) -> list[IntArray]:
    """A table of non-negative integers cut into digits of `width` bits, lowest first."""
    limbs, mask = [], (1 << width) - 1
    while table.any():
        limbs.append((table & mask).astype(np.int64))
        table = table >> width
    return limbs


def lip_ratio(table: ExactArray) -> Fraction | None:
    """max over s, y of P(y|s)/P(y) or its inverse ([DS] Definition 2), from T[s, y…]; None when infinite."""
    rows, by_secret, by_output = _margins(table)
    total, worst = sum(by_secret), Fraction(1)
    for row, mass in zip(rows, by_secret, strict=True):
        high, low = _extremes(row, by_output)
        if low[0] == 0:
            return None
        worst = max(worst, Fraction(high[0] * total, high[1] * mass), Fraction(low[1] * mass, low[0] * total))
    return worst


def pml_ratio(table: ExactArray) -> Fraction:
    """max over s, y of P(s|y)/P(s), from T[s, y…]: nobody becomes surer of a secret value than by this factor."""
    rows, by_secret, by_output = _margins(table)
    total, worst = sum(by_secret), Fraction(1)
    for row, mass in zip(rows, by_secret, strict=True):
        high, _ = _extremes(row, by_output)
        worst = max(worst, Fraction(high[0] * total, high[1] * mass))
    return worst


def ldp_ratio(table: ExactArray) -> Fraction | None:
    """max over s, s', y of P(y|s)/P(y|s') ([DS] Definition 1), from T[s, y…]; None when infinite."""
    rows, by_secret, _ = _margins(table)
    worst = (1, 1)
    for column in zip(*rows, strict=True):
        high, low = _extremes(column, by_secret)
        if low[0] == 0:
            return None
        ratio = high[0] * low[1], high[1] * low[0]
        if ratio[0] * worst[1] > worst[0] * ratio[1]:
            worst = ratio
    return Fraction(*worst)


def _margins(table: ExactArray) -> tuple[list[list[int]], list[int], list[int]]:
    """Rows T[s, ·] without outputs that never occur and secrets that no record has, and both margins."""
    flat = table.reshape(len(table), -1)
    flat = flat[flat.any(axis=1)][:, flat.any(axis=0)]
    rows: list[list[int]] = flat.tolist()
    return rows, [sum(row) for row in rows], [sum(column) for column in zip(*rows, strict=True)]


def _extremes(parts: Iterable[int], wholes: Iterable[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The largest and the smallest part/whole, as (part, whole) compared by cross-multiplication."""
    pairs = iter(zip(parts, wholes, strict=True))
    high = low = next(pairs)
    for part, whole in pairs:
        if part * high[1] > high[0] * whole:
            high = part, whole
        elif part * low[1] < low[0] * whole:
            low = part, whole
    return high, low
