"""What private estimates cost: an entry for every time that noise was drawn over the counts of these people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from funnel.errors import LedgerError
from funnel.format.journal import EstimateEntry, Line
from funnel.ledger.journal import RESTORE, Journal


@dataclass(frozen=True)
class Spent:
    """How often the counts were estimated so far, and the sum of ε_est in nats."""

    estimates: int
    epsilon: Fraction


def spent(lines: Iterable[Line]) -> Spent:
    """What the estimates among the journal's lines cost: those of runs that published nothing, too."""
    found = [Fraction(line.entry.epsilon) for line in lines if isinstance(line.entry, EstimateEntry)]
    return Spent(len(found), sum(found, Fraction(0)))


def charge(journal: Journal, name: str, epsilon: Fraction, budget: Fraction | None) -> Spent:
    """Enter an estimate of ε_est nats durably, before its noise is drawn; the caller holds the lock.

    `name` is that of the release or the lock that it is for. A run that fails later has spent it too: what is
    published at last was chosen by how earlier tries came out.
    Raises LedgerError where the budget does not allow it, or the ledger is damaged; ReleaseError where it cannot be
    written.
    """
    before = spent(journal.lines())
    after = Spent(before.estimates + 1, before.epsilon + epsilon)
    if budget is not None and after.epsilon > budget:
        raise LedgerError(
            "budget",
            f"this estimate would bring what was spent on estimates to {float(after.epsilon):g} nats "
            f"({before.estimates:,} before it); `estimate.budget` is {float(budget):g}",
            where=str(journal.path),
            advice="Nothing was estimated or drawn. Every estimate tells more about the same people: release less "
            "often, let a lock (`funnel lock`) estimate once for many releases, or accept a larger budget.",
        )
    journal.append(EstimateEntry(name, str(epsilon)))
    return after


def charged(journal: Journal, name: str) -> Spent:
    """What was spent so far, an estimate of this name among it. Raises LedgerError where that is not entered."""
    lines = journal.lines()
    if not any(isinstance(line.entry, EstimateEntry) and line.entry.name == name for line in lines):
        raise LedgerError(
            "ledger",
            f"the estimate {name} is not in the ledger",
            where=str(journal.path),
            advice=RESTORE,
        )
    return spent(lines)
