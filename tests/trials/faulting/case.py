"""One fault, tried once: what happens, what is asked of it, and how it came out."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.trials.faulting import oracle
from tests.trials.faulting.oracle import Seen
from tests.trials.faulting.world import Bench, Outcome, World

EVERY = 5
"""What a run with a fault has published is audited; where it published nothing, all is once in so many cases."""


@dataclass(frozen=True)
class Tried:
    """The runs that something happened to; and what their advice says to do, None where just running again will do.

    `refused`: the codes that the last of them may end with, where it has to be refused.
    `wrong`: what the fault itself found to be wrong.
    """

    outcomes: list[Outcome]
    advice: Callable[[], object] | None = None
    refused: tuple[str, ...] = ()
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """A fault (a row of the table), which one of its kind, the world it happens in, and how it is done."""

    fault: str
    which: str
    base: str
    act: Callable[[Bench, World], Tried]
    mounts: bool = False


@dataclass(frozen=True)
class Result:
    """How a case came out; `violations` are findings."""

    fault: str
    which: str
    outcome: str
    violations: list[str]


def carry_out(bench: Bench, case: Case) -> Result:
    """Do the harm, look, follow the advice, run once more, and look again. A trial that fails itself is a finding."""
    try:
        return _carry_out(bench, case)
    except Exception as error:  # noqa: BLE001  whatever it is, it belongs to this case
        return Result(
            case.fault, case.which, "not judged", [f"the trial failed: {type(error).__name__}: {error}"]
        )


def _carry_out(bench: Bench, case: Case) -> Result:
    with bench.world(case.base) as world:
        before = Seen.of(world)
        tried = case.act(bench, world)
        wrong = [*tried.wrong, *oracle.after(world, before, tried.outcomes)]
        last = tried.outcomes[-1]
        if tried.refused and last.error.get("code") not in tried.refused:
            wrong.append(f"not refused with {tried.refused}: {last.code} {last.err.strip()[-300:]}")
        outcome = _told(tried, before, Seen.of(world))
        if tried.advice:
            tried.advice()
        new = set(Seen.of(world).visible) - set(before.visible)
        audited = bool(new) or zlib.crc32(case.which.encode()) % EVERY == 0
        wrong += oracle.settled(bench, world, before, bench.run(world), audited=audited)
    return Result(case.fault, case.which, outcome, wrong)


def _told(tried: Tried, before: Seen, now: Seen) -> str:
    """The column of the table."""
    refused = [one.error.get("code", "no code") for one in tried.outcomes if one.code in (1, 4, 5)]
    new = set(now.visible) - set(before.visible)
    if refused and not new:
        return f"refused: {refused[-1]}"
    if any(one.shown for one in tried.outcomes):
        return "published whole, and told that the disk failed then"
    return "published whole" if new else "nothing published"
