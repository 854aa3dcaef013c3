"""The audit of a release whose data were taken away on purpose: what stays of it is as it was entered."""

from __future__ import annotations

from pathlib import Path

from funnel.audit.kernel import claims
from funnel.audit.kernel.check import Claims, findings
from funnel.audit.kernel.opened import Opened, content, holds_only, parsed
from funnel.audit.kernel.verdict import Broken, Finding, Unchecked, agree
from funnel.audit.verify.attested import attested
from funnel.format import attestation, manifest
from funnel.format.pruned import FOLDER, STAYS, PrunedFile


def marker(private: Path, release: str) -> Path | None:
    """Where the private folder, or the release's own in it, says that a release was pruned; None where it does not."""
    root = private.parent if private.name == release else private
    path = root / FOLDER / release
    return path if path.exists() else None


def pruned_folder(given: Path, private: Path) -> Path | None:
    """The release's own folder where its marker says that it was pruned, wholly or not; None where none does."""
    folder = given.resolve()
    return None if marker(private, folder.name) is None else folder


def pruned(folder: Path, private: Path, key: bytes | None) -> tuple[Finding, ...]:
    """What is found of a release that its marker says was pruned: what stays, by the marker, ledger and evidence."""

    def left(opened: Opened) -> str:
        """Data and pages were taken away on purpose, and release.json stayed as it was."""
        one, path = opened.manifest, marker(private, folder.name)
        if path is None:
            raise Broken(FOLDER, "nothing says that this release was pruned", folder.name, None)
        told = parsed(PrunedFile, path.name, content(path))
        own = opened.entry(opened.release / manifest.NAME).sha256
        agree(path.name, [("release", one.release, told.release), ("hash of the manifest", own, told.manifest_sha256)])
        try:
            holds_only(folder, {manifest.NAME, *((attestation.NAME,) if one.signed else ())})
        except Broken:
            what = "pruning it was cut off; run `funnel prune` again"
            raise Broken(folder.name, what, sorted(STAYS), sorted(path.name for path in folder.iterdir())) from None
        return f"pruned {told.written}"

    def signature(opened: Opened) -> str | Unchecked:
        """The owner of the public key signed the hash of every file that was published, and the promise."""
        return attested(opened, key)

    looked_at: Claims = {
        "pruned": left,
        "manifest": claims.manifest,
        "evidence": claims.evidence,
        "ledger-chain": claims.ledger_chain,
        "ledger-entry": claims.ledger_entry,
        "signature": signature,
    }
    return tuple(findings(Opened(folder, private), looked_at))
