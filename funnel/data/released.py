"""A release as a channel: the joint distribution and the protocols that its records go through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from funnel.data.channel import released_table
from funnel.data.joint import Joint
from funnel.data.subsets import ReleasedTable
from funnel.data.unary import AnyProtocol


@dataclass(frozen=True, eq=False)
class Channel:
    """One protocol per block of a joint distribution, side by side: what every notion measures."""

    joint: Joint
    protocols: Sequence[AnyProtocol]

    @cached_property
    def table(self) -> ReleasedTable:
        """T[s, y_1, …, y_k] in exact integers. Raises PlanError when it is too large to measure."""
        return released_table(self.joint, self.protocols)
