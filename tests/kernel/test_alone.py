"""The kernel in company of numpy alone: what it imports, and that it runs where there is nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import funnel
from funnel.audit.kernel.check import UNKNOWABLE
from funnel.audit.standalone import write_standalone
from tests.kernel.samples import KINDS, sample

ROOT = Path(funnel.__file__).parent
ROOMS = {"format": ("funnel.format",), "audit/kernel": ("funnel.format", "funnel.audit.kernel", "numpy")}
"""Each room, and what it may import beside the standard library."""

ALLOWED = '''
import sys

class Only:
    """Refuses whatever is not the standard library, numpy, or the kernel."""

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        ours = ("funnel", "funnel.audit", "funnel.format", "funnel.audit.kernel")
        inside = name in ours or name.startswith(("funnel.format.", "funnel.audit.kernel."))
        if top in sys.stdlib_module_names or top == "numpy" or inside:
            return None
        raise ImportError(f"{name} is not allowed here")

sys.meta_path.insert(0, Only())
'''


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name} imports relatively"
            found |= {f"{node.module}.{one.name}" for one in node.names}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_it_may_and_nothing_else(room):
    modules = sorted((ROOT / room).glob("*.py"))
    assert modules
    for path in modules:
        for name in imported(path):
            inside = any(name == one or name.startswith(f"{one}.") for one in ROOMS[room])
            assert inside or name.partition(".")[0] in sys.stdlib_module_names, (path.name, name)


def test_the_kernel_is_read_in_an_afternoon():
    """Every line counts, those that explain too: whoever needs one more looks for one to take away first."""
    lines = [line for path in (ROOT / "audit/kernel").glob("*.py") for line in path.read_text().splitlines()]
    assert len(lines) <= 1545


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """In a Python that sees no site-packages but numpy's, and no working directory."""
    folder = Path(np.__file__).parents[1]
    start = f"import sys; sys.path[:0] = [{str(ROOT.parent)!r}, {str(folder)!r}]\n{ALLOWED}\n{code or ''}"
    command = [sys.executable, "-I", "-S", "-c", start, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


MAIN = "import runpy\nrunpy.run_module('funnel.audit.kernel', run_name='__main__', alter_sys=True)"


def test_it_runs_where_nothing_but_numpy_is_installed(tmp_path):
    public, private = sample().write(tmp_path)
    done = run(str(public), str(private), code=MAIN)
    assert done.returncode == 0, done.stderr
    assert "[leakage-bound]" in done.stdout
    assert f"{UNKNOWABLE[0]}\n" in done.stdout


def test_importing_funnel_loads_nothing():
    done = run(code="import funnel, funnel.audit; print(sorted(one for one in sys.modules if 'funnel' in one))")
    assert done.stdout == "['funnel', 'funnel.audit']\n", done.stderr


@pytest.mark.parametrize("kind", ["two blocks", "rldp"])
def test_the_one_file_says_what_the_kernel_says(kind, tmp_path):
    public, private = sample(**KINDS[kind]).write(tmp_path)
    file = write_standalone(tmp_path / "audit.pyz")
    numpy = str(Path(np.__file__).parents[1])
    start = f"import sys, runpy; sys.path.append({numpy!r}); runpy.run_path({str(file)!r}, run_name='__main__')"
    alone = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start, str(public), str(private)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout == run(str(public), str(private), code=MAIN).stdout
    assert file.read_bytes() == write_standalone(tmp_path / "again.pyz").read_bytes()


def test_the_exit_code_says_whether_a_claim_fails(tmp_path):
    public, private = sample().write(tmp_path)
    file = str(write_standalone(tmp_path / "audit.pyz"))
    python = [sys.executable, file]
    assert subprocess.run([*python, str(public)], capture_output=True, timeout=60, check=False).returncode == 0
    (private / "ledger.head").write_text("{}\n")
    whole = [*python, str(public), str(private)]
    done = subprocess.run(whole, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "FAILS: ledger-chain" in done.stdout
    assert subprocess.run(python, capture_output=True, timeout=60, check=False).returncode == 2


def test_who_calls_it_wrongly_is_told_how_and_private_may_be_named_as_funnel_does(tmp_path):
    public, private = sample().write(tmp_path)
    file = str(write_standalone(tmp_path / "audit.pyz"))

    def told(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, file, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert told(public, "--private", private).stdout == told(public, private).stdout
    for forgotten in ((public, "--private"), ("--private", private), ("--private", private, public)):
        assert told(*forgotten).returncode == 2
    wrong = told(tmp_path / "nowhere")
    assert wrong.returncode == 2
    assert f"{tmp_path / 'nowhere'}: there is no such folder\nusage: audit.pyz RELEASE" in wrong.stderr
    bare = subprocess.run(
        [sys.executable, "-I", "-S", file, str(public)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "pip install numpy" in bare.stderr
    assert "Traceback" not in bare.stderr
