"""A small world to run in: a table, policies over it, keys; and a bench of forked and cold runs."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import yaml

import funnel
from tests.support.postgres import Server
from tests.trials.faulting.forked import ROOT, Forker, Job
from tests.trials.faulting.fuse import Harm

ROWS = 400
COLD = 6
"""How many times as long a run takes that has to import all it needs, about."""
POLICY: dict[str, Any] = {
    "version": 1,
    "name": "plain",
    "source": {"table": "table.csv", "entity": "person_id"},
    "sensitive": ["s"],
    "public": ["x", "y"],
    "privacy": {"notion": "lip", "epsilon": 1.0},
    "mechanism": "randomised-response",
    "draws": {"key": "file:draw.key"},
    "release": {"to": "releases", "private": "private"},
}
RICH = POLICY | {
    "name": "rich",
    "estimate": {
        "kind": "private",
        "epsilon": 2.0,
        "budget": 40.0,
        "minimum": 1,
        "values": {"s": ["a", "b", "c"], "x": ["p", "q", "r", "s"], "y": ["u", "v"]},
    },
    "release": {"to": "releases", "private": "private", "format": "csv", "sign": "file:sign.key"},
}
LOCK = ("lock", "policy.yaml", "--json")
TABLE = "public.world"
"""Stands for the table of a world's own in a database."""
POLICIES = {"plain": POLICY, "rich": RICH}
"""rich: its protocol follows from noise that is charged and kept, and it is signed."""


@dataclass(frozen=True)
class World:
    """A folder with a table, a policy, its keys, and what was released."""

    folder: Path

    @property
    def to(self) -> Path:
        """The published folder."""
        return self.folder / "releases"

    @property
    def private(self) -> Path:
        """The private folder."""
        return self.folder / "private"

    @property
    def temporary(self) -> Path:
        """What TMPDIR names."""
        return self.folder / "tmp"

    @property
    def table(self) -> Path:
        """The source."""
        return self.folder / "table.csv"


def found(folder: Path, policy: dict[str, Any]) -> World:
    """Make a world without releases."""
    folder.mkdir(parents=True)
    (folder / "tmp").mkdir()
    chance = random.Random(1)
    lines = ["person_id,s,x,y"]
    for person in range(ROWS):
        secret = chance.choice("abc")
        public = chance.choice("pqrs") if chance.random() < 0.6 else "pqr"["abc".index(secret)]
        lines.append(f"{person},{secret},{public},{chance.choice('uv')}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy, sort_keys=False))
    funnel.write_key(folder / "draw.key")
    funnel.write_signing_key(folder / "sign.key")
    return World(folder)


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code, negative for a signal, None where it stopped itself; and what it said."""

    code: int | None
    out: str = ""
    err: str = ""

    @property
    def error(self) -> dict[str, Any]:
        """What `--json` says of an error; empty where there is none."""
        try:
            return dict(json.loads(self.out).get("error", {}))
        except ValueError:
            return {}

    @property
    def shown(self) -> bool:
        """Whether a run that failed says that its release is visible all the same."""
        return "is published" in self.error.get("message", "")

    @property
    def warnings(self) -> list[str]:
        """What `--json` warns of."""
        return list(json.loads(self.out)["warnings"])


@dataclass
class Bench:
    """Where one worker makes its runs: a context manager over a folder in memory and a forker."""

    templates: Path
    usual: float = 0.0
    """Seconds that the last run took to which nothing happened."""
    _open: ExitStack = field(default_factory=ExitStack)
    _steps: dict[str, list[str]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.root = Path(self._open.enter_context(TemporaryDirectory(dir=quick())))
        warm = found(self.root / "warm", POLICY)
        self.forker = self._open.enter_context(Forker(warm.folder / "policy.yaml"))
        with self.world("plain-0") as world:
            self.run(world)
            self.run(world)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @contextmanager
    def world(self, base: str) -> Iterator[World]:
        """A copy of a template, for as long as it is needed."""
        folder = self.root / "world"
        shutil.copytree(self.templates / base, folder, symlinks=True)
        try:
            yield World(folder)
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, capture_output=True)
            for one in (folder, self.root / "backup"):
                shutil.rmtree(one, ignore_errors=True)

    def job(self, world: World, command: Sequence[str], said: str = "said", **hurt: Any) -> Job:
        """A command in a world."""
        environment = {"TMPDIR": str(world.temporary)} | hurt.pop("environment", {})
        out, err = (str(self.root / f"{said}.{end}") for end in ("out", "err"))
        return Job(tuple(command), str(world.folder), out, err, environment, **hurt)

    def ended(self, job: Job, code: int | None) -> Outcome:
        """The outcome of a job."""
        out, err = (Path(path).read_text() if Path(path).exists() else "" for path in (job.out, job.err))
        return Outcome(code, out, err)

    def run(self, world: World, *command: str, **hurt: Any) -> Outcome:
        """`funnel run`, or another command, to its end or its stop."""
        job = self.job(world, command or ("run", "policy.yaml", "--json"), **hurt)
        begun = time.monotonic()
        self.forker.start(job)
        outcome = self.ended(job, self.forker.end())
        if not command and not hurt:
            # Others may be at work on this machine, more at one time than at another.
            self.usual = time.monotonic() - begun
        return outcome

    def run_beside(self, world: World) -> Outcome:
        """A run while another one is stopped."""
        job = self.job(world, ("run", "policy.yaml", "--json"), "beside")
        self.forker.start(job)
        return self.ended(job, self.forker.end())

    def steps(self, base: str, *command: str) -> list[str]:
        """The steps of a run, or of another command, that nothing happens to: name and place of each."""
        known = " ".join((base, *command))
        if known not in self._steps:
            log = self.root / "steps"
            with self.world(base) as world:
                outcome = self.run(world, *command, harm=Harm(str(world.folder), log=str(log)))
                assert outcome.code == 0, outcome
                places = log.read_text().replace(f"{world.folder}/", "")
            self._steps[known] = places.splitlines()
        return self._steps[known]

    def cold(self, world: World) -> subprocess.Popen[bytes]:
        """The real command in an interpreter of its own, its group its own."""
        environment = {**os.environ, "TMPDIR": str(world.temporary), "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [sys.executable, "-m", "funnel", "run", "policy.yaml", "--json"],
            cwd=world.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def quick() -> Path | None:
    """A folder in memory where there is one: to a killed process it is as good as a disk."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


def make_templates(root: Path, server: Server | None = None) -> None:
    """`plain-0` and `rich-0` to `plain-2` and `rich-2`: worlds with so many releases; `locked-1`, with a lock, too.

    With a server `also-1`: its releases are for a table there.
    """
    for name, policy in POLICIES.items():
        world = found(root / f"{name}-0", policy)
        last = world.folder
        for night in (1, 2):
            world = World(root / f"{name}-{night}")
            shutil.copytree(last, world.folder, symlinks=True)
            funnel.run(world.folder / "policy.yaml")
            last = world.folder
    locked = root / "locked-1"
    shutil.copytree(root / "plain-1", locked, symlinks=True)
    funnel.make_lock(locked / "policy.yaml")
    if server is not None:
        shutil.copytree(root / "plain-1", root / "also-1", symlinks=True)
        policy = POLICY | {"release": POLICY["release"] | {"also": server.address("owner", TABLE)}}
        (root / "also-1" / "policy.yaml").write_text(yaml.safe_dump(policy, sort_keys=False))


def wait_until(seen: Any, seconds: float = 60) -> None:
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > end:
            raise TimeoutError("what the trial waits for did not happen")
        time.sleep(0.002)
