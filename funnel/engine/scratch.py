"""A private folder to spill into; what killed processes left of theirs is removed by the next."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from funnel.errors import ReleaseError

SORT_MEMORY = "1GB"
"""Of a sort or a join outside the engine's own connection; what is more goes to disk."""
_PREFIX = "funnel-spill-"


class Scratch:
    """A folder of this process that only this user can read. Raises ReleaseError (disk-full)."""

    def __init__(self) -> None:
        try:
            _remove_abandoned(Path(tempfile.gettempdir()))
            self._folder, self._held = _held()
        except OSError as error:
            raise ReleaseError(
                "disk-full",
                f"no temporary folder can be made: {error.strerror}",
                where=os.environ.get("TMPDIR", "/tmp"),  # noqa: S108
                advice="Free disk space, or set TMPDIR to a folder with room.",
            ) from None

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self._folder.name)

    def remove(self) -> None:
        """Remove it with all that it holds."""
        self._folder.cleanup()
        os.close(self._held)


def _held() -> tuple[tempfile.TemporaryDirectory[str], int]:
    """A new folder, and a descriptor with a lock on it, which the system drops however the process ends."""
    while True:
        folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if Path(folder.name).is_dir():
                return folder, descriptor
            os.close(descriptor)
        # Another process took it for abandoned before the lock was there.
        folder.cleanup()


def _remove_abandoned(parent: Path) -> None:
    """Remove folders of ours that no process holds any more: they may hold rows of people's data."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.geteuid():
                    shutil.rmtree(folder)
            finally:
                os.close(descriptor)
