"""Tamperings with the ledger by someone who knows how it is chained: numbers, hashes and head fit again."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from funnel.format.canonical import encode
from tests.support.forging import lines_of
from tests.trials.tampered.moves import FOLDER, move
from tests.trials.tampered.place import Place, pick

KIND = "the ledger, chained anew"


@move(KIND, views=(FOLDER,))
def replayed(place: Place, rng: Random) -> str | None:
    entries = place.lines
    one, at = rng.randrange(len(entries)), rng.randrange(len(entries) + 1)
    if at == len(entries) and entries[one]["entry"]["kind"] == "estimate":
        return None  # a charge that no release followed: what a run that died leaves
    place.rechain([*entries[:at], entries[one], *entries[at:]])
    return f"entry {one + 1} a second time, as entry {at + 1}"


@move(KIND, views=(FOLDER,))
def reordered(place: Place, rng: Random) -> str | None:
    entries = place.lines
    if len(entries) < 2:
        return None
    shuffled = rng.sample(entries, len(entries))
    if shuffled == entries:
        return None
    place.rechain(shuffled)
    return f"entries in the order {[1 + entries.index(entry) for entry in shuffled]}"


@move(KIND, views=(FOLDER,))
def dropped(place: Place, rng: Random) -> str | None:
    entries = place.lines
    first = rng.randrange(len(entries))
    last = rng.randrange(first, len(entries)) + 1
    place.rechain(entries[:first] + entries[last:])
    return f"entries {first + 1} to {last} of {len(entries)} dropped"


@move(KIND, views=(FOLDER,))
def foreign(place: Place, rng: Random) -> str | None:
    """A release of another ledger put in; a charge for an estimate is what a run that died leaves, and no lie."""
    other = pick(rng, [one for one in place.others() if one.name not in place.releases])
    if other is None:
        return None
    line = next(one for one in lines_of(other.parent.parent / "private") if "release" in one["entry"])
    entries, at = place.lines, rng.randrange(len(place.lines) + 1)
    place.rechain([*entries[:at], line, *entries[at:]])
    return f"an entry of {other.parent.parent.name} as entry {at + 1}"


@move(KIND, views=(FOLDER,))
def edited(place: Place, rng: Random) -> str | None:
    """One field of one entry."""
    entries = place.lines
    one = rng.randrange(len(entries))
    entry = entries[one]["entry"]
    path = rng.choice(_paths(entry, ()))
    at = entry
    for key in path[:-1]:
        at = at[key]
    old, new = at[path[-1]], _other(at[path[-1]], rng)
    at[path[-1]] = new
    place.rechain(entries)
    return f"entry {one + 1}: {'.'.join(map(str, path))} {str(old)[:20]} is now {str(new)[:20]}"


def _paths(value: Any, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path and not isinstance(value, dict | list) else []
    for key, part in parts:
        found += _paths(part, (*path, key))
    return found


def _other(old: Any, rng: Random) -> Any:
    """Another value of the same kind."""
    if old is None:
        return rng.choice([1, "s"])
    if isinstance(old, str):
        at = rng.randrange(len(old)) if old else 0
        return old[:at] + ("0" if old[at : at + 1] != "0" else "1") + old[at + 1 :]
    return rng.choice([round(old * 0.5, 4), old + 1, None])


@move(KIND, views=(FOLDER,))
def written_earlier(place: Place, rng: Random) -> str | None:
    """A time of writing before that of the entry before."""
    entries = place.lines
    if len(entries) < 2:
        return None
    one = rng.randrange(1, len(entries))
    entries[one]["written"] = "2020-01-01T00:00:00Z"
    place.rechain(entries)
    return f"entry {one + 1} written before the one before it"


@move(KIND, views=(FOLDER,))
def lost(place: Place, rng: Random) -> str | None:
    """A part of an entry gone."""
    entries = place.lines
    one, key = (
        rng.randrange(len(entries)),
        rng.choice(["promises", "drawn", "entity", "leakage", "evidence_sha256", "kind"]),
    )
    if key not in entries[one]["entry"]:
        return None
    del entries[one]["entry"][key]
    place.rechain(entries)
    return f"entry {one + 1} without {key}"


@move(KIND, views=(FOLDER,))
def head(place: Place, rng: Random) -> str | None:
    path = place.private / "ledger.head"
    told = json.loads(path.read_bytes())
    if rng.randrange(2):
        told["sequence"] += rng.choice([1, -1, 10])
    else:
        told["sha256"] = "0" * 64
    path.write_bytes(encode(told))
    return f"ledger.head says {told['sequence']}, {told['sha256'][:8]}…"
