"""Writing so that a power cut leaves the old or the new, and saying what to do when the disk refuses."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from funnel.errors import ReleaseError

_RIGHT = "Give this user the right to write here, or name another folder under `release` in the policy."
_ADVICE = {
    errno.ENOSPC: "Free space on this disk, then run again.",
    errno.EDQUOT: "Your quota on this disk is used up: free space, then run again.",
    errno.EFBIG: "The limit on file sizes is too low here: raise it (see `ulimit -f`), then run again.",
    errno.EROFS: "This disk is mounted read-only: name another folder under `release` in the policy.",
    errno.EACCES: _RIGHT,
    errno.EPERM: _RIGHT,
    errno.ENOTDIR: "A part of this path is a file: name another folder under `release` in the policy.",
    errno.ENAMETOOLONG: "Name a shorter folder under `release` in the policy.",
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a write to an open file fails with, without naming the file."""
_ELSE = "Check the folder and the disk, then run again."


def write_error(error: OSError, folder: Path) -> ReleaseError:
    """The error of a folder that could not be written, with advice by cause."""
    reason = error.strerror or type(error).__name__
    return ReleaseError(
        "release-write",
        f"the release could not be written: {reason}",
        where=str(folder),
        advice=_ADVICE.get(error.errno or 0, _ELSE),
    )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError inside into a ReleaseError about `folder`."""
    try:
        yield
    except OSError as error:
        raise write_error(error, folder) from error


def to_json(content: Any) -> str:
    """The one JSON form of all files of a release: that of json.dumps with indent=1."""
    return _json(content, "\n") + "\n"


def _json(value: Any, line: str) -> str:
    """One value; `line` begins a line at its depth. The numbers of a protocol are many, and json takes its time."""
    deeper = line + " "
    if isinstance(value, dict) and set(map(type, value)) == {str}:
        items = [f"{_slowly(key, line)}: {_json(inner, deeper)}" for key, inner in value.items()]
        return "{" + deeper + f",{deeper}".join(items) + line + "}"
    if isinstance(value, list | tuple) and value:
        whole = set(map(type, value)) == {int}
        items = list(map(str, value)) if whole else [_json(inner, deeper) for inner in value]
        return "[" + deeper + f",{deeper}".join(items) + line + "]"
    return _slowly(value, line)


def _slowly(value: Any, line: str) -> str:
    """The same by json itself: text holds no line breaks there."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False).replace("\n", line)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file. Raises ReleaseError."""
    with writing(path.parent):
        path.write_text(to_json(content), encoding="utf-8")


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


def replace_file(path: Path, content: bytes) -> None:
    """Put a private file (mode 0600) where `path` is, durably: readers find the old content or the new."""
    aside = path.with_name(f".{path.name}.new")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    aside.replace(path)
    sync(path.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however many calls it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
