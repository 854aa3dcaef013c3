"""Interrupts, rivals and tampering, on real releases of the real program; kills are in `tests/trials`."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import funnel
from funnel.errors import LedgerError, SourceError
from funnel.ledger.journal import Journal
from funnel.plan.summary import Summary
from funnel.release.naming import new_release_id
from funnel.release.publish import Publisher
from tests.flow.conftest import evidence_left, nothing_published
from tests.support.audited import statuses
from tests.support.policies import write_policy

ROOT = Path(funnel.__file__).parent.parent
FLIPS = 8


INTERRUPTED = """
import os, signal, sys
from funnel.__main__ import main
from funnel.plan import run
from funnel.release.publish import Publisher
signal.signal(signal.SIGINT, signal.default_int_handler)
_, name, number, *sys.argv[1:] = sys.argv
place = Publisher if name == "publish" else run
stage = getattr(place, name)
def interrupted(*arguments):
    os.kill(os.getpid(), int(number))
    return stage(*arguments)
setattr(place, name, interrupted)
main()
"""
"""A run to which Ctrl-C or SIGTERM happens as a stage begins; shells let jobs ignore the first, so it is heeded."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("stage", "number", "code"),
    [("protect", signal.SIGINT, 130), ("read_drawing", signal.SIGTERM, 143), ("publish", signal.SIGINT, 130),
     ("publish", signal.SIGTERM, 143)],
)  # fmt: skip
def test_an_interrupt_leaves_nothing_behind(stage, number, code, tmp_path, key, command):
    path = write_policy(tmp_path, mechanism="randomised-response")
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, stage, str(int(number)), "run", str(path)],
        env={**os.environ, "FUNNEL_KEY": key, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == code
    assert "[interrupted]" in run.stderr
    assert "Traceback" not in run.stderr
    assert nothing_published(tmp_path)
    assert [name for name in evidence_left(tmp_path) if name.startswith((".staging", ".spill"))] == []
    again = command("run", path)
    assert again.code == 0
    assert "cut off" not in again.err


def test_two_runs_at_once_the_second_is_told_who_is_first(cli, command, tmp_path):
    path = write_policy(tmp_path)
    with Publisher(tmp_path / "releases", tmp_path / "private", new_release_id(datetime.now(UTC))):
        run = cli("run", path)
    assert run.code == 5
    assert "[release-busy]" in run.err
    assert str(os.getpid()) in run.err
    assert nothing_published(tmp_path)
    assert command("run", path).code == 0


@pytest.mark.parametrize("rows", ["", "1,single,x\n1,widowed,x\n" * 10])
def test_an_error_about_the_table_names_it(tmp_path, key, monkeypatch, rows):
    """Also where the check that finds it knows nothing of files."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    (tmp_path / "table.csv").write_text("person_id,marital_status,education\n" + rows)
    with pytest.raises(SourceError) as caught:
        funnel.run(write_policy(tmp_path, source__table="table.csv"))
    assert str(tmp_path / "table.csv") in str(caught.value)


def test_a_lost_ledger_is_not_begun_anew(tmp_path, key, monkeypatch):
    """The releases of the policy are still there to be seen; another policy in the same folder is free to begin."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    path = write_policy(tmp_path, mechanism="randomised-response")
    first = Path(funnel.run(path).release)
    (tmp_path / "private").rename(tmp_path / "kept")
    with pytest.raises(LedgerError, match=f"does not know of release {first.name}"):
        funnel.run(path)
    assert not (tmp_path / "private").exists()
    funnel.run(
        write_policy(tmp_path, name="another", mechanism="randomised-response", release__private="others")
    )
    (tmp_path / "kept").rename(tmp_path / "private")
    funnel.run(write_policy(tmp_path, mechanism="randomised-response"))


KILLED = """
import os, signal, sys
from pathlib import Path
import funnel
rename = Path.rename
def killed(path, target):
    if path.parent.name == sys.argv[2] and path.name.startswith(".staging"):
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)
Path.rename = killed
funnel.run(sys.argv[1])
"""
"""A run that is killed behind its entry: before its evidence is in its place, or before anybody can see it."""


def nights(folder: Path, *, dies_at: str | None, **terms: Any) -> list[Summary]:
    """Two nights with people who come, and go, and have other values; the first may be killed."""
    folder.mkdir()
    rows = [(i, "ab"[i * i % 3 > 0], f"x{(i + i // 7) % 3}") for i in range(340)]
    changed = [(i, s, "x0" if i % 50 == 0 else x) for i, s, x in rows]
    terms = {
        "source": {"table": "t.csv", "entity": "id"}, "sensitive": ["s"], "public": ["x"],
        "privacy": {"notion": "lip", "epsilon": 0.3}, **terms,
    }  # fmt: skip
    path = write_policy(folder, **terms)
    made = []
    for tonight in (rows[:320], changed[20:]):
        (folder / "t.csv").write_text("id,s,x\n" + "".join(f"{i},{s},{x}\n" for i, s, x in tonight))
        if not made and dies_at:
            run = subprocess.run(
                [sys.executable, "-c", KILLED, str(path), dies_at],
                env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, timeout=120, check=False,
            )  # fmt: skip
            assert run.returncode == -signal.SIGKILL, run.stderr
            dies_at = None
        else:
            made.append(funnel.run(path))
    return made


@pytest.mark.long
@pytest.mark.parametrize(
    "terms", [{}, {"source": {"table": "t.csv"}, "draws": {"kind": "fresh"}}], ids=["permanent", "fresh"]
)
@pytest.mark.parametrize("dies_at", ["private", "releases"])
def test_a_night_after_a_killed_one_is_as_if_that_had_been_seen(dies_at, terms, tmp_path, key, monkeypatch):
    """Whom the release that nobody saw was about is known still: its entry blocks nothing, and counts."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    (last,) = nights(tmp_path / "killed", dies_at=dies_at, **terms)
    _, seen = nights(tmp_path / "seen", dies_at=None, **terms)
    assert last.composed.together == seen.composed.together
    assert last.composed.together.releases == 2
    assert last.composed.together.figure is not None
    private = tmp_path / "killed" / "private"
    dead = Journal(private).releases()[0].release
    told = "but for what later nights compare with; its entry in the ledger stays, and counts"
    assert any(dead in one and told in one for one in last.warnings)
    assert {path.name for path in (private / dead).iterdir()} == {"people.json", "counts.json", "evidence.json"}
    assert funnel.api.audit(tmp_path / "killed" / "releases", private).passed
    found = statuses(funnel.audit_release(Path(last.release), private))
    assert {found["ledger-identity"], found["ledger-composed"]} == {"passed"}


def test_a_read_only_target_is_one_clear_error(command, tmp_path):
    path = write_policy(tmp_path, release__to="/proc/releases")
    run = command("run", path)
    assert run.code == 1
    assert "[release-write]" in run.err


@pytest.fixture(scope="module")
def release(tmp_path_factory, key) -> tuple[Path, Path]:
    """One release and its private folder."""
    folder = tmp_path_factory.mktemp("tampered")
    os.environ["FUNNEL_KEY"] = key
    summary = funnel.run(write_policy(folder))
    return Path(summary.release), folder / "private"


@pytest.mark.long
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
def test_a_file_removed_added_or_lengthened_fails_the_audit(command, release, tmp_path, change):
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
    audit = command("audit", copy, "--private", private, "--json")
    assert audit.code == 1
    assert audit.json["passed"] is False
    assert "FAIL" in audit.json["verdict"]


@pytest.mark.long
def test_the_auditor_needs_no_more_than_the_files(cli, command, release, tmp_path):
    """Copied elsewhere, without key or source, in another process."""
    folder, private = release
    shutil.copytree(folder, tmp_path / "published" / folder.name)
    shutil.copytree(private, tmp_path / "kept")
    audit = cli(
        "audit", tmp_path / "published" / folder.name, "--private", tmp_path / "kept", env={"FUNNEL_KEY": ""}
    )
    assert audit.code == 0
    assert "every claim that is made holds" in audit.out
    public = command("audit", tmp_path / "published" / folder.name)
    assert public.code == 0
    assert "were not checked" in public.out


def test_the_report_is_rebuilt_byte_for_byte(cli, command, release, tmp_path):
    folder, private = release
    copy = tmp_path / "published" / folder.name
    shutil.copytree(folder, copy)
    original = (copy / "report.html").read_bytes()
    (copy / "report.html").unlink()
    assert cli("report", copy).code == 0
    assert (copy / "report.html").read_bytes() == original
    assert command("report", copy, "--private", private).code == 1
    full = command("report", copy, "--private", private, "--to", tmp_path / "full")
    assert full.code == 0
    kept = private / folder.name
    assert (tmp_path / "full" / "report.html").read_bytes() == (kept / "report.html").read_bytes()


def test_a_report_that_is_written_again_is_never_half_there(cli, release, tmp_path):
    """What is there as it should be is not touched; what is not is exchanged whole, or stays."""
    copy = tmp_path / "published" / release[0].name
    shutil.copytree(release[0], copy)
    page = copy / "report.html"
    original = page.read_bytes()
    limited = ["sh", "-c", f"ulimit -f 20; exec {sys.executable} -m funnel report {copy}"]
    assert subprocess.run(limited, check=False).returncode == 0
    assert page.read_bytes() == original
    page.write_bytes(b"spoilt")
    refused = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert (refused.returncode, "[disk-full]" in refused.stderr) == (5, True)
    assert page.read_bytes() == b"spoilt"
    assert cli("report", copy).code == 0
    assert page.read_bytes() == original
    assert {path.name for path in copy.iterdir()} == {path.name for path in release[0].iterdir()}


def test_a_report_that_cannot_be_written_names_the_option_that_says_where(command, release, tmp_path):
    (tmp_path / "file").write_text("")
    refused = command("report", release[0], "--to", tmp_path / "file" / "full")
    assert (refused.code, "name another folder with `--to`" in refused.err) == (1, True)
