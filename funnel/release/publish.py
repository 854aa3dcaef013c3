"""Publishing one release: everything is written aside, and appears at once or never."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import stat
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from funnel.errors import InternalError, ReleaseError
from funnel.release.durable import FULL, sync, sync_tree, write_all, write_error, writing
from funnel.release.kept import keep_protocol
from funnel.release.ledger import Ledger
from funnel.release.naming import RELEASE_ID as _ID

_STAGING = re.compile(rf"\.(?:staging|spill|latest)-({_ID})")


class Publisher:
    """One release on its way out; a context manager that holds the lock of PRIVATE while it is open.

    Write published files into `public`, private ones into `private`, temporary ones into `scratch`; then call
    `publish`. Leaving without it removes all three. Whenever the process is killed, TO shows the whole
    release or nothing of it, and the next run removes what was left aside.
    Raises ReleaseError (release-write, release-busy, release-path) and LedgerError.
    """

    def __init__(self, to: Path, private: Path, release_id: str) -> None:
        if not re.fullmatch(_ID, release_id):
            raise InternalError(f"{release_id!r} is not a release id")
        self.to, self.private_root, self.release_id = to, private, release_id
        self.public = to / f".staging-{release_id}"
        self.private = private / f".staging-{release_id}"
        self.scratch = private / f".spill-{release_id}"
        self.target = to / release_id
        self.entry: Mapping[str, Any] | None = None
        self._latest = to / f".latest-{release_id}"
        self._open = ExitStack()

    def __enter__(self) -> Self:
        _check_apart(self.to, self.private_root)
        with ExitStack() as stack:
            with writing(self.private_root):
                _make_private(self.private_root)
                stack.enter_context(_Lock(self.private_root / ".lock"))
            Ledger(self.private_root).entries()
            with writing(self.to):
                self.to.mkdir(parents=True, exist_ok=True)
            _check_latest(self.to / "latest")
            self._remove_leftovers()
            stack.callback(self._remove_own)
            self._stage()
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        if isinstance(error, OSError):
            folder = self._written_by(error)
            if folder is not None:
                raise write_error(error, folder) from error

    def publish(self, entry: Mapping[str, Any] | None = None) -> Path:
        """Make the release visible, with `entry` (or what was set as `self.entry`) in the ledger; its folder.

        Order: contents onto the disk, a copy of the protocol for good, ledger, private folder, published folder,
        `latest`. So whatever can be seen has its evidence, whatever has evidence is in the ledger, and whatever is in
        the ledger has its protocol; an entry without the others is one that a crash or a failing disk kept from
        becoming visible, and errs on the safe side.
        """
        entry = self.entry if entry is None else entry
        if entry is None:
            raise InternalError("a release was to be published without a ledger entry")
        self._seal()
        protocol = self.public / "protocol.json"
        if protocol.is_file():
            keep_protocol(self.private_root, protocol)
        Ledger(self.private_root).append(entry)
        with writing(self.private_root):
            self.private.rename(self.private_root / self.release_id)
            sync(self.private_root)
        with writing(self.to):
            self.public.rename(self.target)
            sync(self.to)
            if self._newest():
                self._latest.replace(self.to / "latest")
                sync(self.to)
        return self.target

    def _newest(self) -> bool:
        """False where a release that began later, under another ledger, was quicker: `latest` never goes back."""
        latest = self.to / "latest"
        name = latest.readlink().name if latest.is_symlink() else ""
        return not (re.fullmatch(_ID, name) and name > self.release_id and (self.to / name).is_dir())

    def _stage(self) -> None:
        """Make the folders to write into; a disk that refuses folders or links does so before any draw."""
        # The private folder comes first: it is what tells the next run that the other leftovers are its own.
        with writing(self.private_root):
            self.private.mkdir(mode=0o700)
            self.scratch.mkdir(mode=0o700)
        with writing(self.to):
            self.public.mkdir()
            # Nobody reads a release that has not passed its audit.
            self._public_mode = stat.S_IMODE(self.public.stat().st_mode)
            self.public.chmod(self._public_mode & ~0o077)
            self._latest.symlink_to(self.release_id)

    def _seal(self) -> None:
        """Close private files to all but their owner, whatever the umask was; then all onto the disk."""
        with writing(self.private_root):
            for parent, _, files in os.walk(self.private):
                Path(parent).chmod(0o700)
                for name in files:
                    Path(parent, name).chmod(0o600)
            sync_tree(self.private)
        with writing(self.to):
            self.public.chmod(self._public_mode)
            sync_tree(self.public)

    def _remove_leftovers(self) -> None:
        """Remove what killed runs left aside: names of our pattern, of releases that PRIVATE knows.

        Another policy may publish into the same folder under a lock of its own; its work is not touched.
        """
        with writing(self.private_root):
            aside, known = _leftovers(self.private_root), _releases(self.private_root)
        with writing(self.to):
            for path, release_id in _leftovers(self.to):
                if release_id in known and not self._points_on(path, release_id):
                    _remove(path)
        with writing(self.private_root):
            for path, _ in aside:
                _remove(path)

    def _points_on(self, link: Path, release_id: str) -> bool:
        """Whether `link` is all that a killed run had left to do, its release being visible; then do it."""
        latest = self.to / "latest"
        newer = not latest.is_symlink() or latest.readlink().name < release_id
        if not (link.is_symlink() and (self.to / release_id).is_dir() and newer):
            return False
        link.replace(latest)
        return True

    def _remove_own(self) -> None:
        """Remove whatever of this run is still aside; what cannot be removed now is left to the next run."""
        shutil.rmtree(self.public, ignore_errors=True)
        with suppress(OSError):
            self._latest.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        # Last, because it tells the next run whose the others are.
        shutil.rmtree(self.private, ignore_errors=True)

    def _written_by(self, error: OSError) -> Path | None:
        """The folder of this release that an OSError is about, None when it is about something else."""
        if not isinstance(error.filename, str):
            return self.to if error.errno in FULL else None
        name = Path(error.filename)
        folders = {self.public: self.to, self.private: self.private_root, self.scratch: self.private_root}
        return next((root for folder, root in folders.items() if name.is_relative_to(folder)), None)


class _Lock:
    """An exclusive lock on a file that says who holds it; the system drops it when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._sign()
        except BlockingIOError:
            owner = self._owner()
            os.close(self._descriptor)
            raise ReleaseError(
                "release-busy",
                f"another run is publishing: {owner}",
                where=str(self._path.parent),
                advice="Wait for it to end, or stop it; then run again.",
            ) from None
        except OSError:
            os.close(self._descriptor)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        except (ValueError, KeyError, TypeError):
            return "it has only just begun"


