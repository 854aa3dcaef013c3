"""PRIVATE/pruned/<release>: that the data of a release were taken away on purpose, written before they were."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from funnel.format import attestation, manifest, schema
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


def is_whole(folder: Path, mark: Path) -> bool:
    """Whether every file of the release is there that was marked: a copy from before, or its pruning has not begun."""
    try:
        told = schema.read(PrunedFile, mark.name, mark.read_bytes()) if mark.is_file() else None  # but a pipe, say
    except (OSError, ValueError):
        return False
    return told is not None and lacks(folder, told.manifest_sha256) is False


def lacks(folder: Path, manifest_sha256: str) -> bool | None:
    """Whether a file that a release's manifest lists is not there in its size, or itself; None where it is another."""
    stays = folder / manifest.NAME
    if not stays.is_file():
        return True
    try:
        raw = stays.read_bytes()
        files = schema.read(manifest.Manifest, manifest.NAME, raw).files
    except (OSError, ValueError):
        return None
    if manifest_sha256 != hashlib.sha256(raw).hexdigest():
        return None
    return not all(_size(folder / name) == one.bytes for name, one in files.items())


def _size(path: Path) -> int | None:
    """Of a file in bytes; None where none can be looked at."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
