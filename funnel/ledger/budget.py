"""What policies say to a release, before it is counted and once it is measured; and what its readers have to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from funnel.errors import LedgerError
from funnel.format.journal import Promise, ReleaseEntry, Together
from funnel.ledger.history import Composed
from funnel.ledger.journal import Journal
from funnel.ledger.people import by_others
from funnel.ledger.promises import breaks, budget_of, is_own, others, own_before, publishes
from funnel.ledger.unlike import unproven
from funnel.measure.exact import rational
from funnel.notions import NOTIONS
from funnel.policy import Policy
from funnel.policy.model import UNBOUNDED
from funnel.policy.terms import unmeasured

_OTHERWISE = "Release fewer columns, or keep another private folder for other people"
_ALIKE = "Make it like the releases before it in this, or keep another private folder for other people"
_EVERYBODY = "Leave nobody out (`source.filter`, `missing: drop`, `unseen: drop`): to be absent is an answer too"
_AGAIN = (
    "The protocol of the release before (its lock has it, if there is one) adds nothing under its key to what was told"
)


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
    now = "without a budget" if policy.budget is None else f"within a budget of {policy.budget:.15g}"
    return (f"what {_about(before)} is promised {now} from its next release on",)


def check_known(policy: Policy, entries: Sequence[ReleaseEntry]) -> None:
    """Refuse what is known to end a promise before anything is counted, or accepts the end of none.

    Raises LedgerError.
    """
    known = others(policy, entries)
    unknown = sorted({*policy.accept} - {UNBOUNDED} - {one.policy for one in known})
    if entries and unknown:
        names = ", ".join(dict.fromkeys(one.policy for one in known)) or "none"
        raise LedgerError(
            "accept",
            f"`accept` names {', '.join(unknown)}, and no other promise of its private folder is called that",
            where=policy.file,
            advice=f"Policies that have promised something there: {names}. Name one of them, or leave it out.",
        )
    for one in known:
        if one.ended is None and publishes(policy, one):
            check_ends(policy, replace(one, ended="tonight"), known)
    before = own_before(policy, entries)
    if before is not None:
        # A figure never falls: what was told already is told with one more release, too.
        check_ends(policy, replace(before, together=replace(before.together, releases=len(entries) + 1)))


def check_promises(policy: Policy, found: Composed, release: str) -> None:
    """Refuse a release that would end a promise which its policy does not accept to end. Raises LedgerError."""
    own, *rest = found.promises
    if breaks(own):
        check_ends(policy, own, (), *_way_out(policy, found, own))
    for one in rest:
        if one.ended == release:
            check_ends(policy, one, rest, *_way_out(policy, found, one))


def _way_out(policy: Policy, found: Composed, one: Promise) -> tuple[str, str]:
    """Why no bound of a promise is known, behind what is said of it, or nothing; and what would leave it one."""
    why, own = unproven(found.frames, one.together.sensitive), is_own(one, policy)
    if why is not None:
        return f": {why}", _ALIKE
    if own and found.present is not None:
        left_out = unmeasured(policy) or _known_otherwise(policy)
        return f": {left_out}" if left_out else "", _EVERYBODY
    return "", _AGAIN if own and _again(policy, found) else _OTHERWISE


def _again(policy: Policy, found: Composed) -> bool:
    """Whether an earlier release drew from the same columns, as far as digests show: answers that a key can repeat."""
    *before, own = ({(block.columns, block.since) for block in one.drawn} for one in found.frames)
    return policy.draws.kind == "permanent" and own in before


def check_ends(
    policy: Policy, one: Promise, known: Sequence[Promise] = (), why: str = "", advice: str = _OTHERWISE
) -> None:
    """Refuse a release that ends a promise, unless the policy accepts it; `why`, and what is advised, are told.

    `known` are all promises of other policies: who accepts one, accepts what else was promised under that name. Raises
    LedgerError.
    """
    figure, own = one.together.figure, is_own(one, policy)
    if own and figure is not None:
        _check_budget(policy, one.together)
        return
    if (UNBOUNDED if own else one.policy) in policy.accept:
        return
    if own:
        said = (
            f"what this release and those before it tell about {' + '.join(one.together.sensitive)} together would "
            f"have no finite bound ({one.together.measure}, {one.together.found}){why}"
        )
        word = f"`accept: {_accepting(policy, UNBOUNDED)}`" + ("" if policy.budget is None else " in place of `budget`")
    else:
        said = f"this release would end what {_about(one)}: {_why(policy, one, why)}"
        word = f"`accept: {_accepting(policy, one.policy)}`"
        also = [_about(two) for two in known if two.policy == one.policy and two.name != one.name]
        if also:
            word += f", which gives up as well what {' and what '.join(also)},"
    raise LedgerError(
        "promise-ends",
        said,
        where=policy.file,
        advice=f"{_left_alone(policy)} {advice}; or write {word} into the policy, and every reader is told of it. "
        "`funnel ledger` lists what was promised.",
    )


def _accepting(policy: Policy, name: str) -> str:
    """What a policy has to write to accept one more promise's end, with those that it accepts already."""
    return UNBOUNDED if (*policy.accept, name) == (UNBOUNDED,) else f"[{', '.join((*policy.accept, name))}]"


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
        return "Nothing was drawn."
    return "No record was drawn; the estimate that it was measured on, where there was one, stays spent."