def _check_apart(to: Path, private: Path) -> None:
    """The private folder must not be the published one, nor lie inside it."""
    with writing(to):
        published, hidden = to.resolve(), private.resolve()
    if hidden.is_relative_to(published):
        raise ReleaseError(
            "release-path",
            "the private folder lies inside the published one",
            where=str(private),
            advice="Name a folder under `release.private` that the readers of the release cannot reach.",
        )


def _check_latest(latest: Path) -> None:
    if os.path.lexists(latest) and not latest.is_symlink():
        raise ReleaseError(
            "release-path",
            "`latest` is taken by something that is not a link to a release",
            where=str(latest),
            advice="Move it away, or name another folder under `release.to`.",
        )


def _make_private(folder: Path) -> None:
    """Make a folder for its owner only; one that exists keeps its mode, since all that goes in is closed."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)


def _leftovers(folder: Path) -> list[tuple[Path, str]]:
    """Paths of our staging pattern in a folder, with their release ids."""
    found = ((path, _STAGING.fullmatch(path.name)) for path in sorted(folder.iterdir()))
    return [(path, match[1]) for path, match in found if match]


def _releases(private: Path) -> set[str]:
    """Release ids that a private folder knows, finished or not."""
    finished = {path.name for path in private.iterdir() if re.fullmatch(_ID, path.name)}
    return finished | {release_id for _, release_id in _leftovers(private)}


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    else:
        shutil.rmtree(path)
