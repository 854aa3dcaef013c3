"""What the auditor says: one finding per claim, and never a word about a claim it did not look at."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from funnel.errors import AuditFailure

Status = Literal["passed", "failed", "not checked"]
T = TypeVar("T")

PUBLISHED: dict[str, str] = {
    "manifest": "release.json is whole, of a known version, and says nothing beyond its format",
    "file-list": "the folder holds the manifest and the files it lists, and nothing else",
    "file-hashes": "every listed file has the stated size and SHA-256",
    "nothing-private": "no counts, evidence, ledger or key lies in the published folder",
    "protocol": "the protocol's labels are distinct and its weights are whole numbers that sum to 2^bits",
    "protocol-manifest": "the protocol has the columns and alphabet sizes that the manifest states",
    "data-columns": "the table holds exactly the public columns, in order",
    "data-rows": "the table has as many rows as the manifest states",
    "data-values": "every released value is an output that the protocol can produce",
    "data-order": "the order of the rows follows from the released values alone",
    "data-bytes": "the data file holds its rows and nothing beside them, byte for byte as its writer makes them",
    "mechanism": "the protocol is of the mechanism named, and reads the secret just where that does",
    "report-figures": "report.json has the form of a published report, and the figures of the manifest",
    "stated-bound": "the leakage that the manifest states keeps the bound it promises",
}
"""Claims that the published files can prove or refute by themselves."""

PRIVATE: dict[str, str] = {
    "evidence": "the private evidence is whole and belongs to this release",
    "manifest-hash": "release.json is, byte for byte, the manifest that the evidence was written for",
    "policy-hash": "the kept policy is the one that the manifest and the evidence name",
    "policy-terms": "the manifest claims what the kept policy asks for: secret, columns, notion, epsilon",
    "plan-hash": "the kept plan is the one that the manifest and the evidence name, and of the kept policy",
    "lock": "the protocol is, weight by weight, the one that the lock fixed",
    "counts": "the counts are well formed and describe as many records as were released",
    "alphabets": "the protocol's inputs, and the secret, are those of the counts",
    "minimum": "every public value has at least the promised number of records",
    "uncertainty": "the set of distributions protected against is as large as the stated confidence asks for",
    "estimate-noise": "the counts that claims are about have the noise of a private estimate on every declared cell",
    "estimate-spent": "what private estimates of these counts have spent is what their record says",
    "channel": "the channel released can be measured, over all blocks together",
    "leakage-bound": "the leakage of the channel released, measured exactly, keeps the bound",
    "leakage-true": "the leakage at the true counts, where the claims are about noisy ones",
    "leakage-exact": "the exact leakage equals the ratios in the evidence",
    "leakage-stated": "the manifest's leakage is the exact one, rounded up at the fourth decimal",
    "information-stated": "the manifest's I(S;Y) is the true one, rounded up at the fourth decimal",
    "utility-stated": "the manifest's I(X;Y), H(X) and their ratio are the true ones",
    "report-shown": "the shares and beliefs that report.json shows are those of the counts, rounded",
    "utility-bound": "no protocol that keeps the bound and reads X alone tells more about X than is stated",
    "draw-inputs": "every record was drawn for exactly once, in every block",
    "draw-outputs": "the drawn values are those of the released table",
    "draw-support": "nothing was drawn that the protocol gives no weight",
    "draw-fit": "within each block the draws follow the protocol's chances",
    "draw-independence": "across blocks the draws are as independent as the channel says",
    "ledger-chain": "the ledger's chain of hashes is unbroken",
    "ledger-entry": "the ledger holds exactly one entry for this release, with the same figures",
    "ledger-kept": "the private evidence is, byte for byte, what it was when the release was entered",
    "ledger-drawn": "the ledger says rightly whom and what this release drew for",
    "ledger-composed": "the composed leakage stated is that of this release and all before it in the ledger",
    "ledger-budget": "what this release and all before it tell together is within the policy's budget",
}
"""Claims that need the counts, the draws or the ledger."""

BEYOND: dict[str, str] = {
    "report-page": "report.html, and the sentences of report.json and its figures change, moves, promised and rank, "
    "say no more than the figures checked above",
    "draws-repeat": "an unchanged record answers alike in every release of the same protocol and key",
    "signature": "release.json, and so every file that it lists, is as the owner of the public key signed it",
}
"""Claims of a release that its files and its evidence do not suffice to prove."""

TITLES = PUBLISHED | PRIVATE | BEYOND
NEEDS_PRIVATE = "needs the private evidence: --private DIR"
RESTS = "rests on a claim above that does not hold"
NOT_CLAIMED = "not claimed: "
"""How the detail begins where a release does not make the claim, so that nothing is left to check."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_MARKS: dict[Status, str] = {"passed": "passed     ", "failed": "FAILED     ", "not checked": "not checked"}
_UNCLAIMED = "not claimed"


