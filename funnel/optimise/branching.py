"""Branch and bound, best first: open parts with a bound each, split until none can hold more than is known."""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from funnel.optimise.budget import Budget

Part = TypeVar("Part")


class BranchAndBound(ABC, Generic[Part]):
    """An upper bound on a maximum, lowered by splitting parts of where it may be.

    `closed` is a bound on all that was looked into, or is not worth it; `nodes` counts the parts that were split.
    """

    at_once = 1
    """Parts that are split together."""

    def __init__(self, closed: float) -> None:
        self.closed, self.nodes = closed, 0
        self._open: list[tuple[float, int, Part]] = []
        self._count = itertools.count()

    @property
    def bound(self) -> float:
        """Nothing anywhere is worth more."""
        return max(self.closed, -self._open[0][0] if self._open else -math.inf)

    def put(self, bound: float, part: Part) -> None:
        """Keep a part that is worth at most so much, to be split."""
        heapq.heappush(self._open, (-bound, next(self._count), part))

    def close(self, bound: float) -> None:
        """Give up on a part that is worth at most so much."""
        self.closed = max(self.closed, bound)

    def explore(self, budget: Budget) -> None:
        """Split the best parts until none is open, or there is `enough`, or the budget is spent."""
        while self._open and not self.enough() and not budget.over:
            count = int(min(self.at_once, budget.nodes, len(self._open)))
            split = self.split([heapq.heappop(self._open)[2] for _ in range(count)])
            self.nodes += split
            budget.spend(split)

    def taken(self, chosen: Callable[[Part], bool]) -> list[Part]:
        """Take the chosen parts out of those that are open, the best first."""
        entries = sorted(self._open, key=lambda entry: entry[:2])
        self._open = [entry for entry in entries if not chosen(entry[2])]
        return [entry[2] for entry in entries if chosen(entry[2])]

    def enough(self) -> bool:
        """Whether what was found is worth ending for."""
        return False

    @abstractmethod
    def split(self, parts: list[Part]) -> int:
        """Bound what the parts consist of, and `put` or `close` it; how many nodes that were."""
