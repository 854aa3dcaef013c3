"""What policies say to a release, before it is counted and once it is measured; and what its readers have to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from funnel.errors import LedgerError
from funnel.format.journal import Promise, ReleaseEntry, Together
from funnel.format.manifest import Parameters
from funnel.ledger.history import Composed
from funnel.ledger.journal import Journal
from funnel.ledger.people import by_others
from funnel.ledger.promises import (
    averaged,
    budget_of,
    edited,
    is_own,
    notion_of,
    others,
    over_counts,
    own_before,
    publishes,
    untold,
    without_bound,
)
from funnel.ledger.unlike import NOISY, no_proof, unproven
from funnel.measure.exact import rational
from funnel.measure.figures import spelt
from funnel.policy import Policy
from funnel.policy.model import UNBOUNDED
from funnel.policy.terms import unmeasured
from funnel.text import number

_OTHERWISE = "Fewer columns may keep it; another private folder, for other people, does"
_ALIKE = "Make it like the releases before it in this, or keep another private folder for other people"
_EVERYBODY = (
    "To be absent is an answer too: leaving nobody out (`source.filter`, `missing: drop`, `unseen: drop`) may keep it"
)
_EDITED = "until now the policy promised it in other terms: what others may know, or which distributions"
_RENAMED = (
    "Another promise is that of a policy by another name, where this one can stay beside it (found by a run); another "
    "private folder, for other people, does"
)
_PINNED = "(a lock pins that too, and says how it is kept)"
_UNFOUND = " (whether it ends more is found by a run)"
_LOST = "What was told stays told: keep another private folder for other people"


def accepted(policy: Policy, entries: Sequence[ReleaseEntry]) -> tuple[str, ...]:
    """What `accept` lets a release of a policy end, promise by promise; and that nobody knows, before the first."""
    names = sorted({*policy.accept} - {UNBOUNDED})
    if names and not entries:
        return (
            f"`accept` names {', '.join(names)}, and in its private folder nothing was released yet: whether there is "
            "such a policy is not known",
        )
    covered = [one for one in others(policy, entries) if one.policy in names and one.ended is None]
    return tuple(f"`accept: [{one.policy}]` lets it end what {_about(one)}" for one in covered)


def rebudgeted(policy: Policy, entries: Sequence[ReleaseEntry]) -> tuple[str, ...]:
    """That the policy's promise has another budget than so far: another file of that name may have made it."""
    before = own_before(policy, entries)
    if before is None or before.budget == budget_of(policy):
        return ()
    now = "without a budget" if policy.budget is None else f"within a budget of {number(policy.budget)}"
    return (f"what {_about(before)} is promised {now} from its next release on",)


def check_known(policy: Policy, entries: Sequence[ReleaseEntry]) -> None:
    """Refuse what is known to end a promise before anything is counted, or accepts the end of none.

    Raises LedgerError.
    """
    known = others(policy, entries)
    unknown = sorted({*policy.accept} - {UNBOUNDED} - {one.policy for one in known})
    if entries and unknown:
        names = ", ".join(dict.fromkeys(one.policy for one in known))
        there = f"Promises there are of: {names}. Name one of them, or" if names else "No other policy has one there:"
        raise LedgerError(
            "accept",
            f"`accept` names {', '.join(unknown)}, and no other promise of its private folder is called that",
            where=policy.file,
            advice=f"{there} leave it out.",
        )
    _check_noise(policy, entries)
    _check_absent(policy, entries)
    ends = [replace(one, ended="tonight") for one in known if one.ended is None and publishes(policy, one)]
    other = edited(policy, entries)
    if (before := own_before(policy, entries)) is not None:
        told = without_bound(before.together) if other else before.together
        _check_told(policy, told)
        ends.append(replace(before, together=told))
    why, way = (f": {_EDITED}", _RENAMED) if other else ("", _LOST)
    _check_ends(policy, ends, known, lambda one: (why, way) if is_own(one, policy) else ("", _OTHERWISE), _UNFOUND)


def _check_noise(policy: Policy, entries: Sequence[ReleaseEntry]) -> None:
    """Noisy counts beside others leave no promise a bound: said before an estimate is spent. Raises LedgerError."""
    before = {one.noisy for one in entries}
    if len(before | {policy.estimate.epsilon is not None}) < 2:
        return
    known, own = others(policy, entries), _boundless(policy, entries)
    ends = [replace(one, together=without_bound(one.together)) for one in known if one.ended is None]
    way = f": {no_proof([NOISY])}", _LOST if len(before) > 1 else _ALIKE
    _check_ends(policy, [own, *ends], known, lambda _: way)


