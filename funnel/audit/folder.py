"""Which folder a release lies in."""

from __future__ import annotations

import os
from pathlib import Path

from funnel.errors import ReleaseError
from funnel.failed import as_error
from funnel.format import attestation, cells, manifest, protocol, released
from funnel.format.pruned import STAYS

KNOWN = (
    *(manifest.NAME, protocol.NAME, released.NAME, cells.NAME, attestation.NAME),
    *("data.parquet", "data.csv", "report.html", "report.json"),
)


def release_folder(given: Path) -> Path:
    """The folder of one release: `given` itself, or what its `latest` points at.

    Raises ReleaseError: `release-unreadable` when there is nothing there that could be a release, `release-pruned`
    when there is no more than what stays of one; AccessError where this user may not enter it.
    """
    for folder in (given, given / "latest"):
        if holds_files(folder):
            check_whole(folder)
            return folder.resolve()
    raise ReleaseError(
        "release-unreadable",
        "there is no release in this folder" if given.exists() else "the release folder does not exist",
        where=str(given),
        advice="Name a release's own folder, or the folder of releases that holds `latest`.",
    )


def lost(folder: Path) -> bool:
    """Whether no more is there than what stays of a release whose data were taken away."""
    return {path.name for path in folder.iterdir()} <= STAYS


def check_whole(folder: Path) -> None:
    """There is more of a release than what stays of one whose data were taken away. Raises ReleaseError."""
    if holds_files(folder) and lost(folder):
        raise ReleaseError(
            "release-pruned",
            "only what stays of a pruned release is here: its data were taken away, or lost",
            where=str(folder),
            advice="Ask for a newer release, or its publisher for this one. `funnel audit` of the folder of releases, "
            "with --private, tells whether it was pruned.",
        )


def holds_files(folder: Path) -> bool:
    """Whether some file of a release lies in a folder. Raises AccessError where this user may not enter it."""
    for name in KNOWN:
        try:
            os.lstat(folder / name)
        except PermissionError as error:
            raise as_error(error) from error
        except OSError:
            continue
        return True
    return False


def check_enterable(folder: Path) -> None:
    """This user may list a folder, where it is there. Raises AccessError."""
    try:
        os.scandir(folder).close()
    except PermissionError as error:
        raise as_error(error) from error
    except OSError:
        return
