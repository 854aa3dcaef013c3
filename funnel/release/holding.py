"""Holding a private folder: one run at a time, and what the others are told."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from funnel.errors import ReleaseError
from funnel.files import make_open, write_all, writing

_SPOILT = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EINVAL, errno.ESPIPE)
"""What opening or signing a lock fails with where it is a link, a folder, a socket or a pipe."""


@contextmanager
def alone(private: Path) -> Iterator[None]:
    """Hold the lock of PRIVATE, which is made if need be. Raises ReleaseError (release-write, release-busy)."""
    with ExitStack() as stack:
        with writing(private):
            _make_private(private)
            stack.enter_context(_Lock(private / ".lock"))
        yield


class _Lock:
    """An exclusive lock on a file that says who holds it; the system drops it when the process ends.

    So nothing has to be taken over: what the file says of an owner that has died, here or on another host, decides
    nothing, and the next run writes its own name over it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        try:
            self._open()
        except OSError as error:
            if error.errno in _SPOILT or (error.errno == errno.EACCES and self._path.exists()):
                raise _unusable(self._path, error) from error
            raise

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._sign()
        except BlockingIOError:
            owner = self._owner()
            os.close(self._descriptor)
            raise busy(self._path.parent, f"another command is at work in it: {owner}") from None
        except OSError:
            os.close(self._descriptor)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A name that stays in the file does no harm; an error here would hide what the run ended with.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def _sign(self) -> None:
        started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "started": started}
        os.ftruncate(self._descriptor, 0)
        write_all(self._descriptor, json.dumps(owner).encode())

    def _owner(self) -> str:
        try:
            owner = json.loads(os.read(self._descriptor, 4096))
            return f"process {owner['pid']} on {owner['host']}, since {owner['started']}"
        except (ValueError, KeyError, TypeError, RecursionError):
            return "it has only just begun"


def busy(private: Path, reason: str) -> ReleaseError:
    """The error of a run that another one came before."""
    return ReleaseError(
        "release-busy",
        reason,
        where=str(private),
        advice="Wait for it to end, or stop it; then run again.",
    )


def _unusable(path: Path, error: OSError) -> ReleaseError:
    return ReleaseError(
        "release-write",
        f"the lock of the private folder cannot be used: {error.strerror}",
        where=str(path),
        advice="It only names the command that is at work. Where none is, remove it; then run again.",
    )


def _make_private(folder: Path) -> None:
    """Make a folder for its owner only; one that exists keeps its mode, since all that goes in is closed.

    Those above it may be above the published one, too: others may enter them, and write into none, whatever the umask.
    """
    if not folder.is_dir():
        make_open(folder.parent)
        # Another run may be as far at the same moment; who is first is for the lock to say.
        folder.mkdir(mode=0o700, exist_ok=True)
