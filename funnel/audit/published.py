"""The published folder: which files lie there, and whether they are the ones the manifest lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from funnel.audit.fields import parse
from funnel.audit.files import content, digest, names, plain_size
from funnel.audit.findings import broken, counted, shown
from funnel.audit.manifest import Manifest
from funnel.errors import AuditFailure

_SUSPECT = ("evidence", "count", "ledger", "key", "plan", "policy", "secret", "private", "lock")
_EVIDENCE = b"funnel-evidence/"
_PRIVATE_PAGE = (b'<meta name="funnel-report" content="private">', b'<p class="private">')
"""Marks of the private report's page. No label can forge them: a page escapes its quotes, JSON its own."""
_COUNTS = ("counts", "records")
"""Where the private report.json holds counts of people; in the published one neither key has a number."""


def listed(folder: Path, manifest: Manifest) -> str:
    """The folder's names are release.json, the manifest's files, and its signature. Raises AuditFailure."""
    expected = {*manifest.listed}
    found = set(names(folder))
    if found != expected:
        told = [f"no {name}" for name in sorted(expected - found)] + [
            f"also {name}" for name in sorted(found - expected)
        ]
        raise broken(
            shown(folder.name),
            "other files lie in the folder than the manifest lists",
            expected=", ".join(sorted(expected)),
            found="; ".join(told),
        )
    return counted(len(expected), "file")


def problems(folder: Path, manifest: Manifest) -> dict[str, AuditFailure]:
    """The listed files that are missing, or not of the size and hash that the manifest states."""
    found = {}
    for name, (sha256, size) in manifest.files.items():
        try:
            _same(folder / name, sha256, size)
        except AuditFailure as failure:
            found[name] = failure
    return found


def _same(path: Path, sha256: str, size: int) -> None:
    if (actual := plain_size(path)) != size:
        raise broken(
            path.name, "the file has another size than the manifest states", expected=size, found=actual
        )
    if (hashed := digest(path)) != sha256:
        raise broken(
            path.name,
            "the file is not the one that the manifest lists (SHA-256)",
            expected=sha256,
            found=hashed,
        )


def unchanged(manifest: Manifest, wrong: dict[str, AuditFailure]) -> str:
    """No listed file has a problem. Raises AuditFailure with the first one, naming all."""
    if not wrong:
        size = sum(size for _, size in manifest.files.values())
        return f"{counted(len(manifest.files), 'file')}, {counted(size, 'byte')}"
    first = next(iter(wrong.values()))
    raise broken(", ".join(wrong), first.message, expected=first.bound, found=first.achieved)


def nothing_private(folder: Path) -> str:
    """No name, and no file, looks like counts, evidence, a ledger, a key or a private report.

    Raises AuditFailure; also where report.json is no JSON, for then nobody knows what it holds.
    """
    for name in names(folder):
        if any(word in name.lower() for word in _SUSPECT):
            raise broken(
                shown(name),
                "a file that looks private lies in the published folder",
                expected="only the files of a release",
                found=name,
            )
        if not name.startswith("data."):
            _refuse_private(folder / name)
    return "by name and by content"


def _refuse_private(path: Path) -> None:
    """Refuse what carries the mark of evidence or of the private report. Raises AuditFailure."""
    try:
        raw = content(path)
    except AuditFailure:
        return  # no plain file of honest size: `file-list` and `file-hashes` report it
    if _EVIDENCE in raw:
        raise _holds(path, "private evidence", "evidence")
    if any(mark in raw for mark in _PRIVATE_PAGE):
        raise _holds(path, "the private report", "the mark of the private report")
    if path.name == "report.json":
        _refuse_private_report(path, parse(path.name, raw).value)


def _refuse_private_report(path: Path, report: Any) -> None:
    if isinstance(report, dict) and report.get("published", True) is not True:
        found = f'"published": {shown(report["published"])}'
        raise _holds(path, "the private report", found.replace("False", "false"))
    if place := _counts(report):
        raise _holds(path, "counts of people", place)


def _counts(report: Any) -> str | None:
    """The path of the first counts in a report, looked for at every depth."""
    inside: list[tuple[str, Any]] = [("", report)]
    while inside:
        path, value = inside.pop()
        members = value.items() if isinstance(value, dict) else []
        for key, part in members:
            if key in _COUNTS and not isinstance(part, str):
                return f"{path}{key}"
            inside.append((f"{path}{key}.", part))
        if isinstance(value, list):
            inside.extend((path, part) for part in value)
    return None


def _holds(path: Path, what: str, found: str) -> AuditFailure:
    return broken(shown(path.name), f"the file holds {what}", expected="rounded figures", found=found)
