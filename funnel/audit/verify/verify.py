"""What `funnel verify` finds of one release: the kernel's claims about published files, and whose release it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.audit.kernel.check import PUBLISHED, Claims, findings
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Finding, Unchecked, counted
from funnel.audit.verify.attested import attested
from funnel.audit.verify.feed import newest
from funnel.format.keyline import fingerprint

LEFT = (
    "Not looked at: counts, leakage and draws, which `funnel audit --private` works out; and whether words and table"
    " say what the other files say, which `funnel audit` does. A signature tells who published a release, not that its"
    " promise is kept, and that only to those who have the key from the publisher and not from this folder."
)


@dataclass(frozen=True)
class Verified:
    """What was found of one release by the key with this fingerprint."""

    release: Path
    key: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no claim fails."""
        return not self._of("failed")

    @property
    def verdict(self) -> str:
        """In one line."""
        if failed := self._of("failed"):
            return f"{counted(len(failed), 'claim')} {'FAILS' if len(failed) == 1 else 'FAIL'}: {', '.join(failed)}"
        left = [one.claim for one in self.findings if one.status == "not checked" and one.claimed]
        return "whole, and signed with this key" + (f"; not checked: {', '.join(left)}" if left else "")

    def as_dict(self) -> dict[str, Any]:
        """JSON form: release (path), key (fingerprint), passed, verdict, findings as of an audit, what is left."""
        told = [vars(one) | {"by": "kernel" if one.claim in PUBLISHED else "verify"} for one in self.findings]
        return {
            "release": str(self.release),
            "key": self.key,
            "passed": self.passed,
            "verdict": self.verdict,
            "findings": told,
            "left": LEFT,
        }

    def text(self) -> str:
        """A line for each claim, the verdict, and what was not looked at."""
        return "\n".join([*(one.text() for one in self.findings), self.verdict, LEFT])

    def _of(self, status: str) -> list[str]:
        return [one.claim for one in self.findings if one.status == status]


def verify(folder: Path, key: bytes, asked: Path, feed: Path | None = None) -> Verified:
    """A release's own folder by the 32 bytes of its publisher's public key. What is damaged is a failed finding.

    `asked` is the folder as it was given, by which the newest release is told from one that is asked for by name;
    `feed` a releases.json from elsewhere.
    """
    return Verified(folder, fingerprint(key), tuple(findings(Opened(folder), PUBLISHED | _claims(key, asked, feed))))


def _claims(key: bytes, asked: Path, feed: Path | None) -> Claims:
    """What a key can show."""

    def signature(opened: Opened) -> str | Unchecked:
        """The owner of the public key signed the hash of every published file, and the promise of release.json."""
        return attested(opened, key)

    def listed(opened: Opened) -> str | Unchecked:
        """The publisher lists the release in releases.json, as the newest where it was asked for as `latest`."""
        return newest(opened, key, asked, feed)

    return {"signature": signature, "newest": listed}
