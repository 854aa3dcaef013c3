"""Claims about the ledger: an unbroken chain, and one entry for this release."""

from __future__ import annotations

from funnel.audit.kernel.notions import NOTIONS
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Unchecked, agree, counted
from funnel.format import evidence, journal, manifest, protocol

_ALIKE = ("policy_sha256", "name", "notion", "epsilon", "leakage")
_WAITS = Unchecked("the release is not entered in the ledger yet")


def unbroken(opened: Opened) -> str | Unchecked:
    """The ledger's chain of hashes is unbroken, as far as its head says."""
    return _WAITS if opened.staged else counted(len(opened.journal), "line")


def entered(opened: Opened) -> str | Unchecked:
    """The ledger holds exactly one entry for this release, with its hashes and its figures."""
    if opened.staged:
        return _WAITS
    one, (*before, own) = opened.manifest, opened.entries
    told = own.composed
    agree(journal.NAME, [
        ("hash of the manifest", opened.entry(opened.release / manifest.NAME).sha256, own.manifest_sha256),
        ("hash of the evidence", opened.entry(opened.folder / evidence.NAME).sha256, own.evidence_sha256),
        ("hash of the protocol", one.files[protocol.NAME].sha256, own.protocol_sha256),
        *((key, getattr(one, key), getattr(own, key)) for key in _ALIKE),
        ("draws", (one.draws.kind, one.draws.key_fingerprint), (own.draws, own.key_fingerprint)),
        ("lock", one.locked and one.locked.checksum, own.lock),
        ("measure and secret", (NOTIONS[one.notion].measure, one.sensitive), (told.measure, told.sensitive)),
        ("composed leakage", one.composed, manifest.Composed(told.figure, told.how, told.releases) if before else None),
        ("number of releases", len(before) + 1, told.releases),
        ("blocks", one.public, tuple(block.columns for block in own.drawn)),
    ])  # fmt: skip
    return f"entry {len(before) + 1} of releases, {counted(len(opened.journal), 'line')} in all"
