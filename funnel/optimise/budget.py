"""What a search may spend: seconds by the clock, and nodes, which are the same on every machine.

A node is one relaxation that a search looks at: a box or a cell bounded, a start climbed from. With a limit on nodes
alone a search ends at the same place wherever it runs.
"""

from __future__ import annotations

import math
import time

from funnel.measure import clock


class Budget:
    """Seconds and nodes that are left; either may be infinite. A part of a budget spends from the whole as well."""

    def __init__(
        self, seconds: float = math.inf, nodes: float = math.inf, *, whole: Budget | None = None
    ) -> None:
        self.deadline = time.monotonic() + seconds
        self.nodes = nodes
        self._whole = whole

    @classmethod
    def of(cls, limit: Budget | float) -> Budget:
        """A budget as it is; of seconds, as many as they are but no more than the `clock` leaves, and its nodes."""
        return limit if isinstance(limit, Budget) else cls(min(limit, clock.left()), clock.nodes())

    @property
    def seconds(self) -> float:
        """Seconds left, not negative."""
        return max(self.deadline - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether nothing is left of one of them."""
        return self.nodes <= 0 or time.monotonic() >= self.deadline

    def spend(self, nodes: int = 1) -> None:
        """Count nodes that were looked at."""
        self.nodes -= nodes
        if self._whole is not None:
            self._whole.spend(nodes)

    def part(self, share: float) -> Budget:
        """A share of what is left of both."""
        nodes = self.nodes if math.isinf(self.nodes) else math.ceil(share * self.nodes)
        return Budget(share * self.seconds, nodes, whole=self)
