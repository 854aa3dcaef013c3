"""The one place where noise over counts is drawn, and what all of it costs.

An estimate is entered in the ledger, then drawn, then kept, and only then is anything made of it; no other function has
the operating system's dice. So whatever command anybody reads, its figures follow from estimates that are entered, and
k entries of ε_est nats tell k·ε_est of a record at most (they add up, whoever chose each after seeing those before it).
All policies of a private folder share the ledger, and so what its people have to spend.

An estimate that was drawn is taken again instead of drawing anew: three hundred looks at one estimate are one look.
Which one is taken follows from the terms (what is counted where, and ε_est), the clock and what was asked before,
never from the counts. Noise that was taken again while the counts are the same, and drawn anew once they differ, would
tell by itself whether they differ, with certainty: of somebody who knows all the others it would tell whether the one
that is left has changed, and no ε bounds that. So an estimate stands for hours, whatever the table does in them; the
counts that a release is made from may be some hours older than its records, as they may be years older under a lock.
An entry without its estimate is what a crash left: it counts, and the next one is entered anew.

What noise was drawn is kept in PRIVATE/estimates, so that none is drawn twice for the same terms.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np

from funnel.data.convert import grid
from funnel.data.joint import IntArray
from funnel.draw.histogram import MOST, SENSITIVITY, discrete_laplace
from funnel.errors import LedgerError
from funnel.files import replace_file, sync, writing
from funnel.format import schema
from funnel.format.estimated import FOLDER, EstimatedFile, file_name
from funnel.format.fields import named_at
from funnel.format.journal import EstimateEntry, Line
from funnel.ledger.journal import RESTORE, Journal
from funnel.text import number

STANDS = timedelta(hours=12)
"""How long an estimate stands for releases and locks: a look in the evening and the night's run share one."""
PREFIX = "estimate-"
"""What the name of an estimate begins with; then comes what a release's name begins with, when it was drawn."""


@dataclass(frozen=True)
class Spent:
    """How often the counts were estimated so far, and the sum of ε_est in nats."""

    estimates: int
    epsilon: Fraction


@dataclass(frozen=True)
class EstimateRequest:
    """An estimate as a policy asks for it: SHA-256 of what is counted, ε_est and `estimate.budget` in nats."""

    terms: str
    epsilon: Fraction
    budget: Fraction | None


def spent(lines: Iterable[Line]) -> Spent:
    """What the estimates among the journal's lines cost: of every policy, and of what came to nothing."""
    found = [Fraction(one.epsilon) for one, _ in _entries(lines)]
    return Spent(len(found), sum(found, Fraction(0)))


def standing(journal: Journal, asked: EstimateRequest, within: timedelta | None = None) -> Kept | None:
    """The newest estimate of these terms that is kept, and drawn no longer ago than `within`; None where none is.

    Raises LedgerError where the ledger or the estimate is damaged, or, with `within`, where all estimates of these
    people have spent more than the budget: then nothing more is to be made of them.
    """
    lines, now = journal.lines(), datetime.now(UTC)
    for entry, written in reversed(_entries(lines)):
        near = within is None or abs(now - _drawn(entry.name, written)) < within
        if near and entry.terms == asked.terms and (kept := _kept(journal, entry.name)) is not None:
            if within is not None:
                _check(journal, spent(lines), asked.budget)
            return kept
    return None


def estimate(journal: Journal, name: str, asked: EstimateRequest, counted: IntArray) -> Kept:
    """Enter an estimate durably, draw noise of rate ε_est/2 on every count (m,), and keep it.

    The caller holds the lock. Whatever fails later has spent it too. Raises LedgerError (`budget`) where the budget
    does not allow it, then nothing was entered or drawn; or where the ledger is damaged; ReleaseError where it cannot
    be written.
    """
    before = spent(journal.lines())
    _check(journal, Spent(before.estimates + 1, before.epsilon + asked.epsilon), asked.budget, "would have")
    journal.append(EstimateEntry(name, str(asked.epsilon), asked.terms))
    kept = Kept(name, counted, _noisy(counted.tolist(), asked.epsilon / SENSITIVITY))
    keep(journal.path.parent, kept, asked.terms, asked.epsilon)
    return kept


