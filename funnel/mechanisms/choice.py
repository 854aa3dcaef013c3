"""From what a policy asks to one protection: `auto` becomes a mechanism, `split: optimal` becomes shares.

The best split of epsilon over the blocks is that under which most of X is kept, as measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from funnel.data import Joint
from funnel.data.arrange import tells_secret
from funnel.errors import CATALOGUE, FunnelError, PlanError, SolverError
from funnel.measure import clock
from funnel.mechanisms.base import Choice, Mechanism
from funnel.mechanisms.product import Candidate, Protection, protect
from funnel.notions import Notion

_NOT_HERE = "it is not offered for a table like this"
"""Too many values, or a secret value with too few records: which of them it is would tell of a rare secret."""
PASSED_OVER = {
    "solver-time": "it did not finish in the time allowed",
    "solver-size": _NOT_HERE,
    "alphabet-too-large": _NOT_HERE,
    "nothing-to-release": "it found nothing to release that keeps the bound",
    "precision": "the bound needs finer weights than it can draw from",
    "below-minimum": _NOT_HERE,
}
"""Why a candidate was passed over. Fixed words: they are published, and errors quote figures of the table."""
_BETTER = 1 + 1e-9
"""How much better a later candidate must be: floats tell less apart, and the earlier one is the simpler."""
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


def choose(
    joint: Joint,
    notion: Notion,
    mechanism: Mechanism,
    shares: Sequence[float],
    progress: Callable[[str], None] = lambda _: None,
    *,
    minimum: int = 1,
    secret_rare: bool = False,
    beliefs: float | None = None,
) -> Protection:
    """The protection that a policy asks for, whatever mechanism it names.

    `shares` of epsilon per block are where a search for the best split begins. `minimum` is the number of
    records that each value of X has; `secret_rare` says that some value of S has fewer, so that no mechanism
    may be chosen that publishes how it treats each. `beliefs` are steps to round to, as `protect` has them. Raises
    SolverError, PlanError, SourceError.
    """

    def solve(one: Mechanism) -> Protection:
        def split(parts: Sequence[float]) -> Protection:
            return protect(joint, notion, one, parts, progress, minimum=minimum, beliefs=beliefs)

        found = split(shares)
        searched = notion.split == "optimal" and len(found.shares) > 1 and not notion.exact_zero
        return best_split(found, split, progress) if searched else found

    choice = mechanism.choice(notion.notion, secret_public=tells_secret(joint))
    return solve(mechanism) if choice is None else _best(choice, solve, secret_rare, notion.looser)


def why_not(error: FunnelError) -> str:
    """Why a mechanism was passed over, in fixed words that may be published."""
    return PASSED_OVER.get(error.code, CATALOGUE[error.code])


def _best(
    choice: Choice, solve: Callable[[Mechanism], Protection], secret_rare: bool, looser: str
) -> Protection:
    """Try all, in order, each with an equal part of the time that is left; the first of the best wins."""
    best: Protection | None = None
    tried: list[Candidate] = []
    failures: list[SolverError | PlanError] = []
    with clock.within(choice.seconds):
        for place, (kind, one) in enumerate(choice.ready.items()):
            if one.reads_secret and secret_rare:
                tried.append(Candidate(kind, None, PASSED_OVER["below-minimum"]))
                continue
            try:
                with clock.within(clock.left() / (len(choice.ready) - place)):
                    found = solve(one)
            except (SolverError, PlanError) as error:
                failures.append(error)
                tried.append(Candidate(kind, None, why_not(error)))
                continue
            tried.append(Candidate(kind, found.normalised, None, found.faithful))
            if best is None or found.kept > best.kept * _BETTER:
                best = found
    if best is None:
        raise _none(tried, failures, looser)
    return replace(best, candidates=tuple(tried))


def _none(tried: Sequence[Candidate], failures: Sequence[SolverError | PlanError], looser: str) -> FunnelError:
    """What to say when no candidate serves: their common reason, or each one's."""
    codes = {error.code for error in failures}
    if len(codes) == 1 and len(failures) == len(tried):
        return failures[0]
    told = "; ".join(f"{one.mechanism}: {one.reason}" for one in tried)
    return SolverError(
        "nothing-to-release",
        f"no mechanism serves ({told})",
        status="empty",
        advice=f"Use {looser}, allow more time, or put the public columns of several blocks into one.",
    )


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
