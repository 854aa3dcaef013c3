"""The audit of all releases of one ledger: each by itself, and that ledger and folder tell of the same ones."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from funnel.audit.audit import AuditReport, audit_release
from funnel.audit.extras.earlier import Earlier
from funnel.audit.extras.entries import but_for, shown_again
from funnel.audit.folder import check_enterable, holds_files, lost, refuse_both
from funnel.audit.kernel.check import ITEM, NOBODY, UNKNOWABLE
from funnel.audit.kernel.opened import content, ledger, parsed
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Finding, Status, Unchecked, counted
from funnel.audit.listed import feed_of, latest_of
from funnel.audit.pruned import Left, marker, pruned_folder
from funnel.errors import ReleaseError
from funnel.format import journal, manifest, protocol
from funnel.format.fields import LATEST, RELEASE_ID
from funnel.format.journal import Line, ReleaseEntry
from funnel.format.place import SEEN, elsewhere, named_as_one
from funnel.format.pruned import FOLDER, is_whole
from funnel.ledger.promises import standing
from funnel.ledger.view import ended
from funnel.text import some

_MOST_NAMED = 5
TITLES = {
    "history-chain": "the ledger's chain of hashes is unbroken",
    "history-entered": "every release in the folder has one entry in the ledger",
    "history-released": "every entry has its release in the folder",
    "history-kept": "what is kept of releases that are not in the folder, or of which too little is for an audit of"
    " their own, shows what their entries say",
    "history-names": "every folder bears the name of the release in it",
    "history-order": "the entries stand in the order in which the releases were made",
    "history-latest": "`latest` points at the newest release that is here",
    "history-pruned": "whatever lacks its data was pruned, and what is said to be is in the ledger",
    "history-feed": "releases.json lists what the ledger has of every policy that signs, up to the last release there",
}
"""Claims about all releases together."""


@dataclass(frozen=True)
class HistoryReport:
    """What was found of every release, oldest first, and of the ledger as a whole; which promises it says `ended`."""

    folder: Path
    releases: tuple[AuditReport, ...]
    findings: tuple[Finding, ...]
    ended: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True when no claim fails, of no release."""
        return all(one.passed for one in self.releases) and not self.failed

    @property
    def failed(self) -> tuple[Finding, ...]:
        """Claims about all releases that fail."""
        return tuple(one for one in self.findings if one.status == "failed")

    @property
    def unbounded(self) -> str | None:
        """That releases have no finite bound, as the last one says that has none; None where all have one."""
        return next((one.unbounded for one in reversed(self.releases) if one.unbounded), None)

    @property
    def verdict(self) -> str:
        """The report in one line; that there is no bound comes first."""
        return f"{self.unbounded}; {self._found}" if self.unbounded else self._found

    @property
    def _found(self) -> str:
        broken, failed = sum(not one.passed for one in self.releases), len(self.failed)
        gone = sum(one.pruned for one in self.releases)
        whole = counted(len(self.releases), "release") + (f" ({gone} pruned)" if gone else "")
        if self.passed:
            return f"{whole} and the ledger: every claim that can be checked holds"
        parts = [f"{counted(broken, 'release')} of {len(self.releases)} {_fails(broken)}"] if broken else []
        parts += [f"{counted(failed, 'claim')} about the ledger {_fails(failed)}"] if failed else []
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: as of one release, with the reports of all `releases`."""
        first = {"unbounded": self.unbounded} if self.unbounded else {}
        return first | {
            "release": str(self.folder),
            "ended": list(self.ended),
            "passed": self.passed,
            "verdict": self.verdict,
            "unknowable": list(UNKNOWABLE),
            "findings": [vars(finding) | {"by": "extra"} for finding in self.findings],
            "releases": [one.as_dict() for one in self.releases],
        }

    def text(self) -> str:
        """Ended promises, a line per release with what fails in it or was not checked, claims about all, verdict, what
        nobody can know."""
        lines = [f"ENDED      {one}" for one in self.ended]
        for one in self.releases:
            told = next(f.detail for f in one.findings if f.claim == ("pruned" if one.pruned else "ledger-composed"))
            lines.append(f"{'passed     ' if one.passed else 'FAILED     '} {one.release.name}: {told}")
            lines += [f"  {finding.text()}" for finding in one.of("failed")]
            lines += [f"  not checked {', '.join(left)}"] if (left := [each.claim for each in one.unchecked]) else []
        nobody = ITEM.join([NOBODY, *UNKNOWABLE])
        return "\n".join([*lines, *(finding.text() for finding in self.findings), self.verdict, nobody])


def _fails(number: int) -> str:
    return "FAILS" if number == 1 else "FAIL"


def holds_releases(folder: Path) -> bool:
    """Whether this is a folder of releases, and not a release itself. Raises ReleaseError where it seems to be both."""
    if not folder.is_dir() or named_as_one(folder) or not _releases(folder):
        return False
    refuse_both(folder)
    return True


def _releases(folder: Path) -> list[str]:
    """Names of the releases in a folder, oldest first. Raises ReleaseError where it cannot be listed."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        advice = "Check that it is a folder and that you may read it."
        what = f"the folder cannot be listed: {error.strerror}"
        raise ReleaseError("release-unreadable", what, where=str(folder), advice=advice) from error
    return [name for name in names if re.fullmatch(RELEASE_ID, name) or _is_release(folder / name)]


