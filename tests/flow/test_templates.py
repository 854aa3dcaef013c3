"""Where compiled templates are kept: in the user's cache, and nowhere that an uninstaller or a stranger could reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import funnel
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

PACKAGE = Path(funnel.__file__).parent


def run(policy: Path, cache: Path, key: str) -> str:
    """What a run prints whose home holds this cache."""
    environment = os.environ | {"FUNNEL_KEY": key, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "funnel", "run", str(policy)]
    done = subprocess.run(command, env=environment, cwd=policy.parent, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def policy(tmp_path):
    people(tmp_path, MONDAY)
    return write_policy(tmp_path, **SMALL)


def inside() -> set[Path]:
    """What lies in the package, but for what Python itself compiles, which an uninstaller knows of."""
    return {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_a_run_leaves_nothing_in_the_package(policy, tmp_path, key):
    before = inside()
    run(policy, tmp_path / "cache", key)
    assert inside() == before
    kept = tmp_path / "cache/funnel"
    assert {path.suffix for path in kept.iterdir()} == {".cache"}
    assert kept.stat().st_mode & 0o777 == 0o700


@pytest.mark.long
@pytest.mark.parametrize("open_to", [0o020, 0o002])
def test_what_others_could_have_written_is_neither_run_nor_added_to(policy, tmp_path, key, open_to):
    kept = tmp_path / "cache/funnel"
    kept.mkdir(parents=True)
    kept.chmod(0o700 | open_to)
    run(policy, tmp_path / "cache", key)
    assert not [*kept.iterdir()]


def test_no_cache_is_no_reason_to_stop(policy, tmp_path, key):
    (tmp_path / "cache").write_text("a file")
    assert "report" in run(policy, tmp_path / "cache", key)