def _check_absent(policy: Policy, entries: Sequence[ReleaseEntry]) -> None:
    """Nor do noisy counts of those alone who are not left out: said before an estimate is spent. Raises LedgerError."""
    left_out = policy.source.filter is not None or policy.source.missing == "drop"
    if policy.estimate.epsilon is not None and left_out:
        own = _boundless(policy, entries)
        _check_ends(policy, [own], others(policy, entries), lambda _: (f": {unmeasured(policy)}", _EVERYBODY))


def _boundless(policy: Policy, entries: Sequence[ReleaseEntry]) -> Promise:
    """The policy's own promise, of which one more release is known to leave no bound."""
    notion = policy.privacy
    told = Together(notion.measure, policy.sensitive, None, None, "sum", len(entries) + 1, None)
    return Promise(policy.name, notion.notion, notion.epsilon, Parameters(), budget_of(policy), "", None, told)


def check_promises(policy: Policy, found: Composed, release: str) -> None:
    """Refuse a release that would end a promise which its policy does not accept to end. Raises LedgerError."""
    own, *rest = found.promises
    ends = [own, *(one for one in rest if one.ended == release)]
    _check_ends(policy, ends, rest, lambda one: _way_out(policy, found, one))


def _way_out(policy: Policy, found: Composed, one: Promise) -> tuple[str, str]:
    """Why no bound of a promise is known, behind what is said of it, or nothing; and what would leave it one."""
    why, own = unproven(found.frames, one.together.sensitive), is_own(one, policy)
    if why is not None:
        return f": {why}", _ALIKE if unproven(found.frames[:-1], one.together.sensitive) is None else _LOST
    if own and found.present is not None:
        left_out = unmeasured(policy) or _known_otherwise(policy)
        return f": {left_out}" if left_out else "", _EVERYBODY
    return "", _OTHERWISE


def _check_ends(
    policy: Policy,
    ends: Sequence[Promise],
    known: Sequence[Promise],
    way: Callable[[Promise], tuple[str, str]],
    unfound: str = "",
) -> None:
    """Refuse a release after which promises are as in `ends`, unless its policy accepts every one that is broken.

    `known` are all promises of other policies: who accepts one, accepts what else was promised under that name. `way`
    says why there is no bound of one, and what helps; `unfound`, what is not known yet. Raises LedgerError.
    """
    for one in ends:
        if is_own(one, policy) and one.together.figure is not None:
            _check_budget(policy, one.together)
    broken = [one for one in ends if not is_own(one, policy) or one.together.figure is None]
    left = [one for one in broken if _name(policy, one) not in policy.accept]
    if not left:
        return
    one, names = left[0], list(dict.fromkeys(_name(policy, one) for one in left))
    alive = [two for two in known if two.ended is None or two in ends]
    why, advice = way(one)
    if is_own(one, policy):
        said = (
            f"what this release and those before it tell about {' + '.join(one.together.sensitive)} together would "
            f"have no finite bound that is known ({one.together.measure}, {one.together.found}){why}"
        )
    else:
        said = f"this release would end what {_about(one)}: {_why(policy, one, why)}"
    raise LedgerError(
        "promise-ends",
        said,
        where=policy.file,
        advice=f"{_left_alone(policy)} {advice}; or write {_words(policy, names)} into the policy"
        f"{_given_up(one, names, alive)}, and {_tellers(names)} of it{unfound}. `funnel ledger` lists what was "
        "promised.",
    )


def _name(policy: Policy, one: Promise) -> str:
    """What `accept` calls a promise."""
    return UNBOUNDED if is_own(one, policy) else one.policy


def _words(policy: Policy, names: Sequence[str]) -> str:
    """What a policy has to write to accept these, with those that it accepts already."""
    every = [*policy.accept, *names]
    word = UNBOUNDED if every == [UNBOUNDED] else f"[{', '.join(every)}]"
    instead = f" in place of `budget` {_PINNED}" if UNBOUNDED in names and policy.budget is not None else ""
    return f"`accept: {word}`{instead}"


def _given_up(one: Promise, names: Sequence[str], known: Sequence[Promise]) -> str:
    """What else is given up with these names, beside the promise that was spoken of."""
    also = [_about(two) for two in known if two.policy in names and two.name != one.name]
    return f", which gives up as well what {' and what '.join(also)}" if also else ""


def _tellers(names: Sequence[str]) -> str:
    """Who tells of what was accepted: the end of another policy's promise is no matter of this one's readers."""
    told = ["every reader is told"] if UNBOUNDED in names else []
    return " and ".join([*told, *(["the ledger tells"] if {*names} - {UNBOUNDED} else [])])


