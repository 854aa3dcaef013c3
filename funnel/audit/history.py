"""The audit of all releases of one ledger: each by itself, and that ledger and folder tell of the same ones."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from funnel.audit.audit import audit_release
from funnel.audit.fields import Field, parse
from funnel.audit.files import KNOWN, content, names
from funnel.audit.findings import AuditReport, Finding, Status, counted
from funnel.audit.ledger import SEEN, read_ledger
from funnel.errors import AuditFailure, ReleaseError

_ID = r"\d{8}T\d{6}Z-[0-9a-f]{6}"
_MOST_NAMED = 5

TITLES = {
    "history-chain": "the ledger's chain of hashes is unbroken",
    "history-entered": "every release in the folder has one entry in the ledger",
    "history-released": "every entry has its release in the folder",
    "history-names": "every folder bears the name of the release in it",
    "history-order": "the entries stand in the order in which the releases were made",
}
"""Claims about all releases together."""


@dataclass(frozen=True)
class HistoryReport:
    """What was found of every release, oldest first, and of the ledger as a whole."""

    folder: Path
    releases: tuple[AuditReport, ...]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """True when no claim fails, of no release."""
        return all(one.passed for one in self.releases) and not self.failed

    @property
    def failed(self) -> tuple[Finding, ...]:
        """Claims about all releases that fail."""
        return tuple(one for one in self.findings if one.status == "failed")

    @property
    def verdict(self) -> str:
        """The report in one line."""
        broken = sum(not one.passed for one in self.releases)
        whole = counted(len(self.releases), "release")
        if self.passed:
            return f"{whole} and the ledger: every claim that can be checked holds"
        parts = [f"{counted(broken, 'release')} of {len(self.releases)} {_fails(broken)}"] if broken else []
        parts += [f"{counted(len(self.failed), 'claim')} about the ledger {_fails(len(self.failed))}"] * bool(
            self.failed
        )
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: as of one release, with the reports of all `releases`."""
        return {
            "release": str(self.folder),
            "passed": self.passed,
            "verdict": self.verdict,
            "findings": [vars(finding) for finding in self.findings],
            "releases": [one.as_dict() for one in self.releases],
        }

    def text(self) -> str:
        """A line per release with what fails in it, the claims about all, the verdict."""
        lines = []
        for one in self.releases:
            composed = next(f.detail for f in one.findings if f.claim == "ledger-composed")
            lines.append(f"{'passed     ' if one.passed else 'FAILED     '} {one.release.name}: {composed}")
            lines += [f"  {finding.text()}" for finding in one.of("failed")]
        return "\n".join([*lines, *(finding.text() for finding in self.findings), self.verdict])


def _fails(number: int) -> str:
    return "FAILS" if number == 1 else "FAIL"


def holds_releases(folder: Path) -> bool:
    """Whether this is a folder of releases, and not a release itself."""
    if not folder.is_dir() or any(os.path.lexists(folder / name) for name in KNOWN):
        return False
    return bool(_releases(folder))


def _releases(folder: Path) -> list[str]:
    """Names of the releases in a folder, oldest first."""
    return [name for name in names(folder) if re.fullmatch(_ID, name) and not (folder / name).is_symlink()]


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
        raise ReleaseError(
            "release-unreadable",
            "the folder of private evidence does not exist",
            where=str(private),
            advice="Give the policy's `release.private` folder.",
        )
    made, reports = _releases(folder), []
    for done, name in enumerate(made):
        progress("audit releases", done, len(made))
        if any(os.path.lexists(folder / name / file) for file in KNOWN):
            reports.append(audit_release(folder / name, private, public_key=public_key))
    return HistoryReport(folder.resolve(), tuple(reports), tuple(_of_ledger(private, folder, made)))


def _of_ledger(private: Path, folder: Path, made: Sequence[str]) -> list[Finding]:
    """What ledger and folder say of each other."""
    try:
        entries, detail = read_ledger(private)
    except AuditFailure as failure:
        reason = f"{failure.where}: {failure.message}; expected {failure.bound}, found {failure.achieved}"
        rest = [_finding(claim, "not checked", "the ledger is damaged") for claim in list(TITLES)[1:]]
        return [_finding("history-chain", "failed", reason), *rest]
    known = Counter(_name(entry) for entry in entries)
    without = [name for name in made if known[name] != 1]
    gone = [name for name in known if name not in made]
    late = [_name(after) for one, after in pairwise(entries) if not _follows(one, after)]
    return [
        _finding("history-chain", "passed", detail),
        _told("history-entered", without, "without exactly one entry; or they are of another ledger"),
        _released(private, entries, gone, len(known)),
        _told("history-names", _misnamed(folder, made), "under the name of another"),
        _told("history-order", late, "older than the entry before them"),
    ]


def _misnamed(folder: Path, made: Sequence[str]) -> list[str]:
    """Folders whose release.json names another release; what cannot be read fails in the release's own audit."""
    found = []
    for name in made:
        try:
            own = parse("release.json", content(folder / name / "release.json"))["release"].value
        except AuditFailure:
            continue
        if own != name:
            found.append(name)
    return found


def _released(private: Path, entries: Sequence[Field], gone: Sequence[str], known: int) -> Finding:
    """No release is missing whose evidence says that it was visible once; of others nobody knows whether they were.

    Before a release is entered, its protocol is kept: an entry without one is none that was made here.
    """
    if foreign := [_name(one) for one in entries if _name(one) in gone and _foreign(private, one)]:
        return _told("history-released", foreign, "entered, though no protocol was ever kept for them here")
    if lost := [name for name in gone if os.path.lexists(private / name / SEEN)]:
        what = "published, and not there any more (remove what is kept of them too, if that was meant)"
        return _told("history-released", lost, what)
    if gone:
        return _finding("history-released", "not checked", f"taken away, or never visible: {_list(gone)}")
    return _finding("history-released", "passed", counted(known, "release"))


def _foreign(private: Path, entry: Field) -> bool:
    """Whether an entry's protocol is not kept; the first versions kept none."""
    kept = private / "protocols" / f"{entry['protocol_sha256'].value}.json"
    return "kept" in entry.value and not os.path.lexists(kept)


def _told(claim: str, wrong: Sequence[str], what: str) -> Finding:
    """A claim that fails for some releases, or for none."""
    if wrong:
        return _finding(claim, "failed", f"{counted(len(wrong), 'release')} {what}: {_list(wrong)}")
    return _finding(claim, "passed", "all of them")


def _finding(claim: str, status: Status, detail: str) -> Finding:
    return Finding(claim, TITLES[claim], status, detail)


def _list(found: Sequence[str]) -> str:
    return ", ".join(found[:_MOST_NAMED]) + (", …" if len(found) > _MOST_NAMED else "")


def _name(entry: Field) -> str:
    return entry["release"].text()


def _follows(one: Field, after: Field) -> bool:
    """Whether an entry was written, and its release begun, no earlier than the one before: names begin with a time."""
    begun = _name(one)[:16] <= _name(after)[:16]
    return begun and one["written"].text() <= after["written"].text()
