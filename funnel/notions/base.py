"""What every privacy notion offers: its cone of allowed rows, its measure of leakage, its bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from funnel.geometry.cone import Cone
from funnel.model.channel import ExactArray
from funnel.model.exact import exp_below, rational
from funnel.model.joint import FloatArray
from funnel.model.leakage import Leakage

MAX_EPSILON = 100.0
"""Nats beyond which no promise is left to make, and e^ε no longer fits a number."""
Epsilon = Annotated[
    float,
    Field(
        gt=0,
        le=MAX_EPSILON,
        allow_inf_nan=False,
        description="Bound of the notion, in nats; smaller is more private",
    ),
]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Split = Literal["equal", "optimal"] | dict[str, Share]


class Notion(BaseModel, ABC):
    """A privacy notion with its parameters; validated straight from the policy's `privacy` section."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    exact_zero: ClassVar[bool] = False
    """Whether the notion asks for equality, so that no rounding is small enough to be ignored."""

    notion: str
    epsilon: float
    split: Split = Field("equal", description="How epsilon is shared over the public blocks")

    @abstractmethod
    def cone(self, table: ExactArray) -> Cone:
        """The rows Q[y, ·] (a,) that the notion allows where records are distributed as N[s, x] (c, a)."""

    @abstractmethod
    def leakage(self, table: ExactArray) -> Leakage:
        """The exact leakage of a released table T[s, y…] in this notion's own measure."""

    def holds(self, table: ExactArray) -> bool:
        """Whether a released table T[s, y…] keeps the bound, in exact arithmetic."""
        ratio = self.leakage(table).ratio
        return ratio is not None and ratio <= self.bound

    @property
    def bound(self) -> Fraction:
        """The largest ratio allowed: e^ε, from below."""
        return exp_below(rational(self.epsilon))

    def at(self, epsilon: float) -> Self:
        """The same notion with another epsilon."""
        return self.model_copy(update={"epsilon": epsilon})


def conditionals(table: ExactArray) -> tuple[FloatArray, FloatArray]:
    """p_{x|s} (c, a) and p_x (a,) of counts N[s, x] in which every s occurs."""
    counts = table.astype(float)
    return counts / counts.sum(axis=1, keepdims=True), np.asarray(counts.sum(axis=0) / counts.sum())
