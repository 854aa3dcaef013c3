"""PRIVATE/pruned/<release>: that the data of a release were taken away on purpose, written before they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format import attestation, manifest
from funnel.format.fields import ReleaseId, Sha256, Time

FOLDER = "pruned"
STAYS = frozenset({manifest.NAME, attestation.NAME})
"""What stays of a release in the published folder, as it was: hashes of all that is gone, and who signed them.

Whoever kept a copy can check it; whoever follows a reference finds what it was about. Nothing is added: nothing that is
added later is signed.
"""


@dataclass(frozen=True)
class PrunedFile:
    """Which release, by the hash of its release.json, and when."""

    format: Literal["funnel-pruned/1"]
    release: ReleaseId
    manifest_sha256: Sha256
    written: Time
