"""What earlier runs left: theirs is removed, whatever step they died at; a ledger that lost entries is noticed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funnel.errors import LedgerError, ReleaseError
from funnel.ledger.journal import Journal
from funnel.release.publish import Publisher
from funnel.release.recover import check_visible, releases, staged_for
from tests.support.ledger import an_entry

from .dying import release
from .test_publish import (
    FILES,
    Runs,
    an_id,
    assert_tidy,
    assert_whole,
    folders,
    listed,
    quick_disk,
    runs,
    seen,
)

__all__ = ["quick_disk", "runs"]


def cut_off(to: Path, private: Path, release_id: str) -> None:
    """What a run leaves that is killed after its entry and its evidence, before anybody sees the release."""
    release(to, private, release_id)
    (to / release_id).rename(to / f".staging-{release_id}")
    (private / release_id / "published").unlink()
    (private / staged_for(release_id)).symlink_to(to.resolve())
    (to / "latest").unlink()


def test_a_release_that_nobody_saw_leaves_its_entry_and_whom_it_was_about(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    cut_off(to, private, an_id(1))
    with Publisher(to, private, an_id(2)) as publisher:
        assert {path.name for path in (private / an_id(1)).iterdir()} == {"people.json", "evidence.json"}
    (told,) = publisher.told
    assert an_id(1) in told
    assert "its entry in the ledger stays" in told
    assert_tidy(to, private)
    assert [entry.release for entry in Journal(private).releases()] == [an_id(1)]
    with Publisher(to, private, an_id(3)) as publisher:
        assert publisher.told == []


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("how", ["moved", "made", "made elsewhere", "restored"])
def test_what_readers_saw_is_not_taken_for_cut_off_whatever_lies_beside_it(
    how: str, tmp_path: Path, *, mark: bool
) -> None:
    """Whoever may write into TO can name a folder there like one that a killed run left; so can a backup."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    if not mark:
        (private / an_id(1) / "published").unlink()
    evidence = {path.name for path in (private / an_id(1)).iterdir()}
    lies = {"made elsewhere": tmp_path / "others", "restored": private}.get(how, to) / f".staging-{an_id(1)}"
    if how == "moved":
        (to / an_id(1)).rename(lies)
    else:
        shutil.copytree(private / an_id(1), lies)
    with Publisher(lies.parent if how == "made elsewhere" else to, private, an_id(2)) as publisher:
        assert {path.name for path in (private / an_id(1)).iterdir()} >= evidence
        assert list(lies.iterdir())
        (told,) = publisher.told
    assert told.startswith(f"{lies} was left as it is")


@pytest.mark.parametrize("what", ["latest", "releases", "spill", "to"])
def test_no_folder_of_the_published_one_is_removed_for_its_name(what: str, tmp_path: Path) -> None:
    """Runs leave a link and a file of such names there; a folder is a release that somebody moved."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    (to / an_id(1)).rename(to / f".{what}-{an_id(1)}")
    with Publisher(to, private, an_id(2)) as publisher:
        (told,) = publisher.told
    assert told.startswith(f"{to / f'.{what}-{an_id(1)}'} was left as it is")
    assert list((to / f".{what}-{an_id(1)}").iterdir())


def test_evidence_of_what_readers_see_goes_to_its_place(tmp_path: Path) -> None:
    """A copy of the private folder from the moment between its entry and its evidence was put back."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    evidence = {path.name for path in (private / an_id(1)).iterdir()}
    (private / an_id(1) / "published").unlink()
    (private / an_id(1)).rename(private / f".staging-{an_id(1)}")
    (private / staged_for(an_id(1))).symlink_to(to.resolve())
    with Publisher(to, private, an_id(2)) as publisher:
        assert publisher.told == []
    assert {path.name for path in (private / an_id(1)).iterdir()} == evidence
    assert_tidy(to, private)


