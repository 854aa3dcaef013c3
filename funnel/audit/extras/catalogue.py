"""datapackage.json, croissant.json and dcat.jsonld: written again from the other published files."""

from __future__ import annotations

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.errors import FunnelError
from funnel.format.manifest import CATALOGUES
from funnel.report.catalogue import catalogue

CLAIM = "catalogue"
TITLE = "what catalogues read is, byte for byte, what this funnel writes of the other published files"
PRIVATE = False


def check(opened: Release) -> str | Unchecked:
    """Columns, hashes, the promise and its limits are those of the other files. Raises Broken."""
    if opened.staged:
        return Unchecked("whoever has just written these files has no need to write them again")
    try:
        again = catalogue(opened.published, opened.manifest.files)
    except (FunnelError, ValueError, LookupError, ZeroDivisionError) as error:
        found = f"{type(error).__name__}: {error}"
        raise Broken(CATALOGUES[0], "these files cannot be described", "a release", found) from None
    for name, expected in again.items():
        if opened.content(opened.release / name) != expected:
            what = "this is not what this version of funnel writes of the other files"
            raise Broken(name, what, "its bytes", "others")
    return f"{', '.join(again)} are the same when written again; titles and licenses are the publisher's words"
