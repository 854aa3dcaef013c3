"""The report of a release, made again: what was published, or the full one for those who may see the counts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from funnel.data import Joint
from funnel.data.unary import protocol_from_dict
from funnel.errors import ReleaseError
from funnel.files import to_json, writing
from funnel.plan.writing import with_drift, write_report
from funnel.report.content import compose
from funnel.report.page import render


def rebuild(release: Path, private: Path | None, to: Path | None) -> list[Path]:
    """Write report.html and report.json again: into `to`, or in place where the manifest's hashes allow it.

    With the private folder, the full report from the evidence; without, the published one from report.json.
    Raises ReleaseError.
    """
    release = release / "latest" if (release / "latest").is_dir() else release
    manifest = _read(release / "release.json")
    content = _from_evidence(release, private, manifest) if private else _read(release / "report.json")
    page, data = render(content).encode(), to_json(content).encode()
    folder = release if to is None else to
    if folder.resolve().is_relative_to(release.resolve().parent):
        _check_same(release, manifest, page, data, private)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    written = write_report(folder, content)
    if private is not None:
        for path in written:
            path.chmod(0o600)
    return written


def _from_evidence(release: Path, private: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The full report, from the counts kept in private."""
    kept = private if (private / "evidence.json").exists() else private / manifest["release"]
    evidence, solution = _read(kept / "evidence.json"), _read(kept / "solution.json")
    try:
        protocols = [protocol_from_dict(block) for block in _read(release / "protocol.json")["blocks"]]
        content = compose(
            manifest,
            protocols,
            Joint.from_dict(evidence["joint"]),
            published=False,
            bounds=solution["upper_bounds"],
            certificate=solution.get("certificate"),
        )
        return with_drift(content, evidence["locked"]["drift"]) if "locked" in evidence else content
    except (KeyError, ValueError, TypeError) as error:
        raise ReleaseError(
            "release-unreadable",
            f"the evidence does not fit the release: {error}",
            where=str(kept),
            advice="Run `funnel audit` to see which claim is broken.",
        ) from None


def _check_same(
    release: Path, manifest: dict[str, Any], page: bytes, data: bytes, private: Path | None
) -> None:
    """A published folder only ever gets back the bytes that its manifest names."""
    listed = manifest.get("files", {})
    same = all(
        listed.get(name, {}).get("sha256") == hashlib.sha256(content).hexdigest()
        for name, content in (("report.html", page), ("report.json", data))
    )
    if private is not None or not same:
        why = (
            "the full report is not for the published folder"
            if private is not None
            else "this version of funnel writes another report than the one published"
        )
        raise ReleaseError(
            "release-write", why, where=str(release), advice="Name another folder with `--to`."
        )


def _read(path: Path) -> Any:
    """A JSON file of a release. Raises ReleaseError."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ReleaseError(
            "release-unreadable",
            f"{path.name} cannot be read: {error}",
            where=str(path.parent),
            advice="Name a release folder, such as releases/NAME/latest.",
        ) from None
