"""Releases whose data were taken away: what stays of them, the mark that says so, and marks that lie."""

from __future__ import annotations

import shutil
from random import Random
from typing import Any

from funnel.format import schema
from funnel.format.canonical import FormatError, encode
from funnel.format.pruned import FOLDER as MARKS
from funnel.format.pruned import STAYS, PrunedFile
from tests.trials.tampered.moves import EVIDENCE, FOLDER, KEY, move, spoil
from tests.trials.tampered.place import KEPT, Place, edit, pick, read

KIND = "what was pruned"


@move(KIND, views=(FOLDER,))
def mark_gone(place: Place, rng: Random) -> str | None:
    name = pick(rng, place.pruned)
    if name is None:
        return None
    (place.private / MARKS / name).unlink()
    return f"the mark of {name} removed"


@move(KIND, views=(FOLDER,))
def mark_edited(place: Place, rng: Random) -> str | None:
    """Bytes of it, the release or the hash that it names; when it was written only the private folder says."""
    name = pick(rng, place.pruned)
    if name is None:
        return None
    path, what = place.private / MARKS / name, rng.choice(["bytes", "release", "manifest_sha256"])
    if what == "bytes":
        return spoil(path, rng, _but_when)
    edit(path, lambda told: told.update({what: "0" * 64 if what[0] == "m" else place.releases[-1]}))
    return f"the mark of {name}: another {what}"


def _but_when(raw: bytes) -> Any:
    """What a mark says, but for its time; its bytes where it is none."""
    try:
        told = schema.read(PrunedFile, MARKS, raw)
    except FormatError:
        return raw
    return told.release, told.manifest_sha256


@move(KIND, views=(FOLDER,))
def mark_of_another(place: Place, rng: Random) -> str | None:
    """Of a release that is whole, or that never was."""
    name = pick(rng, place.pruned)
    if name is None:
        return None
    new = rng.choice([*place.releases, "20200101T000000Z-000000"])
    told = read(place.private / MARKS / name) | {"release": new}
    if new in place.releases:
        told["manifest_sha256"] = place.at(new).entry["manifest_sha256"]
    (place.private / MARKS / new).write_bytes(encode(told))
    return f"a mark of {new}, which was not pruned"


@move(KIND, views=(EVIDENCE, KEY, FOLDER))
def data_gone(place: Place, rng: Random) -> str | None:
    """Just as much as pruning takes, and nothing says that it did."""
    for path in place.folder.iterdir():
        if path.name not in STAYS:
            path.unlink()
    return "data and pages removed without a mark"


@move(KIND, views=(FOLDER,))
def rest_spoilt(place: Place, rng: Random) -> str | None:
    """Of what stays of a pruned release: bytes, a file less, a file more, a file of another, or all of it gone."""
    name = pick(rng, place.pruned)
    if name is None:
        return None
    folder, what = place.at(name).folder, rng.choice(["bytes", "gone", "added", "another", "all"])
    path = folder / rng.choice(sorted(STAYS))
    if what == "bytes":
        return spoil(path, rng)
    if what == "gone":
        path.unlink()
    elif what == "added":
        shutil.copy(next(place.at(place.releases[-1]).folder.glob("data.*")), folder)
    elif what == "another":
        shutil.copy(place.at(place.releases[-1]).folder / path.name, path)
    else:
        shutil.rmtree(folder)
    return f"{name}, pruned: {path.name if what in ('gone', 'another') else 'a file' if what == 'added' else ''} {what}"


@move(KIND, views=(FOLDER,))
def rest_kept_spoilt(place: Place, rng: Random) -> str | None:
    """The evidence of a pruned release, which stays."""
    name = pick(rng, place.pruned)
    if name is None:
        return None
    path = place.at(name).kept / rng.choice(KEPT)
    if not path.is_file() or rng.randrange(2):
        return spoil(path, rng)
    path.unlink()
    return f"{path.name} removed from the evidence of {name}, which was pruned"
