"""What commands load before they do their work: whoever asks for little does not wait for what others need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import funnel
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

ROOT = Path(funnel.__file__).parent.parent
SOLVERS = {"scipy", "highspy", "flint", "funnel.optimise.solve", "funnel.optimise.interior"}
PAGES = {"jinja2", "funnel.report.content", "funnel.audit.audit"}
DRAWS = {"cryptography", "pyarrow", "funnel.draw.draw", "funnel.ledger.composition", "funnel.release.publish"}
TABLES = {"numpy", "duckdb", "yaml", "funnel.policy"}
SHELL = {"typer", "rich", "pydantic"}


def loaded(*arguments: object) -> set[str]:
    """The modules of a process that ends well, having carried out a command."""
    code = (
        "import atexit, sys; atexit.register(lambda: print('LOADED', *sys.modules));"
        f"sys.argv = ['funnel', *{[*map(str, arguments)]!r}];"
        "from funnel.__main__ import main; main()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return {*done.stdout.rpartition("LOADED")[2].split()}


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["--version"], SHELL | TABLES | DRAWS | PAGES | SOLVERS),
        (["--help"], {"rich"} | TABLES | DRAWS | PAGES | SOLVERS),
        (["run", "--help"], {"rich"} | TABLES | DRAWS | PAGES | SOLVERS),
    ],
)
def test_who_asks_about_commands_waits_for_none_of_them(arguments, spared):
    assert loaded(*arguments) & spared == set()


def test_a_check_of_a_policy_that_was_released_reads_its_ledger_and_draws_nothing_either(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    people(tmp_path, MONDAY)
    policy = write_policy(tmp_path, **SMALL)
    funnel.run(policy)
    found = loaded("check", policy)
    assert found & {"cryptography", "pyarrow", "rich", "scipy", "jinja2", "funnel.draw.draw"} == set()
    assert "funnel.ledger.budget" in found


def test_a_check_counts_and_solves_draws_and_renders_nothing(tmp_path):
    found = loaded("check", write_policy(tmp_path))
    assert found & ({"rich"} | DRAWS | PAGES | SOLVERS) == set()
    assert found >= TABLES
