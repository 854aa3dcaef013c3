"""A ball of distributions around a table of counts, and a protocol's rows as it sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.data.joint import FloatArray, IntArray
from funnel.measure.uncertainty import budget

Corner = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Ball:
    """F = {P : D_α(P̂||P) <= B} around counts N[s, x] (c, a), on the cells (s, x) that are `possible`.

    `radius` B in nats and `order` α are rationals. ValueError where a secret has no record, a record lies in
    a cell that is not possible, or a parameter is out of range.
    """

    table: IntArray
    possible: npt.NDArray[np.bool_]
    radius: Fraction
    order: Fraction

    def __post_init__(self) -> None:
        if self.table.shape != self.possible.shape or not self.table.any(axis=1).all():
            raise ValueError("a ball needs a count for every cell, and a record of every secret")
        if (self.table[~self.possible] != 0).any() or self.table.min() < 0:
            raise ValueError("a ball is drawn around counts of possible cells")
        if not 0 <= self.radius <= 100 or self.order <= 0:
            raise ValueError("a ball has a positive order and a radius from 0 to 100")

    @cached_property
    def exponent(self) -> float:
        """r = (α-1)/α."""
        return float((self.order - 1) / self.order)

    @cached_property
    def shares(self) -> FloatArray:
        """P̂_s, (c,)."""
        return np.asarray(self.table.sum(axis=1) / self.table.sum())

    @cached_property
    def spendable(self) -> FloatArray:
        """h(B)/P̂_s, (c,): what h(D_s) can be when all other secrets keep their estimate."""
        return np.asarray(budget(float(self.radius), self.exponent) / self.shares)

    def corners(self, first: IntArray, second: IntArray) -> tuple[Corner, Corner]:
        """(h1, h2) where one of two secrets spends all it can and the other what is left; arrays as the arguments."""
        most = np.minimum(self.spendable, -1 / self.exponent if self.exponent < 0 else math.inf)
        used = most * self.shares
        left = [
            np.maximum(self.spendable[other] - used[one] / self.shares[other], 0.0)
            for one, other in ((first, second), (second, first))
        ]
        return (most[first], left[0]), (left[1], most[second])

    @cached_property
    def support(self) -> IntArray:
        """The values x that occur with each s, (c, m), padded with 0 where `given` is zero."""
        width = int((self.table > 0).sum(axis=1).max())
        return np.argsort(self.table == 0, axis=1, kind="stable")[:, :width].astype(np.int64)

    @cached_property
    def given(self) -> FloatArray:
        """P̂_{x|s} on the support, (c, m)."""
        counts = np.take_along_axis(self.table, self.support, axis=1)
        return np.asarray(counts / self.table.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class RowExtremes:
    """Rows v[y, s, x] of a protocol seen from a ball: extremes over the possible x, and gaps on the support.

    `values` (b, c, a) are integers or floats; `top`, `bottom` (b, c) are in their type. `above` = (top - v)/scale and
    `below` = (v - bottom)/scale, (b, c, m); `peak` and `base` are the extremes in the same unit, scale (b,).
    """

    values: npt.NDArray[Any]
    top: npt.NDArray[Any]
    bottom: npt.NDArray[Any]
    scale: FloatArray
    above: FloatArray
    below: FloatArray

    @classmethod
    def of(cls, ball: Ball, weights: npt.NDArray[Any]) -> RowExtremes:
        """From W[y, s|1, x]; differences are taken before anything is rounded."""
        values = np.broadcast_to(weights, (len(weights), *ball.table.shape))
        highest = values.max() if values.size else 0
        top = np.where(ball.possible, values, values.min(initial=0)).max(axis=2)
        bottom = np.where(ball.possible, values, highest).min(axis=2)
        on_support = np.take_along_axis(
            values, np.broadcast_to(ball.support, (len(values), *ball.support.shape)), 2
        )
        scale = np.maximum(top.max(axis=1).astype(float), np.finfo(float).tiny)
        unit, real = scale[:, None, None], ball.given > 0
        above = np.where(real, top[:, :, None] - on_support, 0) / unit
        below = np.where(real, on_support - bottom[:, :, None], 0) / unit
        return cls(values, top, bottom, scale, above, below)

    @cached_property
    def peak(self) -> FloatArray:
        """top/scale, (b, c)."""
        return np.asarray(self.top / self.scale[:, None])

    @cached_property
    def base(self) -> FloatArray:
        """bottom/scale, (b, c)."""
        return np.asarray(self.bottom / self.scale[:, None])
