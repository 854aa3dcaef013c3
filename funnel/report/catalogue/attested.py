"""What attestation.json says of a release: the promise, against whom, and what is not promised, in titles."""

from __future__ import annotations

from collections.abc import Mapping

from funnel.format.attestation import Promised, attested
from funnel.format.reported import Published
from funnel.report.catalogue.record import Record


def promised(shown: Published, ledger_sha256: str) -> Promised:
    """Of published files and the hash of their release's line in the ledger. Raises InternalError, ValueError."""
    record, stated = Record.of(shown, {}), shown.manifest
    return Promised(
        release=stated.release,
        policy=stated.name,
        notion=stated.notion,
        epsilon=stated.epsilon,
        promise=f"{record.promise} {record.against}",
        not_promised=tuple(record.limits),
        ledger_sha256=ledger_sha256,
    )


def statement(shown: Published, files: Mapping[str, str], ledger_sha256: str) -> bytes:
    """The payload about published files with these hashes."""
    return attested(files, promised(shown, ledger_sha256))
