"""The files of one release, each read once and strictly, and what follows from them for several claims.

A file is plain, of bounded size, and never reached through a link or a pipe; what is hashed are the bytes that were
parsed. What stands here is worked out when a claim first asks, and raises Broken where that fails: nothing is shown
about files that do not hold together.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from funnel.audit.kernel import channel
from funnel.audit.kernel import records as arrays
from funnel.audit.kernel.verdict import NEEDS_PRIVATE, Broken
from funnel.format import cells, counts, draws, evidence, journal, known, manifest, protocol, released, robust
from funnel.format.canonical import FormatError
from funnel.format.journal import ReleaseEntry
from funnel.format.manifest import FileEntry
from funnel.format.schema import read
from funnel.format.solution import PROOF

T = TypeVar("T")

MOST_BYTES = 1 << 30
"""Of a file that is read as a whole: the counts of two million cells and the draws of two such protocols."""


def plain(path: Path) -> BufferedReader:
    """A plain file, opened without following a link or waiting for a pipe."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    except OSError as error:
        raise Broken(path.name, "the file cannot be read", "a readable file", error.strerror) from None
    if not stat.S_ISREG(mode := os.fstat(file.fileno()).st_mode):
        file.close()
        raise Broken(path.name, "this is not a plain file", "a file", stat.filemode(mode))
    return file


