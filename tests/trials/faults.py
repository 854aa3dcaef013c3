"""Faults: whatever happens to a run, there is no half release, no under-counted ledger, and a way on.

    python -m tests.trials faults --kills 200 --seed 1
    python -m tests.trials faults --only "disk" --each 5

Runs of the real command over a small table are killed before every step that changes the disk and at random moments;
their disks fill up, refuse and fail at every step; their table changes while it is read; a second run comes between any
two steps of the first; they are killed before whatever they ask of a database that the release is for; clocks go back,
keys and records are lost, cut and changed. After each fault an oracle looks at what can be seen, at ledger and charges,
and at what was said; the advice given is followed, one more run has to publish a release that its audit accepts, and
nothing may be left lying about. A finding is printed with its case.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.postgres import PASSWORD, Server, programs, served
from tests.trials.faulting.case import Case, Result, carry_out
from tests.trials.faulting.disks import disks
from tests.trials.faulting.kills import killed_again, kills
from tests.trials.faulting.pins import pins
from tests.trials.faulting.places import places
from tests.trials.faulting.records import records
from tests.trials.faulting.rivals import rivals
from tests.trials.faulting.tables import tables
from tests.trials.faulting.world import Bench, make_templates, quick

MOUNTS = "FUNNEL_TRIAL_MOUNTS"
"""Set where this process has a mount namespace of its own: disks mounted here are seen by nobody else."""


def main(argv: list[str]) -> int:
    """The command; 0 where nothing was found."""
    options = _parsed(argv)
    _own_mounts(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begun = time.monotonic()
    results, wanted = trial(options.kills, options.seed, options.each, options.only, options.workers)
    if options.json:
        print(json.dumps(_as_dict(results)))
    else:
        print(table(results))
        print(f"\n{len(results):,} of {wanted:,} faults in {time.monotonic() - begun:,.0f} s")
    return 0 if 0 < len(results) == wanted and not any(one.violations for one in results) else 1


def _parsed(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.trials faults",
        description="Faults of every kind, on real runs: each is judged, its advice followed, and the next run works",
        epilog="Example: python -m tests.trials faults --kills 200 --seed 1",
    )
    parser.add_argument(
        "--kills", type=int, default=200, help="kills at random moments, beside those at every step"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, help="at most so many of every kind, drawn by the seed")
    parser.add_argument("--only", default="", help="only faults whose name holds this text")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args(argv)


def _own_mounts(argv: list[str]) -> None:
    """Begin again in a mount namespace of one's own, where that is allowed; else small disks cannot be tried."""
    if MOUNTS in os.environ or shutil.which("unshare") is None:
        return
    for rights in ([], ["--user", "--map-root-user"]):
        inside = ["unshare", *rights, "--mount", "--propagation", "private"]
        test = [*inside, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if subprocess.run(test, check=False, capture_output=True).returncode == 0:
            os.environ[MOUNTS] = "1"
            os.execvp("unshare", [*inside, sys.executable, "-m", "tests.trials", "faults", *argv])


def trial(
    number: int, seed: int, each: int | None = None, only: str = "", workers: int = 2
) -> tuple[list[Result], int]:
    """Try everything, or `each` of a kind; and how many there were. Stopped from outside, what was tried till then."""
    results: list[Result] = []
    with ExitStack() as stack:
        templates = Path(stack.enter_context(TemporaryDirectory(dir=quick())))
        server = stack.enter_context(served()) if programs() else None
        os.environ["PGPASSWORD"] = PASSWORD
        make_templates(templates, server)
        benches: Queue[Bench] = Queue()
        for _ in range(workers):
            benches.put(stack.enter_context(Bench(templates)))
        first = benches.get()
        cases = list(_chosen(_cases(first, server, number, random.Random(seed)), each, only, random.Random(seed)))
        benches.put(first)
        kinds = {case.fault: place for place, case in enumerate(cases)}
        # In any order, so that what is tried before a stop from outside is some of everything.
        random.Random(seed).shuffle(cases)
        with suppress(KeyboardInterrupt), ThreadPoolExecutor(workers) as pool:
            for result in pool.map(lambda case: _on_a_bench(benches, case), cases):
                results.append(result)
                _show(result, len(results), len(cases))
    return sorted(results, key=lambda one: kinds[one.fault]), len(cases)


def _cases(bench: Bench, server: Server | None, number: int, chance: random.Random) -> Iterator[Case]:
    """All of them."""
    yield from kills(bench, number, chance)
    yield from killed_again(bench)
    for kind in (disks, tables, rivals, records, pins):
        yield from kind(bench)
    yield from places(bench, server)


def _chosen(cases: Iterable[Case], each: int | None, only: str, chance: random.Random) -> Iterator[Case]:
    """Those that can be tried here, at most `each` of a kind."""
    kinds: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if only in case.fault and (MOUNTS in os.environ or not case.mounts):
            kinds[case.fault].append(case)
    for kind, found in kinds.items():
        few = each is not None and "random moment" not in kind
        yield from chance.sample(found, min(each or 0, len(found))) if few else found


def _on_a_bench(benches: Queue[Bench], case: Case) -> Result:
    bench = benches.get()
    try:
        return carry_out(bench, case)
    finally:
        benches.put(bench)


def _show(result: Result, place: int, total: int) -> None:
    """Progress on a terminal; a finding at once, wherever it is printed."""
    for violation in result.violations:
        print(f"FOUND {result.fault} [{result.which}]: {violation}", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(f"\r{place:,} of {total:,} {result.fault:<45}", end="", file=sys.stderr, flush=True)


def table(results: list[Result]) -> str:
    """A line for each fault: how often, how it came out, what was found."""
    width = max((len(one.fault) for one in results), default=0)
    lines = [f"{'fault':<{width}}  tried  violations  outcomes"]
    for fault, group in itertools.groupby(results, key=lambda one: one.fault):
        same = list(group)
        outcomes = Counter(one.outcome for one in same)
        told = ", ".join(f"{what} {times:,}" for what, times in outcomes.most_common())
        wrong = sum(bool(one.violations) for one in same)
        lines.append(f"{fault:<{width}}  {len(same):>5,}  {wrong:>10,}  {told}")
    wrong = sum(bool(one.violations) for one in results)
    return "\n".join([*lines, f"{'all':<{width}}  {len(results):>5,}  {wrong:>10,}"])


def _as_dict(results: list[Result]) -> dict[str, Any]:
    """The same for a program."""
    return {
        "tried": len(results),
        "violations": sum(bool(one.violations) for one in results),
        "mounts": MOUNTS in os.environ,
        "results": [vars(one) for one in results],
    }
