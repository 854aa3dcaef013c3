"""A copy of some releases with all that belongs to them, and what is looked at in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.format.canonical import encode
from funnel.format.pruned import FOLDER as MARKS
from tests.support.forging import Forged, Json, edit, lines_of, read, rechain, seal, sha
from tests.trials.tampered.ratios import worst

KEPT = (
    "evidence.json", "counts.json", "draws.json", "terms.json", "lock.yaml", "plan.json", "policy.yaml", "proof.bin",
    "solution.json", "robust.json", "drift.json", "report.json", "report.html",
)  # fmt: skip
"""Files of a release's private folder."""


@dataclass(frozen=True)
class Place:
    """`home` holds the folders `releases` and `private`; `release` is the one looked at; `other` are other cases."""

    home: Path
    release: str
    signed: bool
    ground: Path

    @property
    def case(self) -> str:
        """The name of these releases' policy."""
        found: str = read(self.folder / "release.json")["name"]
        return found

    def at(self, release: str) -> Place:
        """Another release of the same ledger."""
        return Place(self.home, release, self.signed, self.ground)

    @property
    def releases(self) -> list[str]:
        """Of this ledger those that are whole, oldest first."""
        return whole(self.home)

    @property
    def pruned(self) -> list[str]:
        """Of this ledger those whose data were taken away, oldest first."""
        return sorted(path.name for path in (self.private / MARKS).glob("2*"))

    @property
    def private(self) -> Path:
        return self.home / "private"

    @property
    def folder(self) -> Path:
        return self.home / "releases" / self.release

    @property
    def kept(self) -> Path:
        return self.private / self.release

    @property
    def forged(self) -> Forged:
        """The forger's tools for this release."""
        return Forged(self.folder, self.kept)

    @property
    def manifest(self) -> Json:
        found: Json = read(self.folder / "release.json")
        return found

    @property
    def digits(self) -> int:
        """Of the manifest's figures."""
        rows, minimum = self.manifest["rows"], self.manifest["estimate"]["minimum"]
        return min(4, len(str(rows // minimum)) - 1)

    @property
    def protocol(self) -> Json:
        found: Json = read(self.folder / "protocol.json")
        return found

    @property
    def counts(self) -> Json:
        found: Json = read(self.kept / "counts.json")
        return found

    @property
    def draws(self) -> Json:
        found: Json = read(self.kept / "draws.json")
        return found

    @property
    def data(self) -> Path:
        return next(self.folder.glob("data.*"))

    @property
    def has_sets(self) -> bool:
        return any(block["kind"] == "unary" for block in self.protocol["blocks"])

    def others(self) -> list[Path]:
        """Honest release folders elsewhere, with this one's other nights first."""
        own = [self.home / "releases" / name for name in self.releases if name != self.release]
        found = [home / "releases" / name for home in sorted(self.ground.iterdir()) for name in whole(home)]
        return own + found

    def kept_of(self, release: Path) -> Path:
        """The private folder that belongs to a release folder."""
        return release.parent.parent / "private" / release.name

    # --- the ledger

    @property
    def lines(self) -> list[Json]:
        """Of the ledger."""
        return lines_of(self.private)

    @property
    def entry(self) -> Json:
        """This release's own."""
        return next(line["entry"] for line in self.lines if line["entry"].get("release") == self.release)

    def hash_of(self, line: Json) -> str:
        """Of a line of the ledger."""
        return sha(encode(line))

    def rechain(self, lines: list[Json]) -> None:
        """The ledger and its head, with numbers and hashes that fit."""
        rechain(self.private, lines)

    def enter(self, change: Callable[[Json], None]) -> None:
        """Change this release's entry, and chain all anew."""
        lines = self.lines
        for line in lines:
            if line["entry"].get("release") == self.release:
                change(line["entry"])
        self.rechain(lines)

    # --- hashes

    def relist(self) -> None:
        """Reports and the manifest's list of files: all that is needed to change a published folder."""
        self.forged.list_files()

    def seal(self, *, reports: bool = True) -> None:
        """Every hash and checksum of every release and of the ledger, as a forger without the signing key can."""
        seal((self.at(name).forged for name in self.releases), reports=reports)

    # --- claims

    def claim(self, key: str, value: Any) -> None:
        """A figure in the manifest; reports follow when hashes are made to fit."""
        edit(self.folder / "release.json", lambda manifest: manifest.update({key: value}))

    def told_truly(self) -> bool:
        """Whether lip and ldp in the manifest are still those of the counts and of the protocol, by brute force."""
        counts, figures = self.counts, self.manifest["leakage"]
        found = worst(counts, self.protocol["blocks"])
        return all(figures[name] == told for name, told in found.items())


def whole(home: Path) -> list[str]:
    """Names of the releases under a case's folder that have their data, oldest first."""
    marks = home / "private" / MARKS
    return sorted(path.name for path in (home / "releases").glob("2*") if not (marks / path.name).exists())


def pick(rng: random.Random, items: list[Any]) -> Any:
    """One of several, None of none."""
    return rng.choice(items) if items else None


__all__ = ["KEPT", "Json", "Place", "edit", "pick", "read", "whole"]
