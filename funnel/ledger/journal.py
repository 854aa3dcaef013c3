"""The ledger: one line for every release, each bound to the line before it; and the chain that other records share."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funnel.errors import LedgerError
from funnel.files import replace_file, sync, write_all, writing
from funnel.format.canonical import encode

_START = "0" * 64
_OWN = ("sequence", "written", "previous")


@dataclass(frozen=True)
class _Head:
    """How many lines are known to be on disk, and the digest of the last of them."""

    sequence: int
    digest: str


class Chain:
    """PRIVATE/NAME.jsonl, and PRIVATE/NAME.head, which says how far it reaches; `what` it is, and what it `tells`.

    An entry is written in two steps: the line, then the head; what it is about happens only after both. So
    - a last line without its newline, behind the head, is what a crash left of an entry for something that never
      happened: it does not count, and the next entry overwrites it;
    - whole lines behind the head are entries that a crash kept from being confirmed: they count;
    - fewer lines than the head says, or a line that does not fit, is damage, and nothing is released until it
      is repaired. Chain and head detect damage and careless edits; they are no proof against a forger, who
      could write both anew.
    """

    def __init__(self, private: Path, name: str, what: str, tells: str) -> None:
        self.path, self.head_path = private / f"{name}.jsonl", private / f"{name}.head"
        self.what = what
        self.restore = (
            f"It is the record of {tells}. Restore the private folder from a backup, {self.path.name} and "
            f"{self.head_path.name} together; never edit either by hand."
        )

    def entries(self) -> list[dict[str, Any]]:
        """All entries, oldest first, with chain and head checked. Raises LedgerError with the line number."""
        return [entry for entry, _ in self._read()]

    def append(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Add an entry durably and return it with its sequence, time and link; the caller holds the lock.

        Raises LedgerError when the ledger is damaged, ReleaseError when it cannot be written; then the entry
        does not count.
        """
        if set(entry) & set(_OWN):
            raise ValueError(f"{', '.join(_OWN)} are the ledger's own to write")
        known = self._read()
        digest = known[-1][1] if known else _START
        written = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if known:
            # A clock that was set back must not make the order of the entries look wrong.
            written = max(written, str(known[-1][0]["written"]))
        whole = {
            "sequence": len(known) + 1,
            "written": written,
            "previous": digest,
        }
        line = encode(whole | {"entry": entry})[:-1]
        with writing(self.path.parent):
            self._write(line + b"\n", _Head(len(known) + 1, _digest(line)))
        return dict(entry) | whole

    def _write(self, line: bytes, head: _Head) -> None:
        """The line behind the last newline, then the head; after a failure, neither or both."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = self._content().rfind(b"\n") + 1
            try:
                os.ftruncate(descriptor, end)
                os.lseek(descriptor, end, os.SEEK_SET)
                write_all(descriptor, line)
                os.fsync(descriptor)
                sync(self.path.parent)
                self._write_head(head)
            except OSError:
                if self._head() != head:
                    os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)

    def _write_head(self, head: _Head) -> None:
        replace_file(self.head_path, encode({"sequence": head.sequence, "sha256": head.digest}))

    def _read(self) -> list[tuple[dict[str, Any], str]]:
        """Entries and the digests of their lines."""
        # The head first: a run that appends between the two readings then only adds lines behind it.
        head = self._head()
        lines = self._content().split(b"\n")[:-1]
        known: list[tuple[dict[str, Any], str]] = []
        for number, line in enumerate(lines, start=1):
            known.append((self._parse(line, number, known[-1][1] if known else _START), _digest(line)))
        self._check_head(head, [digest for _, digest in known])
        return known

    def _content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise LedgerError(
                "ledger",
                f"{self.what} cannot be read: {error.strerror}",
                where=str(self.path),
                advice="Run as the user who owns the private folder.",
            ) from error

    def _parse(self, line: bytes, number: int, previous: str) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise self._damaged(number, "is not an entry")
        if entry.get("sequence") != number:
            raise self._damaged(number, f"is numbered {entry.get('sequence')}: lines are missing or moved")
        if entry.get("previous") != previous:
            raise self._damaged(number, "does not follow from the line before it: one of the two was changed")
        return dict(entry.pop("entry")) | entry

    def _head(self) -> _Head | None:
        try:
            data = json.loads(self.head_path.read_bytes())
            return _Head(int(data["sequence"]), str(data["sha256"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                "ledger",
                f"{self.head_path.name} cannot be read",
                where=str(self.head_path),
                advice=self.restore,
            ) from error

    def _check_head(self, head: _Head | None, digests: list[str]) -> None:
        if head is None:
            # A crash during the very first entry leaves one line and no head.
            if len(digests) > 1:
                raise self._damaged(len(digests), f"is not confirmed: {self.head_path.name} is missing")
        elif head.sequence < 1 or len(digests) < head.sequence:
            what = f"is missing or cut short; {self.what} had {head.sequence} entries"
            raise self._damaged(len(digests) + 1, what)
        elif digests[head.sequence - 1] != head.digest:
            raise self._damaged(head.sequence, "is not the one that was written: it was changed")

    def _damaged(self, number: int, what: str) -> LedgerError:
        where = f"{self.path}:{number}"
        return LedgerError("ledger", f"line {number} of {self.what} {what}", where=where, advice=self.restore)


class Ledger(Chain):
    """PRIVATE/ledger.jsonl: an entry for every release, confirmed before it becomes visible."""

    def __init__(self, private: Path) -> None:
        super().__init__(private, "ledger", "the ledger", "what has been released about these people")


def _digest(line: bytes) -> str:
    return hashlib.sha256(line + b"\n").hexdigest()
