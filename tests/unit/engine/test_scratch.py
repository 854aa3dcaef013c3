"""Folders to spill into: gone with their process, or with the next one."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from pathlib import Path

import pytest

from funnel.engine.scratch import Scratch


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_spilt_is_removed_by_the_next(parent: Path) -> None:
    child = os.fork()
    if child == 0:
        killed = Scratch()
        (killed.path / "rows").write_text("alice, divorced")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = parent.iterdir()
    assert (left / "rows").is_file()
    scratch = Scratch()
    assert not left.exists()
    scratch.remove()
    assert list(parent.iterdir()) == []


def test_a_folder_in_use_and_a_folder_of_others_are_left(parent: Path) -> None:
    (parent / "funnel-notes").mkdir()
    (parent / "funnel-spill-link").symlink_to(parent / "funnel-notes")
    first, second = Scratch(), Scratch()
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o700
    assert first.path.is_dir()
    first.remove()
    second.remove()
    assert {path.name for path in parent.iterdir()} == {"funnel-notes", "funnel-spill-link"}