def _about(one: Promise) -> str:
    """Whose promise it is, about which secret, in which measure, within which budget."""
    budget = "" if one.budget is None else f", budget {float(Fraction(one.budget)):.15g}"
    return f"policy {one.policy} promises about {' + '.join(one.together.sensitive)} ({one.together.measure}{budget})"


def _why(policy: Policy, one: Promise, unproven_for: str) -> str:
    if publishes(policy, one):
        return "it publishes what that policy hides"
    if one.together.figure is None:
        return f"what all releases tell together would have no finite bound{unproven_for}"
    return f"all releases together would tell {one.together.figure:.4f} nats of it"


def _check_budget(policy: Policy, found: Together) -> None:
    """The composed leakage is within the policy's own budget."""
    if policy.budget is None or found.figure is None or rational(found.figure) <= rational(policy.budget):
        return
    before = f" together with the {found.releases - 1:,} before it" if found.releases > 1 else ""
    raise LedgerError(
        "budget",
        f"this release{before} would leak {found.figure:.4f} nats of {found.measure} ({found.found}); the budget is "
        f"{policy.budget:.15g}",
        where=policy.file,
        advice=f"{_left_alone(policy)} An unchanged protocol under the same key, with permanent draws, adds nothing; "
        "a smaller epsilon or fewer columns add less. `funnel ledger` lists what was released.",
    )


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
    return (
        f"No finite bound: what {'this release tells' if own.releases == 1 else 'all releases so far tell together'} "
        f"about {' + '.join(own.sensitive)} may be everything ({own.measure}, {own.found}); its policy accepts that"
    )


def warnings(found: Composed, dry: str | None = None) -> list[str]:
    """What a reader of a release has to know of those before it, where together they tell more than it alone.

    `dry` is the name of a release that is not made: what it ends has not ended.
    """
    together = found.together
    always = [_over(one, dry) for one in found.promises if one.ended]
    left = NOTIONS[found.promises[0].notion].unmeasured
    if left and together.releases > 1:
        always.append(left)
    first = unbounded(found.promises)
    if first is not None:
        return [first, *always]
    if together.figure == found.alone:
        return always
    who = "what all of them together tell" if together.releases > 1 else "what it tells"
    absent = "" if found.present is None else ", by being absent too,"
    told = f"is up to {together.figure:.4f} nats ({together.measure}, {together.found})"
    return [
        *always,
        f"this is release {together.releases:,} in this ledger; {who} about a person whose values stay the same"
        f"{absent} {told}"
    ]