def content(path: Path) -> bytes:
    """The bytes of a plain file of at most MOST_BYTES."""
    with plain(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > MOST_BYTES:
            raise Broken(path.name, "the file is too large to be honest", f"at most {MOST_BYTES} bytes", size)
        return file.read(size + 1)


def holds_only(folder: Path, names: set[str]) -> None:
    """Nothing lies in a folder but the files named, some in folders inside, and none of them is missing."""
    try:
        found = {*_within(folder)}
    except OSError as error:
        raise Broken(folder.name, "the folder cannot be listed", "a folder", error.strerror) from None
    if wrong := names ^ found:
        raise Broken(min(wrong), "the folder does not hold just what is listed", sorted(names), sorted(found))


def _within(folder: Path) -> Iterator[str]:
    """By their paths: files and links of a folder and of those inside; of an empty one `name/`."""
    for one in os.scandir(folder):
        inside = one.is_dir(follow_symlinks=False)
        yield from (f"{one.name}/{name}" for name in [*_within(Path(one))] or [""]) if inside else [one.name]


def parsed(record: type[T], name: str, raw: bytes) -> T:
    """A record from canonical bytes."""
    try:
        return read(record, name, raw)
    except FormatError as error:
        what = f"{error.path or 'the content'} is not as its format says"
        raise Broken(name, what, error.expected, error.found) from None


@lru_cache(maxsize=1)
def ledger(raw: bytes, head: bytes) -> tuple[journal.Line, ...]:
    """Lines of the ledger, each naming the hash of the one before, as far as the head says; the same bytes, once.

    A last line without its end is what a crash left of something that never happened; one line beyond the head is what
    a crash kept from being confirmed.
    """
    lines, hashes = [], [journal.START]
    for number, text in enumerate(raw.split(b"\n")[:-1], start=1):
        line = parsed(journal.Line, f"{journal.NAME}:{number}", text + b"\n")
        if (line.sequence, line.previous) != (number, hashes[-1]):
            raise Broken(f"{journal.NAME}:{number}", "the chain is broken here", hashes[-1], line.previous)
        lines.append(line)
        hashes.append(hashlib.sha256(text + b"\n").hexdigest())
    told = parsed(journal.Head, journal.HEAD, head)
    if told.sequence >= len(hashes) or hashes[told.sequence] != told.sha256 or len(lines) > told.sequence + 1:
        raise Broken(journal.NAME, "the head confirms other lines", (told.sequence, told.sha256), hashes[-1])
    return tuple(lines)


class Once(Generic[T]):
    """An attribute of a release that is worked out once: all who ask get one value, or one failure."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work = work

    def __get__(self, opened: Opened, owner: object = None) -> T:
        """What the work finds, or how it fails."""
        return opened.once(self, lambda: self.work(opened))


def file_of(folder: Literal["release", "folder"], record: type[T], name: str) -> Once[T]:
    """The record in a file of the published folder (`release`), or of the release's private one."""
    return Once(lambda opened: parsed(record, name, opened.content(getattr(opened, folder) / name)))


class Opened:
    """A release in a folder, or where its `latest` points; `private` is the private folder, or the release's in it.

    `joint` are the counts that claims are about, `records` those of the records released: others only where an estimate
    is private. `staged`: the release is being written, and the ledger does not hold it yet. `blamed`: what failed, and
    the claim that asked for it first. Behind `=` and in functions the names below are the modules that are imported.
    """

    manifest = file_of("release", manifest.Manifest, manifest.NAME)
    protocol = file_of("release", protocol.ProtocolFile, protocol.NAME)
    released = file_of("release", released.ReleasedFile, released.NAME)
    cells = file_of("release", cells.CellsFile, cells.NAME)
    evidence = file_of("folder", evidence.EvidenceFile, evidence.NAME)
    counts = file_of("folder", counts.CountsFile, counts.NAME)
    draws = file_of("folder", draws.DrawsFile, draws.NAME)
    robust = file_of("folder", robust.RobustFile, robust.NAME)
    known_file = file_of("folder", known.KnownFile, known.NAME)

    partitioned = Once(lambda opened: opened.cells.blocks if cells.NAME in opened.manifest.files else ())
    blocks = Once(lambda opened: arrays.blocks(opened.protocol, opened.manifest))
    rows = Once(lambda opened: arrays.rows(opened.released, opened.blocks, opened.manifest))
    answers = Once(lambda opened: arrays.answers(opened.rows, opened.blocks))
    joint = Once(lambda opened: arrays.joint(opened.counts, opened.blocks, opened.manifest))
    records = Once(lambda opened: arrays.records(opened.counts, opened.joint, opened.manifest))
    drawn = Once(lambda opened: arrays.drawn(opened.draws, opened.blocks))
    knowledge = Once(lambda one: channel.known(one.known_file, one.joint, one.manifest, one.partitioned))

    def __init__(self, release: Path, private: Path | None = None, *, staged: bool = False) -> None:
        self.release, self.private, self.staged = release, private, staged
        self.blamed: dict[Exception, str] = {}
        self._found: dict[Hashable, tuple[Any, Exception | None]] = {}

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """What some work finds, done when it is first asked for. Raises what it raises, the same every time."""
        if key not in self._found:
            try:
                self._found[key] = work(), None
            except Exception as error:  # noqa: BLE001 - it is raised again, whatever it is
                self._found[key] = None, error
        found, failed = self._found[key]
        if failed:
            raise failed
        return found  # type: ignore[no-any-return]

    @Once
    def folder(self) -> Path:
        """The release's own folder of private files, in PRIVATE or that itself. Raises Broken where none was given."""
        if self.private is None:
            raise Broken(evidence.NAME, NEEDS_PRIVATE, "--private DIR", None)
        inside: Path = self.private / self.manifest.release
        of_all = inside.is_dir() or not (self.private / evidence.NAME).exists()  # where its evidence may be missing
        return inside if of_all else self.private

    @Once
    def channel(self) -> channel.Channel:
        """The channel released, at the counts that claims are about."""
        asked = self.manifest.parameters
        robust = self.robust if self.manifest.notion == "rldp" else None
        known = None if asked.knows is None else self.knowledge
        return channel.Channel(self.joint.dense(), self.blocks, asked, robust, self.joint.possible(), known)

    @Once
    def journal(self) -> tuple[journal.Line, ...]:
        """ledger.jsonl, an unbroken chain that reaches as far as its head says."""
        return ledger(*(self.content(self.folder.parent / name) for name in (journal.NAME, journal.HEAD)))

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
        return self.once(path, lambda: content(path))

    def entry(self, path: Path) -> FileEntry:
        """SHA-256 and size of those bytes; the table and a proof, which nothing here parses, are not kept for it."""
        if path.name != PROOF and path.suffix != f".{self.manifest.format_of_data}":
            raw = self.content(path)
            return FileEntry(hashlib.sha256(raw).hexdigest(), len(raw))
        with plain(path) as file:
            return FileEntry(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())

    def unchanged(self, folder: Path, stated: dict[str, FileEntry]) -> str:
        """Every file has the size and SHA-256 that are stated of it; in words. Raises Broken."""
        for name, one in sorted(stated.items()):
            if "/" in name and name not in self.manifest.tables:
                raise Broken(name, "this is a path, and not the name of a file", "a name", name)
            if (found := self.entry(folder / name)) != one:
                raise Broken(name, "this is not the file that is listed", one.sha256, found.sha256)
        return f"{len(stated)} files, {sum(one.bytes for one in stated.values())} bytes"
