"""A policy, a lock or a release, in the one vocabulary in which any two of them are compared."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from funnel.audit.folder import check_whole
from funnel.cells.cells import Cells
from funnel.cells.record import meaning, opened
from funnel.data import Label
from funnel.data.convert import protocols_of
from funnel.errors import PolicyError, Problem, ReleaseError
from funnel.format import groups, reported, schema
from funnel.format.lock import FORMAT
from funnel.format.manifest import Manifest
from funnel.format.place import release_in
from funnel.format.reported import Published
from funnel.format.sealed import SealError
from funnel.lock.lock import MOST_BYTES, Lock, damaged_lock, parse_lock, protocols_digest
from funnel.policy import Policy, load, loads
from funnel.policy.load import kept_policy
from funnel.policy.terms import beside, terms

Kind = Literal["policy", "lock", "release"]
_UNNAMED: dict[str, Any] = {"release.identify": None}
"""What holds where a policy or a lock has no word of it."""
_POLICY = "policy.yaml"
_MARK = f'format: "{FORMAT}"'


@dataclass(frozen=True, eq=False)
class Side:
    """One side: its terms by dotted name, as far as it knows them.

    `leakage` are measured nats by measure (None: infinite), empty for a policy; `values` the public values of each
    block by its columns, empty where they are not known yet.
    """

    kind: Kind
    file: str
    terms: Mapping[str, Any]
    leakage: Mapping[str, float | None] = field(default_factory=dict)
    values: Mapping[tuple[str, ...], frozenset[Label]] = field(default_factory=dict)
    cells: Mapping[str, str] = field(default_factory=dict)
    """What the labels of each wide block stand for, as a hash; empty where they are not known yet."""
    protocol: str | None = None
    """Hash of the chances of drawing, None where they are not known yet."""
    policy_sha256: str | None = None
    """Of a release that is known by release.json alone, which policy it was made by; None where all terms are known."""
    private: Path | None = None
    """Of a policy, where its private folder lies."""

    @property
    def whole(self) -> bool:
        """Whether its terms are all those of a policy; release.json tells of no filter, no bins and no budget."""
        return self.policy_sha256 is None


def read_sides(old: Path, new: Path, private: Path | None = None) -> tuple[Side, Side]:
    """Both sides; a release with all terms of the policy it was made by, where its private folder is at hand.

    That is `private`, or the one that the other side names. Raises PolicyError, LockError, ReleaseError.
    """
    sides = read_side(old), read_side(new)
    folder = private or next((one.private for one in sides if one.private), None)
    return (sides[0], sides[1]) if folder is None else (_completed(sides[0], folder), _completed(sides[1], folder))


def read_side(path: Path) -> Side:
    """A release's folder (or the folder of all), a lock, or a policy; `-` is a policy or a lock from standard input.

    What a file is shows in its text, so that `<(git show HEAD:policy.yaml)` will do. Raises PolicyError, LockError,
    ReleaseError.
    """
    if path.is_dir() or path.name == "release.json":
        return _release(path if path.is_dir() else path.parent)
    if str(path) == "-":
        text = sys.stdin.read(MOST_BYTES)
    else:
        try:
            with path.open("rb") as file:
                text = file.read(MOST_BYTES).decode("utf-8")
        except UnicodeDecodeError:
            load(path)  # says in which line
            raise
        except OSError as error:
            said = f"the file cannot be read: {error.strerror}"
            raise PolicyError([Problem("policy-unreadable", said, str(path))]) from None
    if _MARK in text:
        try:
            return of_lock(parse_lock(text), str(path))
        except SealError as error:
            raise damaged_lock(path, str(error)) from None
    return of_policy(loads(text, path), str(path))


def of_policy(policy: Policy, file: str) -> Side:
    """A policy as a side."""
    return Side("policy", file, _asked(policy), private=policy.private)


def _asked(policy: Policy) -> dict[str, Any]:
    """All terms of a policy."""
    return _UNNAMED | terms(policy) | beside(policy)


def of_lock(lock: Lock, file: str) -> Side:
    """A lock as a side."""
    values = {one.inputs.columns: frozenset(one.inputs.values) for one in lock.protocols}
    cells = {one.name: meaning(one) for one in lock.cells}
    digest = protocols_digest(lock.protocols)
    return Side("lock", file, _UNNAMED | dict(lock.terms), lock.leakage, values, cells, digest)


def _release(folder: Path) -> Side:
    folder = release_in(folder)
    check_whole(folder)
    try:
        shown = reported.read(Published, folder)
        manifest, protocols = shown.manifest, protocols_of(shown.protocol)
        wide = {one.name: opened(one) for one in (shown.cells.blocks if shown.cells else ())}
        values = {one.inputs.columns: frozenset(one.inputs.values) for one in protocols}
        cells, digest = {name: meaning(one) for name, one in wide.items()}, protocols_digest(protocols)
        made_by = manifest.policy_sha256
        return Side("release", str(folder), _terms(manifest, wide), manifest.leakage, values, cells, digest, made_by)
    except (OSError, ValueError) as error:
        raise ReleaseError(
            "release-unreadable",
            f"this is no release that can be compared: {error}",
            where=str(folder),
            advice="Name a release's folder, a lock, or a policy.",
        ) from None


def _completed(side: Side, private: Path) -> Side:
    """A release with the terms of its policy, as its evidence keeps it; as it was where that is not in the folder."""
    evidence = private / Path(side.file).resolve().name
    if side.whole or not (evidence / _POLICY).is_file():
        return side
    try:
        text, files = (evidence / _POLICY).read_bytes(), evidence / groups.NAME
        if hashlib.sha256(text).hexdigest() != side.policy_sha256:
            raise ValueError("policy.yaml is not the policy that release.json names")
        asked = _asked(kept_policy(text, evidence / _POLICY, files.read_bytes() if files.is_file() else None))
    except (OSError, ValueError) as error:
        raise ReleaseError(
            "release-unreadable",
            f"the policy that this release was made by cannot be read: {error}",
            where=str(evidence),
            advice="Restore the private folder from its backup; `funnel audit` says what else is amiss.",
        ) from None
    return replace(side, terms=asked, policy_sha256=None)


def _terms(manifest: Manifest, wide: Mapping[str, Cells]) -> dict[str, Any]:
    """What a manifest says of the policy's terms; it does not tell of bins, filters and budgets."""
    parameters = schema.as_json(manifest.parameters)
    follows = "radius" if parameters["confidence"] is not None else None
    return {
        "sensitive": list(manifest.sensitive),
        "public": [[_column(name, wide.get(name)) for name in block] for block in manifest.public],
        "privacy.notion": manifest.notion,
        "privacy.epsilon": manifest.epsilon,
        **{
            f"privacy.{key}": value
            for key, value in parameters.items()
            if value is not None and key != follows
        },
        "privacy.split": list(manifest.split),
        "draws.kind": manifest.draws.kind,
        "draws.key": manifest.draws.key_fingerprint,
        **({"source.missing": "drop"} if manifest.absent and "missing" in manifest.absent.by else {}),
        **({"public.unseen": "drop"} if manifest.absent and "unseen" in manifest.absent.by else {}),
        "estimate.minimum": manifest.estimate.minimum,
        "estimate.kind": manifest.estimate.kind,
        "estimate.beliefs": manifest.estimate.beliefs,
        "mechanism.kind": manifest.mechanism,
        "release.identify": [key.name for key in manifest.identify] or None,
        "release.sign": None if manifest.signed is None else manifest.signed.public_key,
    }


def _column(name: str, wide: Cells | None) -> dict[str, Any]:
    """A column of a block; of a wide one with those inside."""
    return {"name": name} | ({} if wide is None else {"columns": [{"name": one.name} for one in wide.columns]})