def _known_otherwise(policy: Policy) -> str:
    """Why rows do not say who is absent; empty where they may."""
    if not by_others(policy.private, Journal(policy.private).releases(), policy.source.entity):
        return ""
    return (
        "earlier releases know people by another column than this policy (`source.entity`), so that of somebody who "
        "is absent in one row another may be there"
    )


def _left_alone(policy: Policy) -> str:
    """What a refused release has not done: the counts of a private estimate have been looked at by then."""
    if policy.estimate.epsilon is None:
        return "Nothing was published."
    return "No record was published; the estimate that it was measured on, where there was one, stays spent."


def _about(one: Promise) -> str:
    """Whose promise it is, about which secret, in which measure, within which budget."""
    budget = "" if one.budget is None else f", budget {number(float(Fraction(one.budget)))}"
    return f"policy {one.policy} promises about {' + '.join(one.together.sensitive)} ({one.together.measure}{budget})"


def _why(policy: Policy, one: Promise, unproven_for: str) -> str:
    if publishes(policy, one):
        return "it publishes what that policy hides"
    if one.together.figure is None:
        return f"what all releases tell together would have no finite bound that is known{unproven_for}"
    return f"all releases together would tell {spelt(one.together.figure)} nats of it{_counts(policy)}"


def _counts(policy: Policy) -> str:
    """Behind a figure of a run: that it is about noisy counts, where it is."""
    return over_counts(policy.estimate.epsilon is not None)


def _check_told(policy: Policy, found: Together) -> None:
    """What earlier releases told is within the policy's own budget: what was told stays told."""
    figure = _beyond(policy, found)
    if figure is None or policy.budget is None:
        return
    raise LedgerError(
        "budget",
        f"earlier releases told up to {spelt(figure)} nats of {found.measure} ({found.found}{_counts(policy)}); "
        f"the budget is {number(policy.budget)}",
        where=policy.file,
        advice=f"{_left_alone(policy)} What was told stays told: another release needs a larger `budget` "
        f"{_PINNED} or, for other people, another private folder. `funnel ledger` lists what was released.",
    )


def _check_budget(policy: Policy, found: Together) -> None:
    """The composed leakage is within the policy's own budget."""
    figure = _beyond(policy, found)
    if figure is None or policy.budget is None:
        return
    before = f" together with the {found.releases - 1:,} before it" if found.releases > 1 else ""
    raise LedgerError(
        "budget",
        f"this release{before} would leak {spelt(figure)} nats of {found.measure} ({found.found}{_counts(policy)}); "
        f"the budget is {number(policy.budget)}",
        where=policy.file,
        advice=f"{_left_alone(policy)} A smaller epsilon, fewer columns, or leaving nobody out may add less. `funnel "
        "ledger` lists what was released.",
    )


def _beyond(policy: Policy, found: Together) -> float | None:
    """The figure, where it is finite and beyond the policy's budget."""
    if policy.budget is None or found.figure is None:
        return None
    return found.figure if rational(found.figure) > rational(policy.budget) else None


def _over(one: Promise, dry: str | None) -> str:
    """An ended promise, or one that a release which is not made would end."""
    if one.ended == dry:
        return f"what {_about(one)} would end with this release"
    return f"what {_about(one)} ended with release {one.ended}"


def unbounded(promises: Sequence[Promise]) -> str | None:
    """What is to be said first of releases that together have no finite bound; None where they have one."""
    own = promises[0].together
    if own.figure is not None:
        return None
    tells = "this release tells" if own.releases == 1 else "all releases so far tell together"
    return (
        f"No finite bound is known: what {tells} about {' + '.join(own.sensitive)} may be everything "
        f"({own.measure}, {own.found}); its policy accepts that"
    )


def warnings(found: Composed, dry: str | None = None) -> list[str]:
    """What a reader of a release has to know of those before it, where together they tell more than it alone.

    `dry` is the name of a release that is not made: what it ends has not ended.
    """
    together = found.together
    always = [_over(one, dry) for one in found.promises if one.ended]
    if together.releases > 1 or found.present is not None:
        always += untold(notion_of(found.promises[0]), together)
    first = unbounded(found.promises)
    if first is not None:
        return [first, *always]
    if together.figure is None or together.figure == found.alone:
        return always
    who = "what all of them together tell" if together.releases > 1 else "what it tells"
    absent = ("" if found.present is None else ", by being absent too,") + averaged(together)
    counts = over_counts(found.frames[-1].noisy)
    told = f"is up to {spelt(together.figure)} nats ({together.measure}, {together.found}{counts})"
    return [
        *always,
        f"this is release {together.releases:,} in this ledger; {who} about a person whose values stay the same"
        f"{absent} {told}"
    ]
