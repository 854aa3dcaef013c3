"""A release of the ledger that is over: whatever the private folder still has of it, held to its entry's hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from funnel.audit.extras.base import Release
from funnel.audit.extras.parts import archived, copy_of, kept_file
from funnel.audit.kernel.opened import Once, content
from funnel.audit.kernel.verdict import Broken
from funnel.format import cells, evidence, manifest, people, protocol
from funnel.format.cells import Wide
from funnel.format.journal import Line, ReleaseEntry
from funnel.format.manifest import FileEntry
from funnel.format.protocol import ProtocolFile


class Missing(Exception):  # noqa: N818 - nothing is wrong: somebody took it away, or lost it
    """A file of an earlier release that is gone."""


class Earlier(Release):
    """A release of a ledger, the last of its `entries`, as far as is kept what it was: in `private`, or in `to`."""

    has_table = False

    def __init__(self, to: Path, private: Path, lines: Sequence[Line], entries: Sequence[ReleaseEntry]) -> None:
        self._lines, self._entries, self._folder = (*lines,), [*entries], private / entries[-1].release
        super().__init__(to / entries[-1].release, private)

    @property
    def own(self) -> ReleaseEntry:
        """Its entry."""
        return self._entries[-1]

    @Once
    def entries(self) -> list[ReleaseEntry]:
        """Those that were given."""
        return self._entries

    @Once
    def journal(self) -> tuple[Line, ...]:
        """The ledger that they are of."""
        return self._lines

    @Once
    def folder(self) -> Path:
        """Where its evidence is, or was."""
        return self._folder

    @Once
    def protocol(self) -> ProtocolFile:
        """As the ledger names it. Raises Missing, Broken."""
        if (found := archived(self, self.own)) is None:
            raise Missing(protocol.NAME)
        return found

    @Once
    def partitioned(self) -> tuple[Wide, ...]:
        """The cells of its wide blocks, as published. Raises Missing, Broken."""
        return self.cells.blocks if self.terms.wide else ()

    def content(self, path: Path) -> bytes:
        """A file of it, by the hashes that it was entered with. Raises Missing, Broken."""
        return self.once(path, lambda: self._kept(path))

    def entry(self, path: Path) -> FileEntry:
        """Of evidence that is gone what the entry says."""
        said = {evidence.NAME: self.own.evidence_sha256, people.NAME: self.own.identity.people_sha256}
        try:
            return super().entry(path)
        except Missing:
            if path.name not in said:
                raise
            return FileEntry(said[path.name], 0)

    def _kept(self, path: Path) -> bytes:
        own, name = self.own, path.name
        if name == manifest.NAME:
            return as_entered(own, own.manifest_sha256, copy_of(self, own.manifest_sha256), path)
        if name == evidence.NAME:
            return as_entered(own, own.evidence_sha256, path)
        if name == cells.NAME:
            sha256 = self.manifest.files[name].sha256
            return as_entered(own, sha256, copy_of(self, sha256), path)
        if (raw := kept_file(self, own, name)) is None:
            raise Missing(name if (self.folder / evidence.NAME).is_file() else evidence.NAME)
        return raw


def as_entered(own: ReleaseEntry, sha256: str, *copies: Path) -> bytes:
    """A copy that is left of a file. Raises Missing, Broken where all are other ones."""
    wrong: Broken | None = None
    for path in copies:
        if path.is_file():
            raw = content(path)
            if (found := hashlib.sha256(raw).hexdigest()) == sha256:
                return raw
            wrong = Broken(path.name, f"this is not the file of {own.release} that was entered", sha256, found)
    raise wrong or Missing(copies[-1].name)
