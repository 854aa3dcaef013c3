"""releases.json and `latest`, which tell the newest release from older ones."""

from __future__ import annotations

import shutil
from random import Random

from funnel.format import schema
from funnel.format.attestation import Envelope, sealed
from funnel.format.feed import NAME, FeedFile, Position, ReleaseList, feed, inside, listing
from funnel.release.sign import load_signing_key
from tests.support.forging import sha
from tests.trials.tampered.moves import FOLDER, LATEST, LATEST_LEDGER, move, spoil
from tests.trials.tampered.place import Place, pick

LIST, PLACE = "the list of releases", "which release is the latest"


def _told(place: Place) -> tuple[Envelope, ReleaseList] | None:
    """The list of the one policy here, as it is signed, and what it says; None where it does not sign."""
    path = place.folder.parent / NAME
    if not path.exists():
        return None
    (one,) = schema.read(FeedFile, NAME, path.read_bytes()).lists
    return one, inside(one)


def _write(place: Place, one: Envelope, policy: str) -> None:
    (place.folder.parent / NAME).write_bytes(feed({policy: one}))


@move(LIST, views=(LATEST, FOLDER))
def list_bytes(place: Place, rng: Random) -> str | None:
    return spoil(place.folder.parent / NAME, rng)


@move(LIST, views=(FOLDER,))
def list_gone(place: Place, rng: Random) -> str | None:
    """A reader without the ledger is told that nobody knows; the auditor knows."""
    path = place.folder.parent / NAME
    if not path.exists():
        return None
    path.unlink()
    return f"{NAME} removed"


@move(LIST, views=(LATEST, LATEST_LEDGER, FOLDER))
def list_edited(place: Place, rng: Random) -> str | None:
    """An entry dropped, added or of another hash, or another state of the ledger, under the old signature."""
    found = _told(place)
    if found is None:
        return None
    (one, told), what = found, rng.choice(["dropped", "added", "of another hash", "line", "ledger"])
    releases, at = told.releases, told.predicate
    name = rng.choice(sorted(releases))
    if what == "dropped" and len(releases) > 1:
        del releases[name]
    elif what == "added":
        releases["20200101T000000Z-000000"] = "0" * 64
    elif what == "of another hash":
        releases[name] = sha(releases[name].encode())
    elif what == "line":
        at = Position(at.policy, at.sequence + 1, at.ledger_sha256)
    elif what == "ledger":
        at = Position(at.policy, at.sequence, "0" * 64)
    else:
        return None
    _write(place, sealed(listing(releases, at), one.signed_by, one.signature), at.policy)
    return f"{NAME}: {what} ({name})"


@move(LIST, views=(LATEST, LATEST_LEDGER, FOLDER))
def list_of_another_signer(place: Place, rng: Random) -> str | None:
    """The same list, signed with another key, or said to be signed with the publisher's."""
    found = _told(place)
    if found is None:
        return None
    one = load_signing_key("file:other.key", place.ground).seal(found[0].content)
    words = f"{NAME} signed with another key"
    if rng.randrange(2):
        one, words = sealed(one.content, found[0].signed_by, one.signature), f"{words}, under the publisher's name"
    _write(place, one, found[1].predicate.policy)
    return words


@move(LIST, views=(LATEST, LATEST_LEDGER, FOLDER))
def list_of_another_policy(place: Place, rng: Random) -> str | None:
    """By the right key, and in place of this policy's own."""
    others = [path for path in sorted(place.ground.glob(f"*/releases/{NAME}")) if path.parts[-3] != place.case]
    other = pick(rng, others)
    if other is None or _told(place) is None:
        return None
    shutil.copy(other, place.folder.parent / NAME)
    return f"{NAME} of {other.parts[-3]}"


@move(LIST, views=(LATEST, LATEST_LEDGER, FOLDER))
def list_put_back(place: Place, rng: Random) -> str | None:
    """As it was some nights before, signature and all; the newest release is still there."""
    found = _told(place)
    if found is None or len(found[1].releases) < 2:
        return None
    names = sorted(found[1].releases)[: rng.randrange(1, len(found[1].releases))]
    line = next(one for one in place.lines if one["entry"].get("release") == names[-1])
    at = Position(found[1].predicate.policy, line["sequence"], place.hash_of(line))
    old = listing({name: found[1].releases[name] for name in names}, at)
    _write(place, load_signing_key("file:sign.key", place.ground).seal(old), at.policy)
    return f"{NAME} as it was after {len(names)} of {len(found[1].releases)} nights"


@move(PLACE, views=(LATEST, LATEST_LEDGER, FOLDER))
def older_as_latest(place: Place, rng: Random) -> str | None:
    """An older release in the place of the newest: a link to it, or a copy."""
    older = pick(rng, place.releases[:-1])
    if older is None:
        return None
    link, copied = place.folder.parent / "latest", bool(rng.randrange(2))
    link.unlink()
    if copied:
        shutil.copytree(place.at(older).folder, link)
    else:
        link.symlink_to(older)
    return f"{'a copy of ' if copied else ''}{older} as latest"


@move(PLACE, views=(LATEST, LATEST_LEDGER))
def foreign_as_latest(place: Place, rng: Random) -> str | None:
    """Another policy's release, by the same publisher where it is signed."""
    others = [one for one in place.others() if one.parent.parent.name not in (place.case, place.home.name)]
    other = pick(rng, others)
    if other is None:
        return None
    (place.folder.parent / "latest").unlink()
    shutil.copytree(other, place.folder.parent / "latest")
    return f"a release of {other.parent.parent.name} as latest"


@move(PLACE, views=(FOLDER,))
def latest_gone(place: Place, rng: Random) -> str | None:
    link, loose = place.folder.parent / "latest", bool(rng.randrange(2))
    link.unlink()
    if loose:
        link.symlink_to("20200101T000000Z-000000")
    return f"latest {'points at nothing' if loose else 'removed'}"
