"""Where a release lies: in a folder of its own, or in the one that `latest` in a folder of releases leads to."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from funnel.format import attestation, cells, evidence, manifest, protocol, released, schema
from funnel.format.fields import LATEST, RELEASE_ID

KNOWN = (
    *(manifest.NAME, protocol.NAME, released.NAME, cells.NAME, attestation.NAME),
    *("data.parquet", "data.csv", "data", "report.html", "report.json"),
)
"""What a folder of a release holds, and none of releases."""
SEEN = "published"
"""An empty file beside the evidence of a release that became visible: an auditor then asks where it is."""
_PLAN = "plan.json"


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


def shown(to: Path, private: Path, entered: Sequence[str]) -> set[str]:
    """Those `entered` in a ledger that readers see in a folder, or by their evidence saw there."""
    there = {name for name in entered if (to / name).is_dir()}
    gone = [name for name in entered if name not in there and (private / name / SEEN).exists()]
    return there | {*gone} - {*elsewhere(to, private, gone, there)}


def elsewhere(to: Path, private: Path, gone: Collection[str], made: Collection[str]) -> list[str]:
    """Those `gone` from a folder that by their plans were published in another one.

    Ways are told as one goes there from the private folder: so they are the same where both were moved, or have other
    names to whoever asks. Where a folder was moved by itself, what was `made` in it shows how it was called; that may
    be a copy, too, while those that are gone still stand where they were made.
    """
    if not gone:
        return []
    own = _ways(to, private)
    here = {_way(private, name) for name in made}
    ways = {name: way for name in gone if (way := _way(private, name)) is not None and way not in own}
    return [name for name, way in ways.items() if way not in here or (private / way / name).is_dir()]


def published_in(folder: Path, private: Path) -> bool:
    """Whether a folder, or a link, is where by some plan of a private folder releases are published."""
    root = private.parent if re.fullmatch(RELEASE_ID, private.name) else private
    ways = _ways(folder, root)
    try:
        names = [one.name for one in os.scandir(root) if re.fullmatch(RELEASE_ID, one.name)]
    except OSError:
        return False
    return any(_way(root, name) in ways for name in names)


def _ways(to: Path, private: Path) -> set[str]:
    """How one goes from a private folder to another: by where both are, and by their names, of which one may be a link.

    What was to be published under a name is not elsewhere because a link stands there now.
    """
    return {os.path.relpath(path(to), path(private)) for path in (os.path.realpath, os.path.abspath)}


def _way(private: Path, release: str) -> str | None:
    """Where a release was to be published; None where its plan is not read, or is not the one its evidence lists.

    Where that list is lost the plan is believed: what was published elsewhere is not lost with it.
    """
    listed, plan = private / release / evidence.NAME, private / release / _PLAN
    try:
        if not plan.is_file():  # but a pipe, say
            return None
        raw = plan.read_bytes()
        if os.path.lexists(listed):
            told = listed.read_bytes() if listed.is_file() else b""
            files = schema.read(evidence.EvidenceFile, evidence.NAME, told).files
            if files[_PLAN].sha256 != hashlib.sha256(raw).hexdigest():
                return None
        step = json.loads(raw)["steps"][-1]
        return os.path.relpath(str(step["to"]), str(step["private"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # of whatever text
        return None
