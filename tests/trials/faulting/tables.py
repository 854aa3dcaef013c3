"""Sources that cannot be read, and sources that change while they are counted or drawn for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.trials.faulting.case import Case, Tried
from tests.trials.faulting.hurting import SOURCE_CHANGES
from tests.trials.faulting.oracle import Seen
from tests.trials.faulting.world import Bench, World

BROKEN = ("source-missing", "source-unreadable", "source-empty", "source-header", "unknown-column")


def _no_right(table: Path) -> None:
    table.chmod(0)


def _folder(table: Path) -> None:
    table.unlink()
    table.mkdir()


def _pipe(table: Path) -> None:
    table.unlink()
    os.mkfifo(table)


def _bad_disk(table: Path) -> None:
    """Reading one's own memory at address 0 is an I/O error."""
    table.unlink()
    table.symlink_to("/proc/self/mem")


def _dangling(table: Path) -> None:
    table.unlink()
    table.symlink_to("nowhere.csv")


def _noise(table: Path) -> None:
    table.write_bytes(bytes(range(256)) * 40)


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "a folder": _folder,
    "a pipe": _pipe,
    "without the right to read it": _no_right,
    "on a bad disk": _bad_disk,
    "a dangling link": _dangling,
    "empty": lambda table: table.write_bytes(b""),
    "a header alone": lambda table: table.write_bytes(b"person_id,s,x,y\n"),
    "noise": _noise,
}


EVERYWHERE = ("replaced", "cut")
"""Changes that are tried before every reading; the others before every third."""


def tables(bench: Bench) -> Iterator[Case]:
    """Every fault of a source."""
    for which, how in UNREADABLE.items():
        yield Case("source unreadable", which, "plain-1", partial(_broken, how))
    for base in ("plain-1",):
        with bench.world(base) as world:
            log = bench.root / "reads"
            log.write_text("")
            bench.run(world, source=(str(world.table), "none", -1, str(log)))
            reads = log.read_text().splitlines()
        for how in SOURCE_CHANGES:
            for at, read in list(enumerate(reads))[:: 1 if how in EVERYWHERE else 3]:
                checked = "end" not in reads[at:]
                case = partial(_changed, how, at, checked)
                yield Case(f"source {how} while it is read", f"{base} before {at} {read}", base, case)


def _broken(how: Callable[[Path], object], bench: Bench, world: World) -> Tried:
    content = world.table.read_bytes()
    how(world.table)
    outcome = bench.run(world, no_override=True)
    return Tried([outcome], partial(_restore, world.table, content), BROKEN)


def _changed(how: str, at: int, checked: bool, bench: Bench, world: World) -> Tried:
    """After the last reading was checked, a change is none of the run's business; before, it is refused."""
    content, before = world.table.read_bytes(), Seen.of(world)
    change = (str(world.table), how, at, str(bench.root / "reads"))
    outcome = bench.run(world, source=change)
    wrong = ["a table that changed was released"] * (
        not checked and set(Seen.of(world).visible) != set(before.visible)
    )
    return Tried([outcome], partial(_restore, world.table, content), wrong=wrong)


def _restore(table: Path, content: bytes) -> None:
    if table.is_dir():
        table.rmdir()
    table.unlink(missing_ok=True)
    table.write_bytes(content)
