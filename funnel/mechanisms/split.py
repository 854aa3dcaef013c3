"""The split of epsilon over the blocks under which most of X is kept, as measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from funnel.errors import PlanError, SolverError
from funnel.measure import clock
from funnel.mechanisms.product import Protection

PARTS = 1_000
"""Parts that epsilon is shared in: finer splits than a thousandth are not worth their digits."""
_LEAST = 20
"""Parts that every block has at least."""
_SCAN = (100, 300, 700, 900)
"""Parts of the first of two blocks that are tried before the search narrows; the equal split is known."""
_EVALUATIONS = 24
"""Splits that are solved at most."""
_SECONDS = 120.0
"""Seconds after which no other split is tried."""
_GOLDEN = (5**0.5 - 1) / 2
_CLOSE = 10
"""Parts below which moving the share of a block is not worth another solution."""

Parts = tuple[int, ...]


def best_split(
    start: Protection,
    solve: Callable[[Sequence[float]], Protection],
    progress: Callable[[str], None] = lambda _: None,
) -> Protection:
    """The best of the splits tried, `start` among them: never worse than where the search began.

    `solve(shares)` protects the whole release with these shares. Two blocks: a scan, then golden section
    around its best, since utility need not have a single top. More: parts of epsilon move from one block to
    another while that pays, ever smaller ones. The order is fixed, so the same table gives the same split
    unless the time runs out, which ends the search with the best so far.
    """
    search, blocks = _Search(start, solve, progress), len(start.shares)
    with clock.within(_SECONDS):
        if blocks == 2:
            _two(search)
        else:
            _many(search, blocks)
    return search.best


class _Search:
    """Splits that were tried, and the best of them."""

    def __init__(
        self,
        start: Protection,
        solve: Callable[[Sequence[float]], Protection],
        progress: Callable[[str], None],
    ) -> None:
        self.best, self._solve, self._progress = start, solve, progress
        self._known: dict[Parts, float] = {}

    @property
    def over(self) -> bool:
        """Whether the search has used up its time or its tries."""
        return len(self._known) >= _EVALUATIONS or clock.left() <= 0

    def value(self, parts: Parts) -> float:
        """I(X;Y) in nats of a split; minus infinity where none was found or may be looked for."""
        if parts not in self._known:
            if self.over:
                return -float("inf")
            self._known[parts] = self._try(parts)
        return self._known[parts]

    def _try(self, parts: Parts) -> float:
        """Solve one split."""
        self._progress("split " + " / ".join(f"{part / PARTS:g}" for part in parts))
        try:
            found = self._solve([part / PARTS for part in parts])
        except (SolverError, PlanError):
            return -float("inf")
        if found.kept > self.best.kept:
            self.best = found
        return found.kept


def _two(search: _Search) -> None:
    """Golden section between the neighbours of the best of a scan."""
    half = PARTS // 2
    scanned = sorted((*_SCAN, half))
    best = max(scanned, key=lambda first: (search.value((first, PARTS - first)), -abs(first - half)))
    place = scanned.index(best)
    low = scanned[place - 1] if place else _LEAST
    high = scanned[place + 1] if place + 1 < len(scanned) else PARTS - _LEAST
    while high - low > 2 * _CLOSE and not search.over:
        step = round((high - low) * _GOLDEN)
        left, right = high - step, low + step
        if search.value((left, PARTS - left)) >= search.value((right, PARTS - right)):
            high = right
        else:
            low = left


def _many(search: _Search, blocks: int) -> None:
    """Move a part of epsilon between two blocks while that pays; halve the part when no pair gains."""
    here, step = _equal(blocks), PARTS // (2 * blocks)
    value = search.value(here)
    while step >= _CLOSE and not search.over:
        better = next((parts for parts in _moves(here, step) if search.value(parts) > value), None)
        if better is None:
            step //= 2
        else:
            here, value = better, search.value(better)


def _equal(blocks: int) -> Parts:
    """As equal as whole parts allow."""
    return tuple(PARTS // blocks + (j < PARTS % blocks) for j in range(blocks))


def _moves(here: Parts, step: int) -> Iterator[Parts]:
    """`step` parts from any block to any other, in a fixed order."""
    for giver, part in enumerate(here):
        for taker in range(len(here)):
            if giver != taker and part - step >= _LEAST:
                moved = list(here)
                moved[giver] -= step
                moved[taker] += step
                yield tuple(moved)
