"""Where a release lies: in a folder of its own, or in the one that `latest` in a folder of releases leads to."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from funnel.format import attestation, cells, manifest, protocol, released
from funnel.format.fields import LATEST, RELEASE_ID

KNOWN = (
    *(manifest.NAME, protocol.NAME, released.NAME, cells.NAME, attestation.NAME),
    *("data.parquet", "data.csv", "data", "report.html", "report.json"),
)
"""What a folder of a release holds, and none of releases."""


def release_in(given: Path) -> Path:
    """The folder of one release, by its name, as `latest` or by its files; or else that to which `latest` in it leads.

    From where a release is, or should be, nothing leads elsewhere: whoever could put a `latest` there would have other
    files looked at than those that readers find. A folder is settled once, by whoever was given it. Raises
    PermissionError where this user may not enter it.
    """
    own = Path(os.path.realpath(given))  # a link may lead to itself
    one = named_as_one(given) or known_file(own) or not os.path.lexists(own / LATEST)
    return own if one else Path(os.path.realpath(own / LATEST))


def named_as_one(given: Path) -> bool:
    """Whether a folder is asked for as a release, or bears the name of one, and so is none of several."""
    return (Path.cwd() / given).name == LATEST or bool(re.fullmatch(RELEASE_ID, Path(os.path.realpath(given)).name))


def known_file(folder: Path) -> str | None:
    """A file of a release that lies in a folder.

    Raises PermissionError where this user may not enter it, OSError of a name that no folder can have.
    """
    for name in KNOWN:
        try:
            os.lstat(folder / name)
        except OSError as error:
            if isinstance(error, PermissionError) or error.errno == errno.ENAMETOOLONG:
                raise
            continue
        return name
    return None
