"""The privacy report: content computed from the files of a release, and the page that shows it."""

from __future__ import annotations

import html
from typing import Any

from funnel.format import canonical
from funnel.format.counts import CountsFile
from funnel.format.draws import DrawsFile
from funnel.format.drift import DriftFile
from funnel.format.manifest import Manifest
from funnel.format.protocol import ProtocolFile
from funnel.format.released import ReleasedFile
from funnel.format.schema import as_json
from funnel.format.solution import SolutionFile
from funnel.format.terms import TermsFile
from funnel.report.content import FORMAT, compose
from funnel.report.page import render

__all__ = ["FORMAT", "compose", "full", "page", "published", "render"]


def published(manifest: Manifest, protocol: ProtocolFile, released: ReleasedFile) -> dict[str, Any]:
    """The content of the published report: a function of the published files alone."""
    return {"format": "funnel-report/1", "manifest": as_json(manifest)}


def full(
    manifest: Manifest,
    protocol: ProtocolFile,
    released: ReleasedFile,
    counts: CountsFile,
    draws: DrawsFile,
    solution: SolutionFile,
    terms: TermsFile,
    drift: DriftFile | None = None,
) -> dict[str, Any]:
    """The content of the private report, with what follows from the counts."""
    return published(manifest, protocol, released) | {"drift": as_json(drift)}


def page(content: dict[str, Any]) -> str:
    """The page of a report's content; the same content always gives the same text."""
    return f"<!doctype html><pre>{html.escape(canonical.encode(content).decode())}</pre>\n"
