"""releases.json: whether a release is listed, and whether it is the newest where that was asked for."""

from __future__ import annotations

import os
from pathlib import Path

from funnel.audit.kernel.opened import Opened, content, parsed
from funnel.audit.kernel.verdict import Broken, Unchecked, agree, counted
from funnel.audit.verify.envelope import signed
from funnel.format.feed import NAME, FeedFile, ReleaseList, inside
from funnel.format.fields import LATEST
from funnel.format.keyline import fingerprint
from funnel.format.manifest import NAME as MANIFEST
from funnel.format.place import release_in

Lists = dict[str, ReleaseList]
"""By policy."""


def newest(opened: Opened, key: bytes, asked: Path, kept: Path | None) -> str | Unchecked:
    """The release is listed by its publisher, and is the newest where it was asked for as that.

    `asked` is the folder as it was given. Lists are those signed with the key: beside the release, and in a feed that
    was `kept` from before or had from elsewhere. Raises Broken.
    """
    beside = published(opened, asked) / NAME
    found = [_lists(path, key) for path in (beside, kept) if path is not None and (path == kept or path.exists())]
    if not found:
        return Unchecked(f"no {NAME} lies beside the release: nobody knows whether a newer one was published")
    name = NAME if kept is None or beside.exists() else kept.name
    lists = found[0] if len(found) == 1 else _later(*found)
    one, own = opened.manifest, opened.entry(opened.release / MANIFEST).sha256
    last = max((each.newest for each in lists.values()), default=None)
    if one.name not in lists:
        if as_newest(asked):
            raise Broken(name, "it lists no releases of this policy under this key", one.name, sorted(lists))
        return Unchecked(f"{name} has no list of {one.name} that is signed with this key")
    releases = lists[one.name].releases
    if one.release not in releases:
        what = "it does not list this release: it is older than the release, or a run was cut off before it was written"
        raise Broken(name, what, one.release, lists[one.name].newest)
    agree(name, [(f"hash of {MANIFEST}", releases[one.release], own)])
    if last != one.release and as_newest(asked):
        raise Broken(LATEST, "an older release stands in the place of the newest that is listed", last, one.release)
    place = sorted(releases).index(one.release) + 1
    newer = "" if last == one.release else f"; {last} is newer"
    told = "" if kept is None else _remembered(releases, found[-1].get(one.name), kept.name)
    told += "" if beside.exists() else f"; no {NAME} lies beside the release"
    return f"{place} of {counted(len(releases), 'release')} of {one.name}{newer}{told}"


def published(opened: Opened, asked: Path) -> Path:
    """The folder of all releases: where the `latest` that was asked for stands, wherever that points."""
    given = Path.cwd() / asked
    if not as_newest(asked):
        return opened.release.parent
    return given.parent if given.name == LATEST else given


def as_newest(asked: Path) -> bool:
    """Whether a folder stands for the newest release: `latest`, or the folder of all."""
    return (Path.cwd() / asked).name == LATEST or release_in(asked) != Path(os.path.realpath(asked))


def _lists(path: Path, key: bytes) -> Lists:
    """What the holder of a key listed in a feed. Raises Broken."""
    found: Lists = {}
    for one in parsed(FeedFile, path.name, content(path)).lists:
        if one.signed_by == fingerprint(key):
            signed(path.name, one, key)
            told = inside(one)
            found[told.predicate.policy] = told
    return found


def _later(beside: Lists, kept: Lists) -> Lists:
    """The later of two lists of each policy; what lies beside the release must not be the earlier. Raises Broken.

    Names of releases are times, which a ledger that was begun anew goes on with, though its lines are counted anew; of
    the same newest release the list of more lines is the later one.
    """
    for policy, old in kept.items():
        new, own = beside.get(policy), old.predicate
        if new is None or (new.newest, new.predicate.sequence) < (old.newest, own.sequence):
            found = None if new is None else (new.newest, new.predicate.sequence)
            what = f"its list of {policy} is older than the one given, or what that lists was taken back since"
            what = what if new else f"it has no list of {policy} under this key, as the one given has"
            raise Broken(NAME, f"{what}: newest release, lines of the ledger", (old.newest, own.sequence), found)
        hashes = new.releases
        same = {name: hashes.get(name, sha256) for name, sha256 in old.releases.items()}
        agree(NAME, [("hashes of releases", old.releases, same)])
        if (new.newest, new.predicate.sequence) == (old.newest, own.sequence):
            agree(NAME, [("last line of a ledger", own.ledger_sha256, new.predicate.ledger_sha256)])
    return beside


def _remembered(releases: dict[str, str], old: ReleaseList | None, kept: str) -> str:
    """What is told of a list that was given beside the one that counts."""
    if old is None:
        return f"; {kept} that was given lists none under this key"
    gone = len(old.releases.keys() - releases.keys())
    return f"; {counted(gone, 'release')} of {kept} not listed any more" if gone else ""
