"""The audit of one release: the kernel's claims, then the extras', and what nobody can know from the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from funnel.audit.extras import (
    agreed,
    averages,
    beside,
    bound,
    catalogue,
    composition,
    declared,
    drift,
    entries,
    everybody,
    export,
    fit,
    identity,
    meanings,
    mechanism,
    newest,
    noise,
    observer,
    pages,
    partitions,
    pinned,
    policy,
    promises,
    repeats,
    rounded,
    signature,
    spent,
    table,
    totals,
    truth,
    uncertainty,
)
from funnel.audit.extras.base import Recount, Release
from funnel.audit.folder import check_enterable, release_folder
from funnel.audit.kernel import check as kernel
from funnel.audit.kernel.verdict import (
    CHANCE,
    NEEDS_PRIVATE,
    Broken,
    Finding,
    Status,
    Unchecked,
    counted,
)
from funnel.audit.pruned import GONE, Left, pruned, pruned_folder
from funnel.audit.publisher import read_public_key
from funnel.errors import ReleaseError
from funnel.failed import AWAY, as_error
from funnel.text import is_text, some

if TYPE_CHECKING:
    from funnel.release.written import Each

EXTRAS: tuple[ModuleType, ...] = (
    *(export, pages, catalogue, beside, mechanism, agreed, policy, pinned, drift),
    *(declared, noise, spent, uncertainty, rounded, truth, observer),
    *(averages, bound, fit, totals, partitions, everybody, meanings, entries, identity, repeats, composition, promises),
    *(signature, newest, table),
)
"""In the order in which they are told."""
PUBLISHED = (export, pages, catalogue, observer, fit)
"""Those that look at the table and the pages."""
LEDGER = (meanings, entries, identity, repeats, composition, promises)
"""Those that read the release's entry."""
PUBLISHED_ONLY = "only that shows the counts, the leakage and the draws"


