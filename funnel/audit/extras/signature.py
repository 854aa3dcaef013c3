"""attestation.json: signed, of these files; with the evidence, of the release's own line in the ledger."""

from __future__ import annotations

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Unchecked, agree
from funnel.audit.listed import line_hash
from funnel.audit.verify.attested import attestation, attested
from funnel.format import journal
from funnel.format.attestation import NAME
from funnel.format.journal import ReleaseEntry
from funnel.report.catalogue.attested import promised

CLAIM = "signature"
TITLE = "the owner of the public key signed the hash of every published file, the promise, and the line of the ledger"
PRIVATE = False


def check(opened: Release) -> str | Unchecked:
    """The publisher signed these files, and what this funnel says of their promise. Raises Broken."""
    told = attested(opened, opened.public_key)
    if opened.manifest.signed is None:
        return told
    found = attestation(opened)
    if opened.private is not None and not opened.staged:
        agree(NAME, [("line of the ledger", _line(opened), found.predicate.ledger_sha256)])
    if not opened.has_table:  # nor is what describes it there
        return f"{told}; promise and limits in words not compared" if isinstance(told, str) else told
    if not opened.staged:
        again = promised(opened.published, found.predicate.ledger_sha256)
        agree(NAME, [("promise and limits in words", again, found.predicate)])
    return told


def _line(opened: Release) -> str:
    """The hash of the release's line, and so of all before it; none where it was never entered. Raises Broken."""
    own = (
        one.sequence
        for one in opened.journal
        if isinstance(one.entry, ReleaseEntry) and one.entry.release == opened.manifest.release
    )
    return next((line_hash(opened.content(opened.root / journal.NAME), one) for one in own), "")
