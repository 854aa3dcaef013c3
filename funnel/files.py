"""Writing so that a power cut or an interrupt leaves the old or the new; and what to do when the disk refuses."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from funnel.errors import ReleaseError
from funnel.failed import GONE, REACH

_RIGHT = "Give this user the right to write here, or name another folder {place}."
_FILE = "A part of this path is a file: name another folder {place}."
_ADVICE = {
    errno.ENOSPC: "Free space on this disk, then run again.",
    errno.EDQUOT: "Your quota on this disk is used up: free space, then run again.",
    errno.EFBIG: "The limit on file sizes is too low here: raise it (see `ulimit -f`), then run again.",
    errno.EROFS: "This disk is mounted read-only: name another folder {place}.",
    errno.EACCES: _RIGHT,
    errno.EPERM: _RIGHT,
    errno.ENOTDIR: _FILE,
    errno.EEXIST: _FILE,
    errno.ENAMETOOLONG: "Name a shorter folder {place}.",
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a write to an open file fails with, without naming the file."""
_HEEDED = (signal.SIGINT, signal.SIGTERM)
_PLACE = "under `release` in the policy"
_ELSE = "Check the folder and the disk, then run again."
_CHOOSE = "Choose a folder that exists and can be written to."


def write_error(error: OSError, folder: Path, place: str = _PLACE) -> ReleaseError:
    """The error of a folder that could not be written, with advice by cause; `place`: where folders are named."""
    reason = error.strerror or type(error).__name__
    gone = error.errno in GONE
    return ReleaseError(
        "disk-full" if error.errno in FULL else "unreachable" if gone else "release-write",
        f"it could not be written: {reason}",
        where=str(folder),
        advice=REACH if gone else _ADVICE.get(error.errno or 0, _ELSE).format(place=place),
    )


@contextmanager
def writing(folder: Path, place: str = _PLACE) -> Iterator[None]:
    """Turn an OSError inside into a ReleaseError about `folder`, which is named at this place."""
    try:
        yield
    except OSError as error:
        raise write_error(error, folder, place) from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError inside, of what is done by a descriptor or by a name within a folder, is about this path."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes in hex. Raises ReleaseError."""
    with writing(path.parent), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Force a file, or the list of names in a folder, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Force a folder and all that it holds onto the disk, the contents first."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync(Path(parent, name))
        sync(Path(parent))


def make_open(folder: Path) -> None:
    """Make a folder that readers can enter, whatever the umask is, and those above it that are missing.

    What is there already keeps its mode: who may enter it was somebody's choice. Raises OSError.
    """
    if folder.is_dir():
        return
    make_open(folder.parent)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)


def replace_file(
    path: Path, content: bytes, *, aside: Path | None = None, mode: int = 0o600, owner: tuple[int, int] | None = None
) -> None:
    """Put a file where `path` is, durably: readers find the old content or the new. It is written `aside` first.

    It gets an `owner`, user and group, as far as this user may give it away.
    """
    aside = aside or path.with_name(f".{path.name}.new")
    aside.unlink(missing_ok=True)  # what a killed run left; or a link, which would have another file written
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if owner is not None:
            with suppress(PermissionError):
                os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    aside.replace(path)
    sync(path.parent)


class NotPlainError(OSError):
    """What lies there is no plain file."""


def read_plain(path: Path) -> bytes:
    """The bytes of a plain file; for a pipe, say, nobody waits. Raises OSError, NotPlainError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotPlainError(errno.EINVAL, "not a plain file", str(path))
        return file.read()


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however many calls it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@contextmanager
def creating(what: str, path: Path, advice: str = _CHOOSE) -> Iterator[None]:
    """Turn an OSError inside into the ReleaseError of a file that the caller named; a full disk keeps no part of it."""
    try:
        yield
    except OSError as error:
        full = error.errno in FULL
        if full and path.is_file():  # and no device
            path.unlink()
        said = f"the {what} cannot be written: {error.strerror}"
        advice = _ADVICE.get(error.errno or 0, advice) if full else advice
        raise ReleaseError("disk-full" if full else "release-write", said, where=str(path), advice=advice) from None


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet. Raises ReleaseError."""
    with (
        creating("file", path, "Choose another name, or remove the file first."),
        path.open("x", encoding="utf-8") as file,
    ):
        file.write(text)


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is inside is done whole; signals that came meanwhile are heard afterwards. Elsewhere than in the main thread
    none are heard anyway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = {one: signal.getsignal(one) for one in _HEEDED}
    for one in _HEEDED:
        signal.signal(one, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler if handler is not None else signal.SIG_DFL)
        if waiting:
            signal.raise_signal(waiting[0])
