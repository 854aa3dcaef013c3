"""Another key for the same policy: an answer given anew is a second answer, so somebody has to have meant it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funnel.errors import DrawError, LedgerError
from funnel.release.durable import replace_file, to_json, writing

NAME = "rotations.json"
"""In the private folder: which new key was agreed to, for which policy, after which of its releases."""

FORMAT = "funnel-rotations/1"
Entry = Mapping[str, Any]


def last_permanent(name: str, entries: Sequence[Entry]) -> Entry | None:
    """The last release of a policy, by its name, that was drawn with a key."""
    own = (one for one in reversed(entries) if one["name"] == name and one["draws"] == "permanent")
    return next(own, None)


def check_key(private: Path, name: str, entries: Sequence[Entry], fingerprint: str) -> None:
    """The key is that of the policy's last permanent release, or was agreed to after it.

    Raises DrawError (key-changed): under another key everybody is asked anew, which costs privacy; and LedgerError
    where the record of agreed keys is damaged.
    """
    last = last_permanent(name, entries)
    if last is None or last["key_fingerprint"] == fingerprint:
        return
    wanted = {"name": name, "after": last["sequence"], "to": fingerprint}
    if any(wanted.items() <= one.items() for one in _agreed(private)):
        return
    raise DrawError(
        "key-changed",
        f"the last release, {last['release']}, was drawn with key {last['key_fingerprint']}, and this is key "
        f"{fingerprint}: everybody would be asked anew, which tells more about each of them",
        where=str(private),
        advice="Nothing was drawn. Give the old key back. Where it is lost, or the change is meant, `funnel key rotate "
        "POLICY --accept` shows what it costs and records that it is meant.",
    )


def agree(private: Path, name: str, entries: Sequence[Entry], fingerprint: str) -> None:
    """Record, durably, that the policy's next release may be drawn with this key. Raises LedgerError, ReleaseError."""
    last = last_permanent(name, entries)
    if last is None:
        return
    told = {
        "name": name,
        "after": last["sequence"],
        "from": last["key_fingerprint"],
        "to": fingerprint,
        "agreed": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    content = {"format": FORMAT, "rotations": [*_agreed(private), told]}
    with writing(private):
        replace_file(private / NAME, to_json(content).encode())


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
