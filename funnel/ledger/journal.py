"""PRIVATE/ledger.jsonl: one chained line for everything that tells more about the same people."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from funnel.errors import InternalError, LedgerError
from funnel.files import replace_file, sync, write_all, writing
from funnel.format import schema
from funnel.format.canonical import FormatError
from funnel.format.journal import HEAD, NAME, START, Entry, Head, Line, ReleaseEntry

RESTORE = (
    "It is the record of what has been released about these people. Restore the private folder from a backup, "
    f"{NAME} and {HEAD} together; never edit either by hand."
)


_BLIND = 16
"""Bytes of a blind."""


def _unread(file: Path, error: OSError) -> LedgerError:
    """The error of a ledger that may be whole and cannot be opened."""
    advice = "`release.private` names the folder that it lies in; run as the user who owns that folder."
    return LedgerError("ledger", f"the ledger cannot be read: {error.strerror}", where=str(file), advice=advice)


class Journal:
    """The ledger of a private folder: its lines, and ledger.head, which says how far they reach.

    An entry is written in two steps: the line, then the head; what it is about happens only after both. So
    - a last line without its newline is what a crash left of an entry for something that never happened: it does
      not count, and the next entry overwrites it;
    - whole lines behind the head are entries that a crash kept from being confirmed: they count;
    - fewer lines than the head says, or a line that does not fit, is damage, and nothing is released until it
      is repaired. Chain and head detect damage and careless edits; they are no proof against a forger, who
      could write both anew.
    """

    def __init__(self, private: Path) -> None:
        self.path, self.head_path = private / NAME, private / HEAD

    def lines(self) -> tuple[Line, ...]:
        """All lines, oldest first, with chain and head checked. Raises LedgerError with the line's number."""
        return tuple(line for line, _ in self._read())

    def releases(self) -> tuple[ReleaseEntry, ...]:
        """The entries of releases, oldest first. Raises LedgerError."""
        return releases(self.lines())

    def end(self) -> str:
        """SHA-256 of the last line as it stands there, whatever version wrote it. Raises LedgerError."""
        known = self._read()
        return known[-1][1] if known else START

    def line(self, entry: Entry) -> Line:
        """The line that an entry would be added as now; the caller holds the lock of the private folder.

        Raises LedgerError when the ledger is damaged.
        """
        known = self._read()
        now, previous = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", START
        if known:
            last, previous = known[-1]
            # A clock that was set back must not make the order of the entries look wrong.
            now = max(now, last.written)
        return Line(len(known) + 1, now, previous, os.urandom(_BLIND).hex(), entry)

    def append(self, entry: Entry | Line) -> Line:
        """Add an entry, or the line made of it, durably, and return its line; the caller holds the lock as in `line`.

        Raises LedgerError when the ledger is damaged, ReleaseError when it cannot be written; then the entry
        does not count.
        """
        line, known = entry if isinstance(entry, Line) else self.line(entry), self._read()
        if (line.sequence, line.previous) != (len(known) + 1, known[-1][1] if known else START):
            raise InternalError("a line was made for another place in the ledger")
        raw = _whole(line)
        with writing(self.path.parent):
            self._write(raw, Head(line.sequence, _digest(raw)))
        return line

    def _write(self, raw: bytes, head: Head) -> None:
        """The line behind the last newline, then the head; after a failure, neither or both."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = self._content().rfind(b"\n") + 1
            try:
                os.ftruncate(descriptor, end)
                os.lseek(descriptor, end, os.SEEK_SET)
                write_all(descriptor, raw)
                os.fsync(descriptor)
                sync(self.path.parent)
                replace_file(self.head_path, schema.write(head))
            except OSError:
                if self._head() != head:
                    os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)

    def _read(self) -> list[tuple[Line, str]]:
        """The lines and their hashes."""
        # The head first: a run that appends between the two readings then only adds lines behind it.
        head = self._head()
        known: list[tuple[Line, str]] = []
        for number, content in enumerate(self._content().split(b"\n")[:-1], start=1):
            raw = content + b"\n"
            known.append((self._line(raw, number, known[-1][1] if known else START), _digest(raw)))
        self._check_head(head, [digest for _, digest in known])
        return known

    def _content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise _unread(self.path, error) from error

    def _line(self, raw: bytes, number: int, previous: str) -> Line:
        try:
            line = _parsed(raw)
        except FormatError as error:
            raise self._damaged(number, "is not an entry") from error
        if line.sequence != number:
            raise self._damaged(number, f"is numbered {line.sequence}: lines are missing or moved")
        if line.previous != previous:
            raise self._damaged(number, "does not follow from the line before it: one of the two was changed")
        return line

    def _head(self) -> Head | None:
        try:
            return schema.read(Head, HEAD, self.head_path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unread(self.head_path, error) from error
        except FormatError as error:
            where = str(self.head_path)
            raise LedgerError("ledger", f"{HEAD} cannot be read", where=where, advice=RESTORE) from error

    def _check_head(self, head: Head | None, digests: list[str]) -> None:
        if head is None:
            # A crash during the very first entry leaves one line and no head.
            if len(digests) > 1:
                raise self._damaged(len(digests), f"is not confirmed: {HEAD} is missing")
        elif len(digests) < head.sequence:
            what = f"is missing or cut short; the ledger had {head.sequence} entries"
            raise self._damaged(len(digests) + 1, what)
        elif digests[head.sequence - 1] != head.sha256:
            raise self._damaged(head.sequence, "is not the one that was written: it was changed")

    def _damaged(self, number: int, what: str) -> LedgerError:
        where = f"{self.path}:{number}"
        return LedgerError("ledger", f"line {number} of the ledger {what}", where=where, advice=RESTORE)


def releases(lines: Iterable[Line]) -> tuple[ReleaseEntry, ...]:
    """The entries of releases among lines, in their order."""
    return tuple(line.entry for line in lines if isinstance(line.entry, ReleaseEntry))


@lru_cache(maxsize=1 << 12)
def _parsed(raw: bytes) -> Line:
    """A line from its bytes, which one run reads several times. Raises FormatError."""
    return schema.read(Line, NAME, raw)


def _whole(line: Line) -> bytes:
    """A line's bytes; one that could not be read again would stop every later run."""
    raw = schema.write(line)
    try:
        _parsed(raw)
    except FormatError as error:
        raise InternalError(f"no entry for a ledger: {error}") from error
    return raw


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
