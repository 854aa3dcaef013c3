"""A release is seen whole or not at all, whoever kills the run, whenever, and whatever the disk does."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from funnel.audit.verify.envelope import signed
from funnel.errors import InternalError, LedgerError, ReleaseError
from funnel.failed import as_error
from funnel.format import schema
from funnel.format.feed import FeedFile, ReleaseList
from funnel.ledger.journal import Journal
from funnel.release.naming import new_release_id
from funnel.release.publish import Publisher
from funnel.release.sign import SigningKey
from tests.support.ledger import ENTRY, an_entry

from .dying import MANIFEST, release

ROOT = Path(__file__).parents[3]
FILES = {"data.csv": "education\nbachelor\n", "release.json": MANIFEST}
KEPT = {".lock", "ledger.jsonl", "ledger.head", "protocols"}


def an_id(minute: int) -> str:
    return f"20261121T11{minute // 60:02}{minute % 60:02}Z-{minute:06x}"


def folders(base: Path) -> tuple[Path, Path]:
    return base / "releases" / "census", base / "private" / "census"


class Runs:
    """Runs in processes of their own, which may die."""

    def __enter__(self) -> Runs:
        command = [sys.executable, "-m", "tests.unit.release.dying"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def start(self, to: Path, private: Path, release_id: str, step: int = -1, pause: float = 0.0) -> int:
        """Begin a run; its process number."""
        assert self.process.stdin
        self.process.stdin.write(f"{to} {private} {release_id} {step} {pause}\n")
        self.process.stdin.flush()
        return self._answer()

    def end(self) -> int:
        """Wait for the run; its exit code, negative for a signal."""
        return self._answer()

    def _answer(self) -> int:
        assert self.process.stdout
        return int(self.process.stdout.readline())


@pytest.fixture
def runs() -> Iterator[Runs]:
    with Runs() as running:
        yield running


def seen(to: Path) -> set[str]:
    """The releases that a reader of the folder sees: names without a leading dot, apart from `latest` and the feed."""
    return (
        {path.name for path in to.iterdir() if path.name[0] != "." and path.name not in ("latest", "releases.json")}
        if to.exists()
        else set()
    )


def assert_whole(to: Path, private: Path) -> None:
    """Whatever can be seen is complete, has its evidence, and stands in an undamaged ledger."""
    recorded = {entry.release for entry in Journal(private).releases()}
    for name in seen(to):
        assert {path.name: path.read_text() for path in (to / name).iterdir()} == FILES
        assert (private / name / "more" / "plan.json").read_text() == "{}"
        assert name in recorded
    if (to / "latest").is_symlink():
        assert (to / "latest" / "data.csv").is_file()
    if to.exists():
        assert seen(to) - listed(to) <= {max(seen(to), default="")}, "all but the newest, whatever was killed"
        assert listed(to) <= seen(to)


def listed(to: Path) -> set[str]:
    """What releases.json lists under the policy's own signature."""
    path = to / "releases.json"
    if not path.exists():
        return set()
    (one,) = schema.read(FeedFile, path.name, path.read_bytes()).lists
    return set(schema.read(ReleaseList, path.name, signed(path.name, one, SigningKey(bytes(32)).public)).releases)


def assert_tidy(to: Path, private: Path) -> None:
    """Nothing of any run is left aside; of an entered release that nobody can see there is what nights compare with.

    Those that are seen are marked, whatever was killed.
    """
    assert [path.name for path in to.iterdir() if path.name[0] == "."] == []
    entered = {entry.release for entry in Journal(private).releases()}
    assert {path.name for path in private.iterdir()} <= KEPT | entered
    assert all((private / name / "published").is_file() for name in seen(to) & entered)
    for name in entered - seen(to):
        assert {path.name for path in (private / name).iterdir()} == {"people.json", "evidence.json"}


# What a release looks like.


