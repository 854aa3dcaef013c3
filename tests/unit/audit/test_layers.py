"""The auditor shares no code with what it checks, and starts without heavy libraries."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import funnel.audit

MODULES = sorted(Path(funnel.audit.__file__).parent.glob("*.py"))


def imported(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a name comes from"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_nothing_of_funnel_but_its_errors_is_imported(path: Path) -> None:
    own = {name for name in imported(path) if name.split(".")[0] == "funnel"}
    assert {name for name in own if not name.startswith(("funnel.audit", "funnel.errors"))} == set()


def test_importing_the_auditor_loads_no_heavy_library() -> None:
    script = (
        "import sys, funnel.audit; print(*{'scipy', 'duckdb', 'pyarrow', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
