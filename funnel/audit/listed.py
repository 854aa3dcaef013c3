"""releases.json and `latest` of a published folder, compared with a ledger that tells of releases there."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from funnel.audit.kernel.opened import content, parsed
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.format import journal, manifest
from funnel.format.feed import NAME, FeedFile, ReleaseList, inside
from funnel.format.fields import LATEST, RELEASE_ID
from funnel.format.journal import Line, ReleaseEntry
from funnel.format.place import shown

Numbered = list[tuple[int, ReleaseEntry]]
"""Releases with the numbers of their lines, oldest first."""


def feed_of(to: Path, private: Path, lines: Sequence[Line]) -> str | Unchecked:
    """Every policy that signs has in releases.json a list of its releases under its key, by the hashes in the ledger.

    It goes up to the last: one that was put back says of an earlier state of the ledger that it is the last. That the
    key signed it shows who has that key. Raises Broken.
    """
    seen = _seen(to, private, lines)
    signing = {policy: key for policy, own in seen.items() if (key := _key_of(to, own))}
    if not signing:
        return Unchecked(NOT_CLAIMED + "no policy signs whose newest release of this ledger lies here")
    file = parsed(FeedFile, NAME, content(to / NAME))
    raw = content(private / journal.NAME)
    for policy, key in signing.items():
        found = file.of(policy)
        if found is None:
            raise Broken(NAME, "it has no list of a policy that signs", policy, None)
        agree(NAME, [(f"key of the list of {policy}", key, found.signed_by)])
        _check(inside(found), seen[policy], lines, raw)
    return f"{counted(len(signing), 'list')}, of {counted(sum(len(seen[one]) for one in signing), 'release')}"


def line_hash(ledger: bytes, sequence: int) -> str:
    """SHA-256 of a line as it stands there, whatever version of funnel wrote it."""
    return hashlib.sha256(ledger.split(b"\n")[sequence - 1] + b"\n").hexdigest()


def _check(found: ReleaseList, own: Numbered, lines: Sequence[Line], raw: bytes) -> None:
    """A policy's list against those of its releases that readers see or saw. Raises Broken."""
    told, (last, newest) = found.predicate, own[-1]
    if told.sequence < last or found.newest < newest.release:
        raise Broken(NAME, f"the list of {told.policy} misses the last release", newest.release, found.newest)
    if told.sequence > len(lines):
        raise Broken(NAME, "it tells of more lines than the ledger has", len(lines), told.sequence)
    entered = {one.release: one.manifest_sha256 for one in of_releases(lines) if one.name == told.policy}
    releases = {one.release: one.manifest_sha256 for _, one in own}
    agree(NAME, [
        ("ledger", line_hash(raw, told.sequence), told.ledger_sha256),
        ("releases", releases | {name: entered.get(name) for name in found.releases}, found.releases),
    ])  # fmt: skip


def latest_of(to: Path, lines: Sequence[Line]) -> str | None:
    """Where `latest` points: at the newest release there, or one of another ledger that is newer; None without any.

    A release of that name in another folder may be any other one, and so may be what a folder in place of the link
    holds. Raises Broken.
    """
    newest, link = newest_of(to, lines), to / LATEST
    if newest is None:
        return None
    if link.is_dir() and not link.is_symlink():
        raise Broken(LATEST, "it is a folder of its own and points at none", newest, "what it holds")
    target = to / link.readlink() if link.is_symlink() else link
    beside = os.path.realpath(target.parent) == os.path.realpath(to) and (target / manifest.NAME).is_file()
    found = target.name if beside and re.fullmatch(RELEASE_ID, target.name) else None
    if found is None or found < newest:
        raise Broken(LATEST, "it does not point at the newest release", newest, found)
    return found


def newest_of(to: Path, lines: Sequence[Line]) -> str | None:
    """The last release of a ledger that lies in a folder; None without any."""
    return next((one.release for one in reversed(of_releases(lines)) if (to / one.release).is_dir()), None)


def _seen(to: Path, private: Path, lines: Sequence[Line]) -> dict[str, Numbered]:
    """By policy the releases that are in the folder, or of which the evidence says that they were."""
    numbered = [(line.sequence, line.entry) for line in lines if isinstance(line.entry, ReleaseEntry)]
    seen = shown(to, private, [one.release for _, one in numbered])
    found = dict[str, Numbered]()
    for sequence, one in numbered:
        if one.release in seen:
            found.setdefault(one.name, []).append((sequence, one))
    return found


def of_releases(lines: Sequence[Line]) -> list[ReleaseEntry]:
    """The entries of releases, oldest first."""
    return [line.entry for line in lines if isinstance(line.entry, ReleaseEntry)]


def _key_of(to: Path, own: Numbered) -> str | None:
    """The key by which the last of some releases says that it is signed; what cannot be read fails by itself."""
    there = [to / one.release / manifest.NAME for _, one in own if (to / one.release).is_dir()]
    try:
        signed = parsed(manifest.Manifest, manifest.NAME, content(there[-1])).signed if there else None
    except Broken:
        return None
    return None if signed is None else signed.public_key
