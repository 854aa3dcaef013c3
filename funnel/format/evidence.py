"""evidence.json: which private files belong to a release, by their hashes; the ledger names this file's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import ReleaseId, Sha256
from funnel.format.manifest import FileEntry

NAME = "evidence.json"


@dataclass(frozen=True)
class EvidenceFile:
    """The release, the hash of its manifest, and every other private file of it, but for the mark `published`."""

    format: Literal["funnel-evidence/1"]
    release: ReleaseId
    manifest_sha256: Sha256
    files: dict[str, FileEntry]
