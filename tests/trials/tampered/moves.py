"""Tamperings with files as they lie: bytes, whole files, signatures, folders. Each says in words what it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.trials.tampered.place import Place

AS_IT_IS, LISTED, SEALED = "as it is", "manifest made to fit", "all hashes made to fit"
"""What is recomputed afterwards: nothing, what lies in the published folder, or all that needs no key."""
EVIDENCE, KEY, FOLDER = "release and evidence", "release and public key", "all releases and the ledger"
LATEST, LATEST_LEDGER = "latest and public key", "latest and evidence"
"""What the auditor is given."""

EVERY = (AS_IT_IS, LISTED, SEALED)
ALL_VIEWS = (EVIDENCE, KEY, FOLDER)

Change = Callable[[Place, Random], str | None]


@dataclass(frozen=True)
class Move:
    """One way to tamper: `change` does it and says what it did; None where this release has nothing of the sort."""

    kind: str
    change: Change
    seals: tuple[str, ...]
    views: tuple[str, ...]


MOVES: list[Move] = []


def move(kind: str, *seals: str, views: tuple[str, ...] = (EVIDENCE,)) -> Callable[[Change], Change]:
    """Enter a move; by default the auditor has the evidence, and nothing is recomputed."""

    def enter(change: Change) -> Change:
        MOVES.append(Move(kind, change, seals or (AS_IT_IS,), views))
        return change

    return enter


# --- bytes


def spoilt(raw: bytes, rng: Random) -> tuple[bytes, str]:
    """Other bytes, and what was done."""
    at, size = rng.randrange(max(len(raw), 1)), rng.choice([1, 2, 7, 40])
    match rng.randrange(8):
        case 0 | 1:
            bit = rng.randrange(8)
            return _put(
                raw, at, bytes([raw[at] ^ 1 << bit])
            ) if raw else raw, f"bit {bit} of byte {at} flipped"
        case 2:
            return _put(raw, at, rng.randbytes(size)), f"{size} bytes overwritten from byte {at}"
        case 3:
            return raw[:at] + raw[at + size :], f"{size} bytes cut out at byte {at}"
        case 4:
            new = rng.choice([rng.randbytes(size), b" " * size, b"0", b"9", b"\n"])
            return raw[:at] + new + raw[at:], f"{len(new)} bytes inserted at byte {at}"
        case 5:
            return raw[:at], f"cut off after {at} bytes"
        case 6:
            return raw[: at + size] + raw[at:], f"{size} bytes from byte {at} doubled"
        case _:
            other = rng.randrange(max(len(raw), 1))
            one, two = raw[at : at + 1], raw[other : other + 1]
            return _put(_put(raw, at, two), other, one), f"bytes {at} and {other} exchanged"


def _put(raw: bytes, at: int, new: bytes) -> bytes:
    return (raw[:at] + new + raw[at + len(new) :])[: len(raw)]


def spoil(path: Path, rng: Random, means: Callable[[bytes], Any] = bytes) -> str | None:
    """Bytes of one file changed, so that it does not mean the same."""
    if not path.is_file():
        return None
    raw = path.read_bytes()
    new, words = spoilt(raw, rng)
    if means(new) == means(raw):
        return None
    path.write_bytes(new)
    return f"{path.name}: {words}"
