"""The published folder: which files lie there, and whether they are the ones the manifest lists."""

from __future__ import annotations

from pathlib import Path

from funnel.audit.files import content, digest, names, plain_size
from funnel.audit.findings import broken, shown
from funnel.audit.manifest import Manifest
from funnel.errors import AuditFailure

_SUSPECT = ("evidence", "count", "ledger", "key", "plan", "policy", "secret", "private", "lock")
_EVIDENCE = b"funnel-evidence/"


def listed(folder: Path, manifest: Manifest) -> str:
    """The folder's names are release.json and the manifest's files. Raises AuditFailure."""
    expected = {"release.json", *manifest.files}
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
    return f"{len(expected)} files"


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
        return f"{len(manifest.files)} files, {sum(size for _, size in manifest.files.values())} bytes"
    first = next(iter(wrong.values()))
    raise broken(", ".join(wrong), first.message, expected=first.bound, found=first.achieved)


def nothing_private(folder: Path) -> str:
    """No name, and no file, looks like counts, evidence, a ledger or a key. Raises AuditFailure."""
    for name in names(folder):
        if any(word in name.lower() for word in _SUSPECT):
            raise broken(
                shown(name),
                "a file that looks private lies in the published folder",
                expected="only the files of a release",
                found=name,
            )
        if not name.startswith("data.") and _holds_evidence(folder / name):
            raise broken(
                shown(name), "the file holds private evidence", expected="rounded figures", found="evidence"
            )
    return "by name and by content"


def _holds_evidence(path: Path) -> bool:
    """Whether a plain file carries the mark of an evidence file; others are for `file-list` to report."""
    try:
        return _EVIDENCE in content(path)
    except AuditFailure:
        return False