def _is_release(path: Path) -> bool:
    """Whether a folder of another name holds a release; what runs left aside has names that begin with a dot.

    A link to a release beside it, as `latest` is, is no other one.
    """
    if path.name == LATEST or path.name.startswith(".") or not path.is_dir():
        return False
    target = path.parent / path.readlink() if path.is_symlink() else path
    beside = re.fullmatch(RELEASE_ID, target.name) and target.parent.resolve() == path.parent.resolve()
    return not beside and os.access(path, os.X_OK) and holds_files(path)


def audit_history(
    folder: Path,
    private: Path,
    progress: Callable[[str, int, int | None], None] = lambda *_: None,
    public_key: str | None = None,
) -> HistoryReport:
    """Audit all releases in a folder against one private folder, and one public key where that is given.

    `progress` is told a title, how many releases are done and how many there are. Raises ReleaseError where there is
    no such folder.
    """
    if not private.is_dir():
        what, advice = "the folder of private evidence does not exist", "Give the policy's `release.private` folder."
        raise ReleaseError("release-unreadable", what, where=str(private), advice=advice)
    check_enterable(private)
    made, reports = _releases(folder), []
    for done, name in enumerate(made):
        progress("audit releases", done, len(made))
        if marker(private, name) or not lost(folder / name):
            reports.append(audit_release(folder / name, private, public_key=public_key))
    return HistoryReport(folder.resolve(), tuple(reports), *_of_ledger(private, folder, made))


