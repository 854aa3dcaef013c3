"""The folder of a nightly export as its operator has it: policy, lock, key, source, releases, and the commands."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from funnel.errors import EXITS, FAULT
from tests.trials.nights.shell import ROOT, Outcome, Shell

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "people",
    "description": "Where people live and how old they are, every night; what they suffer from stays hidden",
    "source": {"table": "people.parquet", "entity": "person"},
    "sensitive": ["illness"],
    "public": [{"name": "district", "unseen": "other"}, {"name": "age", "bins": [18, 35, 55]}],
    "privacy": {"notion": "lip", "epsilon": 0.3},
    "mechanism": "randomised-response",
    "draws": {"kind": "permanent", "key": "env:FUNNEL_KEY"},
    "budget": 5.0,
    "release": {"to": "releases", "private": "private"},
}
ROOM = "0.2"
"""Part of epsilon that locks leave to drift."""


class World:
    """Everything that the operator touches. `wrong` collects what should not have happened."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.random = folder, random.Random(seed)
        self.policy, self.lock = folder / "people.yaml", folder / "people.lock.yaml"
        self.source, self.to, self.private = (
            folder / "people.parquet",
            folder / "releases",
            folder / "private",
        )
        self.backup = folder / "backup"
        self.backup.mkdir()
        self.shell = Shell(folder)
        self.terms = json.loads(json.dumps(POLICY))
        self.wrong: list[str] = []
        self.night = 0
        self.seconds = 1.0
        self.cpu: dict[int, float] = {}
        self.key = self.new_key()
        self.write_policy()

    def close(self) -> None:
        """No more commands."""
        self.shell.close()
        if "other" in vars(self):
            self.other.close()

    @cached_property
    def other(self) -> Shell:
        """A second shell, for what happens at the same time."""
        return Shell(self.folder)

    def expect(self, so: bool, otherwise: str) -> bool:
        """Note it where something is not as it should be."""
        if not so:
            self.wrong.append(f"night {self.night}: {otherwise}")
        return so

    def new_key(self) -> str:
        """A key as `funnel key new` makes it."""
        return self.shell("key", "new").out.strip()

    def write_policy(self, **changes: Any) -> None:
        """The policy, changed from now on."""
        self.terms |= changes
        self.policy.write_text(yaml.safe_dump(self.terms, sort_keys=False))

    def nightly(self) -> list[str]:
        """The command of every night."""
        return ["run", "--locked", "--json", "--threads", "1", self.policy.name]

    def run(self, fault: Mapping[str, Any] | None = None, **env: str | None) -> Outcome:
        """One night's command, in a process of its own."""
        begun = time.monotonic()
        outcome = self.shell(*self.nightly(), fault=fault, **({"FUNNEL_KEY": self.key} | env))
        if outcome.code == 0:
            self.seconds, self.cpu[self.night] = time.monotonic() - begun, outcome.cpu
        return outcome

    def funnel(self, *arguments: object) -> Outcome:
        """Another command, which has to succeed."""
        outcome = self.shell(*arguments, FUNNEL_KEY=self.key)
        self.expect(outcome.code == 0, f"funnel {' '.join(map(str, arguments))}: {outcome.err}")
        return outcome

    def by_script(self) -> Outcome:
        """The night as cron runs it: examples/nightly/nightly, which checks the lock and keeps a log."""
        program, log = self.folder / "funnel", self.folder / "nights.jsonl"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m funnel "$@"\n')
        program.chmod(0o755)
        done = subprocess.run(
            [ROOT / "examples" / "nightly" / "nightly", self.policy, log], capture_output=True, text=True, check=False,
            env=os.environ | {"FUNNEL": str(program), "FUNNEL_KEY": self.key, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        told = log.read_text().splitlines()[-1] if log.exists() else ""
        return Outcome(done.returncode, told, done.stderr, 0.0)

    def relock(self) -> None:
        """Solve at tonight's counts and pin that: `lock` shows what would change, `--force` writes it."""
        self.funnel("lock", "--force", "--room", ROOM, self.policy.name)

    def rotate(self) -> dict[str, Any]:
        """What a new key costs, the key, and its use from now on."""
        path = self.folder / f"key-{self.night}"
        told = self.funnel("key", "rotate", "--locked", "--json", self.policy.name, "--to", path).json
        self.key = path.read_text().strip()
        return told

    def answered(self, outcome: Outcome, code: str, advice: str) -> None:
        """The command failed for this reason, and said what to do."""
        self.expect(outcome.code == EXITS.get(code, FAULT), f"exit code {outcome.code} where {code} was to be told")
        self.expect(outcome.error == code, f"{outcome.error} where {code} was to be told: {outcome.err}")
        self.expect(advice in outcome.err, f"{code} does not say `{advice}`: {outcome.err}")

    def visible(self) -> list[str]:
        """Releases that a reader sees, oldest first."""
        shown = [path.name for path in self.to.iterdir()] if self.to.exists() else []
        return sorted(name for name in shown if not name.startswith(".") and name != "latest")

    def lines(self) -> list[bytes]:
        """The ledger's whole lines."""
        path = self.private / "ledger.jsonl"
        return path.read_bytes().split(b"\n")[:-1] if path.exists() else []

    def keep(self) -> None:
        """A backup of the ledger, as the advice wants it."""
        for name in ("ledger.jsonl", "ledger.head"):
            shutil.copy(self.private / name, self.backup / name)

    def whole(self, visible: list[str], lines: list[bytes], after: str) -> None:
        """After a fault: no half release, and a ledger that has forgotten nothing."""
        now = self.visible()
        self.expect(now[: len(visible)] == visible, f"{after}: releases are gone")
        self.expect(self.lines()[: len(lines)] == lines, f"{after}: the ledger forgot an entry")
        entries = [json.loads(line)["entry"] for line in self.lines()]
        entered = {entry["release"] for entry in entries if entry["kind"] == "release"}
        self.expect(entered.issuperset(now), f"{after}: a release is seen that the ledger does not know")
        for name in now[len(visible) :]:
            audit = self.shell("audit", self.to / name, "--private", self.private)
            self.expect(
                audit.code == 0, f"{after}: a release is seen that does not pass its audit: {audit.out}"
            )
        if now:
            self.expect(
                (self.to / "latest").resolve().name == now[-1], f"{after}: latest is not the newest release"
            )

    def tidy(self, after: str) -> None:
        """After a night that worked nothing is left aside."""
        left = [path.name for folder in (self.to, self.private) for path in folder.glob(".*-*")]
        self.expect(not left, f"{after}: left aside: {left}")
