"""Which folder a release lies in."""

from __future__ import annotations

import os
from pathlib import Path

from funnel.errors import ReleaseError
from funnel.format import attestation, cells, manifest, protocol, released

KNOWN = (
    *(manifest.NAME, protocol.NAME, released.NAME, cells.NAME, attestation.NAME),
    *("data.parquet", "data.csv", "report.html", "report.json"),
)


def release_folder(given: Path) -> Path:
    """The folder of one release: `given` itself, or what its `latest` points at.

    Raises ReleaseError (`release-unreadable`) when there is nothing there that could be a release.
    """
    for folder in (given, given / "latest"):
        if holds_files(folder):
            return folder.resolve()
    raise ReleaseError(
        "release-unreadable",
        "there is no release in this folder" if given.exists() else "the release folder does not exist",
        where=str(given),
        advice="Name a release's own folder, or the folder of releases that holds `latest`.",
    )


def holds_files(folder: Path) -> bool:
    """Whether some file of a release lies in a folder."""
    return any(os.path.lexists(folder / name) for name in KNOWN)
