"""What was spent on private estimates: a line for every time that the counts of these people were looked at."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from funnel.errors import LedgerError
from funnel.release.durable import sync, write_all, writing

FILE = "estimates.jsonl"


@dataclass(frozen=True)
class Spent:
    """How often counts were estimated from the same private folder so far, and the sum of ε_est."""

    estimates: int
    epsilon: Fraction

    @classmethod
    def nothing(cls) -> Spent:
        """Before the first."""
        return cls(0, Fraction(0))


def spent(private: Path) -> Spent:
    """What was spent so far. Raises LedgerError where the record is damaged.

    A last line without its newline is what a crash left before any noise was drawn: it does not count.
    """
    path = private / FILE
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return Spent.nothing()
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from None
    total = Fraction(0)
    lines = text.split("\n")[:-1]
    for number, line in enumerate(lines, start=1):
        try:
            one = Fraction(json.loads(line)["epsilon"])
        except (ValueError, KeyError, TypeError, ZeroDivisionError):
            raise _damaged(path, f"line {number} is not one that funnel wrote") from None
        if one <= 0:
            raise _damaged(path, f"line {number} spends nothing")
        total += one
    return Spent(len(lines), total)


def charge(private: Path, release: str, epsilon: Fraction, budget: Fraction | None) -> Spent:
    """Enter an estimate durably, before its noise is drawn; the caller holds the lock of `private`.

    A run that fails later has spent it too: what is published at last was chosen by how earlier tries came out.
    Raises LedgerError where the budget does not allow it, or the record is damaged.
    """
    before = spent(private)
    after = Spent(before.estimates + 1, before.epsilon + epsilon)
    if budget is not None and after.epsilon > budget:
        raise LedgerError(
            "budget",
            f"this estimate would bring what was spent on estimates to {float(after.epsilon):g} nats "
            f"({before.estimates:,} before it); `estimate.budget` is {float(budget):g}",
            where=str(private / FILE),
            advice="Nothing was estimated or drawn. Every run estimates anew, and every estimate tells more about the "
            "same people: release less often, or accept a larger budget.",
        )
    line = json.dumps({"release": release, "epsilon": str(epsilon)}).encode() + b"\n"
    path = private / FILE
    with writing(private):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, path.read_bytes().rfind(b"\n") + 1)
            os.lseek(descriptor, 0, os.SEEK_END)
            write_all(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync(private)
    return after


def _damaged(path: Path, why: str) -> LedgerError:
    return LedgerError(
        "ledger",
        f"the record of private estimates cannot be read: {why}",
        where=str(path),
        advice="It says what was spent on these people. Restore the private folder from a backup.",
    )
