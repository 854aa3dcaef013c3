"""From what a policy asks to one protection: `auto` becomes a mechanism, `split: optimal` becomes shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from funnel.data import Joint
from funnel.data.arrange import tells_secret
from funnel.errors import CATALOGUE, FunnelError, PlanError, SolverError
from funnel.measure import clock
from funnel.mechanisms.base import Choice, Mechanism
from funnel.mechanisms.product import Candidate, Protection, protect
from funnel.mechanisms.split import best_split
from funnel.notions import Notion

_NOT_HERE = "it is not offered for a table like this"
"""Too many values, or a secret value with too few records: which of them it is would tell of a rare secret."""
PASSED_OVER = {
    "solver-time": "it did not finish in the time allowed",
    "solver-size": _NOT_HERE,
    "alphabet-too-large": _NOT_HERE,
    "nothing-to-release": "nothing that it could release keeps the bound",
    "precision": "the bound needs finer weights than it can draw from",
    "below-minimum": _NOT_HERE,
    "column-type": "it needs public columns rounded to numbers",
}
"""Why a candidate was passed over. Fixed words: they are published, and errors quote figures of the table."""
_BETTER = 1 + 1e-9
"""How much better a later candidate must be: floats tell less apart, and the earlier one is the simpler."""


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

    def solve(one: Mechanism, split: Sequence[float]) -> Protection:
        return protect(joint, notion, one, split, progress, minimum=minimum, beliefs=beliefs)

    tried: tuple[Candidate, ...] | None = None
    choice = mechanism.choice(notion.notion, secret_public=tells_secret(joint))
    if choice is None:
        found = solve(mechanism, shares)
    else:
        found, tried = _best(choice, lambda one: solve(one, shares), secret_rare)
    if notion.split == "optimal" and len(found.shares) > 1 and not notion.exact_zero:
        used = found.mechanism
        found = best_split(found, lambda split: solve(used, split), progress)
    return replace(found, candidates=_retold(tried, found))


def why_not(error: FunnelError) -> str:
    """Why a mechanism was passed over, in fixed words that may be published."""
    return PASSED_OVER.get(error.code, CATALOGUE[error.code])


def _best(
    choice: Choice, solve: Callable[[Mechanism], Protection], secret_rare: bool
) -> tuple[Protection, tuple[Candidate, ...]]:
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
        raise _none(tried, failures)
    return best, tuple(tried)


def _none(tried: Sequence[Candidate], failures: Sequence[SolverError | PlanError]) -> FunnelError:
    """What to say when no candidate serves: their common reason, or each one's."""
    codes = {error.code for error in failures}
    if len(codes) == 1 and len(failures) == len(tried):
        return failures[0]
    told = "; ".join(f"{one.mechanism}: {one.reason}" for one in tried)
    return SolverError(
        "nothing-to-release",
        f"no mechanism serves ({told})",
        status="empty",
        advice="Allow a larger epsilon or more time, or put the public columns into one block.",
    )


def _retold(tried: tuple[Candidate, ...] | None, found: Protection) -> tuple[Candidate, ...] | None:
    """The candidates with the figure of the one that is used, which the search for a split may have raised."""
    if tried is None:
        return None
    used = Candidate(found.mechanism.kind, found.normalised, None, found.faithful)
    return tuple(used if one.mechanism == used.mechanism else one for one in tried)
