"""Which folder a release lies in."""

from __future__ import annotations

import os
from pathlib import Path

from funnel.errors import ReleaseError
from funnel.failed import as_error
from funnel.format.fields import LATEST
from funnel.format.place import known_file, named_as_one, published_in, release_in
from funnel.format.pruned import STAYS


def release_folder(given: Path, private: Path | None = None) -> Path:
    """The folder of one release: `given` itself, or what its `latest` points at; where releases of `private` are
    published is none itself.

    Raises ReleaseError: `release-unreadable` when there is nothing there that could be a release, or not just one;
    `release-pruned` when there is no more than what stays of one; AccessError where this user may not enter it.
    """
    refuse_both(given, private)
    try:
        folder = release_in(given)
    except PermissionError as error:
        raise as_error(error) from error
    if holds_files(folder):
        check_whole(folder)
        return folder
    several = os.path.lexists(folder / LATEST)  # and still not looked into
    raise ReleaseError(
        "release-unreadable",
        "there is no release in this folder" if given.exists() else "the release folder does not exist",
        where=str(given),
        advice="By that name a folder is looked at as one release: give a folder of several another one."
        if several
        else "Name a release's own folder, or the folder of releases that holds `latest`.",
    )


def refuse_both(folder: Path, private: Path | None = None) -> None:
    """No file lies beside releases, or where they are published, as if the folder were one.

    Raises ReleaseError, AccessError.
    """
    if (name := _known(folder)) is None:
        return
    beside = not named_as_one(folder) and os.path.lexists(folder / LATEST)
    if not beside and (private is None or not published_in(folder, private)):
        return
    raise ReleaseError(
        "release-unreadable",
        f"{name} lies {f'beside `{LATEST}`' if beside else 'where releases are published'}, as if this folder of "
        "releases were one itself",
        where=str(folder),
        advice="Take it away, or name a release's own folder.",
    )


def lost(folder: Path) -> bool:
    """Whether no more of a release is there than what stays where its data were taken away."""
    return not holds_files(folder) or {path.name for path in folder.iterdir()} <= STAYS


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
    return _known(folder) is not None


def _known(folder: Path) -> str | None:
    try:
        return known_file(folder)
    except PermissionError as error:
        raise as_error(error) from error


def check_enterable(folder: Path) -> None:
    """This user may list a folder, where it is there. Raises AccessError."""
    try:
        os.scandir(folder).close()
    except PermissionError as error:
        raise as_error(error) from error
    except OSError:
        return
