"""examples/wide: the commands of the story work as they are written, on fewer people."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).parents[2]
STORY = ROOT / "examples" / "wide"


def commands() -> str:
    """Everything between the fences of the README."""
    return "\n".join((STORY / "README.md").read_text(encoding="utf-8").split("```")[1::2])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("story")
    shutil.copytree(STORY, folder / "examples" / "wide")
    (folder / "examples" / "census").mkdir()
    census = "examples/census/census.parquet"
    duckdb.sql(f"COPY (FROM '{ROOT / census}' WHERE person_id <= 1500) TO '{folder / census}'")
    policy = folder / "examples" / "wide" / "policy.yaml"
    policy.write_text(policy.read_text().replace("most: 200", "most: 16"))
    for name, run in (("funnel", "-m funnel"), ("python", "")):
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {run} "$@"\n')
        program.chmod(0o755)
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-e"], input=commands(), cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    return folder, done


@pytest.mark.long
def test_every_command_works_and_the_cross_tab_is_printed(played):
    folder, done = played
    assert done.returncode == 0, done.stderr
    for told in ("leakage", "unchanged", "passed", "on_a_course"):
        assert told in done.stdout
    assert done.stdout.count("3 degree") == 4
    rows = f"'{folder}/releases/register/latest/data.parquet'"
    assert duckdb.sql(f"SELECT count(*), count(DISTINCT person_id) FROM {rows}").fetchall() == [(1500, 1500)]


def test_the_list_of_courses_is_what_its_script_makes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(STORY))
    import build

    build.main(tmp_path / "courses.csv")
    assert (tmp_path / "courses.csv").read_bytes() == (STORY / "courses.csv").read_bytes()


def test_the_table_of_the_story_is_what_the_census_holds():
    told = [line.split("|")[3] for line in (STORY / "README.md").read_text(encoding="utf-8").splitlines()
            if "| Female |" in line or "| Male |" in line]  # fmt: skip
    ((rows,),) = duckdb.sql(f"SELECT count(*) FROM '{ROOT / 'examples/census/census.parquet'}'").fetchall()
    assert sum(int(number.replace(",", "")) for number in told) == rows
