"""Another key for the same policy: an answer given anew is a second answer, so somebody has to have meant it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funnel.data.alphabet import folded
from funnel.errors import DrawError, LedgerError
from funnel.files import replace_file, writing
from funnel.format.canonical import encode

NAME = "rotations.json"
"""In the private folder: which new key was agreed to, for which policy, after which of its releases."""

FORMAT = "funnel-rotations/1"
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What a policy asks people under a key: its name, and the public columns that it releases, folded."""

    name: str
    columns: frozenset[str]

    def of(self, entries: Sequence[Entry]) -> list[Entry]:
        """The releases drawn with a key that this is about: of the policy by name, and of one of its columns by any.

        A policy that was renamed, or a second one, asks the same people the same again.
        """
        return [
            one
            for one in entries
            if one["draws"] == "permanent" and (one["name"] == self.name or self.columns & answered(one))
        ]

    def changed(self, entries: Sequence[Entry], fingerprint: str) -> bool:
        """Whether the key is not that of the policy's last release, or new to a column that another key answered."""
        own = [one for one in self.of(entries) if one["name"] == self.name]
        if own and own[-1]["key_fingerprint"] != fingerprint:
            return True
        keys: dict[str, set[str]] = {}
        for one in self.of(entries):
            for column in self.columns & answered(one):
                keys.setdefault(column, set()).add(str(one["key_fingerprint"]))
        return any(fingerprint not in known for known in keys.values())


def answered(entry: Entry) -> frozenset[str]:
    """The columns that a release drew, folded; entries of the first version do not tell."""
    return frozenset(folded(column) for one in entry.get("drawn", ()) for column in one["columns"])


def last_asked(asked: Asked, entries: Sequence[Entry]) -> Entry | None:
    """The policy's own last release that was drawn with a key, by its name; else the last that asked the same."""
    found = asked.of(entries)
    own = [one for one in found if one["name"] == asked.name]
    return next(reversed(own or found), None)


def check_key(private: Path, asked: Asked, entries: Sequence[Entry], fingerprint: str) -> None:
    """The key is that of the policy's last permanent release, and one that its columns know; or was agreed to since.

    Raises DrawError (key-changed): under another key everybody is asked anew, which costs privacy; and LedgerError
    where the record of agreed keys is damaged.
    """
    last = last_asked(asked, entries)
    if last is None or not asked.changed(entries, fingerprint):
        return
    wanted = {"name": asked.name, "after": last["sequence"], "to": fingerprint}
    if any(wanted.items() <= one.items() for one in _agreed(private)):
        return
    whose = (
        "the last release"
        if last["name"] == asked.name
        else f"the release of policy {last['name']} about them"
    )
    raise DrawError(
        "key-changed",
        f"{whose}, {last['release']}, was drawn with key {last['key_fingerprint']}, and this is key "
        f"{fingerprint}: everybody would be asked anew, which tells more about each of them",
        where=str(private),
        advice="Nothing was drawn. Give the old key back. Where it is lost, or the change is meant, `funnel key rotate "
        "POLICY --accept` shows what it costs and records that it is meant.",
    )


def agree(private: Path, asked: Asked, entries: Sequence[Entry], fingerprint: str) -> None:
    """Record, durably, that the policy's next release may be drawn with this key. Raises LedgerError, ReleaseError."""
    last = last_asked(asked, entries)
    if last is None:
        return
    told = {
        "name": asked.name,
        "after": last["sequence"],
        "from": last["key_fingerprint"],
        "to": fingerprint,
        "agreed": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    content = {"format": FORMAT, "rotations": [*_agreed(private), told]}
    with writing(private):
        replace_file(private / NAME, encode(content))


def _agreed(private: Path) -> list[dict[str, Any]]:
    path = private / NAME
    try:
        found = json.loads(path.read_bytes())
        if found["format"] != FORMAT or not all(isinstance(one, dict) for one in found["rotations"]):
            raise ValueError("another format")
        return list(found["rotations"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerError(
            "ledger",
            "the record of agreed keys cannot be read",
            where=str(path),
            advice="Restore it from a backup, or move it away and agree to the new key again.",
        ) from None
