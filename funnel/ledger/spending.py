"""What was spent on private estimates: an entry for every time that the counts of these people were looked at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from funnel.errors import LedgerError
from funnel.ledger.journal import Chain

NAME = "estimates"


@dataclass(frozen=True)
class Spent:
    """How often counts were estimated from the same private folder so far, and the sum of ε_est."""

    estimates: int
    epsilon: Fraction

    @classmethod
    def nothing(cls) -> Spent:
        """Before the first."""
        return cls(0, Fraction(0))


def record(private: Path) -> Chain:
    """PRIVATE/estimates.jsonl, chained as the ledger is."""
    return Chain(private, NAME, "the record of private estimates", "what was spent on these people")


def spent(private: Path) -> Spent:
    """What was spent so far. Raises LedgerError where the record is damaged.

    What a crash left of an entry, before any noise was drawn, does not count.
    """
    chain = record(private)
    known = [_epsilon(chain, entry) for entry in chain.entries()]
    return Spent(len(known), sum(known, Fraction(0)))


def charge(private: Path, name: str, epsilon: Fraction, budget: Fraction | None) -> Spent:
    """Enter an estimate durably, before its noise is drawn; the caller holds the lock of `private`.

    `name` is that of the release or the lock that it is for. A run that fails later has spent it too: what is
    published at last was chosen by how earlier tries came out.
    Raises LedgerError where the budget does not allow it, or the record is damaged; ReleaseError where it cannot be
    written.
    """
    before = spent(private)
    after = Spent(before.estimates + 1, before.epsilon + epsilon)
    if budget is not None and after.epsilon > budget:
        raise LedgerError(
            "budget",
            f"this estimate would bring what was spent on estimates to {float(after.epsilon):g} nats "
            f"({before.estimates:,} before it); `estimate.budget` is {float(budget):g}",
            where=str(record(private).path),
            advice="Nothing was estimated or drawn. Every estimate tells more about the same people: release less "
            "often, let a lock (`funnel lock`) estimate once for many releases, or accept a larger budget.",
        )
    record(private).append({"release": name, "epsilon": str(epsilon)})
    return after


def charged(private: Path, name: str) -> Spent:
    """What was spent so far, an estimate of this name among it. Raises LedgerError where that is not on record."""
    chain = record(private)
    if all(entry.get("release") != name for entry in chain.entries()):
        raise LedgerError(
            "ledger",
            f"the estimate {name} is not on {chain.what}",
            where=str(chain.path),
            advice=chain.restore,
        )
    return spent(private)


def _epsilon(chain: Chain, entry: dict[str, Any]) -> Fraction:
    """The ε_est of an entry, above zero."""
    try:
        found = Fraction(entry["epsilon"])
        if found > 0 and isinstance(entry["release"], str):
            return found
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        pass
    raise LedgerError(
        "ledger",
        f"line {entry['sequence']} of {chain.what} is not one that funnel wrote",
        where=f"{chain.path}:{entry['sequence']}",
        advice=chain.restore,
    )