def test_a_release(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    release(to, private, an_id(2))
    assert seen(to) == {an_id(1), an_id(2)}
    assert (to / "latest").readlink().name == an_id(2)
    assert [entry.release for entry in Journal(private).releases()] == [an_id(1), an_id(2)]
    assert_whole(to, private)
    assert_tidy(to, private)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o027])
def test_private_files_are_their_owners_and_published_ones_are_read_whatever_the_umask(umask, tmp_path: Path) -> None:
    to, private = tmp_path / "made" / "to", folders(tmp_path)[1]
    previous = os.umask(umask)
    try:
        release(to, private, an_id(1))
    finally:
        os.umask(previous)
    for path in (private, *private.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    for path in (to.parent, to, *to.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_until_what_is_entered_can_be_seen(number, tmp_path: Path, monkeypatch) -> None:
    to, private = folders(tmp_path)
    append, before = Journal.append, signal.getsignal(number)

    def interrupted(*arguments):
        signal.raise_signal(number)
        return append(*arguments)

    def heard(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    monkeypatch.setattr(Journal, "append", interrupted)
    signal.signal(number, heard)
    try:
        with pytest.raises(KeyboardInterrupt):
            release(to, private, an_id(1))
        assert signal.getsignal(number) is heard
    finally:
        signal.signal(number, before)
    assert seen(to) == {an_id(1)}
    assert_whole(to, private)
    assert_tidy(to, private)


def test_nobody_else_reads_a_release_before_it_is_audited(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    with Publisher(to, private, an_id(1)) as publisher:
        for folder in (publisher.public, publisher.private, publisher.scratch):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert folder.name.startswith(".")
        assert publisher.target == to / an_id(1)
        assert seen(to) == set()


def test_ids_are_times_and_chance() -> None:
    now = datetime(2026, 11, 21, 13, 20, 34, tzinfo=timezone(timedelta(hours=2)))
    ids = {new_release_id(now) for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(r"20261121T112034Z-[0-9a-f]{6}", name) for name in ids)
    assert new_release_id(datetime.now(UTC)) > "2026"


@pytest.mark.parametrize(
    "name", ["", "latest", "../x", "20261121T112034Z-3f9a1c/x", "20261121T112034Z-3F9A1C"]
)
def test_an_id_of_another_form_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InternalError):
        Publisher(*folders(tmp_path), name)


# Killed.


@pytest.fixture
def quick_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: to a killed process it is as good as a disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.long
def test_killed_at_any_step(runs: Runs, quick_disk: Path) -> None:
    """SIGKILL at every call into the file system, in new folders and in folders with releases."""
    used, code, step = folders(quick_disk / "used"), -signal.SIGKILL, 0
    while code:
        for to, private in (folders(quick_disk / f"new{step}"), used):
            before = seen(to)
            runs.start(to, private, an_id(2 * step + 1), step)
            code = runs.end()
            assert code in (0, -signal.SIGKILL)
            assert_whole(to, private)
            release(to, private, an_id(2 * step + 2))
            assert_whole(to, private)
            assert_tidy(to, private)
            assert (to / "latest").readlink().name == an_id(2 * step + 2)
            assert listed(to) == seen(to)
            assert seen(to) - {an_id(2 * step + 1)} == before | {an_id(2 * step + 2)}
        step += 1
    assert step > 50


@pytest.mark.long
def test_killed_at_any_moment(runs: Runs, quick_disk: Path) -> None:
    """The same at moments between calls and inside them."""
    to, private = folders(quick_disk)
    chance = random.Random(7)
    for number in range(30):
        process = runs.start(to, private, an_id(2 * number + 1), pause=0.005)
        time.sleep(chance.uniform(0, 0.02))
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        assert runs.end() in (0, -signal.SIGKILL)
        if private.exists():
            assert_whole(to, private)
        release(to, private, an_id(2 * number + 2))
        assert_whole(to, private)
        assert_tidy(to, private)


def test_latest_catches_up_with_a_release_whose_run_was_killed_before_moving_it(tmp_path: Path) -> None:
    """Even when the next run fails before it publishes anything."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    release(to, private, an_id(2))
    for behind, aside in ((an_id(1), an_id(2)), (None, an_id(2)), (an_id(2), an_id(1))):
        (to / "latest").unlink()
        if behind:
            (to / "latest").symlink_to(behind)
        (to / f".latest-{aside}").symlink_to(aside)
        with pytest.raises(ZeroDivisionError), Publisher(to, private, an_id(3)):
            1 / 0  # noqa: B018
        assert (to / "latest").readlink().name == an_id(2)
        assert_tidy(to, private)


def test_leftovers_of_others_are_left(tmp_path: Path) -> None:
    """Only names of our pattern, and in a shared folder only those that our private folder knows."""
    to, private = folders(tmp_path)
    to.mkdir(parents=True)
    private.mkdir(parents=True)
    others = [
        to / ".staging-notes",
        to / f".staging-{an_id(7)}",
        to / ".git",
        private / ".staging-x",
        private / "backup",
    ]
    for folder in others:
        folder.mkdir()
    (private / f".staging-{an_id(8)}").mkdir()
    (to / f".staging-{an_id(8)}").mkdir()
    (private / f".spill-{an_id(9)}").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    release(to, private, an_id(10))
    assert all(folder.is_dir() for folder in others)
    assert (tmp_path / "elsewhere" / "file").exists()
    assert not any(path.name.endswith((an_id(8), an_id(9))) for path in (*to.iterdir(), *private.iterdir()))


def test_two_policies_may_publish_into_one_folder(tmp_path: Path) -> None:
    """The second starts and ends while the first is at work; `latest` stays with the one that began later."""
    to, first, second = tmp_path / "to", tmp_path / "first", tmp_path / "second"
    with Publisher(to, first, an_id(1)) as publisher:
        (publisher.public / "data.csv").write_text(FILES["data.csv"])
        release(to, second, an_id(2))
        publisher.publish(an_entry(an_id(1)))
    assert seen(to) == {an_id(1), an_id(2)}
    assert (to / "latest").readlink().name == an_id(2)
    assert_tidy(to, first)


# Given up.


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), ReleaseError("release-write", "x")])
def test_an_exception_leaves_nothing(error: BaseException, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    with pytest.raises(type(error)), Publisher(to, private, an_id(1)) as publisher:
        (publisher.public / "data.csv").touch()
        (publisher.private / "evidence.json").touch()
        raise error
    assert list(to.iterdir()) == []
    assert [path.name for path in private.iterdir()] == [".lock"]


def test_leaving_without_publishing_leaves_nothing(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    with Publisher(to, private, an_id(1)):
        pass
    assert list(to.iterdir()) == []
    assert Journal(private).lines() == ()


# Two at once.


def test_two_publishers_at_once(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    with Publisher(to, private, an_id(1)) as first:
        with pytest.raises(ReleaseError) as caught, Publisher(to, private, an_id(2)):
            pytest.fail("both hold the lock")
        assert caught.value.code == "release-busy"
        assert f"process {os.getpid()} on {os.uname().nodename}, since 20" in caught.value.message
        assert first.public.is_dir(), "the second must not clear the first away"
        (first.public / "data.csv").touch()
        first.publish(an_entry(an_id(1)))
    release(to, private, an_id(3))


def test_two_processes_at_once_and_a_dead_owner(runs: Runs, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    process = runs.start(to, private, an_id(1), pause=60)
    while not list(private.glob(".spill-*/spilled")):
        time.sleep(0.01)
    with pytest.raises(ReleaseError, match=f"process {process} on"), Publisher(to, private, an_id(2)):
        pytest.fail("both hold the lock")
    os.kill(process, signal.SIGKILL)
    assert runs.end() == -signal.SIGKILL
    release(to, private, an_id(3))
    assert_tidy(to, private)


# Folders that will not do.


@pytest.mark.parametrize("private", [".", "private", "a/../private", "link"])
def test_a_private_folder_inside_the_published_one(private: str, tmp_path: Path) -> None:
    to = tmp_path / "to"
    to.mkdir()
    (to / "link").symlink_to(to / "x")
    with (
        pytest.raises(ReleaseError, match="inside the published one") as caught,
        Publisher(to, to / private, an_id(1)),
    ):
        pytest.fail("opened")
    assert caught.value.code == "release-path"
    assert not (to / "private").exists()


def test_a_link_into_the_published_folder(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "innocent").symlink_to(tmp_path / "to")
    with (
        pytest.raises(ReleaseError, match="inside"),
        Publisher(tmp_path / "to", tmp_path / "innocent" / "p", an_id(1)),
    ):
        pytest.fail("opened")


def test_no_link_that_lies_in_the_published_folder_is_written_through(tmp_path: Path) -> None:
    """What a run stages there has names that others can see."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    before = (private / "ledger.jsonl").read_bytes()
    to_be = to / f".releases-{an_id(2)}"
    to_be.symlink_to(private / "ledger.jsonl")
    release(to, private, an_id(2))
    assert (private / "ledger.jsonl").read_bytes().startswith(before)
    assert listed(to) == {an_id(1), an_id(2)} and not (to / "releases.json").is_symlink()


@pytest.mark.parametrize("other", ["link", "folder"])
def test_what_was_put_in_the_place_of_a_staged_release_is_not_published(other: str, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    with pytest.raises(ReleaseError, match="exchanged") as caught, Publisher(to, private, an_id(2)) as publisher:
        publisher.public.rename(to / "aside")
        publisher.public.symlink_to(private) if other == "link" else publisher.public.mkdir()
        publisher.publish(an_entry(an_id(2)))
    assert caught.value.code == "release-path"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700 and (private / "ledger.jsonl").stat().st_mode & 0o077 == 0
    assert [entry.release for entry in Journal(private).releases()] == [an_id(1)] and seen(to) == {an_id(1), "aside"}


@pytest.mark.parametrize("mode", [0o755, 0o775, 0o757])
def test_that_others_may_write_where_releases_are_published_is_told(mode: int, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    to.mkdir(parents=True)
    to.chmod(mode)
    with Publisher(to, private, an_id(1)) as publisher:
        assert ["others than its owner may write into" in one for one in publisher.told] == [True] * (mode != 0o755)


def test_a_link_that_this_user_may_not_replace_does_not_hide_that_the_release_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a folder with the sticky bit, where `latest` is another operator's."""
    to, private = folders(tmp_path)
    before = Path.replace

    def refused(path: Path, target: Path) -> Path:
        if path.name.startswith(".latest"):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path), None, str(target))
        return before(path, target)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(ReleaseError, match="is published, but not all that follows may be written") as caught:
        release(to, private, an_id(1))
    assert as_error(caught.value) is caught.value and caught.value.release == str(to / an_id(1))
    monkeypatch.undo()
    release(to, private, an_id(2))
    assert (to / "latest").readlink().name == an_id(2)


def test_copies_of_cells_stay_that_a_release_of_the_ledger_lists(tmp_path: Path) -> None:
    """Another one, of a run that was cut off, goes, but where nobody can tell which are listed."""
    to, private = folders(tmp_path)
    (drawn,) = ENTRY.drawn
    wide = replace(ENTRY, release=an_id(1), drawn=(replace(drawn, inside=("age",)),))
    copies, kept = private / "protocols", hashlib.sha256(b"cells").hexdigest()
    raw = json.dumps({"files": {"cells.json": {"sha256": kept}}}).encode()
    with Publisher(to, private, an_id(1)) as publisher:
        (publisher.public / "release.json").write_bytes(raw)
        (publisher.public / "cells.json").write_bytes(b"cells")
        publisher.publish(replace(wide, manifest_sha256=hashlib.sha256(raw).hexdigest()))
    assert (copies / f"{kept}.json").read_bytes() == b"cells"
    strange = copies / f"{'f' * 64}.json"
    strange.touch()
    release(to, private, an_id(2))
    assert not strange.exists() and (copies / f"{kept}.json").exists()
    (copies / f"{hashlib.sha256(raw).hexdigest()}.json").unlink()
    strange.touch()
    release(to, private, an_id(3))
    assert strange.exists() and (copies / f"{kept}.json").exists()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_latest_that_is_no_link(kind: str, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    to.mkdir(parents=True)
    latest = to / "latest"
    latest.touch() if kind == "file" else latest.mkdir()
    with pytest.raises(ReleaseError, match="`latest` is taken") as caught, Publisher(to, private, an_id(1)):
        pytest.fail("opened")
    assert caught.value.code == "release-path"
    assert [path.name for path in to.iterdir()] == ["latest"]


def test_a_disk_that_fills_once_a_release_is_visible_is_told_as_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To try again would be one more release."""
    to, private = folders(tmp_path)

    def full(path: Path) -> None:
        if path == to and (to / an_id(1)).exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("funnel.release.publish.sync", full)
    with pytest.raises(ReleaseError, match="is published, but the disk did not confirm it") as caught:
        release(to, private, an_id(1))
    assert caught.value.exit_code == 1
    assert (to / an_id(1) / "data.csv").is_file()
    monkeypatch.undo()
    release(to, private, an_id(2))
    assert (to / "latest").resolve().name == an_id(2)
    assert {one.release for one in Journal(private).releases()} == {an_id(1), an_id(2)}


def test_a_damaged_ledger_is_found_before_anything_is_drawn(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    (private / "ledger.jsonl").write_text("{}\n")
    with pytest.raises(LedgerError), Publisher(to, private, an_id(2)):
        pytest.fail("opened")


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_where_the_folder_should_be(which: int, tmp_path: Path) -> None:
    pair = folders(tmp_path)
    pair[which].parent.parent.mkdir(exist_ok=True)
    pair[which].parent.write_text("a file")
    with pytest.raises(ReleaseError) as caught, Publisher(*pair, an_id(1)):
        pytest.fail("opened")
    assert caught.value.code == "release-write"
    assert caught.value.where == str(pair[which])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None:
        pytest.skip("no disk can be mounted here: there is no mount command")
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("which", [0, 1])
def test_a_read_only_disk(which: int, small_disk: Path, tmp_path: Path) -> None:
    pair = list(folders(tmp_path))
    pair[which] = small_disk / "folder"
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with (
        pytest.raises(ReleaseError, match="Read-only file system") as caught,
        Publisher(pair[0], pair[1], an_id(1)),
    ):
        pytest.fail("opened")
    assert caught.value.code == "release-write"
    assert caught.value.where == str(pair[which])
    assert "read-only" in (caught.value.advice or "")


def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    """In a process that minds the permission bits, whoever runs the tests."""
    tmp_path.chmod(0o555)
    code = [sys.executable, "-c", REFUSED, *map(str, folders(tmp_path))]
    said = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "Permission denied" in said
    assert "the right to write" in said


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("how", ["plain write", "many files"])
def test_a_full_disk(which: int, how: str, small_disk: Path, tmp_path: Path) -> None:
    pair = list(folders(tmp_path))
    pair[which] = small_disk / "folder"
    with (
        pytest.raises(ReleaseError, match="No space left") as caught,
        Publisher(pair[0], pair[1], an_id(1)) as publisher,
    ):
        folder = (publisher.public, publisher.private)[which]
        if how == "plain write":
            (folder / "a.txt").write_text("x" * 200_000)
        else:
            for number in range(1000):
                (folder / f"{number}.txt").write_text("x" * 4000)
    assert caught.value.code == "disk-full"
    assert "Free space" in (caught.value.advice or "")
    assert seen(pair[0]) == set()
    assert [path for folder in pair for path in folder.glob(".s*")] == []
    release(pair[0], pair[1], an_id(2))


def test_a_disk_that_fills_up_while_publishing(small_disk: Path, tmp_path: Path) -> None:
    """The ledger is the one thing still to be written then."""
    to, private = tmp_path / "to", small_disk / "private"
    release(to, private, an_id(1))
    with pytest.raises(ReleaseError, match="No space left"), Publisher(to, private, an_id(2)) as publisher:
        (publisher.public / "data.csv").write_text("x")
        with pytest.raises(OSError, match="No space"):
            (small_disk / "ballast").write_bytes(bytes(1 << 20))
        publisher.publish(an_entry(an_id(2), name="x" * 5000))
    assert seen(to) == {an_id(1)}
    (small_disk / "ballast").unlink()
    release(to, private, an_id(3))
    assert [entry.release for entry in Journal(private).releases()] == [an_id(1), an_id(3)]


REFUSED = """
import sys
from pathlib import Path
from funnel.errors import ReleaseError
from funnel.release.publish import Publisher
from tests.trials.faulting.hurting import obey_permissions
obey_permissions()
try:
    Publisher(Path(sys.argv[1]), Path(sys.argv[2]), "20261121T112034Z-3f9a1c").__enter__()
except ReleaseError as error:
    print(error.text())
"""
LIMITED = """
import resource, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from funnel.errors import ReleaseError
from funnel.release.publish import Publisher
from tests.support.ledger import an_entry
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    with Publisher(Path(sys.argv[1]), Path(sys.argv[2]), "20261121T112034Z-3f9a1c") as publisher:
        (publisher.public / "data.csv").write_text("x" * int(sys.argv[3]))
        publisher.publish(an_entry("20261121T112034Z-3f9a1c", name="x" * int(sys.argv[4])))
except ReleaseError as error:
    print(error.text())
"""


@pytest.mark.long
@pytest.mark.parametrize(("data", "name"), [(4000, 1), (10, 4000)], ids=["data", "ledger"])
def test_a_limit_on_file_sizes(data: int, name: int, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    command = [sys.executable, "-B", "-c", LIMITED, str(to), str(private), str(data), str(name)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "File too large" in said
    assert "ulimit -f" in said
    assert seen(to) == {an_id(1)}
    assert_whole(to, private)
    assert_tidy(to, private)
    release(to, private, an_id(2))
    assert len(Journal(private).lines()) == 2


def test_an_error_about_something_else_is_not_ours(tmp_path: Path) -> None:
    """A source that has gone is no fault of the release folder."""
    with pytest.raises(FileNotFoundError), Publisher(*folders(tmp_path), an_id(1)):
        (tmp_path / "no such source").read_text()


def test_everything_is_on_the_disk_before_it_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file, each folder and the ledger are synced before the rename that shows the release."""
    to, private = folders(tmp_path)
    events: list[tuple[str, str]] = []
    sync, rename = os.fsync, os.rename

    def record_sync(descriptor: int) -> None:
        events.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        sync(descriptor)

    def record_rename(source: Any, target: Any, **options: Any) -> None:
        events.append(("rename", str(source)))
        rename(source, target, **options)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "rename", record_rename)
    release(to, private, an_id(1))
    shown = events.index(("rename", str(to / f".staging-{an_id(1)}")))
    before = {name for kind, name in events[:shown] if kind == "sync"}
    staged, hidden = to / f".staging-{an_id(1)}", private / f".staging-{an_id(1)}"
    for path in (
        staged,
        staged / "data.csv",
        staged / "release.json",
        hidden,
        hidden / "more" / "plan.json",
        private / "ledger.jsonl",
        private,
    ):
        assert str(path) in before
    assert ("sync", str(to)) in events[shown:]


def test_the_lock_names_its_owner_only_while_held(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    with Publisher(to, private, an_id(1)):
        owner = json.loads((private / ".lock").read_text())
        assert owner.keys() == {"pid", "host", "started"}
    assert (private / ".lock").read_text() == ""
