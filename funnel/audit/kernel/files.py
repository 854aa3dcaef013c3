"""Reading what may have been damaged: plain files only, of bounded size, never through a link or a pipe."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path

from funnel.audit.kernel.verdict import Broken
from funnel.format.manifest import FileEntry

MOST_BYTES = 1 << 30
"""Of a file that is read as a whole: the counts of two million cells and the draws of two such protocols."""


def content(path: Path) -> bytes:
    """The bytes of a plain file of at most MOST_BYTES. Raises Broken."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise Broken(path.name, "the file is too large to be honest", f"at most {MOST_BYTES} bytes", size)
        return file.read(size + 1)


def entry(path: Path) -> FileEntry:
    """SHA-256 and size of a plain file. Raises Broken."""
    with _opened(path) as file:
        return FileEntry(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())


def sha256(raw: bytes) -> str:
    """In hex."""
    return hashlib.sha256(raw).hexdigest()


def holds_only(folder: Path, names: set[str]) -> None:
    """Nothing lies in a folder but the files named, and none of them is missing. Raises Broken."""
    try:
        found = {one.name for one in folder.iterdir()}
    except OSError as error:
        raise Broken(folder.name, "the folder cannot be listed", "a folder", error.strerror) from None
    if wrong := names ^ found:
        raise Broken(min(wrong), "the folder does not hold just what is listed", sorted(names), sorted(found))


def _opened(path: Path) -> io.BufferedReader:
    """A plain file, opened without following a link or waiting for a pipe. Raises Broken."""
    try:
        file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
    except OSError as error:
        raise Broken(path.name, "the file cannot be read", "a readable file", error.strerror) from None
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        file.close()
        raise Broken(path.name, "this is not a plain file", "a file", stat.filemode(mode))
    return io.BufferedReader(file)
