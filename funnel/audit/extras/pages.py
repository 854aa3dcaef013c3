"""report.json and report.html of both folders: written again from the files that they are functions of."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from funnel import report
from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.errors import FunnelError
from funnel.format import canonical
from funnel.format.distances import NAME as DISTANCES
from funnel.format.distances import DistancesFile
from funnel.format.drift import NAME as DRIFT
from funnel.format.drift import DriftFile
from funnel.format.population import NAME as POPULATION
from funnel.format.population import PopulationFile
from funnel.format.reported import Evidence
from funnel.format.schema import read

T = TypeVar("T")
CLAIM = "report"
TITLE = "each report is, byte for byte, what this funnel writes of the files that it rests on, the published ones alone"
PRIVATE = False
DATA, PAGE = "report.json", "report.html"


def check(opened: Release) -> str | Unchecked:
    """The published report is a function of the published files, the full one of those and the evidence.

    Raises Broken.
    """
    if opened.staged:
        return Unchecked("whoever has just written the report has no need to write it again")
    shown = opened.published
    told = [f"published: {_same(opened, opened.release, lambda: report.published(shown))}"]
    if opened.private is not None:
        known = None if opened.manifest.parameters.knows is None else opened.known_file
        drift, near = _kept(opened, DriftFile, DRIFT), _kept(opened, DistancesFile, DISTANCES)
        kept = Evidence(opened.counts, opened.draws, opened.solution, opened.terms, drift, known, near,
                        _kept(opened, PopulationFile, POPULATION))  # fmt: skip
        told.append(f"full: {_same(opened, opened.folder, lambda: report.full(shown, kept))}")
    return f"{', '.join(told)} bytes are the same when written again; titles and descriptions are the publisher's words"


def _kept(opened: Release, record: type[T], name: str) -> T | None:
    """A private file that not every release has. Raises Broken."""
    path = opened.folder / name
    return read(record, name, opened.content(path)) if path.exists() else None


def _same(opened: Release, folder: Path, compose: Any) -> str:
    """How many bytes were written again. Raises Broken."""
    try:
        found = compose()
        rendered = {DATA: canonical.encode(found), PAGE: report.page(found).encode()}
    except (FunnelError, ValueError, KeyError, IndexError, ZeroDivisionError) as error:
        raise Broken(DATA, "these files have no report", "a release", f"{type(error).__name__}: {error}") from None
    for name, expected in rendered.items():
        if (raw := opened.content(folder / name)) != expected:
            place = next((i for i, (a, b) in enumerate(zip(raw, expected, strict=False)) if a != b), len(expected))
            what = f"this is not what this version of funnel writes of the other files, from byte {place} on"
            raise Broken(name, what, _around(expected, place), _around(raw, place))
    return str(sum(map(len, rendered.values())))


def _around(raw: bytes, place: int) -> str:
    return raw[max(place - 20, 0) : place + 40].decode(errors="replace")
