"""Ten things that go wrong in a year: each is made to happen, must be answered as it should, and is put right.

A fault that ends with a release returns its outcome; after the others the night is run again, as the advice says.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.trials.nights.shell import Outcome

if TYPE_CHECKING:
    from tests.trials.nights.world import World

_LIMIT = 30_000
"""Bytes that a file may have on a disk that is nearly full."""
_SOON = 60.0
_TRIES = 8
"""Runs that may be over before the moment at which they were to be killed; their releases are like any others."""


def killed_at_random(world: World) -> None:
    """kill -9 at a random moment of a run."""
    for _ in range(_TRIES):
        pid = world.shell.begin(*world.nightly(), FUNNEL_KEY=world.key)
        time.sleep(world.seconds * world.random.uniform(0.1, 0.9))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        outcome = world.shell.end()
        world.expect(outcome.code in (-signal.SIGKILL, 0), f"a killed run ended with {outcome.code}")
        if outcome.code == -signal.SIGKILL:
            return
    world.expect(False, "every run was over before it could be killed")


def killed_while_publishing(world: World) -> None:
    """Death between the ledger's entry and the moment in which the release is seen."""
    before = world.lines()
    outcome = world.run(fault={"die_before": world.to.name})
    world.expect(outcome.code == -signal.SIGKILL, "the run did not die where it was to die")
    world.expect(
        len(world.lines()) == len(before) + 1, "a release was to be published that is not in the ledger"
    )


def two_at_once(world: World) -> Outcome:
    """A second run begins while the first is at work: it is sent away, and the first goes on."""
    pid = world.shell.begin(*world.nightly(), FUNNEL_KEY=world.key)
    deadline, lock = time.monotonic() + _SOON, world.private / ".lock"
    while time.monotonic() < deadline and not lock.read_bytes():
        time.sleep(0.001)
    os.kill(pid, signal.SIGSTOP)
    try:
        rival = world.other(*world.nightly(), FUNNEL_KEY=world.key)
        world.answered(rival, "release-busy", str(pid))
    finally:
        os.kill(pid, signal.SIGCONT)
    return world.shell.end()


def source_missing(world: World) -> None:
    """The table is not there yet."""
    aside = world.source.rename(world.folder / "late.parquet")
    world.answered(world.run(), "source-missing", world.source.name)
    aside.rename(world.source)


def source_cut_short(world: World) -> None:
    """Half of the table was copied."""
    whole = world.source.read_bytes()
    world.source.write_bytes(whole[: len(whole) // 2])
    world.answered(world.run(), "source-unreadable", world.source.name)
    world.source.write_bytes(whole)


def keys_wrong(world: World) -> None:
    """The key of another policy; a mistyped one; none."""
    world.answered(world.run(FUNNEL_KEY=world.new_key()), "key-changed", "rotate")
    world.answered(world.run(FUNNEL_KEY=world.key[:-3] + "xyz"), "key-unreadable", "FUNNEL_KEY")
    world.answered(world.run(FUNNEL_KEY=None), "key-missing", "FUNNEL_KEY")


def disk_full(world: World) -> None:
    """No file may grow as large as the release needs."""
    world.answered(world.run(fault={"bytes": _LIMIT}), "disk-full", "raise it")


def lock_damaged(world: World) -> None:
    """Somebody edited a weight in the lock; version control has the one that was reviewed."""
    text = world.lock.read_text()
    world.lock.write_text(text.replace("bits: ", "bits: 1", 1))
    world.answered(world.run(), "lock-damaged", "version control")
    world.lock.write_text(text)


def ledger_cut_short(world: World) -> None:
    """The ledger lost its last entry; the backup of the private folder has it, with its head."""
    path = world.private / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    world.answered(world.run(), "ledger", "backup")
    for name in ("ledger.jsonl", "ledger.head"):
        shutil.copy(world.backup / name, world.private / name)


def clock_back(world: World) -> Outcome | None:
    """The clock is a year and more behind: the night is released, after the last one, with a warning."""
    last = world.visible()[-1]
    outcome = world.run(fault={"days": -400.0})
    if outcome.error == "lock-leaks":
        return None  # the table had drifted too far: such a night is refused whatever the clock says
    if world.expect(outcome.code == 0, f"a clock that went back stopped the night: {outcome.err}"):
        told = " ".join(outcome.json["warnings"])
        world.expect("check the clock" in told, "nobody was told of the clock")
        world.expect(world.visible()[-1] > last, "the release is not named after the one before it")
    return outcome


FAULTS: tuple[Callable[[World], Outcome | None], ...] = (
    killed_at_random, killed_while_publishing, two_at_once, source_missing, source_cut_short, keys_wrong, disk_full,
    lock_damaged, ledger_cut_short, clock_back,
)  # fmt: skip
