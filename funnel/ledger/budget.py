"""What policies say to a release, once it is measured with all before it; and what its readers have to know."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.format.journal import Promise
from funnel.ledger.history import Composed
from funnel.ledger.promises import breaks, check_ends
from funnel.policy import Policy


def check_promises(policy: Policy, found: Composed, release: str) -> None:
    """Refuse a release that would end a promise which its policy does not accept to end. Raises LedgerError."""
    own, *others = found.promises
    if breaks(own):
        check_ends(policy, own, absent=found.present is not None)
    for one in others:
        if one.ended == release:
            check_ends(policy, one, absent=found.present is not None)


def unbounded(promises: Sequence[Promise]) -> str | None:
    """What is to be said first of releases that together have no finite bound; None where they have one."""
    own = promises[0].together
    if own.figure is not None:
        return None
    return (
        f"No finite bound: what {'this release tells' if own.releases == 1 else 'all releases so far tell together'} "
        f"about {' + '.join(own.sensitive)} may be everything ({own.measure}, {own.how}); its policy accepts that"
    )


def warnings(found: Composed) -> list[str]:
    """What a reader of a release has to know of those before it, where together they tell more than it alone."""
    together = found.together
    ended = [
        f"policy {one.policy} promised a bound on what is told about {' + '.join(one.together.sensitive)}; that "
        f"promise ended with release {one.ended}"
        for one in found.promises
        if one.ended
    ]
    first = unbounded(found.promises)
    if first is not None:
        return [first, *ended]
    if together.figure == found.alone:
        return ended
    who = "what all of them together tell" if together.releases > 1 else "what it tells"
    absent = "" if found.present is None else ", by being absent too,"
    told = f"is up to {together.figure:.4f} nats ({together.measure}, {together.how})"
    return [
        *ended,
        f"this is release {together.releases:,} in this ledger; {who} about a person whose values stay the same"
        f"{absent} {told}"
    ]