def _of_ledger(private: Path, folder: Path, made: Sequence[str]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """What ledger and folder say of each other, and which promises have ended."""
    try:
        lines = ledger(content(private / journal.NAME), content(private / journal.HEAD))
    except Broken as broken:
        rest = [_finding(claim, "not checked", "the ledger is damaged") for claim in list(TITLES)[1:]]
        return (_finding("history-chain", "failed", str(broken)), *rest), ()
    entries = [line.entry for line in lines if isinstance(line.entry, ReleaseEntry)]
    return tuple(_findings(private, folder, made, lines, entries)), tuple(ended(standing(entries)))


def _findings(
    private: Path, folder: Path, made: Sequence[str], lines: Sequence[Line], entries: Sequence[ReleaseEntry]
) -> list[Finding]:
    """What an unbroken ledger and the folder say of each other."""
    known = Counter(entry.release for entry in entries)
    without = [name for name in made if known[name] != 1]
    return [
        _finding("history-chain", "passed", counted(len(lines), "line")),
        _told("history-entered", without, "without exactly one entry; or they are of another ledger"),
        _released(private, folder, entries, made),
        _compared("history-kept", lambda: _kept(private, folder, lines, made)),
        _told("history-names", [name for name in made if _misnamed(folder / name)], "under the name of another"),
        _told("history-order", _late(lines), "older than the entry before them"),
        _compared("history-latest", lambda: latest_of(folder, lines) or Unchecked("no release is there")),
        _compared("history-feed", lambda: feed_of(folder, private, lines)),
        _pruned(private, folder, made, known),
    ]


def _pruned(private: Path, folder: Path, made: Sequence[str], known: Collection[str]) -> Finding:
    """No release lacks its data that nothing says was pruned, and nothing is said of a release that never was."""
    if bare := [name for name in made if not marker(private, name) and lost(folder / name)]:
        return _told("history-pruned", bare, "without data, though nothing says that they were pruned")
    marked = _releases(private / FOLDER) if (private / FOLDER).is_dir() else []
    if foreign := [name for name in marked if name not in known]:
        return _told("history-pruned", foreign, "marked as pruned, and not in the ledger")
    here = [name for name in marked if name in made]
    left = [name for name in here if lost(folder / name)]
    whole = [name for name in here if name not in left and is_whole(folder / name, private / FOLDER / name)]
    if half := [name for name in here if name not in (*left, *whole)]:
        return _told("history-pruned", half, "marked as pruned, and neither just what stays of one is there nor all")
    gone = len(marked) - len(here)
    also = [(len(whole), "of a release of which all is here"), (gone, "of a release that is not here")]
    told = "".join(f"; {counted(number, 'mark')} {of}" for number, of in also if number)
    return _finding("history-pruned", "passed", f"{counted(len(left), 'release')}{told}")


def _compared(claim: str, work: Callable[[], str | Unchecked]) -> Finding:
    """A claim that some work shows, cannot show, or finds broken."""
    try:
        told = work()
    except Broken as broken:
        return _finding(claim, "failed", str(broken))
    return _finding(claim, *(("not checked", told.reason) if isinstance(told, Unchecked) else ("passed", told)))


def _late(lines: Sequence[Line]) -> list[str]:
    """Releases begun, or lines written, before the one before them; a release's name begins with its time."""
    late = [after.written for one, after in pairwise(lines) if after.written < one.written]
    names = [line.entry.release for line in lines if isinstance(line.entry, ReleaseEntry)]
    return late + [after for one, after in pairwise(names) if after[:16] < one[:16]]


def _misnamed(folder: Path) -> bool:
    """Whether release.json names another release; what cannot be read fails in the release's own audit."""
    try:
        raw = content(folder / manifest.NAME)
        return parsed(manifest.Manifest, manifest.NAME, raw).release != folder.name
    except Broken:
        return False


def _released(private: Path, folder: Path, entries: Sequence[ReleaseEntry], made: Sequence[str]) -> Finding:
    """No release is missing whose evidence says that it was visible once; of others nobody knows whether they were.

    Before a release is entered, its protocol is archived: an entry without one is none that was made here.
    """
    lost = [one for one in entries if one.release not in made]
    gone = list(dict.fromkeys(one.release for one in lost))
    archived = {one.release: private / protocol.FOLDER / f"{one.protocol_sha256}.json" for one in lost}
    if foreign := [name for name, path in archived.items() if not os.path.lexists(path)]:
        what = "entered, and no protocol is kept for them: they were not made here, or it was taken away"
        return _told("history-released", foreign, what)
    if others := elsewhere(folder, private, gone, made):
        gone = [name for name in gone if name not in others]
    if seen := [name for name in gone if os.path.lexists(private / name / SEEN)]:
        what = (
            "published, and not here, nor by a plan that is kept in another folder (remove what is kept of them too, "
            "if that was meant)"
        )
        return _told("history-released", seen, what)
    if gone:
        return _finding("history-released", "not checked", f"taken away, or never visible: {some(gone, _MOST_NAMED)}")
    if others:
        told = "by their plans published in another folder, which this audit does not look at"
        return _finding("history-released", "not checked", f"{told}: {some(others, _MOST_NAMED)}")
    return _finding("history-released", "passed", counted(len({one.release for one in entries}), "release"))


def _kept(private: Path, folder: Path, lines: Sequence[Line], made: Collection[str]) -> str | Unchecked:
    """Later figures go by every entry, wherever its release or its data have gone. Raises Broken."""
    entries = [line.entry for line in lines if isinstance(line.entry, ReleaseEntry)]
    audited = {name for name in made if not _lacks(folder / name, private)}
    looked_at = [place for place, one in enumerate(entries, start=1) if one.release not in audited]
    if not looked_at:
        return Unchecked(NOT_CLAIMED + "all of them are there")
    every = (Earlier(folder, private, lines, entries[:place]) for place in looked_at)
    return f"{counted(len(looked_at), 'release')}{but_for({one.release.name: shown_again(one) for one in every})}"


def _lacks(release: Path, private: Path) -> bool:
    """Whether a release was pruned, and of what its own audit measures it by something went with it."""
    gone = pruned_folder(release, private)
    return gone is not None and Left(gone, private).lacks is not None


def _told(claim: str, wrong: Sequence[str], what: str) -> Finding:
    """A claim that fails for some releases, or for none."""
    if wrong:
        return _finding(claim, "failed", f"{counted(len(wrong), 'release')} {what}: {some(wrong, _MOST_NAMED)}")
    return _finding(claim, "passed", "all of them")


def _finding(claim: str, status: Status, detail: str) -> Finding:
    return Finding(claim, TITLES[claim], status, detail)
