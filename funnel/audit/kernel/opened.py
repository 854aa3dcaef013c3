"""The files of one release, each read once and strictly, and what follows from them for several claims.

What stands here is worked out when a claim first asks, and raises Broken where that fails: nothing is shown about
files that do not hold together. What is hashed are the bytes that were parsed. The table and the boxes of a proof may
be too large to be kept: nothing here parses them, and only their hash is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

from funnel.audit.kernel import files
from funnel.audit.kernel import known as knowledge
from funnel.audit.kernel import records as arrays
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.verdict import NEEDS_PRIVATE, Broken
from funnel.format import cells, counts, draws, evidence, journal, known, manifest, protocol, released, robust
from funnel.format.journal import ReleaseEntry
from funnel.format.manifest import FileEntry
from funnel.format.solution import PROOF

T = TypeVar("T")


class Once(Generic[T]):
    """An attribute of a release that is worked out once: all who ask get one value, or one failure."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work = work

    def __get__(self, opened: Opened, owner: object = None) -> T:
        """What the work finds, or how it fails."""
        return opened.once(self, lambda: self.work(opened))


def published_file(record: type[T], name: str) -> Once[T]:
    """The record in a file of the published folder."""
    return Once(lambda opened: files.parsed(record, name, opened.content(opened.release / name)))


def private_file(record: type[T], name: str) -> Once[T]:
    """The record in a file of the private folder."""
    return Once(lambda opened: files.parsed(record, name, opened.content(opened.folder / name)))


class Opened:
    """A release in a folder, or where its `latest` points; `private` is the private folder, or the release's in it.

    `staged`: the release is being written, and the ledger does not hold it yet. `blamed`: what failed, and the claim
    that asked for it first.
    """

    manifest = published_file(manifest.Manifest, manifest.NAME)
    protocol = published_file(protocol.ProtocolFile, protocol.NAME)
    released = published_file(released.ReleasedFile, released.NAME)
    cells = published_file(cells.CellsFile, cells.NAME)
    evidence = private_file(evidence.EvidenceFile, evidence.NAME)
    counts = private_file(counts.CountsFile, counts.NAME)
    draws = private_file(draws.DrawsFile, draws.NAME)
    robust = private_file(robust.RobustFile, robust.NAME)
    known_file = private_file(known.KnownFile, known.NAME)

    partitioned = Once(lambda opened: opened.cells.blocks if cells.NAME in opened.manifest.files else ())
    blocks = Once(lambda opened: arrays.blocks(opened.protocol, opened.manifest))
    rows = Once(lambda opened: arrays.rows(opened.released, opened.blocks, opened.manifest))
    answers = Once(lambda opened: arrays.answers(opened.rows, opened.blocks))
    joint = Once(lambda opened: arrays.joint(opened.counts, opened.blocks, opened.manifest))
    records = Once(lambda opened: arrays.records(opened.counts, opened.joint, opened.manifest))
    drawn = Once(lambda opened: arrays.drawn(opened.draws, opened.blocks))
    knowledge = Once(lambda one: knowledge.known(one.known_file, one.joint, one.manifest, one.partitioned))

    def __init__(self, release: Path, private: Path | None = None, *, staged: bool = False) -> None:
        inside = not (release / manifest.NAME).exists() and (release / "latest").exists()
        self.release = (release / "latest").resolve() if inside else release
        self.private, self.staged = private, staged
        self.blamed: dict[Exception, str] = {}
        self._found: dict[Hashable, tuple[Any, Exception | None]] = {}

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """What some work finds, done when it is first asked for. Raises what it raises, the same every time."""
        if key not in self._found:
            try:
                self._found[key] = work(), None
            except Exception as error:  # noqa: BLE001 - it is raised again, whatever it is
                self._found[key] = None, error
        value, failed = self._found[key]
        if failed:
            raise failed
        found: T = value
        return found

    @Once
    def folder(self) -> Path:
        """The release's own folder of private files. Raises Broken where there is none to look at."""
        if self.private is None:
            raise Broken(evidence.NAME, NEEDS_PRIVATE, "--private DIR", None)
        inside: Path = self.private / self.manifest.release
        return inside if inside.is_dir() else self.private

    @Once
    def channel(self) -> Channel:
        """The channel released, at the counts that claims are about."""
        asked = self.manifest.parameters
        robust = self.robust if self.manifest.notion == "rldp" else None
        known = None if asked.knows is None else self.knowledge
        return Channel(self.joint.dense(), self.blocks, asked, robust, self.joint.possible(), known)

    @Once
    def journal(self) -> tuple[journal.Line, ...]:
        """ledger.jsonl, an unbroken chain that reaches as far as its head says."""
        return files.ledger(*(self.content(self.folder.parent / name) for name in (journal.NAME, journal.HEAD)))

    @Once
    def entries(self) -> list[ReleaseEntry]:
        """All releases in the ledger up to this one, which comes last and must be there once."""
        releases = [line.entry for line in self.journal if isinstance(line.entry, ReleaseEntry)]
        own = [place for place, one in enumerate(releases) if one.release == self.manifest.release]
        if len(own) != 1:
            raise Broken(journal.NAME, "the release is not entered exactly once", 1, len(own))
        return releases[: own[0] + 1]

    def content(self, path: Path) -> bytes:
        """The bytes of a file, read when they are first asked for. Raises Broken."""
        return self.once(path, lambda: files.content(path))

    def entry(self, path: Path) -> FileEntry:
        """SHA-256 and size of those bytes. Raises Broken."""
        if path.name == PROOF or path.suffix == f".{self.manifest.format_of_data}":
            return self.once((path, "hash"), lambda: files.entry(path))
        raw = self.content(path)
        return FileEntry(files.sha256(raw), len(raw))

    def unchanged(self, folder: Path, stated: dict[str, FileEntry]) -> str:
        """Every file has the size and SHA-256 that are stated of it; in words. Raises Broken."""
        for name, one in sorted(stated.items()):
            if "/" in name and name not in self.manifest.tables:
                raise Broken(name, "this is a path, and not the name of a file", "a name", name)
            if (found := self.entry(folder / name)) != one:
                raise Broken(name, "this is not the file that is listed", one.sha256, found.sha256)
        return f"{len(stated)} files, {sum(one.bytes for one in stated.values())} bytes"
