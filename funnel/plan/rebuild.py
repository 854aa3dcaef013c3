"""A release's report, written again: as it was published, or the full one for those who may see the counts."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, TypeVar

from funnel import report
from funnel.audit.folder import check_whole
from funnel.errors import ReleaseError
from funnel.files import make_open, replace_file, writing
from funnel.format import canonical, counts, manifest, reported
from funnel.format.place import release_in
from funnel.format.reported import Evidence, Published

T = TypeVar("T")


def rebuild(release: Path, private: Path | None, to: Path | None, *, pdf: bool = False) -> list[Path]:
    """Write report.html and report.json again: into `to`, or in place where they are what stands there.

    With the private folder, the full report from the evidence; without, the published one; with `pdf`, report.pdf
    beside them, which belongs to no release. Raises ReleaseError.
    """
    release = release_in(release)
    shown = _read(Published, release)
    files = report_files(_content(shown, private))
    folder = release if to is None else to
    if Path(os.path.realpath(folder)).is_relative_to(release.resolve().parent):
        _check_same(release, shown.manifest, files, private, pdf=pdf)
    if pdf:
        files["report.pdf"] = printed(files["report.html"].decode())
    with writing(folder, "with `--to`"):
        if not folder.is_dir():
            make_open(folder.parent)
            folder.mkdir(mode=0o755 if private is None else 0o700, exist_ok=True)
        for path, content in ((folder / name, content) for name, content in files.items()):
            if not (path.is_file() and path.read_bytes() == content):
                replace_file(path, content, mode=0o644 if private is None else 0o600)
            elif private is not None:
                path.chmod(0o600)
    return [folder / name for name in files]


def report_files(content: dict[str, Any]) -> dict[str, bytes]:
    """report.html and report.json with this content."""
    return {"report.html": report.page(content).encode(), "report.json": canonical.encode(content)}


def printed(page: str) -> bytes:
    """The page on sheets of A4, as PDF. Raises ReleaseError where the library that lays them out is not installed."""
    try:
        from weasyprint import HTML
    except (ImportError, OSError) as error:  # the second where a library of the system is not there
        raise ReleaseError(
            "library-missing",
            f"a report as PDF needs a library that is not installed ({error})",
            advice="Install it: `pip install 'funnel-sanitiser[pdf]'` (and Pango, from the system's packages); or "
            "print report.html from a browser.",
        ) from None
    made: bytes = HTML(string=page).write_pdf()
    return made


def _content(shown: Published, private: Path | None) -> dict[str, Any]:
    """What the report says: from the published files, or with the counts kept in private."""
    if private is None:
        return report.published(shown)
    kept = private if (private / counts.NAME).exists() else private / shown.manifest.release
    return report.full(shown, _read(Evidence, kept))


def _check_same(
    release: Path, stated: manifest.Manifest, files: dict[str, bytes], private: Path | None, *, pdf: bool
) -> None:
    """A published folder only ever gets back the bytes that were published. Raises ReleaseError."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    listed = {name: one.sha256 for name, one in stated.files.items()}
    if private is not None:
        why = "the full report is not for the published folder"
    elif pdf:
        why = "report.pdf is no file of a release"
    elif any(listed.get(name) != found for name, found in hashes.items()):
        why = "this version of funnel writes another report than the one published"
    else:
        return
    raise ReleaseError("release-write", why, where=str(release), advice="Name another folder with `--to`.")


def _read(record: type[T], folder: Path) -> T:
    """Files of a release. Raises ReleaseError."""
    check_whole(folder)
    try:
        return reported.read(record, folder)
    except (OSError, ValueError) as error:
        raise ReleaseError(
            "release-unreadable",
            f"the release cannot be read: {error}",
            where=str(folder),
            advice="Name a release folder, such as releases/NAME/latest.",
        ) from None
