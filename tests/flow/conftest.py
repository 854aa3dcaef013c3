"""The real program: as a process of its own, or its command line in this one, which starts in no time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import funnel
from funnel.cli.app import main
from tests.support.postgres import Server, programs, served


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


@pytest.fixture
def command(key: str, monkeypatch, capfd) -> Callable[..., Outcome]:
    """The same as `cli` in this process: arguments in, exit code and what was printed out."""

    def run(*arguments: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> Outcome:
        capfd.readouterr()
        with monkeypatch.context() as inside:
            for name, value in {"FUNNEL_KEY": key, **(env or {})}.items():
                inside.setenv(name, value)
            if cwd is not None:
                inside.chdir(cwd)
            try:
                main([*map(str, arguments)])
            except SystemExit as end:
                code = end.code
            else:
                raise AssertionError("the command line came back without an exit code")
        printed = capfd.readouterr()
        return Outcome(code, printed.out, printed.err)

    return run


def nothing_published(folder: Path) -> bool:
    """No release, no leftovers, no `latest`, in the published folder of `write_policy`."""
    return not (folder / "releases").exists() or not list((folder / "releases").iterdir())


def evidence_left(folder: Path) -> list[str]:
    """What lies in the private folder besides the lock."""
    private = folder / "private"
    return sorted(path.name for path in private.iterdir() if path.name != ".lock") if private.exists() else []


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for all tests of databases; each makes tables of its own."""
    if programs() is None:
        pytest.skip("no PostgreSQL on this machine")
    with served() as found:
        yield found