def _noisy(counted: Sequence[int], rate: Fraction) -> IntArray:
    """Fresh noise from the operating system on every count, in whole numbers of any size.

    A noisy count beyond MOST becomes MOST: it follows from the noisy count alone, so no chance is taken off the bound.
    """
    noisy = (count + discrete_laplace(rate, secrets.randbelow) for count in counted)
    return np.array([min(max(one, -MOST), MOST) for one in noisy], np.int64)


def charged(journal: Journal, name: str) -> Spent:
    """What was spent so far, an estimate of this name among it. Raises LedgerError where that is not entered."""
    lines = journal.lines()
    if not any(one.name == name for one, _ in _entries(lines)):
        raise LedgerError(
            "ledger",
            f"the estimate {name} is not in the ledger",
            where=str(journal.path),
            advice=RESTORE,
        )
    return spent(lines)


def _entries(lines: Iterable[Line]) -> list[tuple[EstimateEntry, datetime]]:
    """The estimates among lines, oldest first, and when each was entered."""
    return [
        (line.entry, datetime.fromisoformat(line.written))
        for line in lines
        if isinstance(line.entry, EstimateEntry)
    ]


def _drawn(name: str, written: datetime) -> datetime:
    """When the clock said that an estimate was drawn, which its name has.

    The times of a ledger's lines never go back, as a clock may: by these, every run under a clock that was set back
    would draw anew.
    """
    try:
        return named_at(name.removeprefix(PREFIX))
    except ValueError:
        return written


def _check(journal: Journal, after: Spent, budget: Fraction | None, have: str = "have") -> None:
    """Refuse what is, or would bring, estimates above the budget. Raises LedgerError."""
    if budget is None or after.epsilon <= budget:
        return
    raise LedgerError(
        "budget",
        f"{after.estimates:,} estimates of these people {have} spent {number(float(after.epsilon))} nats; "
        f"`estimate.budget` is {number(float(budget))}",
        where=str(journal.path),
        advice="Nothing was estimated or drawn. Every estimate tells more about the same people, and what was spent "
        "stays spent: accept a larger `estimate.budget`. A lock that is made within it (`funnel lock`) estimates once "
        "for many releases.",
    )


def _kept(journal: Journal, name: str) -> Kept | None:
    """An estimate that is entered; None where a crash came between its entry and its noise. Raises LedgerError."""
    private = journal.path.parent
    try:
        return read(private, name)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LedgerError(
            "ledger",
            f"the estimate {name} cannot be read: {error}",
            where=str(path_of(private, name)),
            advice="Restore it from a backup of the private folder, or remove it: then the next one is charged anew.",
        ) from None


@dataclass(frozen=True, eq=False)
class Kept:
    """One estimate: its name in the ledger, the counts (m,) that noise was added to, and those with their noise."""

    name: str
    true: IntArray
    noisy: IntArray


def path_of(private: Path, name: str) -> Path:
    """Where an estimate is kept."""
    return private / file_name(name)


def keep(private: Path, kept: Kept, terms: str, epsilon: Fraction) -> None:
    """Keep an estimate durably; only then may anything be made of it. Raises ReleaseError."""
    noise = kept.noisy - kept.true
    cells = grid(np.stack([kept.true, np.maximum(noise, 0), np.maximum(-noise, 0)]))
    told = EstimatedFile("funnel-estimate/1", kept.name, terms, str(epsilon), cells)
    with writing(private):
        if not (private / FOLDER).is_dir():
            (private / FOLDER).mkdir(mode=0o700)
            sync(private)
        replace_file(path_of(private, kept.name), schema.write(told))


def read(private: Path, name: str) -> Kept:
    """The estimate of a name. Raises OSError (FileNotFoundError where none is kept), ValueError."""
    path = path_of(private, name)
    told = schema.read(EstimatedFile, path.name, path.read_bytes())
    if told.name != name:
        raise ValueError("it is another estimate's")
    true, added, taken = np.array(told.cells, np.int64).reshape(3, -1)
    return Kept(name, true, true + added - taken)
