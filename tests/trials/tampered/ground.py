"""Honest releases to tamper with: a small table, a policy for every notion, several nights under one ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import funnel
from tests.support.policies import write_policy
from tests.trials.tampered.place import whole

BASE: dict[str, Any] = {
    "source": {"table": "people.parquet", "entity": "id"},
    "description": "x of people; s stays hidden",
    "sensitive": ["s"],
    "public": ["x"],
    "estimate": {"minimum": 5},
}
SIGNED = {"release__sign": "file:../sign.key"}
CSV = {"release__format": "csv"}
FRESH = {"draws": {"kind": "fresh"}}
PRIVATE = {
    "kind": "private", "epsilon": 1.0, "budget": 4.0, "minimum": 1,
    "values": {"s": ["s0", "s1", "s2"], "x": ["x0", "x1", "x2", "x3", "x4"]},
}  # fmt: skip


def _terms(notion: str, epsilon: float | None, mechanism: Any = "optimal", **more: Any) -> dict[str, Any]:
    bound = {} if epsilon is None else {"epsilon": epsilon}
    return {"privacy": {"notion": notion, **bound}, "mechanism": mechanism, **more}


CASES: dict[str, tuple[int, bool, dict[str, Any]]] = {
    "lip": (3, False, _terms("lip", 0.3) | SIGNED),
    "ldp": (1, False, _terms("ldp", 0.5) | FRESH | CSV),
    "conditional-reporting": (1, False, _terms("lip", 0.5, "conditional-reporting") | FRESH | SIGNED),
    "unary-encoding": (1, False, _terms("lip", 0.3, {"kind": "unary-encoding", "release": "set"}) | CSV),
    "two-blocks": (2, False, _terms("lip", 0.5, public=["z", "w"]) | CSV | SIGNED),
    "private-estimate": (2, False, _terms("lip", 0.5, estimate=PRIVATE)),
    "locked": (2, True, _terms("lip", 0.4) | SIGNED),
    "secret-randomised-response": (1, False, _terms("rldp", 1.5, "secret-randomised-response", public=["s", "w"])),
    "randomised-response": (2, False, _terms("ldp", 0.5, "randomised-response") | CSV),
    "bits": (1, False, _terms("ldp", 0.3, {"kind": "unary-encoding", "release": "bits"})),
    "rldp": (1, False, _terms("rldp", 1.5, public=["w"]) | SIGNED),
    "independent-reporting": (1, False, _terms("rldp", 1.5, "independent-reporting", public=["s", "w"])),
    "polyopt": (1, False, _terms("rldp", 1.5, "polyopt", public=["s", "w"])),
    "non-robust": (1, False, _terms("ldp", 1.0, "non-robust", public=["s", "w"]) | FRESH),
    "srlip": (1, False, _terms("srlip", 0.5, public=[["z", "w"]]) | SIGNED),
    "perfect": (1, False, _terms("perfect", None)),
    "average": (2, False, _terms("mutual-information", 0.02, "greedy-funnel")),
    "usual-ldp": (1, False, _terms("ldp-x", 1.5) | CSV),
    "auto": (2, False, _terms("lip", 0.3, "auto") | FRESH),
    "pruned": (4, False, _terms("lip", 0.35) | SIGNED | CSV),
}  # fmt: skip
"""Nights, whether under a lock, and the terms; together every notion and every way to publish of `policies/`."""

WHOLE = {"pruned": 2}
"""Of how many releases the data stay, where those of others were taken away."""

FEW = ("lip", "ldp", "conditional-reporting", "unary-encoding", "two-blocks", "private-estimate", "locked", "pruned")
"""For the tests: one of each kind that the auditor treats in its own way."""

_CHANCES = [[0.5, 0.2, 0.1, 0.1, 0.1], [0.15, 0.35, 0.2, 0.2, 0.1], [0.1, 0.2, 0.4, 0.1, 0.2]]


def people(folder: Path, night: int) -> None:
    """Six hundred people and a few more every other night, so that some nights repeat the one before."""
    chance = np.random.default_rng(5)
    rows = []
    for number in range(600 + 12 * (night // 2)):
        s = number % 3 if number < 600 else 0
        x = int(chance.choice(5, p=_CHANCES[s]))
        z, w = (x + s + int(chance.integers(0, 2))) % 3, (s + int(chance.integers(0, 3))) % 2
        rows.append(f"({number}, 's{s}', 'x{x}', 'z{z}', 'w{w}')")
    select = f"SELECT * FROM (VALUES {', '.join(rows)}) t(id, s, x, z, w)"
    duckdb.sql(f"COPY ({select}) TO '{folder / 'people.parquet'}' (FORMAT parquet)")


@dataclass(frozen=True)
class Ground:
    """A folder with a folder for each case, and two pairs of signing keys."""

    home: Path

    @property
    def public_key(self) -> Path:
        """By which everything signed is signed."""
        return self.home / "sign.pub"

    @property
    def cases(self) -> list[str]:
        """Names of the cases that were made."""
        return [name for name in CASES if (self.home / name / "releases").is_dir()]

    def releases(self, case: str) -> list[str]:
        """Names of a case's releases that have their data, oldest first."""
        return whole(self.home / case)

    @property
    def targets(self) -> list[tuple[str, str]]:
        """Every case with each of its releases."""
        return [(case, release) for case in self.cases for release in self.releases(case)]

    def signed(self, case: str) -> bool:
        """Whether the releases of a case are signed."""
        return "release__sign" in CASES[case][2]


def make(home: Path, names: tuple[str, ...] = tuple(CASES), told: Any = lambda _: None) -> Ground:
    """Make the releases with the real program, all under one key of draws; what is there already is kept."""
    home.mkdir(parents=True, exist_ok=True)
    for key in ("sign", "other"):
        if not (home / f"{key}.pub").exists():
            funnel.write_signing_key(home / f"{key}.key")
            (home / f"{key}.pub").write_text(funnel.public_key(str(home / f"{key}.key")) + "\n")
    with _key():
        for name in names:
            if not (home / name).is_dir():
                told(f"making the honest releases of {name}")
                _case(home / name, *CASES[name])
    return Ground(home)


def _case(folder: Path, nights: int, locked: bool, terms: dict[str, Any]) -> None:
    folder.mkdir()
    people(folder, 0)
    policy = write_policy(folder, **(BASE | {"name": folder.name} | terms))
    if locked:
        funnel.make_lock(policy)
    for night in range(nights):
        people(folder, night)
        funnel.run(policy, locked=locked)
    if folder.name in WHOLE:
        funnel.prune(policy, WHOLE[folder.name])


@contextmanager
def _key() -> Iterator[None]:
    before = os.environ.get("FUNNEL_KEY")
    os.environ["FUNNEL_KEY"] = funnel.new_key()
    try:
        yield
    finally:
        del os.environ["FUNNEL_KEY"]
        if before is not None:
            os.environ["FUNNEL_KEY"] = before


def told_of(folder: Path) -> dict[str, Any]:
    """release.json of a release."""
    found: dict[str, Any] = json.loads((folder / "release.json").read_bytes())
    return found
