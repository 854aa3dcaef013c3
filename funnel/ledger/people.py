"""What a private folder keeps to know people again: a key of its own, and the digest of every release."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from funnel.data.alphabet import folded
from funnel.draw.keys import SIZE, Key
from funnel.errors import LedgerError
from funnel.files import replace_file, writing
from funnel.format import people, schema
from funnel.format.canonical import FormatError
from funnel.format.journal import ReleaseEntry
from funnel.format.people import PeopleFile
from funnel.ledger.archive import read_kept


class PeopleKey(Key):
    """A key that words of people are made with, and nothing else; its folder keeps it."""

    __slots__ = ()

    @property
    def salt(self) -> int:
        """What hashes of rows begin with."""
        return int.from_bytes(self.derive("people/content")[:7], "little")

    def line(self) -> bytes:
        """As it is stored."""
        return self._secret.hex().encode()


def people_key(private: Path) -> PeopleKey:
    """The key under which a private folder makes words of people, a new one where there is none.

    It never draws anything. Raises LedgerError where it cannot be read.
    """
    path = private / people.KEY
    try:
        return PeopleKey(bytes.fromhex(path.read_text("ascii")))
    except FileNotFoundError:
        return PeopleKey(os.urandom(SIZE))
    except (OSError, ValueError) as error:
        raise LedgerError(
            "ledger",
            "the key by which people are known again cannot be read",
            where=str(path),
            advice="Restore it from a backup of the private folder. Without it nothing is known of whom earlier "
            "releases were about: where it is lost for good, move the file away.",
        ) from error


def keep_key(private: Path, key: PeopleKey) -> None:
    """Store a key that is new, before anything is entered that was made with it. Raises ReleaseError."""
    path = private / people.KEY
    if not path.exists():
        with writing(private):
            replace_file(path, key.line())


def table_name(table: str, directory: Path, private: Path, read: str = "") -> str:
    """A hash of what a policy in `directory` names; of files as seen from the private folder, for both may be moved.

    Where it says how a CSV is `read`, the name is of both: read otherwise, a column of one name is another one. Links
    to both folders are followed: as seen from two links to one private folder, two tables would have one name.
    """
    seen = table if "://" in table else os.path.relpath(_lies(directory, table), private.resolve())
    return hashlib.sha256((f"{seen}\n{read}" if read else seen).encode(errors="surrogateescape")).hexdigest()


def _lies(directory: Path, table: str) -> Path:
    """Where a table lies; links that no `..` leads back from are names of it, for they may lead elsewhere tomorrow."""
    parts = Path(table).parts
    back = len(parts) - parts[::-1].index("..") if ".." in parts else 0
    return directory.joinpath(*parts[:back]).resolve().joinpath(*parts[back:])


def by_others(private: Path, entries: Sequence[ReleaseEntry], entity: str | None) -> bool:
    """Whether an earlier release knows people by another column than `entity`: several rows may be one of them."""
    every = {one.policy_sha256: one for one in entries}.values()
    names = [one.entity or (found.entity if (found := kept_people(private, one)) else None) for one in every]
    return any(name is not None and folded(name) != folded(entity or "") for name in names)


def kept_people(private: Path, entry: ReleaseEntry) -> PeopleFile | None:
    """The digest of a release; None where it was lost or is not the one that was entered. Raises LedgerError."""
    raw = read_kept(private / entry.release / people.NAME)
    if raw is None or hashlib.sha256(raw).hexdigest() != entry.identity.people_sha256:
        return None
    try:
        return schema.read(PeopleFile, people.NAME, raw)
    except FormatError:
        return None
