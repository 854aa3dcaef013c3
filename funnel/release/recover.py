"""What killed runs left aside, and how it is told from what others keep: by names, and by what the ledger knows."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence, Set
from pathlib import Path

from funnel.errors import LedgerError
from funnel.files import read_plain, sync, writing
from funnel.format import counts, evidence, people
from funnel.format.fields import RELEASE_ID as _ID
from funnel.format.journal import ReleaseEntry
from funnel.format.place import SEEN
from funnel.format.protocol import FOLDER
from funnel.ledger.archive import cells_of

_ASIDE = re.compile(rf"\.(?:staging|spill|latest|releases|to)-({_ID})")
COMPARED = frozenset({people.NAME, counts.NAME, evidence.NAME})
"""What later nights compare with, in a release that was entered: whom and which columns it drew for, by its hashes."""
_STAGED = ("staging", "latest", "releases")
"""What a run leaves in TO."""
_COPY = re.compile(r"\.?([0-9a-f]{64})\.json(?:\.new)?")


class Leftovers:
    """What lies aside in a published folder and its private one; the caller holds the lock, `entries` is the ledger.

    Another policy may publish into the same folder under a lock of its own; its work is not touched: what lies in TO
    is ours where our private folder or our ledger knows its release. A policy of the same private folder may publish
    elsewhere: what it left there waits for its next run, and the private folder goes on knowing of it until then.
    Raises ReleaseError where the disk refuses.
    """

    def __init__(self, to: Path, private: Path, entries: Sequence[ReleaseEntry]) -> None:
        self.to, self.private, self._entries = to, private, entries
        with writing(private):
            self._hidden = _aside(private)
            places = ((one, path.readlink()) for path, one in self._hidden if path.name == staged_for(one))
            self._places = {one: Path(os.path.normpath(private.resolve() / place)) for one, place in places}
        self._entered = {entry.release for entry in entries}
        self._known = self._entered | {release_id for _, release_id in self._hidden} | set(releases(private))

    def remove(self) -> list[str]:
        """Remove all of it, and finish what had only its mark or `latest` left to do; what to tell of it.

        Of a release that never became visible the evidence is put away. Its entry stays, and counts. Whether it is
        one, our private folder says: whoever may write into TO can put, or move, a folder there of any release.
        """
        self._mark()
        with writing(self.to):
            staged = [(path, release_id) for path, release_id in _aside(self.to) if release_id in self._known]
        hidden = [one for one in self._hidden if os.path.lexists(one[0])]
        strange = [path for path, release_id in staged + hidden if self._strange(path, release_id)]
        staged, hidden = ([one for one in those if one[0] not in strange] for those in (staged, hidden))
        waiting = self._waiting({release_id for _, release_id in staged})
        cut_off = {release_id for path, release_id in staged + hidden if path.name.startswith(".staging")}
        for path, release_id in staged:
            # The evidence first: that the release is still staged is what tells that nobody has seen it.
            if path.name.startswith(".staging"):
                put_away(self.private, release_id, entered=release_id in self._entered)
            with writing(self.to):
                if not self._points_on(path, release_id):
                    remove(path)
        for path, release_id in hidden:
            entered = release_id in self._entered
            if path.name.startswith(".staging"):
                if entered or release_id not in waiting:
                    put_away(self.private, release_id, entered=entered)
            elif release_id not in waiting or path.name != staged_for(release_id):
                with writing(self.private):
                    remove(path)
        self._remove_copies()
        left = [
            f"{path} was left as it is: nothing in the private folder says that a run was cut off that made it; take "
            "it away once you know how it got there"
            for path in strange
        ]
        return left + [self._told(release_id, waiting.get(release_id)) for release_id in sorted(cut_off | {*waiting})]

    def _mark(self) -> None:
        """Mark those that readers see and no run had the time to.

        Evidence goes to its place before a release becomes visible: where it lies aside, an older copy was put back.
        """
        with writing(self.private):
            for one in self._entered:
                kept, aside = self.private / one, self.private / f".staging-{one}"
                if not any(os.path.isdir(place / one) for place in (self.to, self._places.get(one, self.to))):  # noqa: PTH112 - as below
                    continue
                if aside.is_dir() and not kept.exists():
                    aside.rename(kept)
                if kept.is_dir() and not (kept / SEEN).exists():
                    mark_seen(kept)

    def _strange(self, path: Path, release_id: str) -> bool:
        """Whether a folder is called like one that a killed run staged, of a release that readers saw, or by no run.

        Such a run leaves its own link in our private folder until nothing else is left of it, and in TO one folder.
        """
        if path.parent == self.to and not path.name.startswith(".staging"):
            return path.is_dir() and not path.is_symlink()
        ours = any(one == release_id for _, one in self._hidden)
        with writing(self.private):
            return path.name.startswith(".staging") and not (ours and not (self.private / release_id / SEEN).exists())

    def _waiting(self, here: Set[str]) -> dict[str, Path]:
        """The folders of other policies in which something lies of releases that never became visible there."""
        return {
            one: place
            for one, place in self._places.items()
            if one not in here
            and not any(os.path.isdir(seen / one) for seen in (self.to, place))  # noqa: PTH112 - which raises where a share is gone
            and (self._gone(place) or any(_may_be(place / f".{what}-{one}") for what in _STAGED))
        }

    def _gone(self, place: Path) -> bool:
        """Whether another folder is not there with its releases, as where its share is not mounted, or it was moved."""
        return place != self.to.resolve() and not any(os.path.isdir(place / one) for one in self._entered)  # noqa: PTH112 - as above

    def _told(self, release_id: str, elsewhere: Path | None) -> str:
        stays = "its entry in the ledger stays, and counts" if release_id in self._entered else ""
        if elsewhere is not None:
            where = f"where it was to be seen ({elsewhere}, unless a folder was moved since)"
            told, finds = f"release {release_id} was cut off", ""
            if self._gone(elsewhere) and release_id in self._entered:  # its evidence may be in its place, and so may it
                finds = " finds it there, or"
            else:
                told += " before anybody could see it"
            told += f"; the next run of this private folder that publishes {where}{finds} removes what it left there"
            return f"{told}; {stays}" if stays else told
        told = f"release {release_id} was cut off before anybody could see it, and what it left was removed"
        return f"{told}, but for what later nights compare with; {stays}" if stays else told

    def _remove_copies(self) -> None:
        """Copies that neither the ledger nor a release.json of it names: of runs cut off before their entry."""
        named = {sha256 for one in self._entries for sha256 in (one.protocol_sha256, one.manifest_sha256)}
        with writing(self.private):
            every = [*(self.private / FOLDER).glob("*")] if (self.private / FOLDER).is_dir() else []
            copies = {path: match[1] for path in every if (match := _COPY.fullmatch(path.name))}
            strange = {*copies.values()} - named
            cells = cells_of(self.private, self._entries) if strange else set()
            strange = set() if cells is None else strange - cells
            for path, sha256 in copies.items():
                if sha256 in strange or path.name.startswith("."):
                    path.unlink()

    def _points_on(self, link: Path, release_id: str) -> bool:
        """Whether `link` is all that a killed run had left to do, its release being visible; then do it."""
        latest = self.to / "latest"
        newer = not latest.is_symlink() or latest.readlink().name < release_id
        if not (link.is_symlink() and (self.to / release_id).is_dir() and newer):
            return False
        link.replace(latest)
        return True


def _may_be(path: Path) -> bool:
    """Whether something lies there, or may: of a share that is gone nobody knows."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def staged_for(release_id: str) -> str:
    """The name of a link in PRIVATE to the folder in which this release is staged."""
    return f".to-{release_id}"


