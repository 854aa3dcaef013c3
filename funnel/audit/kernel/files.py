"""Reading what may have been damaged: plain files only, of bounded size, never through a link or a pipe.

From bytes to records, strictly, and to the lines of the ledger. Everything raises Broken.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from funnel.audit.kernel.verdict import Broken
from funnel.format import journal
from funnel.format.canonical import FormatError
from funnel.format.manifest import FileEntry
from funnel.format.schema import read

T = TypeVar("T")

MOST_BYTES = 1 << 30
"""Of a file that is read as a whole: the counts of two million cells and the draws of two such protocols."""


def content(path: Path) -> bytes:
    """The bytes of a plain file of at most MOST_BYTES."""
    with _opened(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > MOST_BYTES:
            raise Broken(path.name, "the file is too large to be honest", f"at most {MOST_BYTES} bytes", size)
        return file.read(size + 1)


def entry(path: Path) -> FileEntry:
    """SHA-256 and size of a plain file of any size."""
    with _opened(path) as file:
        return FileEntry(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())


def sha256(raw: bytes) -> str:
    """In hex."""
    return hashlib.sha256(raw).hexdigest()


def holds_only(folder: Path, names: set[str]) -> None:
    """Nothing lies in a folder but the files named, some in folders inside, and none of them is missing."""
    try:
        found = {*_within(folder)}
    except OSError as error:
        raise Broken(folder.name, "the folder cannot be listed", "a folder", error.strerror) from None
    if wrong := names ^ found:
        raise Broken(min(wrong), "the folder does not hold just what is listed", sorted(names), sorted(found))


def _within(folder: Path) -> Iterator[str]:
    """By their paths: files and links of a folder and of those inside; of empty ones `name/`."""
    for one in os.scandir(folder):
        inside = one.is_dir(follow_symlinks=False)
        yield from (f"{one.name}/{name}" for name in [*_within(Path(one))] or [""]) if inside else [one.name]


def _opened(path: Path) -> BufferedReader:
    """A plain file, opened without following a link or waiting for a pipe."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    except OSError as error:
        raise Broken(path.name, "the file cannot be read", "a readable file", error.strerror) from None
    if not stat.S_ISREG(mode := os.fstat(file.fileno()).st_mode):
        file.close()
        raise Broken(path.name, "this is not a plain file", "a file", stat.filemode(mode))
    return file


def parsed(record: type[T], name: str, raw: bytes) -> T:
    """A record from canonical bytes."""
    try:
        return read(record, name, raw)
    except FormatError as error:
        what = f"{error.path or 'the content'} is not as its format says"
        raise Broken(name, what, error.expected, error.found) from None


def ledger(raw: bytes, head: bytes) -> tuple[journal.Line, ...]:
    """Lines of the ledger, each naming the hash of the one before, as far as the head says.

    A last line without its end is what a crash left of something that never happened; one line beyond the head is what
    a crash kept from being confirmed.
    """
    lines, hashes = [], [journal.START]
    for number, text in enumerate(raw.split(b"\n")[:-1], start=1):
        line = parsed(journal.Line, f"{journal.NAME}:{number}", text + b"\n")
        if (line.sequence, line.previous) != (number, hashes[-1]):
            raise Broken(f"{journal.NAME}:{number}", "the chain is broken here", hashes[-1], line.previous)
        lines.append(line)
        hashes.append(sha256(text + b"\n"))
    told = parsed(journal.Head, journal.HEAD, head)
    if told.sequence >= len(hashes) or hashes[told.sequence] != told.sha256 or len(lines) > told.sequence + 1:
        raise Broken(journal.NAME, "the head confirms other lines", told.sequence, len(lines))
    return tuple(lines)
