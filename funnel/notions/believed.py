"""What a notion asks of rows for every table whose beliefs round alike: its limits, each for the worst of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from funnel.data import AnyProtocol, Joint
from funnel.data.beliefs import Masses
from funnel.data.channel import check_size
from funnel.data.joint import IntArray
from funnel.data.sending import through
from funnel.errors import InternalError
from funnel.measure.exact import Epsilon
from funnel.notions.base import Demand

if TYPE_CHECKING:
    from funnel.notions.tables import TableNotion
    from funnel.optimise.cone import Cone
    from funnel.optimise.masses import Worst

_NEAR = 1e-9
"""Relative distance from a limit within which exact arithmetic decides; floats err by far less."""


@dataclass(frozen=True, eq=False)
class Limit:
    """P(y | high) <= e^ε P(y | low) for pairs of sides (k,): secret values by their place, and c for everybody."""

    high: IntArray
    low: IntArray
    epsilon: Epsilon

    @classmethod
    def rises(cls, secret: int, epsilon: Epsilon) -> Limit:
        """No belief rises by more: P(y|s) <= e^ε P(y)."""
        return cls(np.arange(secret), np.full(secret, secret), epsilon)

    @classmethod
    def falls(cls, secret: int, epsilon: Epsilon) -> Limit:
        """No belief falls by more: P(y) <= e^ε P(y|s)."""
        return cls(np.full(secret, secret), np.arange(secret), epsilon)


@dataclass(frozen=True, eq=False)
class BelievedDemand(Demand):
    """The limits for all tables between `least` and `most`, for each of several conditions: masses (k, c + 1, a).

    Each side of a limit takes the table that is worst for it, which asks no less than one table for both.
    """

    notion: TableNotion
    least: Masses
    most: Masses

    @classmethod
    def of(
        cls, notion: TableNotion, joint: Joint, released: Mapping[int, AnyProtocol], index: int
    ) -> BelievedDemand:
        """Of block `index`, for every combination of what the blocks in `released` put out."""
        if joint.beliefs is None:
            raise InternalError("beliefs that were not rounded")
        check_size(joint, [released[j].size if j in released else size for j, size in enumerate(joint.shape[1:])])
        ends = (_given(one, released, index) for one in (joint.beliefs.least, joint.beliefs.most))
        return cls(notion, *ends)

    def cone(self) -> Cone:
        """There is no list of its sides. Raises InternalError."""
        raise InternalError("what holds for all beliefs that round alike has no list of inequalities")

    def oracle(self) -> Worst:
        """The worst tables for single rows."""
        return self._worst

    @cached_property
    def _limits(self) -> Sequence[Limit]:
        return self.notion.limits(self.least.shape[1] - 1)

    @cached_property
    def _worst(self) -> Worst:
        from funnel.optimise.masses import Compared, Worst

        least, most = (np.asarray(one.astype(float)) for one in (self.least, self.most))
        compared = [Compared(one.high, one.low, one.epsilon.factor()) for one in self._limits]
        return Worst(least, most, compared)

    def keeps(self, weights: IntArray) -> bool:
        """No table of them exceeds a limit: exact where floats leave a doubt. InternalError where weights read s."""
        from funnel.optimise.masses import highest, lowest

        if weights.shape[1] != 1:
            raise InternalError("draws that read the secret are not measured over beliefs")
        rows = weights[weights.any(axis=(1, 2)), 0]
        high, low = self._worst.ends(rows.astype(float))
        for one in self._limits:
            most, bound = high[..., one.high], one.epsilon.ratio_below()
            allowed = float(bound) * low[..., one.low]
            if (most > allowed * (1 + _NEAR)).any():
                return False
            doubtful = np.argwhere(most > allowed * (1 - _NEAR)).tolist()
            for y, k, place in doubtful:
                least, largest, values = self.least[k], self.most[k], rows[y].tolist()
                up, down = one.high[place], one.low[place]
                if highest(least[up], largest[up], values) > bound * lowest(least[down], largest[down], values):
                    return False
        return True


def _given(masses: Masses, released: Mapping[int, AnyProtocol], index: int) -> Masses:
    """Ends of masses (k, c + 1, a) given what other blocks put out: sums of numbers between ends lie between sums."""
    sent = masses
    for block, protocol in released.items():
        sent = through(sent, 1 + block, protocol.likelihoods()[0])
    others = tuple(1 + j for j in range(masses.ndim - 1) if j != index and j not in released)
    kept = np.moveaxis(sent.sum(axis=others, keepdims=True), 1 + index, -1)
    return np.moveaxis(kept.reshape(len(kept), -1, kept.shape[-1]), 1, 0)