def mark_seen(kept: Path) -> None:
    """Say in its evidence that a release was visible once. Raises OSError."""
    (kept / SEEN).touch(mode=0o600)
    sync(kept)


def put_away(private: Path, release_id: str, *, entered: bool) -> None:
    """Remove the evidence of a release that nobody saw, staged or not, but for what later nights compare with.

    That stays where a release that was published has it, and only if it was `entered`: its entry counts as if
    everybody had seen it, and without a digest of its people nothing would be known of how draws go together.
    Where its mark says that somebody saw it, all stays. Raises ReleaseError.
    """
    kept, staged = private / release_id, private / f".staging-{release_id}"
    with writing(private):
        if (kept / SEEN).exists():
            return
        for folder in (kept, staged):
            for path in list(folder.iterdir()) if folder.is_dir() else ():
                if not (entered and path.name in COMPARED):
                    remove(path)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        if staged.is_dir():
            staged.rename(kept)
            sync(private)


def check_entered(private: Path, entries: Sequence[ReleaseEntry]) -> None:
    """Every release whose evidence lies in PRIVATE is in the ledger, since its entry came first. Raises LedgerError."""
    with writing(private):
        found = releases(private)
    missing = sorted(set(found) - {entry.release for entry in entries})
    if missing:
        raise _not_entered(missing, private)


def check_visible(to: Path, name: str, seen: Sequence[str], entries: Sequence[ReleaseEntry]) -> None:
    """Every release that was `seen` before the ledger was read is in it: of this policy, or another that it names.

    Releases of other policies, under ledgers of their own, may lie in the same folder. Raises LedgerError.
    """
    known, names = {entry.release for entry in entries}, {name, *(entry.name for entry in entries)}
    missing = [one for one in seen if one not in known and _named(to / one) in names]
    if missing:
        raise _not_entered(missing, to)


def _named(release: Path) -> str:
    """The name in a manifest; none where it cannot be read."""
    try:
        return str(json.loads(read_plain(release / "release.json"))["name"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""


def _not_entered(missing: Sequence[str], where: Path) -> LedgerError:
    """The error of releases that were made under a ledger which does not know of them any more."""
    more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
    return LedgerError(
        "ledger",
        f"the ledger does not know of release {missing[-1]}{more}: it was lost, or is older than they "
        "are, or they are of another private folder",
        where=str(where),
        advice="What they told would not be counted. Restore the private folder from a backup. Where there is none, "
        "move these releases, and their evidence, to another folder: what they told stays told, and nothing counts it.",
    )


def releases(folder: Path) -> list[str]:
    """The names of the releases in a folder, oldest first. Raises OSError."""
    found = (
        [path.name for path in folder.iterdir() if re.fullmatch(_ID, path.name)] if folder.is_dir() else []
    )
    return sorted(found)


def _aside(folder: Path) -> list[tuple[Path, str]]:
    """Paths of our staging pattern in a folder, with their release ids. Raises OSError."""
    found = ((path, _ASIDE.fullmatch(path.name)) for path in sorted(folder.iterdir()))
    return [(path, match[1]) for path, match in found if match]


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that it holds. Raises OSError."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)
