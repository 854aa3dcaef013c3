"""What commands load before they do their work: whoever asks for little does not wait for what others need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import funnel
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

ROOT = Path(funnel.__file__).parent.parent
SOLVERS = {"scipy", "highspy", "flint", "funnel.optimise.solve", "funnel.optimise.interior"}
PAGES = {"jinja2", "funnel.report.content", "funnel.audit.audit"}
DRAWS = {"cryptography", "pyarrow", "funnel.draw.draw", "funnel.ledger.composition", "funnel.release.publish"}
OTHERS = {"funnel.engine.spark", "funnel.engine.postgres", "funnel.cells", "funnel.plan.merging"}
"""What other tables, wide blocks and rare values take."""
FILES = {"funnel.format.manifest", "funnel.format.journal", "funnel.format.terms", "funnel.format.protocol"}
SEARCHES = {"funnel.measure.robust", "funnel.measure.side", "funnel.mechanisms.exactly_robust"}
TABLES = {"numpy", "duckdb", "yaml", "funnel.policy"}
SAYING = {"__main__", "analyst", "api", "cli", "errors", "failed", "progress", "text", "version"}
"""What every command needs to say anything at all; `analyst` is a constant of its room's `__init__`."""
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


def test_who_verifies_a_release_needs_the_kernel_and_cryptography(tmp_path, monkeypatch):
    people(tmp_path, MONDAY)
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    funnel.write_signing_key(tmp_path / "sign.key")
    funnel.run(write_policy(tmp_path, **SMALL | {"release__sign": "file:sign.key"}))
    found = loaded("verify", tmp_path / "releases", "--key", funnel.public_key(str(tmp_path / "sign.key")))
    rooms = {".".join(one.split(".")[:3]) for one in found if one.startswith("funnel.audit.")}
    assert rooms == {f"funnel.audit.{one}" for one in ("folder", "kernel", "publisher", "verify")}
    own = {one.split(".")[1] for one in found if one.startswith("funnel.")}
    assert own - {"audit", "format", *SAYING} == set()
    assert found & ({"scipy", "duckdb", "pyarrow", "yaml", "jinja2", "rich"} | SOLVERS) == set()
    assert found >= {"numpy", "cryptography"}


def test_a_check_counts_and_solves_draws_and_renders_nothing(tmp_path):
    found = loaded("check", write_policy(tmp_path))
    assert found & ({"rich"} | DRAWS | PAGES | SOLVERS) == set()
    assert found >= TABLES


def test_a_check_of_a_plain_policy_loads_nothing_for_policies_of_other_kinds(tmp_path):
    found = loaded("check", write_policy(tmp_path))
    assert found & (OTHERS | FILES | SEARCHES | {"numpy.ma", "funnel.version", "funnel.policy.words"}) == set()


def test_a_check_opens_the_engine_once(tmp_path, monkeypatch):
    opened = list[object]()
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *where, **how: opened.append(where) or connect(*where, **how))
    assert funnel.check(write_policy(tmp_path)).ok
    assert len(opened) == 1


def test_a_night_under_a_lock_solves_nothing_and_waits_for_no_solver(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    people(tmp_path, MONDAY)
    policy = write_policy(tmp_path, **SMALL)
    funnel.make_lock(policy)
    found = loaded("run", "--locked", policy)
    assert found & {"scipy", "flint", "funnel.optimise.interior"} == set()
    assert found >= {"pyarrow", "jinja2", "funnel.audit.audit"}


def test_a_command_is_over_without_taking_apart_what_it_loaded(tmp_path):
    code = (
        "import sys\nclass Held: pass\nheld = Held()\n"
        "Held.__del__ = lambda one: print('taken apart', flush=True)\n"
        f"sys.argv = ['funnel', 'check', {str(write_policy(tmp_path))!r}]\nfrom funnel.__main__ import main; main()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": ok\n")
