"""Kills, rivals and tampering, on real releases of the real program."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import funnel
from funnel.release.naming import new_release_id
from funnel.release.publish import Publisher
from tests.end_to_end.conftest import nothing_published
from tests.policies import write_policy

ROOT = Path(funnel.__file__).parent.parent
KILLS = 12
FLIPS = 25


def start(path: Path, key: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "FUNNEL_KEY": key, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "funnel", "run", str(path)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def visible(folder: Path) -> list[Path]:
    """Releases that a reader can see; anything under a dot-name is nobody's business."""
    shown = [path for path in (folder / "releases").glob("*") if not path.name.startswith(".")]
    return [path for path in shown if path.name != "latest"]


def test_killed_at_any_moment_it_leaves_a_whole_release_or_none(tmp_path, key):
    """Kill -9 all through a run; whatever can be seen passes its audit, and the next run works."""
    path = write_policy(tmp_path, mechanism="randomised-response")
    begun = time.monotonic()
    assert start(path, key).wait() == 0
    whole_run = time.monotonic() - begun
    moments = random.Random(7)
    for kill in range(KILLS):
        process = start(path, key)
        # From the start of the work, in even strides with some jitter, to just past its usual end.
        time.sleep(whole_run * (0.35 + 0.7 * (kill + moments.random()) / KILLS))
        process.send_signal(signal.SIGKILL)
        process.wait()
        for release in visible(tmp_path):
            assert funnel.audit_release(release, tmp_path / "private").passed, release
        assert (tmp_path / "releases" / "latest").resolve().is_dir()
    assert start(path, key).wait() == 0
    assert not [entry for entry in (tmp_path / "releases").iterdir() if entry.name.startswith(".")]
    assert not [
        entry for entry in (tmp_path / "private").iterdir() if entry.name.startswith((".staging", ".spill"))
    ]


def test_an_interrupt_leaves_nothing_behind(tmp_path, key):
    path = write_policy(tmp_path)
    environment = {**os.environ, "FUNNEL_KEY": key, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-m", "funnel", "run", str(path)], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    deadline = time.monotonic() + 60
    while not list((tmp_path / "private").glob(".staging-*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode != 0, "the run was over before it could be interrupted"
    assert "[interrupted]" in error
    assert "Traceback" not in error
    assert nothing_published(tmp_path)


def test_two_runs_at_once_the_second_is_told_who_is_first(cli, tmp_path):
    path = write_policy(tmp_path)
    with Publisher(tmp_path / "releases", tmp_path / "private", new_release_id(datetime.now(UTC))):
        run = cli("run", path)
    assert run.code == 1
    assert "[release-busy]" in run.err
    assert str(os.getpid()) in run.err
    assert nothing_published(tmp_path)
    assert cli("run", path).code == 0


def test_a_read_only_target_is_one_clear_error(cli, tmp_path):
    path = write_policy(tmp_path, release__to="/proc/releases")
    run = cli("run", path)
    assert run.code == 1
    assert "[release-write]" in run.err


@pytest.fixture(scope="module")
def release(tmp_path_factory, key) -> tuple[Path, Path]:
    """One release and its private folder."""
    folder = tmp_path_factory.mktemp("tampered")
    os.environ["FUNNEL_KEY"] = key
    summary = funnel.run(write_policy(folder))
    return Path(summary.release), folder / "private"


@pytest.mark.parametrize(
    "name", ["data.parquet", "protocol.json", "release.json", "report.html", "report.json"]
)
def test_any_changed_byte_of_a_published_file_fails_the_audit(release, tmp_path, name):
    folder, private = release
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    original = (copy / name).read_bytes()
    choice = random.Random(name)
    places = {0, len(original) - 1, *(choice.randrange(len(original)) for _ in range(FLIPS))}
    for place in sorted(places):
        changed = bytearray(original)
        changed[place] ^= 1 << choice.randrange(8)
        (copy / name).write_bytes(changed)
        report = funnel.audit_release(copy, private)
        failed = [finding for finding in report.findings if finding.status == "failed"]
        assert failed, (name, place)
        assert all(finding.claim and finding.detail for finding in failed)
    (copy / name).write_bytes(original)
    assert funnel.audit_release(copy, private).passed


@pytest.mark.parametrize("change", ["removed", "added", "longer"])
def test_a_file_removed_added_or_lengthened_fails_the_audit(cli, release, tmp_path, change):
    folder, private = release
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    if change == "removed":
        (copy / "report.html").unlink()
    elif change == "added":
        (copy / "notes.txt").write_text("nothing")
    else:
        with (copy / "release.json").open("a") as file:
            file.write("\n")
    audit = cli("audit", copy, "--private", private, "--json")
    assert audit.code == 1
    assert audit.json["passed"] is False
    assert "FAIL" in audit.json["verdict"]


def test_the_auditor_needs_no_more_than_the_files(cli, release, tmp_path):
    """Copied elsewhere, without key or source, in another process."""
    folder, private = release
    shutil.copytree(folder, tmp_path / "published" / folder.name)
    shutil.copytree(private, tmp_path / "kept")
    audit = cli(
        "audit", tmp_path / "published" / folder.name, "--private", tmp_path / "kept", env={"FUNNEL_KEY": ""}
    )
    assert audit.code == 0
    assert "every claim that can be checked holds" in audit.out
    public = cli("audit", tmp_path / "published" / folder.name)
    assert public.code == 0
    assert "were not checked" in public.out


def test_the_report_is_rebuilt_byte_for_byte(cli, release, tmp_path):
    folder, private = release
    copy = tmp_path / "published" / folder.name
    shutil.copytree(folder, copy)
    original = (copy / "report.html").read_bytes()
    (copy / "report.html").unlink()
    assert cli("report", copy).code == 0
    assert (copy / "report.html").read_bytes() == original
    assert cli("report", copy, "--private", private).code == 1
    full = cli("report", copy, "--private", private, "--to", tmp_path / "full")
    assert full.code == 0
    kept = private / folder.name
    assert (tmp_path / "full" / "report.html").read_bytes() == (kept / "report.html").read_bytes()
