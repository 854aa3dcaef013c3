"""What a policy's budget and its readers say to a release, once it is measured with all before it."""

from __future__ import annotations

from funnel.errors import LedgerError
from funnel.format.journal import Together
from funnel.ledger.history import Composed
from funnel.policy import Policy


def check_budget(policy: Policy, found: Together) -> None:
    """Refuse a release that would bring the composed leakage above the policy's budget. Raises LedgerError."""
    if policy.budget is None or (found.figure is not None and found.figure <= policy.budget):
        return
    total = "no finite bound" if found.figure is None else f"{found.figure:.4f} nats"
    others = f" together with the {found.releases - 1:,} before it" if found.releases > 1 else ""
    raise LedgerError(
        "budget",
        f"this release{others} would leak {total} of {found.measure} ({found.how}); the budget is {policy.budget:g}",
        where=policy.file,
        advice="Nothing was drawn. An unchanged protocol under the same key, with permanent draws, adds nothing; "
        "a smaller epsilon or fewer columns add less. `funnel ledger` lists what was released.",
    )


def warnings(found: Composed) -> list[str]:
    """What a reader of a release has to know of those before it, where together they tell more than it alone."""
    together = found.together
    if together.figure == found.alone:
        return []
    told = (
        f"has no finite bound ({together.measure}, {together.how})"
        if together.figure is None
        else f"is up to {together.figure:.4f} nats ({together.measure}, {together.how})"
    )
    who = "what all of them together tell" if together.releases > 1 else "what it tells"
    absent = "" if found.present is None else ", by being absent too,"
    return [
        f"this is release {together.releases:,} in this ledger; {who} about a person whose values stay the same"
        f"{absent} {told}"
    ]