@dataclass(frozen=True)
class Finding:
    """One claim (a key of TITLES), what it says, whether it holds, and the figures or reason behind that."""

    claim: str
    title: str
    status: Status
    detail: str

    @property
    def claimed(self) -> bool:
        """False where the release does not make this claim: it is not checked, and nothing is missing."""
        return self.status != "not checked" or not self.detail.startswith(NOT_CLAIMED)

    def text(self) -> str:
        """One line for a terminal."""
        mark = _MARKS[self.status] if self.claimed else _UNCLAIMED
        detail = self.detail if self.claimed else self.detail.removeprefix(NOT_CLAIMED)
        return f"{mark} {self.title} [{self.claim}]: {detail}"


@dataclass(frozen=True)
class AuditReport:
    """All findings about one release folder, one per claim, in the order of TITLES."""

    release: Path
    findings: tuple[Finding, ...]

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
        """The report in one line; claims that the release does not make count for nothing."""
        failed, unchecked = len(self.of("failed")), len(self.unchecked)
        if failed:
            return f"{counted(failed, 'claim')} {'FAILS' if failed == 1 else 'FAIL'}{_left(unchecked)}"
        if not unchecked:
            return "every claim holds"
        public_only = any(finding.detail == NEEDS_PRIVATE for finding in self.findings)
        within = " from the published files" if public_only else ""
        return f"every claim that can be checked{within} holds{_left(unchecked)}"

    def as_dict(self) -> dict[str, Any]:
        """JSON form: release (path), passed, verdict, findings (claim, title, status, detail)."""
        return {
            "release": str(self.release),
            "passed": self.passed,
            "verdict": self.verdict,
            "findings": [vars(finding) for finding in self.findings],
        }

    def text(self) -> str:
        """One line per finding, one for all that wait for the private evidence, and the verdict last."""
        lines, waiting = [], [one.claim for one in self.findings if one.detail == NEEDS_PRIVATE]
        for finding in self.findings:
            if finding.detail != NEEDS_PRIVATE:
                lines.append(finding.text())
            elif finding.claim == waiting[0]:
                needs = f"{counted(len(waiting), 'claim')} {'needs' if len(waiting) == 1 else 'need'}"
                asked = f"{NEEDS_PRIVATE.removeprefix('needs')}; only that shows the counts, the leakage and the draws"
                lines.append(f"{_MARKS['not checked']} {needs}{asked} [{', '.join(waiting)}]")
        return "\n".join([*lines, self.verdict])


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 entry`, `2 entries`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _left(unchecked: int) -> str:
    return f"; {unchecked} {'was' if unchecked == 1 else 'were'} not checked" if unchecked else ""


@dataclass(frozen=True)
class Unchecked:
    """What a check returns when it cannot decide, with the reason; NOT_CLAIMED heads it where nothing is claimed."""

    reason: str


class Notebook:
    """Collects findings while the checks run; a claim that no check reached becomes "not checked"."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    def learn(self, claim: str, check: Callable[..., tuple[T, str]], *needs: object) -> T | None:
        """Run a check that yields (a value for later checks, detail); None when it fails or cannot run."""
        if any(need is None for need in needs):
            self.leave(claim, RESTS)
            return None
        try:
            value, detail = check(*needs)
        except AuditFailure as failure:
            self._note(claim, "failed", _explain(failure))
            return None
        self._note(claim, "passed", detail)
        return value

    def check(self, claim: str, check: Callable[..., str | Unchecked], *needs: object) -> None:
        """Run a check that yields its detail; needs that are None mean that it cannot run."""
        if any(need is None for need in needs):
            self.leave(claim, RESTS)
            return
        try:
            outcome = check(*needs)
        except AuditFailure as failure:
            self._note(claim, "failed", _explain(failure))
            return
        if isinstance(outcome, Unchecked):
            self.leave(claim, outcome.reason)
        else:
            self._note(claim, "passed", outcome)

    def leave(self, claim: str, reason: str) -> None:
        """Say that a claim was not checked, and why."""
        self._note(claim, "not checked", reason)

    def _note(self, claim: str, status: Status, detail: str) -> None:
        self._found[claim] = Finding(claim, TITLES[claim], status, detail)

    def report(self, release: Path) -> AuditReport:
        """Every claim of TITLES, in order."""
        rest = {claim: Finding(claim, title, "not checked", RESTS) for claim, title in TITLES.items()}
        return AuditReport(release, tuple(self._found.get(claim, rest[claim]) for claim in TITLES))


def broken(where: str, what: str, *, expected: object, found: object) -> AuditFailure:
    """A claim that does not hold: in which file, what is wrong, what was promised and what is there."""
    return AuditFailure(what, bound=shown(expected), achieved=shown(found), where=where)


def shown(value: object, longest: int = 160) -> str:
    """A value as printable text of bounded length, so that no label can steer the terminal."""
    text = value if isinstance(value, str) else _SHORT.repr(value)
    plain = "".join(ch if ch.isprintable() else f"\\u{ord(ch):04x}" for ch in text[: 2 * longest])
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def _explain(failure: AuditFailure) -> str:
    return f"{failure.where}: {failure.message}; expected {failure.bound}, found {failure.achieved}"
