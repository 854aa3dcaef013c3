"""The real program, as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import funnel


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def cli(key: str) -> Callable[..., Outcome]:
    """Run `funnel …` with a key in the environment; `env` changes it."""

    def run(*arguments: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> Outcome:
        environment = {
            **os.environ,
            "FUNNEL_KEY": key,
            "PYTHONPATH": str(Path(funnel.__file__).parent.parent),
            **(env or {}),
        }
        done = subprocess.run(
            [sys.executable, "-m", "funnel", *map(str, arguments)],
            capture_output=True,
            text=True,
            env=environment,
            cwd=cwd,
            timeout=300,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


def nothing_published(folder: Path) -> bool:
    """No release, no leftovers, no `latest`, in the published folder of `write_policy`."""
    return not (folder / "releases").exists() or not list((folder / "releases").iterdir())


def evidence_left(folder: Path) -> list[str]:
    """What lies in the private folder besides the lock."""
    private = folder / "private"
    return sorted(path.name for path in private.iterdir() if path.name != ".lock") if private.exists() else []
