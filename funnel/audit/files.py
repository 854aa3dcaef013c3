"""Reading what may have been damaged: plain files only, of bounded size, never through a link or a pipe."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path

from funnel.audit.findings import broken
from funnel.errors import AuditFailure, ReleaseError

MAX_JSON = 1 << 28
"""Bytes: about ten times the protocol of a thousand inputs and outputs."""

MAX_EVIDENCE = 1 << 30
"""Bytes: the counts of two million cells and the draws of two such protocols."""

KNOWN = (
    "release.json",
    "protocol.json",
    "data.parquet",
    "data.csv",
    "report.html",
    "report.json",
    "release.sig",
)


def release_folder(given: Path) -> Path:
    """The folder of one release: `given` itself, or what its `latest` points at.

    Raises ReleaseError (`release-unreadable`) when there is nothing there that could be a release.
    """
    for folder in (given, given / "latest"):
        if any(os.path.lexists(folder / name) for name in KNOWN):
            return folder.resolve()
    nothing = (
        "the release folder does not exist" if not given.exists() else "there is no release in this folder"
    )
    raise ReleaseError(
        "release-unreadable",
        nothing,
        where=str(given),
        advice="Name a release's own folder, or the folder of releases that holds `latest`.",
    )


def private_folder(given: Path, release: str) -> Path:
    """PRIVATE/<release>, whether `given` is PRIVATE or that folder itself.

    Raises ReleaseError (`release-unreadable`) when `given` is no folder.
    """
    if not given.is_dir():
        raise ReleaseError(
            "release-unreadable",
            "the folder of private evidence does not exist",
            where=str(given),
            advice="Give the policy's `release.private` folder, or the release's folder inside it.",
        )
    inside = given / release
    itself = given.name == release or os.path.lexists(given / "evidence.json")
    return given if itself and not inside.is_dir() else inside


def names(folder: Path) -> list[str]:
    """What a folder holds, sorted. Raises ReleaseError when it cannot be listed."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise ReleaseError(
            "release-unreadable",
            f"the folder cannot be listed: {error.strerror}",
            where=str(folder),
            advice="Check that it is a folder and that you may read it.",
        ) from error


def content(path: Path, limit: int = MAX_JSON) -> bytes:
    """The bytes of a plain file of at most `limit` bytes. Raises AuditFailure."""
    size = plain_size(path)
    if size > limit:
        raise broken(
            path.name, "the file is too large to be honest", expected=f"at most {limit} bytes", found=size
        )
    try:
        with _opened(path) as file:
            return file.read(size)
    except OSError as error:
        raise _unreadable(path, error) from error


def digest(path: Path) -> str:
    """SHA-256 of a plain file, in hex. Raises AuditFailure."""
    plain_size(path)
    try:
        with _opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def plain_size(path: Path) -> int:
    """Size in bytes of a plain file. Raises AuditFailure where there is none."""
    try:
        status = path.lstat()
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise broken(
            path.name, "this is not a plain file", expected="a file", found=stat.filemode(status.st_mode)
        )
    return status.st_size


def _opened(path: Path) -> io.BufferedReader:
    """Opened without following a link or waiting for a pipe, should one have taken the file's place."""
    return io.BufferedReader(io.FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)))


def _unreadable(path: Path, error: OSError) -> AuditFailure:
    return broken(path.name, "the file cannot be read", expected="a readable file", found=error.strerror)
