"""Taking the data of old releases away: what they told stays told, so evidence and ledger stay, and the audit knows.

A release is marked in the private folder, durably, before anything of it is removed: one that is half gone was meant to
go, and the next pruning ends it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funnel.errors import ReleaseError
from funnel.files import naming, replace_file, sha256_file, sync, writing
from funnel.format import manifest, schema
from funnel.format.journal import ReleaseEntry
from funnel.format.pruned import FOLDER, STAYS, PrunedFile, is_whole, lacks
from funnel.ledger.journal import Journal
from funnel.release.holding import alone
from funnel.release.recover import check_entered, check_visible, releases


@dataclass(frozen=True)
class Pruned:
    """Releases whose data were taken away, or would be (`dry`), oldest first, with the bytes of what goes; and how
    many stay whole."""

    to: Path
    releases: dict[str, int]
    kept: int
    dry: bool

    def text(self) -> str:
        """A line for each, and one for all."""
        word = "would be pruned" if self.dry else "pruned"
        lines = [f"{name}: {word}, {size:,} bytes" for name, size in self.releases.items()]
        return "\n".join([*lines, f"{len(self.releases)} {word}, {self.kept} kept, in {self.to}"])

    def as_dict(self) -> dict[str, Any]:
        """JSON form: to (path), dry_run, kept, pruned: name and bytes of each."""
        told = [{"release": name, "bytes": size} for name, size in self.releases.items()]
        return {"to": str(self.to), "dry_run": self.dry, "kept": self.kept, "pruned": told}


def prune(to: Path, private: Path, policy: str, keep: int, *, dry: bool = False) -> Pruned:
    """Take data and pages of a policy's releases away, but for the newest `keep` and what `latest` points at.

    A release that was moved, with a link left in its place, stays as it is. What an earlier pruning was killed over is
    ended, wherever a link leads; what was put back whole since is one of the whole ones. With `dry` nothing changes.
    Raises ReleaseError, LedgerError.
    """
    with nullcontext() if dry else alone(private):
        with writing(to):
            seen = releases(to)
        entries = Journal(private).releases()
        check_entered(private, entries)
        check_visible(to, policy, seen, entries)
        own = [one for one in entries if one.name == policy and (to / one.release).is_dir()]
        marked = [one for one in own if (private / FOLDER / one.release).exists()]
        half = [one for one in marked if not is_whole(to / one.release, private / FOLDER / one.release)]
        here = [one for one in own if one not in half and not (to / one.release).is_symlink()]
        whole = [one for one in here if not lacks(to / one.release, one.manifest_sha256)]
        latest = os.path.realpath(to / "latest")
        # What lost its data is none of those that stay whole; it goes where it is older than they are.
        older = here[: here.index(whole[-keep:][0])] if whole else []
        old = [one for one in older if os.path.realpath(to / one.release) != latest]
        left = [one for one in half if _goes(to / one.release)]
        _check(to, [*left, *old])
        sizes = {one.release: _size(to / one.release) for one in own if one in left or one in old}
        for one in () if dry else (*left, *old):
            _mark(private, one)
            _remove(to / one.release, one.manifest_sha256)
        return Pruned(to, sizes, sum(one not in old for one in whole), dry)


def _check(to: Path, old: Sequence[ReleaseEntry]) -> None:
    """What was changed shows that while it is there: it is not removed. Raises ReleaseError."""
    for one in old:
        path = to / one.release / manifest.NAME
        if not path.is_file() or sha256_file(path) != one.manifest_sha256:
            raise _changed(path)


def _changed(path: Path) -> ReleaseError:
    return ReleaseError(
        "release-unreadable",
        f"{manifest.NAME} is not the one that was entered in the ledger, and nothing was removed",
        where=str(path),
        advice="Run `funnel audit` on the folder of releases to see what was changed; put it back, or move the release "
        "away.",
    )


def _mark(private: Path, one: ReleaseEntry) -> None:
    """Say durably that a release is to go; what was said before stays."""
    path = private / FOLDER / one.release
    with writing(private):
        if path.exists():
            return
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700)
            sync(private)
        written = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        told = PrunedFile("funnel-pruned/1", one.release, one.manifest_sha256, written)
        replace_file(path, schema.write(told))


def _remove(folder: Path, manifest_sha256: str) -> None:
    """Remove what goes of the very folder whose manifest that is, whatever is put in its place meanwhile."""
    with writing(folder):
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.fdopen(os.open(manifest.NAME, os.O_RDONLY | os.O_CLOEXEC, dir_fd=inside), "rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != manifest_sha256:
                    raise _changed(folder / manifest.NAME)
            with os.scandir(inside) as found:
                goes = [(one.name, one.is_dir(follow_symlinks=False)) for one in found if one.name not in STAYS]
            for name, is_folder in goes:
                with naming(folder / name):
                    if is_folder:
                        shutil.rmtree(name, dir_fd=inside)
                    else:
                        os.unlink(name, dir_fd=inside)
            os.fsync(inside)
        finally:
            os.close(inside)


def _goes(folder: Path) -> list[Path]:
    """What is not to stay of a release."""
    with writing(folder):
        return sorted(path for path in folder.iterdir() if path.name not in STAYS)


def _size(folder: Path) -> int:
    """Bytes of what goes."""
    with writing(folder):
        files = (file for path in _goes(folder) for file in (path, *path.rglob("*")))
        return sum(file.lstat().st_size for file in files if not file.is_dir())
