"""What private estimates of the same people cost together: each is charged before its noise is drawn."""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.extras.base import Release
from funnel.audit.extras.pinned import lock_facts
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format.journal import NAME, EstimateEntry, ReleaseEntry

CLAIM = "estimate-spent"
TITLE = "the ledger holds one charge for this private estimate, and release.json states the sum of all charges so far"
PRIVATE = True


def check(opened: Release) -> str | Unchecked:
    """Under a lock the estimate is the lock's, and its budget that of the night when it was made. Raises Broken."""
    one, private = opened.manifest, opened.counts.private
    if private is None:
        return Unchecked(NOT_CLAIMED + "the counts are the table’s own")
    name = lock_facts(opened).get("estimated") if one.locked else one.release
    entries = [line.entry for line in opened.journal]
    until = next((i for i, x in enumerate(entries) if isinstance(x, ReleaseEntry) and x.release == one.release), None)
    before = [(entry.name, Fraction(entry.epsilon)) for entry in entries[:until] if isinstance(entry, EstimateEntry)]
    total, budget = sum(epsilon for _, epsilon in before), opened.terms.estimate.budget
    told = (one.estimate.epsilon, one.estimate.estimates, one.estimate.spent)
    agree(NAME, [
        ("charge", [Fraction(private.epsilon)], [epsilon for other, epsilon in before if other == name]),
        ("what estimates spent", (float(Fraction(private.epsilon)), len(before), float(total)), told),
    ])  # fmt: skip
    if budget is not None and total > Fraction(budget):
        if one.locked:
            return Unchecked(f"{float(total):g} nats by now; whether {budget} held when the lock was made is not known")
        raise Broken(NAME, "the estimates spent more than the policy's budget", budget, float(total))
    return f"{counted(len(before), 'estimate')} so far, {float(total):g} nats together"
