"""Disks that fill up, refuse, or fail: at every step by injection, and truly, on small and read-only disks."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.trials.faulting.case import Case, Tried
from tests.trials.faulting.fuse import Harm
from tests.trials.faulting.world import Bench, World

PAGE = 4096
SAID = 2000
"""Bytes that a run may say of an error, which go to a file, too."""
REFUSED = ("release-write", "disk-full", "ledger", "source-unreadable")


def disks(bench: Bench) -> Iterator[Case]:
    """Every fault of a disk."""
    yield from _injected(bench)
    yield from _limited(bench)
    for folder in ("releases", "private"):
        yield from _small(bench, folder)
        for base in ("plain-0", "plain-1"):
            yield Case(
                "disk mounted read-only", f"{folder} of {base}", base, partial(_mounted, folder), mounts=True
            )
            yield Case(
                "folder without the right to write", f"{folder} of {base}", base, partial(_no_right, folder)
            )


def _injected(bench: Bench) -> Iterator[Case]:
    """From one step on, or at one step only."""
    for base, full, error in (
        ("plain-0", "disk read-only from a step on", "EROFS"),
        ("rich-1", "disk full from a step on", "ENOSPC"),
    ):
        for at, step in enumerate(bench.steps(base)):
            which, synced = f"{base} {at} {step}", step.startswith("fsync")
            yield Case(full, which, base, partial(_fails, "fail from", error, at))
            if synced or base == "rich-1":
                name = "I/O error at one fsync" if synced else "I/O error at one other step"
                yield Case(name, which, base, partial(_fails, "fail", "EIO", at))


def _fails(how: str, error: str, at: int, bench: Bench, world: World) -> Tried:
    return Tried([bench.run(world, harm=Harm(str(world.folder), how, at, error))])


def _limited(bench: Bench) -> Iterator[Case]:
    """`ulimit -f`, at every size of a file that a release has."""
    with bench.world("plain-1") as world:
        sizes = {path.stat().st_size for path in world.folder.rglob("*") if path.is_file()}
    for size in sorted({SAID, *(one - 1 for one in sizes), *(one // 2 for one in sizes)}):
        if size < SAID:
            continue
        yield Case("limit on file sizes", f"{size} bytes", "plain-1", partial(_limit, size))


def _limit(size: int, bench: Bench, world: World) -> Tried:
    return Tried([bench.run(world, file_size=size)])


def _small(bench: Bench, folder: str) -> Iterator[Case]:
    """So many pages, and so many names, left on the disk of one folder: one more each time, until all fits."""
    pages, names = _needs(bench, folder)
    for left in range(0, pages + 3, 2):
        yield Case(
            "disk truly full",
            f"{folder}: {left} pages left",
            "plain-1",
            partial(_filled, folder, left, None),
            mounts=True,
        )
    for left in range(names + 2):
        yield Case(
            "disk out of names",
            f"{folder}: {left} left",
            "plain-1",
            partial(_filled, folder, None, left),
            mounts=True,
        )


def _needs(bench: Bench, folder: str) -> tuple[int, int]:
    """Pages and names that a release takes."""
    with bench.world("plain-1") as world:
        paths = [path for path in (world.folder / folder).rglob("*") if not path.is_symlink()]
        return sum(-(-path.stat().st_size // PAGE) for path in paths if path.is_file()), len(paths) + 3


def _filled(folder: str, pages: int | None, names: int | None, bench: Bench, world: World) -> Tried:
    """Run on a disk with little left; the advice is to make room."""
    place = world.folder / folder
    options = "size=8m" if names is None else f"size=8m,nr_inodes={names + _count(place) + 1}"
    with disk(place, options):
        if pages is not None:
            ballast = place / "ballast"
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(PAGE))
            with ballast.open("r+b") as file:
                file.truncate(max(ballast.stat().st_size - pages * PAGE, 0))
            outcome = bench.run(world)
            ballast.unlink()
        else:
            outcome = bench.run(world)
    return Tried([outcome])


class disk:  # noqa: N801  used like a function
    """A disk of its own under a folder; what it holds is carried over to it, and back."""

    def __init__(self, place: Path, options: str) -> None:
        self.place, self.options = place, options

    def __enter__(self) -> None:
        self._carried(lambda: _do("mount", "-t", "tmpfs", "-o", self.options, "tmpfs", self.place))

    def __exit__(self, *_: object) -> None:
        self._carried(lambda: _do("umount", self.place))

    def _carried(self, change: Callable[[], None]) -> None:
        aside = self.place.with_name("aside")
        _do("rm", "-rf", aside)
        _do("cp", "-a", self.place, aside)
        change()
        _do("find", self.place, "-mindepth", "1", "-delete")
        _do("cp", "-a", f"{aside}/.", self.place)
        _do("rm", "-rf", aside)


def _mounted(folder: str, bench: Bench, world: World) -> Tried:
    place = world.folder / folder
    place.mkdir(exist_ok=True)
    _do("mount", "--bind", place, place)
    _do("mount", "-o", "remount,bind,ro", place)
    outcome = bench.run(world)
    _do("umount", place)
    return Tried([outcome], lambda: None, REFUSED)


def _no_right(folder: str, bench: Bench, world: World) -> Tried:
    place = world.folder / folder
    place.mkdir(exist_ok=True, mode=0o755)
    mode = place.stat().st_mode
    place.chmod(0o555)
    outcome = bench.run(world, no_override=True)
    place.chmod(mode)
    return Tried([outcome], lambda: None, ("permission",))


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*")) + 1


def _do(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
