"""SIGKILL: before every step of a run, in the middle of every write, and at random moments."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from tests.trials.faulting.case import Case, Tried
from tests.trials.faulting.fuse import Harm
from tests.trials.faulting.world import COLD as COLD_START
from tests.trials.faulting.world import Bench, Outcome, World

BASES = ("plain-0", "plain-1", "rich-0", "rich-1")
BEYOND = 1.2
"""The last moment, in lengths of a usual run."""
COLD = 10
"""One in so many random kills strikes a run in an interpreter of its own, from its very start."""


def kills(bench: Bench, number: int, chance: random.Random) -> Iterator[Case]:
    """Every step of a first run and of a later one; and `number` random moments."""
    for base in ("plain-0", "rich-1"):
        for at, step in enumerate(bench.steps(base)):
            yield Case("killed before a step", f"{base} {at} {step}", base, partial(_at_step, at))
        yield Case("killed before a step", f"{base} after the last", base, partial(_at_step, at + 1))
    for place in range(number):
        moment, base = chance.random(), BASES[place % len(BASES)]
        if place % COLD == 0:
            yield Case("killed at a random moment, cold", f"{moment:.3f}", base, partial(_cold, moment))
        else:
            yield Case("killed at a random moment", f"{moment:.3f}", base, partial(_at_random, moment))


def killed_again(bench: Bench) -> Iterator[Case]:
    """Killed at one step, and again and again: what is left does not add up."""
    for base in ("plain-1", "rich-1"):
        steps = bench.steps(base)
        for at in range(0, len(steps), 16):
            yield Case("killed five times in a row", f"{base} {at} {steps[at]}", base, partial(_again, at))


def _at_step(at: int, bench: Bench, world: World) -> Tried:
    return Tried([bench.run(world, harm=Harm(str(world.folder), "kill", at))])


def _again(at: int, bench: Bench, world: World) -> Tried:
    return Tried([bench.run(world, harm=Harm(str(world.folder), "kill", at + more)) for more in range(5)])


def _at_random(moment: float, bench: Bench, world: World) -> Tried:
    """From the start of the work to just past its usual end."""
    job = bench.job(world, ("run", "policy.yaml", "--json"))
    process = bench.forker.start(job)
    time.sleep(moment * bench.usual * BEYOND)
    kill(process)
    return Tried([bench.ended(job, bench.forker.end())])


def _cold(moment: float, bench: Bench, world: World) -> Tried:
    """The same of a whole interpreter."""
    process = bench.cold(world)
    time.sleep(moment * bench.usual * COLD_START)
    kill(process.pid)
    return Tried([Outcome(process.wait())])


def kill(group: int) -> None:
    """SIGKILL a whole process group; one that has ended is none, and one that has not begun is its first process."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        with suppress(ProcessLookupError):
            os.kill(group, signal.SIGKILL)
