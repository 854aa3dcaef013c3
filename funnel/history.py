"""What earlier releases of the same policy mean for a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SAME = ("key_fingerprint", "protocol_sha256", "draws")


def warnings(earlier: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> list[str]:
    """What the ledger's `earlier` entries say against taking the leakage of `entry` for that of all together.

    Under one key and one protocol, permanent draws repeat what was said before and add nothing. Any other
    sequence of releases about the same people leaks more than each of them (mathematics: privacy with
    respect to S does not add up), and nothing here measures how much.
    """
    if not earlier:
        return []
    if entry["draws"] == "permanent" and all(_repeats(one, entry) for one in earlier):
        return []
    if entry["draws"] == "fresh":
        why = "its draws are fresh"
    elif any(one.get("key_fingerprint") != entry["key_fingerprint"] for one in earlier):
        why = "not all of them used this key"
    else:
        why = "not all of them used this protocol, because counts or policy changed"
    return [
        f"this is release {len(earlier) + 1} in this ledger, and {why}: together the releases may tell more about a "
        "person than the leakage stated for each; that is not measured"
    ]


def _repeats(one: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether an earlier release drew by the same function."""
    return all(one.get(name) == entry[name] for name in _SAME)
