"""release.json: what a release says about itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from funnel.files import to_json, write_json, writing
from funnel.measure.figures import round_to, round_up

__all__ = [
    "Draws",
    "Estimate",
    "Manifest",
    "Sizes",
    "Utility",
    "file_entry",
    "sha256_file",
    "to_json",
    "write_json",
]

FORMAT = "funnel-release/1"
_ABSENT = ("locked", "signed")


@dataclass(frozen=True)
class Draws:
    """How values were drawn; the fingerprint names the key of permanent draws."""

    kind: str
    key_fingerprint: str | None


@dataclass(frozen=True)
class Estimate:
    """What the joint distribution was estimated from.

    Of a private estimate also ε_est, and how often these people were estimated so far and what that spent, in nats.
    """

    minimum: int
    kind: str
    epsilon: float | None = None
    estimates: int | None = None
    spent: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON form; nothing of noise where there is none."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Utility:
    """I(X;Y) and H(X) in nats, their ratio, and a certified bound of that ratio; rounded when written."""

    mutual_information: float
    entropy: float
    normalised: float
    upper_bound: float | None

    def as_dict(self) -> dict[str, float | None]:
        """Rounded to four decimals, the bound upwards."""
        return {
            "mutual_information": round_to(self.mutual_information),
            "entropy": round_to(self.entropy),
            "normalised": round_to(self.normalised),
            "upper_bound": None if self.upper_bound is None else round_up(self.upper_bound),
        }


@dataclass(frozen=True)
class Sizes:
    """Number of values of S, and of each block before and after drawing."""

    sensitive: int
    public: tuple[int, ...]
    released: tuple[int, ...]


@dataclass(frozen=True)
class Manifest:
    """The parts of release.json.

    `leakage` holds nats by measure, rounded upwards already (`leakage_figure`, `round_up`), None where
    infinite; `composed` tells of all releases so far, None where there is one; `candidates` what the mechanism was
    chosen from, None where the policy names it; `split` each block's share of epsilon; `files` a `file_entry` by name;
    `locked` names the lock that fixed the protocol, None where it was solved for this release; `signed` the public key
    to the signature beside the manifest, None where there is none.
    """

    release: str
    name: str
    description: str
    created: str
    sensitive: tuple[str, ...]
    public: tuple[tuple[str, ...], ...]
    notion: str
    epsilon: float
    parameters: Mapping[str, Any]
    mechanism: str
    candidates: Sequence[Mapping[str, str | float | None]] | None
    split: tuple[float, ...]
    draws: Draws
    estimate: Estimate
    rows: int
    format_of_data: str
    leakage: Mapping[str, float | None]
    composed: Mapping[str, Any] | None
    utility: Utility
    alphabet: Sizes
    policy_sha256: str
    plan_sha256: str
    versions: Mapping[str, str]
    files: Mapping[str, Mapping[str, str | int]]
    locked: Mapping[str, Any] | None = None
    signed: Mapping[str, str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON form, in reading order; nothing of a lock or a signature where there is none."""
        told = {"format": FORMAT, **asdict(self)}
        told |= {"estimate": self.estimate.as_dict(), "utility": self.utility.as_dict()}
        return {key: value for key, value in told.items() if key not in _ABSENT or value is not None}


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes in hex. Raises ReleaseError."""
    with writing(path.parent), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_entry(path: Path) -> dict[str, str | int]:
    """What the manifest says about a file. Raises ReleaseError."""
    with writing(path.parent):
        return {"sha256": sha256_file(path), "bytes": path.stat().st_size}
