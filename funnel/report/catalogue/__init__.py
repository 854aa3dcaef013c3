"""What catalogues of data read: three files, each a function of all other published files, whose hashes they tell."""

from __future__ import annotations

from collections.abc import Mapping

from funnel.format.canonical import encode
from funnel.format.manifest import CATALOGUES, FileEntry
from funnel.format.reported import Published
from funnel.report.catalogue.columns import notes
from funnel.report.catalogue.croissant import croissant
from funnel.report.catalogue.datapackage import datapackage
from funnel.report.catalogue.dcat import dcat
from funnel.report.catalogue.record import Record

__all__ = ["catalogue", "notes"]


def catalogue(shown: Published, files: Mapping[str, FileEntry]) -> dict[str, bytes]:
    """The bytes of the three by name. `files` may hold them already: none tells of itself or of the others.

    Raises InternalError where a notion or a mechanism has no words, ValueError where the files do not fit together.
    """
    record = Record.of(shown, {name: one for name, one in files.items() if name not in CATALOGUES})
    return {name: encode(make(record)) for name, make in zip(CATALOGUES, (datapackage, croissant, dcat), strict=True)}
