"""Data of old releases are taken away, what stays is what it was, and a killed pruning is ended by the next."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from funnel.errors import ReleaseError
from funnel.format import schema
from funnel.format.pruned import PrunedFile
from funnel.release import prune as pruning
from funnel.release.holding import alone
from funnel.release.prune import prune
from funnel.release.publish import Publisher
from tests.support.ledger import an_entry

from .dying import Fuse
from .test_publish import an_id, folders

DATA = {"data/x=1/part-0.csv", "data.csv", "report.html"}


def publish(to: Path, private: Path, number: int, policy: str = "census") -> None:
    with Publisher(to, private, an_id(number)) as publisher:
        for name in sorted(DATA):
            (publisher.public / name).parent.mkdir(parents=True, exist_ok=True)
            (publisher.public / name).write_text(name)
        for name in ("release.json", "attestation.json"):
            (publisher.public / name).write_text(f"{name} of {number}")
        (publisher.private / "evidence.json").write_text("{}")
        raw = (publisher.public / "release.json").read_bytes()
        publisher.publish(an_entry(an_id(number), name=policy, manifest_sha256=hashlib.sha256(raw).hexdigest()))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Four releases of one policy."""
    to, private = folders(tmp_path)
    for number in range(1, 5):
        publish(to, private, number)
    return to, private


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def whole(to: Path) -> list[int]:
    return [number for number in range(1, 5) if files(to / an_id(number)) > DATA]


@pytest.mark.parametrize("there", ["private", "another"])
def test_nothing_is_removed_of_what_was_put_in_the_place_of_a_release(
    pair: tuple[Path, Path], there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at all of them and the removal of one."""
    to, private = pair
    put, mark = {"private": private, "another": to / an_id(4)}[there], pruning._mark

    def exchanged(private: Path, one: Any) -> None:
        mark(private, one)
        (to / one.release).rename(to / "aside")
        (to / one.release).symlink_to(put)

    before = files(put)
    monkeypatch.setattr(pruning, "_mark", exchanged)
    with pytest.raises(ReleaseError):
        prune(to, private, "census", 3)
    assert files(put) >= before


def test_the_newest_stay_whole_and_of_the_others_what_is_signed(pair: tuple[Path, Path]) -> None:
    to, private = pair
    told = prune(to, private, "census", 2)
    assert (list(told.releases), told.kept) == ([an_id(1), an_id(2)], 2)
    assert set(told.releases.values()) == {sum(map(len, DATA))}
    assert whole(to) == [3, 4]
    for number in (1, 2):
        assert files(to / an_id(number)) == {"release.json", "attestation.json"}
        assert (to / an_id(number) / "release.json").read_text() == f"release.json of {number}"
        assert files(private / an_id(number)) == {"evidence.json", "published"}
        path = private / "pruned" / an_id(number)
        assert schema.read(PrunedFile, path.name, path.read_bytes()).release == an_id(number)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((private / "pruned").stat().st_mode) == 0o700
    assert prune(to, private, "census", 2).releases == {}


def test_what_latest_points_at_stays_whatever_is_kept(pair: tuple[Path, Path]) -> None:
    to, private = pair
    (to / "latest").unlink()
    (to / "latest").symlink_to(an_id(2))
    assert list(prune(to, private, "census", 1).releases) == [an_id(1), an_id(3)]
    assert whole(to) == [2, 4]


def test_releases_of_other_policies_and_ledgers_are_not_looked_at(pair: tuple[Path, Path], tmp_path: Path) -> None:
    to, private = pair
    publish(to, private, 5, "another")
    publish(to, tmp_path / "elsewhere", 6)
    assert list(prune(to, private, "another", 1).releases) == []
    assert list(prune(to, private, "census", 1).releases) == [an_id(number) for number in (1, 2, 3)]
    assert files(to / an_id(5)) > DATA and files(to / an_id(6)) > DATA


def test_a_dry_run_changes_nothing(pair: tuple[Path, Path]) -> None:
    to, private = pair
    told = prune(to, private, "census", 1, dry=True)
    assert len(told.releases) == 3 and "would be pruned" in told.text()
    assert whole(to) == [1, 2, 3, 4]
    assert not (private / "pruned").exists()
    assert told.as_dict()["dry_run"] is True


def test_nothing_goes_where_a_release_was_changed(pair: tuple[Path, Path]) -> None:
    """Its data would show what was changed."""
    to, private = pair
    (to / an_id(2) / "release.json").write_text("something else")
    with pytest.raises(ReleaseError, match="not the one that was entered"):
        prune(to, private, "census", 1)
    assert len([name for name in (1, 2, 3, 4) if files(to / an_id(name)) > DATA]) == 4


def test_a_run_at_work_is_not_disturbed(pair: tuple[Path, Path]) -> None:
    to, private = pair
    with alone(private), pytest.raises(ReleaseError) as caught:
        prune(to, private, "census", 1)
    assert caught.value.code == "release-busy"


def dying(work: Callable[[], object], step: int) -> int:
    """The exit code of a process that does some work and is killed at one of its calls into the file system."""
    child = os.fork()
    if child == 0:
        Fuse(step)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.long
def test_a_pruning_may_be_killed_at_any_step(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Nothing is gone before it is marked, and the next one ends it."""
    code, step = -signal.SIGKILL, 0
    while code:
        base = tmp_path / str(step)
        to, private = folders(base)
        for one, other in zip(pair, (to, private), strict=True):
            shutil.copytree(one, other, symlinks=True)
        code = dying(lambda to=to, private=private: prune(to, private, "census", 2), step)
        for number in (1, 2, 3, 4):
            marked = (private / "pruned" / an_id(number)).exists()
            assert marked or files(to / an_id(number)) > DATA, (step, number)
            assert files(to / an_id(number)) >= {"release.json", "attestation.json"}
        prune(to, private, "census", 2)
        assert whole(to) == [3, 4], step
        shutil.rmtree(base)
        step += 1
    assert step > 30


def test_what_was_marked_goes_though_more_are_kept_now(pair: tuple[Path, Path]) -> None:
    to, private = pair
    prune(to, private, "census", 2)
    (to / an_id(1) / "data.csv").write_text("left over")
    assert list(prune(to, private, "census", 9).releases) == [an_id(1)]
    assert files(to / an_id(1)) == {"release.json", "attestation.json"}


def test_a_later_run_goes_on_as_before(pair: tuple[Path, Path]) -> None:
    to, private = pair
    prune(to, private, "census", 1)
    entry = replace(an_entry(an_id(7)), name="census")
    with Publisher(to, private, an_id(7)) as publisher:
        assert publisher.told == []
        publisher.publish(entry)
    assert (to / "latest").readlink().name == an_id(7)
