"""Another key for the same policy: an answer given anew is a second answer, so somebody has to have meant it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from funnel.data.alphabet import folded
from funnel.errors import DrawError
from funnel.format.journal import KeyEntry, Line, ReleaseEntry
from funnel.ledger.journal import Journal, releases


@dataclass(frozen=True)
class KeyScope:
    """What a policy asks people under a key: its name, and the public columns that it releases, folded."""

    name: str
    columns: frozenset[str]

    def of(self, entries: Sequence[ReleaseEntry]) -> list[ReleaseEntry]:
        """The releases drawn with a key that this is about: of the policy by name, and of one of its columns by any.

        A policy that was renamed, or a second one, asks the same people the same again.
        """
        permanent = (one for one in entries if one.draws == "permanent")
        return [one for one in permanent if one.name == self.name or self.columns & answered(one)]

    def changed(self, entries: Sequence[ReleaseEntry], fingerprint: str) -> bool:
        """Whether the key is not that of the policy's last release, or new to a column that another key answered."""
        own = [one for one in self.of(entries) if one.name == self.name]
        if own and own[-1].key_fingerprint != fingerprint:
            return True
        keys: dict[str, set[str | None]] = {}
        for one in self.of(entries):
            for column in self.columns & answered(one):
                keys.setdefault(column, set()).add(one.key_fingerprint)
        return any(fingerprint not in known for known in keys.values())


    def unasked(self, entries: Sequence[ReleaseEntry], fingerprint: str) -> ReleaseEntry:
        """The last release that answered one of the columns which this key never answered."""
        found = self.of(entries)
        known = {column for one in found if one.key_fingerprint == fingerprint for column in answered(one)}
        return next(one for one in reversed(found) if (self.columns & answered(one)) - known)


def answered(entry: ReleaseEntry) -> frozenset[str]:
    """The columns that a release drew, folded."""
    return frozenset(folded(column) for one in entry.drawn for column in (*one.columns, *one.inside))


def last_asked(asked: KeyScope, entries: Sequence[ReleaseEntry]) -> ReleaseEntry | None:
    """The policy's own last release that was drawn with a key, by its name; else the last that asked the same."""
    found = asked.of(entries)
    own = [one for one in found if one.name == asked.name]
    return next(reversed(own or found), None)


def check_key(journal: Journal, asked: KeyScope, fingerprint: str) -> None:
    """The key is that of the policy's last permanent release, and one that its columns know; or was agreed to since.

    Raises DrawError (key-changed): under another key everybody is asked anew, which costs privacy; and LedgerError
    where the ledger is damaged.
    """
    lines = journal.lines()
    entries = releases(lines)
    last = last_asked(asked, entries)
    if last is None or not asked.changed(entries, fingerprint) or _agreed(lines, asked, last, fingerprint):
        return
    back = "Give the old key back. Where it is lost, or the change is meant,"
    if last.key_fingerprint == fingerprint:
        last = asked.unasked(entries, fingerprint)
        back = "Columns that another key answered belong in another policy, with that key. Where this is meant,"
    whose = "the last release" if last.name == asked.name else f"the release of policy {last.name} about them"
    raise DrawError(
        "key-changed",
        f"{whose}, {last.release}, was drawn with key {last.key_fingerprint}, and this is key "
        f"{fingerprint}: answers may be others, which may tell more about each person",
        where=str(journal.path.parent),
        advice=f"Nothing was published. {back} `funnel key rotate POLICY --accept` (under a lock with `--locked`) "
        "shows what it costs and records that it is meant.",
    )


def _agreed(lines: Sequence[Line], asked: KeyScope, last: ReleaseEntry, fingerprint: str) -> bool:
    """Whether the change to this key was entered for the policy's next release."""
    return any(one.new == fingerprint for one in _meant(lines, asked, last))


def _meant(lines: Sequence[Line], asked: KeyScope, last: ReleaseEntry) -> list[KeyEntry]:
    """The changes of key that were agreed to for a policy since its own last release, if there is one."""
    place = next(place for place, line in enumerate(lines) if line.entry is last) if last.name == asked.name else 0
    later = (line.entry for line in lines[place:] if isinstance(line.entry, KeyEntry))
    return [one for one in later if one.name == asked.name]


def key_due(journal: Journal, asked: KeyScope) -> str | None:
    """The key that the next release is due to be drawn with, by its fingerprint; None where any will do.

    Raises LedgerError where the ledger is damaged.
    """
    lines = journal.lines()
    last = last_asked(asked, releases(lines))
    if last is None:
        return None
    agreed = _meant(lines, asked, last)
    return agreed[-1].new if agreed else last.key_fingerprint


def agree(journal: Journal, asked: KeyScope, fingerprint: str) -> None:
    """Enter, durably, that the policy's next release may be drawn with this key; the caller holds the lock.

    Where nothing was asked with a key yet there is nothing to agree to. Raises LedgerError, ReleaseError.
    """
    last = last_asked(asked, journal.releases())
    if last is not None and last.key_fingerprint is not None:
        journal.append(KeyEntry(asked.name, last.key_fingerprint, fingerprint))
