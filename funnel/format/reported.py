"""The files that reports are functions of: whoever writes, reads or checks a report has one record of each kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from funnel.format import schema
from funnel.format.cells import CellsFile
from funnel.format.counts import CountsFile
from funnel.format.distances import DistancesFile
from funnel.format.draws import DrawsFile
from funnel.format.drift import DriftFile
from funnel.format.known import KnownFile
from funnel.format.manifest import Manifest
from funnel.format.population import PopulationFile
from funnel.format.protocol import ProtocolFile
from funnel.format.released import ReleasedFile
from funnel.format.solution import SolutionFile
from funnel.format.terms import TermsFile

T = TypeVar("T")


@dataclass(frozen=True)
class Published:
    """Files that all may see; `cells` of a release with wide blocks. What the manifest lists makes no difference."""

    manifest: Manifest
    protocol: ProtocolFile
    released: ReleasedFile
    cells: CellsFile | None = None


@dataclass(frozen=True)
class Evidence:
    """Private files: `drift` under a lock, `known` where the notion says what others may know, `distances` of wide
    blocks, `population` where somebody may be absent from a release of the ledger."""

    counts: CountsFile
    draws: DrawsFile
    solution: SolutionFile
    terms: TermsFile
    drift: DriftFile | None = None
    known: KnownFile | None = None
    distances: DistancesFile | None = None
    population: PopulationFile | None = None


def read(record: type[T], folder: Path) -> T:
    """Such files from a folder. Raises OSError where one is missing that every release has, ValueError."""
    found = {}
    for key, kind, name, optional in _files(record):
        path = folder / name
        absent = optional and not path.exists()
        found[key] = None if absent else schema.read(kind, name, path.read_bytes())
    return record(**found)


def written(files: Published | Evidence) -> dict[str, bytes]:
    """The bytes of such files by name."""
    parts = {name: getattr(files, key) for key, _, name, _ in _files(type(files))}
    return {name: schema.write(part) for name, part in parts.items() if part is not None}


def _files(record: type[Any]) -> Iterator[tuple[str, type[Any], str, bool]]:
    """Field, schema and file name of each, and whether there are releases without it."""
    hints = get_type_hints(record)
    for field in fields(record):
        kind, *nothing = get_args(hints[field.name]) or (hints[field.name],)
        yield field.name, kind, sys.modules[kind.__module__].NAME, bool(nothing)
