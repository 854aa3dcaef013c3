"""Publishing one release: everything is written aside, and appears at once or never."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from funnel.errors import FunnelError, InternalError, ReleaseError
from funnel.files import FULL, make_open, naming, sync, sync_tree, undisturbed, write_error, writing
from funnel.format import cells, manifest, protocol
from funnel.format.fields import RELEASE_ID as _ID
from funnel.format.journal import Line, ReleaseEntry
from funnel.ledger.archive import keep
from funnel.ledger.journal import Journal
from funnel.release.feed import Feed
from funnel.release.holding import alone, busy
from funnel.release.recover import Leftovers, check_entered, mark_seen, put_away, staged_for


class Publisher:
    """One release on its way out; a context manager that holds the lock of PRIVATE while it is open.

    Write published files into `public`, private ones into `private`, temporary ones into `scratch`; then call
    `publish`. Leaving without it removes all three. Whenever the process is killed, TO shows the whole
    release or nothing of it, and the next run removes what was left aside.
    Raises ReleaseError (release-write, release-busy, release-path) and LedgerError.
    """

    def __init__(self, to: Path, private: Path, release_id: str, feed: Feed | None = None) -> None:
        if not re.fullmatch(_ID, release_id):
            raise InternalError(f"{release_id!r} is not a release id")
        self.to, self.private_root, self.release_id = to, private, release_id
        self.public = to / f".staging-{release_id}"
        self.private = private / f".staging-{release_id}"
        self.scratch = private / f".spill-{release_id}"
        self._place = private / staged_for(release_id)
        self.target = to / release_id
        self.told: list[str] = []
        """What to tell of runs that were cut off, whose leftovers were removed."""
        self._seen = False  # by readers, though the run failed: then `latest` is left to the next one
        self._latest, self._aside = to / f".latest-{release_id}", to / f".releases-{release_id}"
        self._feed = feed
        self._made = 0, 0
        self._open = ExitStack()

    def __enter__(self) -> Self:
        check_hidden(self.to, self.private_root)
        with ExitStack() as stack:
            stack.enter_context(alone(self.private_root))
            entries = Journal(self.private_root).releases()
            check_entered(self.private_root, entries)
            if entries and entries[-1].release[:16] >= self.release_id[:16]:
                # It was named before it held the lock, and names have to stand in the order of the ledger.
                raise busy(self.private_root, f"release {entries[-1].release} was made while this run began")
            with writing(self.to):
                make_open(self.to)
            _check_latest(self.to / "latest")
            self.told = [*_others_may(self.to), *Leftovers(self.to, self.private_root, entries).remove()]
            stack.callback(self._remove_own)
            self._stage()
            if self._feed is not None:
                with writing(self.to):
                    self._feed.end(self._aside)
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

    def publish(self, entry: ReleaseEntry | Line) -> Path:
        """Make the release visible, with its entry in the ledger; returns its folder.

        Order: contents onto the disk, copies of protocol, cells and manifest for good, ledger, private folder,
        published folder, `latest`, releases.json. So whatever can be seen has its evidence, whatever has that is in the
        ledger, and whatever is in the ledger has its protocol; an entry without the others is one that a crash or a
        failing disk kept from becoming visible, and errs on the safe side. An interrupt waits from the entry on.
        """
        self._seal()
        for name in (protocol.NAME, cells.NAME, manifest.NAME):
            if (self.public / name).is_file():
                keep(self.private_root, self.public / name)
        with undisturbed():
            return self._show(entry)

    def _show(self, entry: ReleaseEntry | Line) -> Path:
        """What is done whole, from the entry in the ledger to `latest`."""
        Journal(self.private_root).append(entry)
        with writing(self.private_root):
            self.private.rename(self.private_root / self.release_id)
            sync(self.private_root)
        with writing(self.to):
            self.public.rename(self.target)
        try:
            sync(self.to)
            with suppress(OSError):  # else the next run does so
                mark_seen(self.private_root / self.release_id)
            if self._newest():
                self._latest.replace(self.to / "latest")
                sync(self.to)
            if self._feed is not None:
                self._feed.write(self._aside)
        except OSError as error:
            self._seen = True
            raise self._unconfirmed(error) from error
        return self.target

    def _unconfirmed(self, error: OSError) -> ReleaseError:
        """The error of a disk that fails, or of what this user may not replace, when the release is visible already."""
        reason, refused = error.strerror or type(error).__name__, isinstance(error, PermissionError)
        what = "not all that follows may be written by this user" if refused else "the disk did not confirm it"
        left = "`latest` may not point at it, releases.json not list it"
        advice = (
            f"{left}. Let this user replace both (in a folder with the sticky bit only their owner may)"
            if refused
            else f"{left}, and a power cut may still take it away. Check the disk"
        )
        return ReleaseError(
            "release-write",
            f"release {self.release_id} is published, but {what}: {reason}",
            where=str(self.to),
            advice=f"It is whole, audited, and in the ledger; {advice}; the next run moves `latest` on, and lists it.",
            release=str(self.target.resolve()),
        )

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
            # As seen from there, for both may be moved.
            self._place.symlink_to(os.path.relpath(self.to.resolve(), self.private_root.resolve()))
        with writing(self.to):
            self.public.mkdir(mode=0o700)  # nobody reads a release that has not passed its audit
            made = os.lstat(self.public)
            self._made = made.st_dev, made.st_ino
            self._latest.symlink_to(self.release_id)

    def _seal(self) -> None:
        """Close private files to all but their owner, open published ones, whatever the umask; all onto the disk."""
        for folder, root, folders, files in (
            (self.private, self.private_root, 0o700, 0o600), (self.public, self.to, 0o755, 0o644)
        ):  # fmt: skip
            with writing(root):
                for parent, _, names, inside in os.fwalk(folder):
                    with naming(Path(parent)):
                        os.fchmod(inside, folders)
                        for name in names:
                            _chmod(name, inside, files)
                sync_tree(folder)
        self._check_own()

    def _check_own(self) -> None:
        """What was staged is still there: whoever else may write into TO can exchange it. Raises ReleaseError."""
        with writing(self.to):
            there = os.lstat(self.public)
        if (there.st_dev, there.st_ino) != self._made:
            raise ReleaseError(
                "release-path",
                "what was staged here was exchanged for something else while the release was made",
                where=str(self.public),
                advice="Find out who else may write into `release.to`, or a folder above it, and let nobody.",
            )

    def _remove_own(self) -> None:
        """Remove whatever of this run is still aside; what cannot be removed now is left to the next run."""
        if self.public.is_dir() and (self.private_root / self.release_id).is_dir():
            self._put_away()
        shutil.rmtree(self.public, ignore_errors=True)
        with suppress(OSError):
            self._aside.unlink(missing_ok=True)
        if not self._seen:
            with suppress(OSError):
                self._latest.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        # Last, because it tells the next run whose the others are.
        if self.private.is_dir():
            self._put_away()
        if not self.public.is_dir():
            with suppress(OSError):
                self._place.unlink(missing_ok=True)

    def _put_away(self) -> None:
        with suppress(FunnelError):
            entered = {one.release for one in Journal(self.private_root).releases()}
            put_away(self.private_root, self.release_id, entered=self.release_id in entered)

    def _written_by(self, error: OSError) -> Path | None:
        """The folder of this release that an OSError is about, None when it is about something else."""
        if not isinstance(error.filename, str):
            return self.to if error.errno in FULL else None
        name = Path(error.filename)
        folders = {self.public: self.to, self.private: self.private_root, self.scratch: self.private_root}
        return next((root for folder, root in folders.items() if name.is_relative_to(folder)), None)


def check_hidden(to: Path, private: Path) -> None:
    """The private folder must not be the published one, nor lie inside it. Raises ReleaseError (`release-path`)."""
    with writing(to):
        published, hidden = (Path(os.path.realpath(folder)) for folder in (to, private))  # a link may lead to itself
    if hidden.is_relative_to(published):
        raise ReleaseError(
            "release-path",
            "the private folder lies inside the published one",
            where=str(private),
            advice="Name a folder under `release.private` that the readers of the release cannot reach.",
        )


def _others_may(folder: Path) -> Iterator[str]:
    """What to tell of a folder that others than its owner may write into. Raises ReleaseError."""
    with writing(folder):
        mode = folder.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield (
            f"others than its owner may write into {folder}: whoever can is trusted as the operator is, for a run "
            "writes there by names (`chmod go-w`)"
        )


def _chmod(name: str, folder: int, mode: int) -> None:
    """Give a plain file in a folder, by its descriptor, a mode; what a link leads to keeps its own. Raises OSError."""
    if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.chmod(name, mode, dir_fd=folder)


def _check_latest(latest: Path) -> None:
    if os.path.lexists(latest) and not latest.is_symlink():
        raise ReleaseError(
            "release-path",
            "`latest` is taken by something that is not a link to a release",
            where=str(latest),
            advice="Move it away, or name another folder under `release.to`.",
        )
