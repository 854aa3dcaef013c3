"""PRIVATE/locks: the counts that a lock was made from, for its owner only."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import Any

import numpy as np

from funnel.data import Joint
from funnel.data.domain import Domain
from funnel.data.joint import IntArray
from funnel.draw.histogram import Estimated
from funnel.draw.keys import Key
from funnel.errors import LockError
from funnel.files import replace_file, to_json, writing
from funnel.lock.lock import Lock

FORMAT = "funnel-locked-counts/1"
FOLDER = "locks"


def counts_hash(joint: Joint, key: Key) -> str:
    """An HMAC of the counts: without the key nobody can try out counts until one fits."""
    content = json.dumps(joint.as_dict(), sort_keys=True).encode()
    return hmac.digest(key.derive("lock counts"), content, "sha256").hex()


def keep_counts(private: Path, checksum: str, joint: Joint, estimated: Estimated | None = None) -> None:
    """PRIVATE/locks/CHECKSUM.json: the counts that a lock was made from, with their noise. Raises ReleaseError."""
    folder = private / FOLDER
    with writing(private):
        for one in (private, folder):
            if not one.is_dir():
                one.mkdir(mode=0o700, parents=True)
        content: dict[str, Any] = {"format": FORMAT, "lock": checksum, "joint": joint.as_dict()}
        if estimated is not None:
            content["estimated"] = [estimated.counted.tolist(), estimated.noisy.tolist()]
        replace_file(folder / f"{checksum}.json", to_json(content).encode())


def kept_counts(private: Path, lock: Lock) -> Joint | None:
    """The counts that a lock was made from; None where they are not kept here. Raises LockError."""
    path = private / FOLDER / f"{lock.checksum}.json"
    try:
        content = json.loads(path.read_text("utf-8"))
        joint = Joint.from_dict(content["joint"])
        if content["lock"] != lock.checksum or joint.blocks != tuple(one.inputs for one in lock.protocols):
            raise ValueError("they are those of another lock")
        return joint
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise LockError(
            "lock-damaged",
            f"the counts that the lock was made from cannot be read: {error}",
            where=str(path),
            advice="Restore the file from a backup of the private folder, or remove it: then the drift since the "
            "lock is not known, and nothing else changes.",
        ) from None


def kept_estimate(private: Path, lock: Lock, domain: Domain) -> tuple[IntArray, IntArray]:
    """The true and the noisy counts (m,) of a domain's cells that a lock over a private estimate was made from.

    Raises LockError where they are not kept here: without them nothing can be measured.
    """
    path = private / FOLDER / f"{lock.checksum}.json"
    try:
        content = json.loads(path.read_text("utf-8"))
        true, noisy = (np.array(one, np.int64) for one in content["estimated"])
        if (
            content["lock"] != lock.checksum
            or true.shape != noisy.shape
            or true.shape != (len(domain.cells),)
        ):
            raise ValueError("they are those of another lock")
        return true, noisy
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LockError(
            "lock-damaged",
            f"the noisy counts that the lock was made from cannot be read: {error}",
            where=str(path),
            advice="Restore the private folder from a backup. A new lock (`funnel lock --force`) estimates anew, and "
            "spends `estimate.epsilon` again.",
        ) from None