@pytest.mark.parametrize("who", ["its own", "another"])
def test_folders_that_were_moved_together_are_found_again(who: str, tmp_path: Path) -> None:
    """The link of a killed run is read as seen from the private folder."""
    to, private = folders(tmp_path / "before")
    with Publisher(to, private, an_id(9)):
        link = (private / staged_for(an_id(9))).readlink()
    assert not link.is_absolute()
    release(to, private, an_id(1))
    (private / an_id(1) / "published").unlink()
    (private / staged_for(an_id(1))).symlink_to(link)
    (tmp_path / "before").rename(tmp_path / "after")
    to, private = folders(tmp_path / "after")
    with Publisher(to if who == "its own" else tmp_path / "others", private, an_id(2)) as publisher:
        assert publisher.told == []
    assert (private / an_id(1) / "published").exists()


def removed_by(to: Path) -> str:
    """Which later run removes what was left in a folder."""
    where = f"where it was to be seen ({to.resolve()}, unless a folder was moved since)"
    return f"the next run of this private folder that publishes {where}"


@pytest.mark.parametrize("there", ["empty", "gone"])
def test_what_lies_on_a_share_that_is_not_mounted_waits(there: str, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    cut_off(to, private, an_id(1))
    to.rename(tmp_path / "unmounted")
    if there == "empty":
        to.mkdir()
    with Publisher(tmp_path / "others", private, an_id(2)) as publisher:
        (told,) = publisher.told
    assert f"was cut off; {removed_by(to)} finds it there, or removes what it left there" in told
    if there == "empty":
        to.rmdir()
    (tmp_path / "unmounted").rename(to)
    with Publisher(to, private, an_id(3)) as publisher:
        (told,) = publisher.told
    assert "what it left was removed" in told
    assert_tidy(to, private)


def test_what_readers_may_see_by_now_is_not_said_to_have_been_cut_off_before(tmp_path: Path) -> None:
    """Killed before its mark, and then the private folder was moved by itself: its link leads to no folder."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    (private / an_id(1) / "published").unlink()
    (private / staged_for(an_id(1))).symlink_to(os.path.relpath(to, private))
    (tmp_path / "store" / "deep").mkdir(parents=True)
    private.rename(tmp_path / "store" / "deep" / "private")
    private.symlink_to(tmp_path / "store" / "deep" / "private")
    with Publisher(tmp_path / "others", private, an_id(2)) as other:
        (told,) = other.told
    assert told.startswith(f"release {an_id(1)} was cut off; the next run") and "finds it there, or" in told
    with Publisher(to, private, an_id(3)) as own:
        assert own.told == []
    assert (private / an_id(1) / "published").exists()
    assert_tidy(to, private)


@pytest.mark.parametrize("content", ["pipe", "[" * 100_000])
def test_what_lies_in_the_published_folder_stops_no_run(content: str, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    (to / an_id(9)).mkdir()
    for path in (to / an_id(9) / "release.json", to / "releases.json"):
        path.unlink(missing_ok=True)
        os.mkfifo(path) if content == "pipe" else path.write_text(content)
    check_visible(to, "test", releases(to), Journal(private).releases())
    release(to, private, an_id(2))
    assert listed(to) == {an_id(1), an_id(2)}


def test_a_run_that_publishes_elsewhere_marks_what_a_killed_one_made_visible(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    (private / an_id(1) / "published").unlink()
    (private / staged_for(an_id(1))).symlink_to(to)
    release(tmp_path / "elsewhere", private, an_id(2))
    assert (private / an_id(1) / "published").is_file()
    assert not (private / staged_for(an_id(1))).is_symlink()


def test_a_release_that_was_taken_away_keeps_its_evidence(tmp_path: Path) -> None:
    """Only what is still staged was never seen."""
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    shutil.rmtree(to / an_id(1))
    release(to, private, an_id(2))
    assert (private / an_id(1) / "evidence.json").is_file()


def test_what_was_cut_off_in_another_folder_waits_for_its_policy(runs: Runs, quick_disk: Path) -> None:
    """Whatever step it died at: a run that publishes elsewhere neither removes it nor says so, nor forgets it."""
    code, step, left = -signal.SIGKILL, 0, 0
    while code:
        to, private = folders(quick_disk / f"{step}")
        runs.start(to, private, an_id(1), step)
        code = runs.end()
        others = to.parent / "others"
        staged = (to / f".staging-{an_id(1)}").is_dir()
        with Publisher(others, private, an_id(2)) as publisher:
            told = [one for one in publisher.told if removed_by(to) in one]
            assert bool(told) >= staged
            assert ("in the ledger stays" in "".join(publisher.told)) <= bool(Journal(private).releases())
        assert [path.name for path in others.iterdir()] == []
        with Publisher(to, private, an_id(3)) as publisher:
            assert bool([one for one in publisher.told if "what it left was removed" in one]) >= staged
        release(to, private, an_id(4))
        assert_tidy(to, private)
        left += staged
        step += 1
    assert left > 10


def test_what_lies_on_a_share_that_is_gone_may_be_there_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another policy goes on, and what would tell the share's own whose that is stays."""
    to, private = folders(tmp_path)
    cut_off(to, private, an_id(1))
    lstat = Path.lstat

    def gone(path: Path) -> os.stat_result:
        if path.is_relative_to(to):
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected", str(path))
        return lstat(path)

    with monkeypatch.context() as inside:
        inside.setattr(Path, "lstat", gone)
        with Publisher(to.parent / "others", private, an_id(2)) as other:
            assert [removed_by(to) in one for one in other.told] == [True]
    with Publisher(to, private, an_id(3)) as own:
        assert ["what it left was removed" in one for one in own.told] == [True]


@pytest.mark.long
def test_cleaning_up_may_be_killed_at_any_step(runs: Runs, quick_disk: Path) -> None:
    code, step = -signal.SIGKILL, 0
    while code:
        to, private = folders(quick_disk / f"{step}")
        cut_off(to, private, an_id(1))
        runs.start(to, private, an_id(2), step)
        code = runs.end()
        release(to, private, an_id(3))
        assert_whole(to, private)
        assert_tidy(to, private)
        assert an_id(1) not in seen(to)
        step += 1
    assert step > 50


def test_copies_of_runs_that_never_came_to_their_entry_are_removed(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    with Publisher(to, private, an_id(1)) as publisher:
        (publisher.public / "protocol.json").write_text("{}")
        publisher.publish(an_entry(an_id(1), protocol_sha256="a" * 64, manifest_sha256="d" * 64))
    kept = private / "protocols"
    names = [
        f"{'a' * 64}.json",
        f"{'d' * 64}.json",
        f"{'b' * 64}.json",
        f".{'a' * 64}.json.new",
        f".{'c' * 64}.json.new",
        "notes",
    ]
    for name in names:
        (kept / name).write_text("{}")
    with Publisher(to, private, an_id(2)):
        assert {path.name for path in kept.iterdir()} == {*names[:2], "notes"}


@pytest.mark.parametrize("lost", [("ledger.jsonl", "ledger.head"), ("older",)])
def test_evidence_without_an_entry_is_a_ledger_that_was_lost(lost: tuple[str, ...], tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    older = {name: (private / name).read_bytes() for name in ("ledger.jsonl", "ledger.head")}
    release(to, private, an_id(2))
    for name, content in older.items():
        (private / name).unlink() if name in lost else (private / name).write_bytes(content)
    with pytest.raises(LedgerError, match=f"does not know of release {an_id(2)}") as caught:
        release(to, private, an_id(3))
    assert caught.value.where == str(private)
    assert "backup" in (caught.value.advice or "")
    assert seen(to) == {an_id(1), an_id(2)}


def test_a_visible_release_of_the_same_policy_is_in_its_ledger(tmp_path: Path) -> None:
    to, _ = folders(tmp_path)
    for minute, name in ((1, "ours"), (2, "theirs"), (3, "ours")):
        (to / an_id(minute)).mkdir(parents=True)
        (to / an_id(minute) / "release.json").write_text(json.dumps({"name": name}))
    (to / an_id(4)).mkdir()
    known = [an_entry(an_id(1)), an_entry(an_id(3))]
    check_visible(to, "ours", releases(to), known)
    with pytest.raises(LedgerError, match=an_id(3)):
        check_visible(to, "ours", releases(to), known[:1])
    with pytest.raises(LedgerError, match=f"{an_id(3)} and 1 more"):
        check_visible(to, "ours", releases(to), [])
    check_visible(to, "others", releases(to), [])


def test_a_visible_release_of_another_policy_that_the_ledger_names_is_in_it(tmp_path: Path) -> None:
    """A copy of the private folder from before would else go on without what its other policies told since."""
    to, _ = folders(tmp_path)
    for minute in (1, 2):
        (to / an_id(minute)).mkdir(parents=True)
        (to / an_id(minute) / "release.json").write_text(json.dumps({"name": "theirs"}))
    known = [an_entry(an_id(1), name="theirs"), an_entry(an_id(2), name="theirs")]
    check_visible(to, "ours", releases(to), known)
    with pytest.raises(LedgerError, match=an_id(2)):
        check_visible(to, "ours", releases(to), known[:1])


def test_a_run_that_another_overtook_before_it_held_the_lock_is_told_so(tmp_path: Path) -> None:
    """Its name would come before that of a release which its ledger has already."""
    to, private = folders(tmp_path)
    release(to, private, an_id(2))
    for late in (an_id(1), an_id(2)):
        with (
            pytest.raises(ReleaseError, match="while this run began") as caught,
            Publisher(to, private, late),
        ):
            pytest.fail("opened")
        assert caught.value.code == "release-busy"


def test_two_runs_may_make_the_private_folder_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, private = folders(tmp_path)
    original = Path.mkdir

    def mkdir(folder: Path, *arguments: Any, **options: Any) -> None:
        if folder == private:
            original(folder)
        original(folder, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    release(to, private, an_id(1))
    assert seen(to) == {an_id(1)}


SPOILT: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a link": lambda path: path.symlink_to("elsewhere"),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("which", SPOILT)
def test_a_lock_that_cannot_be_used_is_named(which: str, tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    private.mkdir(parents=True)
    SPOILT[which](private / ".lock")
    with (
        pytest.raises(ReleaseError, match="lock of the private folder") as caught,
        Publisher(to, private, an_id(1)),
    ):
        pytest.fail("opened")
    assert caught.value.where == str(private / ".lock")
    assert "remove it" in (caught.value.advice or "")


def test_whatever_a_lock_says_its_holder_is_reported(tmp_path: Path) -> None:
    to, private = folders(tmp_path)
    release(to, private, an_id(1))
    for content in (b"[" * 4096, b"\xff", b"[7]", b""):
        (private / ".lock").write_bytes(content)
        with (private / ".lock").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with (
                pytest.raises(ReleaseError, match="it has only just begun"),
                Publisher(to, private, an_id(2)),
            ):
                pytest.fail("opened")


def failing(monkeypatch: pytest.MonkeyPatch, name: str, place: Path) -> None:
    """`os.name` fails for a path or descriptor at a place."""
    original = getattr(os, name)

    def fail(target: Any, *rest: Any) -> Any:
        at = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else Path(target)
        if at == place:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(target, *rest)

    monkeypatch.setattr(os, name, fail)


def test_a_disk_that_fails_once_the_release_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says that it is; the next run, even one that fails, moves `latest`."""
    to, private = folders(tmp_path)
    with monkeypatch.context() as patch:
        failing(patch, "fsync", to)
        with pytest.raises(ReleaseError, match=f"{an_id(1)} is published") as caught:
            release(to, private, an_id(1))
    assert caught.value.where == str(to)
    assert seen(to) == {an_id(1)}
    with pytest.raises(ZeroDivisionError), Publisher(to, private, an_id(2)):
        1 / 0  # noqa: B018
    assert_whole(to, private)
    assert_tidy(to, private)
    assert (to / "latest").readlink().name == an_id(1)


def test_a_lock_that_cannot_be_signed_off_hides_no_error_and_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, private = folders(tmp_path)
    with Publisher(to, private, an_id(1)) as publisher:
        (publisher.public / "data.csv").write_text(FILES["data.csv"])
        publisher.publish(an_entry(an_id(1)))
        failing(monkeypatch, "ftruncate", private / ".lock")
    assert seen(to) == {an_id(1)}
    monkeypatch.undo()
    release(to, private, an_id(2))