@dataclass(frozen=True)
class AuditReport:
    """What was found about one release: the kernel's findings, one for each of its claims, and the extras'.

    `unbounded` is what is said before: that all releases so far have no finite bound; None where they have one.
    `pruned`: its data were taken away on purpose, and what stays was looked at.
    """

    release: Path
    kernel: tuple[Finding, ...]
    extras: tuple[Finding, ...]
    unbounded: str | None = None
    pruned: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, the kernel's first."""
        return (*self.kernel, *self.extras)

    @property
    def passed(self) -> bool:
        """True when no claim fails; `verdict` says whether some were not checked."""
        return not self.of("failed")

    def of(self, status: Status) -> tuple[Finding, ...]:
        """The findings with one status."""
        return tuple(finding for finding in self.findings if finding.status == status)

    @property
    def unchecked(self) -> tuple[Finding, ...]:
        """The claims that the release makes and that were not checked."""
        return tuple(finding for finding in self.of("not checked") if finding.claimed)

    @property
    def verdict(self) -> str:
        """In one line: that there is no bound, where there is none; what failed, or that all compared holds."""
        return f"{self.unbounded}; {self._found}" if self.unbounded else self._found

    @property
    def _found(self) -> str:
        left = len(self.unchecked)
        also = f"; {left} {'was' if left == 1 else 'were'} not checked" if left else ""
        if failed := self.of("failed"):
            names = some([one.claim for one in failed], 5)
            chance = f" ({CHANCE})" if all(one.improbable for one in failed) else ""
            return f"{counted(len(failed), 'claim')} {'FAILS' if len(failed) == 1 else 'FAIL'}{also}: {names}{chance}"
        shown = [sum(one.status == "passed" for one in part) for part in (self.kernel, self.extras)]
        private = any(one.detail == NEEDS_PRIVATE for one in self.findings)
        within = " from the published files" if private else ""
        holds = f"every claim that can be checked{within} holds{also}" if left else "every claim that is made holds"
        return f"{holds} (kernel {shown[0]}, extras {shown[1]})"

    @property
    def unknowable(self) -> tuple[str, ...]:
        """What no file can show, of this release; the first only where the source was not counted again."""
        source = next((one.status for one in self.extras if one.claim == table.CLAIM), None)
        first, *rest = kernel.UNKNOWABLE
        again = first if self.pruned else f"{first} ({table.AGAIN})"
        return (table.COUNTED if source == "passed" else again, *rest)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: release (path), passed, verdict, unknowable, findings (claim, title, status, detail, by).

        Before all of it, `unbounded` where that is so.
        """
        by = (*("kernel" for _ in self.kernel), *("extra" for _ in self.extras))
        first = {"unbounded": self.unbounded} if self.unbounded else {}
        return first | {
            "release": str(self.release),
            "pruned": self.pruned,
            "passed": self.passed,
            "verdict": self.verdict,
            "unknowable": list(self.unknowable),
            "findings": [vars(one) | {"by": who} for one, who in zip(self.findings, by, strict=True)],
        }

    def text(self) -> str:
        """One line per finding, one for all that wait for the private evidence; the verdict, what nobody can know."""
        waiting = [one.claim for one in self.findings if one.detail == NEEDS_PRIVATE]
        lines = [one.text() for one in self.kernel if one.detail != NEEDS_PRIVATE]
        lines += [f"{one.text()} (extra)" for one in self.extras if one.detail != NEEDS_PRIVATE]
        if waiting:
            needs = f"{counted(len(waiting), 'claim')} {'needs' if len(waiting) == 1 else 'need'}"
            asked = f"the private evidence: --private DIR; {PUBLISHED_ONLY}"
            lines.append(f"not checked {needs} {asked} [{', '.join(waiting)}]")
        return "\n".join([*lines, self.verdict, kernel.ITEM.join([kernel.NOBODY, *self.unknowable])])


def audit_release(
    release: Path,
    private: Path | None = None,
    *,
    staged: bool = False,
    public_key: str | None = None,
    recount: Recount | None = None,
    each: Each = map,
) -> AuditReport:
    """Every claim of a release, re-checked from its files alone.

    `release` is a release's folder, or the folder that holds `latest`; `private` is the folder of private
    evidence, or the release's own folder inside it. `staged`: the release is not entered in the ledger yet,
    so what the ledger says stays unchecked, and nothing is written a second time to compare. `public_key`: the
    line of an Ed25519 public key, or a file that holds it, by which the release must be signed. `recount` counts the
    source again; `each` has the files of a table that has several looked at, by other processes where a run has some.
    A damaged release is a failed finding; ReleaseError (`release-unreadable`) is raised only where there is no release,
    or no private folder, to look at, or no such key (`key-unreadable`).
    """
    key = None if public_key is None else read_public_key(public_key)
    if private is not None and (gone := pruned_folder(release, private)) is not None:
        return _pruned(Left(gone, private, public_key=key, recount=recount, asked=release), private)
    folder = release_folder(release, private)
    if not is_text(str(folder)):
        raise ReleaseError(
            "release-unreadable",
            "its path holds bytes that are no text, and the engine takes none",
            where=str(folder),
            advice="Rename the folder that is not named in UTF-8; `funnel verify` takes any.",
        )
    if private is not None and not private.is_dir():
        raise ReleaseError(
            "release-unreadable",
            "the folder of private evidence does not exist",
            where=str(private),
            advice="Give the policy's `release.private` folder, or the release's folder inside it.",
        )
    for place in () if private is None else (private, private / folder.name):
        check_enterable(place)
    opened = Release(folder, private, staged=staged, public_key=key, recount=recount, asked=release, each=each)
    found = tuple(kernel.findings(opened))
    return AuditReport(folder, found, tuple(finding(one, opened) for one in EXTRAS), kernel.unbounded(opened))


def _pruned(left: Left, private: Path) -> AuditReport:
    """What is found of a release whose data were taken away: also all that its entry says, for later ones go by it."""
    found, why = pruned(left, private), left.lacks
    seen = {signature, newest} if why else {*EXTRAS} - {*PUBLISHED}  # what was signed stays, whatever else is gone
    extras = tuple(
        finding(one, left) if one in seen else Finding(one.CLAIM, one.TITLE, "not checked", why or GONE)
        for one in EXTRAS
        if one is not table
    )
    if left.recount is not None:
        extras += (Finding(table.CLAIM, table.TITLE, "not checked", "of a pruned release no table is counted again"),)
    return AuditReport(left.release, found, extras, kernel.unbounded(left), pruned=True)


def finding(extra: ModuleType, opened: Release) -> Finding:
    """What one extra found; of what broke a claim of the kernel it need not speak again.

    It uses libraries, which may stumble, in any way, over files that no writer makes: then it fails. What cannot be
    reached breaks no claim: that error is raised.
    """
    claim, title = extra.CLAIM, extra.TITLE
    if extra.PRIVATE and opened.private is None:
        return Finding(claim, title, "not checked", NEEDS_PRIVATE)
    if opened.staged and extra in LEDGER:
        return Finding(claim, title, "not checked", "the release is not entered in the ledger yet")
    try:
        outcome = extra.check(opened)
    except Broken as broken:
        if first := opened.blamed.get(broken):
            return Finding(claim, title, "not checked", f"rests on {first}, which does not hold")
        return Finding(claim, title, "failed", str(broken), broken.improbable)
    except Exception as error:  # whatever a file makes a check stumble over
        if as_error(error).code in AWAY:
            raise
        return Finding(claim, title, "failed", f"nothing can be shown: {type(error).__name__}: {error}")
    if isinstance(outcome, Unchecked):
        return Finding(claim, title, "not checked", outcome.reason)
    return Finding(claim, title, "passed", outcome)
