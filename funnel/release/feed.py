"""Writing releases.json: a policy's own list anew from its ledger, the lists of others as they stand."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from funnel.files import NotPlainError, read_plain, replace_file
from funnel.format import schema
from funnel.format.attestation import Envelope
from funnel.format.canonical import FormatError
from funnel.format.feed import NAME, FeedFile, Position, feed, inside, listing
from funnel.format.manifest import NAME as MANIFEST
from funnel.format.place import shown
from funnel.ledger.journal import Journal
from funnel.ledger.journal import releases as entries_of
from funnel.release.sign import SigningKey

_PATIENCE, _PAUSE = 10.0, 0.05
"""Seconds to wait for another policy's run that writes the same file, and between looks."""


@dataclass(frozen=True)
class Feed:
    """The list of one policy in a published folder; without a `signer` it has none, for nobody could believe it."""

    to: Path
    private: Path
    policy: str
    signer: SigningKey | None

    def write(self, aside: Path) -> None:
        """Bring the list up to date, durably: readers find the old file or the new. It is staged as `aside`.

        What is listed are the ledger's releases of the policy that readers have seen, by the hashes in the ledger;
        nothing is taken from the old list. Raises OSError, LedgerError.
        """
        with _alone(self.to):
            lists = self._lists()
            old = lists.pop(self.policy, None)
            new = self._list(old)
            if new == old:
                return
            if new is not None:
                lists[self.policy] = new
            if lists:
                replace_file(self.to / NAME, feed(lists), aside=aside, mode=0o644)
            else:
                (self.to / NAME).unlink()

    def end(self, aside: Path) -> None:
        """Write what a run that was cut off had left to write: where the newest release there is signed as this is.

        Under another key, or none, a list would be of releases that nobody finds there yet: the first one of them
        brings it. Raises OSError, LedgerError.
        """
        own = [one.release for one in Journal(self.private).releases() if one.name == self.policy]
        newest = next((name for name in reversed(own) if (self.to / name).is_dir()), None)
        if newest is not None and _signed_by(self.to / newest) == (self.signer and self.signer.fingerprint):
            self.write(aside)

    def _lists(self) -> dict[str, Envelope]:
        """The lists as they stand; none where the file is none of ours, and each policy's next run writes its own."""
        try:
            found = schema.read(FeedFile, NAME, read_plain(self.to / NAME))
        except (FileNotFoundError, NotPlainError, FormatError):
            return {}
        return {inside(one).predicate.policy: one for one in found.lists}

    def _list(self, old: Envelope | None) -> Envelope | None:
        """The list as it should be: the old one, signature and all, where it says the same under the same key."""
        lines = Journal(self.private).lines()
        entries = entries_of(lines)
        seen = shown(self.to, self.private, [one.release for one in entries])
        own = {one.release: one.manifest_sha256 for one in entries if one.name == self.policy and one.release in seen}
        if self.signer is None or not own:
            return None
        if old is not None and old == self.signer.seal(old.content) and inside(old).releases == own:
            return old
        position = Position(self.policy, len(lines), Journal(self.private).end())
        return self.signer.seal(listing(own, position))


def _signed_by(release: Path) -> str | None:
    """The key that a manifest names; none where it is not signed, or cannot be read."""
    try:
        return str(json.loads(read_plain(release / MANIFEST))["signed"]["public_key"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a published folder, which policies with ledgers of their own may share, while its feed is read and written.

    Every reader could hold it as well, so nobody waits for long: what two runs then lose of each other's lists, the
    next run of each puts back.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + _PATIENCE
        while not _held(descriptor) and time.monotonic() < until:
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)


def _held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
