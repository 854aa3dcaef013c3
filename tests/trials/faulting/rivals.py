"""Two runs at once, at every interleaving of their steps; locks of owners that are dead, far away, or unreadable."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.trials.faulting.case import Case, Tried
from tests.trials.faulting.fuse import Harm
from tests.trials.faulting.oracle import Seen
from tests.trials.faulting.world import Bench, Outcome, World, wait_until

TOGETHER = 10
BEFORE = 6
"""Steps before and just after the lock is held; later, the second run is told to wait wherever the first one is."""


def rivals(bench: Bench) -> Iterator[Case]:
    """Every fault of two runs and of the lock between them."""
    for which in range(TOGETHER):
        yield Case("two runs started together", f"{which}", "plain-1", _together)
    for base, stride in (("plain-1", 4), ("rich-0", 12)):
        steps = list(enumerate(bench.steps(base)))
        for at, step in [*steps[:BEFORE], *steps[BEFORE::stride]]:
            yield Case(
                "a second run at a step of the first", f"{base} {at} {step}", base, partial(_between, at)
            )
    for which, content in LOCKS.items():
        yield Case("lock file left behind", which, "plain-1", partial(_left, content, False))
        yield Case("lock held, its file unreadable", which, "plain-1", partial(_left, content, True))
    for which, spoil in SPOILT.items():
        yield Case("lock file spoilt", which, "plain-1", partial(_spoilt, spoil))


def _owner(pid: int, host: str) -> bytes:
    return json.dumps({"pid": pid, "host": host, "started": "2026-11-20T02:00:00Z"}).encode()


def _dead() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


LOCKS: dict[str, Callable[[], bytes]] = {
    "of a dead process here": lambda: _owner(_dead(), socket.gethostname()),
    "of a living process here": lambda: _owner(os.getpid(), socket.gethostname()),
    "of another host": lambda: _owner(1, "elsewhere.example"),
    "empty": lambda: b"",
    "cut short": lambda: _owner(1, "here")[:17],
    "noise": lambda: bytes(range(256)) * 8,
    "another kind of JSON": lambda: b'["pid", 7]',
    "deeply nested": lambda: b"[" * 4096,
    "terminal codes": lambda: _owner(1, "\x1b[2J\x1b]0;x\x07"),
}


def _together(bench: Bench, world: World) -> Tried:
    """A forked and a cold one; each is published, or told to wait, and they are in order."""
    rival = bench.cold(world)
    job = bench.job(world, ("run", "policy.yaml", "--json"))
    # The cold one begins its work as the other does.
    with suppress(TimeoutError):
        wait_until(lambda: (world.private / ".lock").stat().st_size > 0 or rival.poll() is not None, 20)
    bench.forker.start(job)
    outcomes = [bench.ended(job, bench.forker.end()), Outcome(rival.wait())]
    codes = {one.code for one in outcomes}
    wrong = [f"two runs ended with {codes}"] * (not codes <= {0, 5} or 0 not in codes)
    return Tried(outcomes[:1] + [one for one in outcomes[1:] if one.code == 0], wrong=wrong)


def _between(at: int, bench: Bench, world: World) -> Tried:
    """The first stops at a step; a second runs as far as it can; the first goes on."""
    first = bench.job(world, ("run", "policy.yaml", "--json"), harm=Harm(str(world.folder), "stop", at))
    process = bench.forker.start(first)
    if bench.forker.end() is not None:
        raise RuntimeError("the first run did not stop")
    second = bench.run_beside(world)
    outcomes = [second, bench.ended(first, bench.forker.resume(process))]
    codes = [one.code for one in outcomes]
    wrong = [f"of two runs, {codes}"] * (0 not in codes)
    for one in outcomes:
        if one.code and one.error.get("code") != "release-busy":
            wrong.append(f"a rival was told {one.err.strip()[-300:]}")
    return Tried(outcomes, wrong=wrong)


def _left(content: Callable[[], bytes], held: bool, bench: Bench, world: World) -> Tried:
    """What the file says decides nothing: who holds it, does."""
    path = world.private / ".lock"
    path.write_bytes(content())
    with path.open("r+b") as file:
        if held:
            fcntl.flock(file, fcntl.LOCK_EX)
        outcome = bench.run(world)
    return Tried([outcome], lambda: None, ("release-busy",) if held else ())


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SPOILT: dict[str, Callable[[Path], object]] = {
    "a folder": _folder,
    "a link": _link,
    "a pipe": _pipe,
    "removed": Path.unlink,
    "without the right to use it": lambda path: path.chmod(0),
}


def _spoilt(spoil: Callable[[Path], object], bench: Bench, world: World) -> Tried:
    """It works, or it says to remove that very file."""
    path, before = world.private / ".lock", Seen.of(world)
    spoil(path)
    outcome = bench.run(world, no_override=True)
    refused = outcome.code != 0
    wrong = [f"it does not name the lock: {outcome.err.strip()}"] * (
        refused and "private/.lock" not in outcome.err
    )
    if refused and Seen.of(world) != before:
        wrong.append("a refused run changed something")
    return Tried([outcome], (lambda: _remove(path)) if refused else None, wrong=wrong)


def _remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
