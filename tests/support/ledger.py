"""Entries and lines of a ledger, as a release would leave them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from funnel.format import people, schema
from funnel.format.journal import (
    HEAD,
    NAME,
    START,
    Drawn,
    Entry,
    Head,
    Identity,
    Line,
    Promise,
    ReleaseEntry,
    Together,
)
from funnel.format.manifest import Parameters
from funnel.format.people import PeopleFile
from funnel.ledger.people import PeopleKey
from funnel.ledger.whose import Whose

TIME = "2026-11-21T11:20:34Z"
NOTHING = "0" * 64
FIRST = "20261121T112034Z-3f9a1c"
PEOPLE = PeopleFile("funnel-people/1", NOTHING, "a" * 16, "id", 1, NOTHING, 0, ("S",), ("X",), ((), ()), ())
"""The digest of a table of which only its content is known."""
TOGETHER = Together("lip", ("S",), 0.5, 0.5, "exact", 1, 1.0)
PROMISE = Promise("Zürich", "lip", 1.0, Parameters(), None, FIRST, None, TOGETHER)
ENTRY = ReleaseEntry(
    release=FIRST,
    name="Zürich",
    policy_sha256=NOTHING,
    manifest_sha256=NOTHING,
    evidence_sha256=NOTHING,
    protocol_sha256=NOTHING,
    notion="lip",
    epsilon=1.0,
    leakage={"lip": 0.5},
    draws="permanent",
    key_fingerprint="a" * 16,
    entity="id",
    drawn=(Drawn(("X",), ("0" * 16,), ("0" * 16,), None, (), (FIRST,)),),
    present=None,
    promises=(PROMISE,),
    identity=Identity(NOTHING, NOTHING, hashlib.sha256(schema.write(PEOPLE)).hexdigest(), FIRST, FIRST, (), None),
    lock=None,
)


def an_id(number: int) -> str:
    """Names of releases, a second apart."""
    return f"20261121T11{number // 60:02}{number % 60:02}Z-{number:06x}"


def an_entry(release: str | int, **changes: Any) -> ReleaseEntry:
    """An entry of a release by its name or number."""
    return replace(ENTRY, release=release if isinstance(release, str) else an_id(release), **changes)


def whose(private: Path, release: str, people_file: PeopleFile | None = None) -> Whose:
    """Of whom a release is, with its digest where later ones look for it; `PEOPLE` under a key that no other has."""
    people_file = people_file or replace(PEOPLE, key=hashlib.sha256(release.encode()).hexdigest()[:16])
    folder = private / release
    folder.mkdir(parents=True, exist_ok=True)
    (folder / people.NAME).write_bytes(schema.write(people_file))
    return Whose(release, people_file, PeopleKey(bytes(32)))


def rechained(private: Path, entries: Iterable[Entry]) -> None:
    """A ledger with these entries and its head, as somebody would write it who can count."""
    previous, lines = START, list[bytes]()
    for number, entry in enumerate(entries, start=1):
        lines.append(schema.write(Line(number, TIME, previous, "0" * 32, entry)))
        previous = hashlib.sha256(lines[-1]).hexdigest()
    (private / NAME).write_bytes(b"".join(lines))
    (private / HEAD).write_bytes(schema.write(Head(len(lines), previous)))
