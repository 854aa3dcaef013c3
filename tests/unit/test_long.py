"""What the README's test command leaves out is what `--long` runs, and no more."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = "tests/unit/mechanisms/test_robust.py"


@cache
def collected(*options: str) -> set[str]:
    """The tests that a command would run, by name."""
    command = [sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_what_is_long_waits_and_is_not_forgotten():
    short, long = collected(FILE), collected(FILE, "--long")
    assert short
    assert long
    assert not short & long
    several = {one.partition("[")[0] for one in long if "[" in one}
    assert several
    assert several <= {one.partition("[")[0] for one in short}


def test_who_names_a_test_gets_it():
    name = min(collected(FILE, "--long"))
    assert collected(name) == {name}
