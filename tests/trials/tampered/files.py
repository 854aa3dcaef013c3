"""Bytes of files changed, and whole files taken, added or exchanged."""

from __future__ import annotations

import shutil
from random import Random

from tests.trials.tampered.moves import (
    AS_IT_IS,
    EVIDENCE,
    FOLDER,
    KEY,
    LISTED,
    move,
    spoil,
)
from tests.trials.tampered.place import KEPT, Place


@move("bytes of a published file", AS_IT_IS, LISTED, views=(EVIDENCE, KEY, FOLDER))
def published_bytes(place: Place, rng: Random) -> str | None:
    files = sorted(
        path for path in place.folder.iterdir() if path.name not in ("release.json", "attestation.json")
    )
    return spoil(rng.choice(files), rng)


@move("bytes of a published file", views=(EVIDENCE, KEY, FOLDER))
def manifest_bytes(place: Place, rng: Random) -> str | None:
    return spoil(place.folder / "release.json", rng)


@move("bytes of a published file", views=(KEY, FOLDER))
def signature_bytes(place: Place, rng: Random) -> str | None:
    return spoil(place.folder / "attestation.json", rng)


@move("bytes of the private evidence", views=(EVIDENCE, FOLDER))
def kept_bytes(place: Place, rng: Random) -> str | None:
    return spoil(place.kept / rng.choice(KEPT), rng)


@move("bytes of the ledger", views=(EVIDENCE, FOLDER))
def ledger_bytes(place: Place, rng: Random) -> str | None:
    return spoil(place.private / "ledger.jsonl", rng, lambda raw: raw.split(b"\n")[:-1])


@move("bytes of the ledger", views=(EVIDENCE, FOLDER))
def head_bytes(place: Place, rng: Random) -> str | None:
    return spoil(place.private / "ledger.head", rng)


@move("bytes of a protocol kept for the ledger", views=(FOLDER,))
def protocol_bytes(place: Place, rng: Random) -> str | None:
    return spoil(place.private / "protocols" / f"{place.entry['protocol_sha256']}.json", rng)


# --- whole files


@move("a file gone, added or exchanged", AS_IT_IS, LISTED, views=(EVIDENCE, KEY, FOLDER))
def published_file_gone(place: Place, rng: Random) -> str | None:
    path = rng.choice(sorted(place.folder.iterdir()))
    path.unlink()
    return f"{path.name} removed"


@move("a file gone, added or exchanged", views=(EVIDENCE, KEY, FOLDER))
def file_added(place: Place, rng: Random) -> str | None:
    name = rng.choice(
        ["notes.txt", "data.csv.bak", ".hidden", "evidence.json", "people.parquet", "report.html~"]
    )
    (place.folder / name).write_bytes(rng.randbytes(50))
    return f"{name} added to the release"


@move("a file gone, added or exchanged", AS_IT_IS, LISTED, views=(EVIDENCE, KEY, FOLDER))
def published_file_of_another(place: Place, rng: Random) -> str | None:
    path, other = rng.choice(sorted(place.folder.iterdir())), rng.choice(place.others())
    if not (other / path.name).is_file() or (other / path.name).read_bytes() == path.read_bytes():
        return None
    if path.name == "attestation.json":
        return None
    shutil.copy(other / path.name, path)
    return f"{path.name} taken from {other.parent.parent.name} {other.name}"


@move("a file gone, added or exchanged", views=(EVIDENCE, KEY, FOLDER))
def file_is_a_link(place: Place, rng: Random) -> str | None:
    path = rng.choice(sorted(place.folder.iterdir()))
    path.rename(place.home / path.name)
    path.symlink_to(place.home / path.name)
    return f"{path.name} replaced by a link to the same bytes elsewhere"


@move("a file gone, added or exchanged", views=(EVIDENCE, FOLDER))
def kept_file_gone(place: Place, rng: Random) -> str | None:
    path = place.kept / rng.choice(KEPT)
    if not path.is_file():
        return None
    path.unlink()
    return f"{path.name} removed from the evidence"


@move("a file gone, added or exchanged", views=(EVIDENCE, FOLDER))
def kept_file_of_another(place: Place, rng: Random) -> str | None:
    path, other = place.kept / rng.choice(KEPT), rng.choice(place.others())
    new = place.kept_of(other) / path.name
    if not (path.is_file() and new.is_file()) or path.read_bytes() == new.read_bytes():
        return None
    shutil.copy(new, path)
    return f"{path.name} taken from the evidence of {other.parent.parent.name} {other.name}"


@move("a file gone, added or exchanged", views=(FOLDER,))
def ledger_file_gone(place: Place, rng: Random) -> str | None:
    path = place.private / rng.choice(["ledger.jsonl", "ledger.head"])
    if not path.is_file():
        return None
    path.unlink()
    return f"{path.name} removed"
