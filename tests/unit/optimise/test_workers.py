"""Work on several processes: the same answers as in one, whatever becomes of the processes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from funnel.optimise.workers import Workers, cores


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_item_is_answered_once_by_workers_that_stay(count: int) -> None:
    with Workers(count) as workers:
        for items in ([], [9], list(range(20))):
            assert sorted(workers.map(math.sqrt, items)) == [(k, math.sqrt(x)) for k, x in enumerate(items)]
        first, second = ({pid for _, pid in workers.map(_where, [0.02] * 6)} for _ in range(2))
    assert first == second
    assert (first == {os.getpid()}) == (count == 1)
    assert len(first) <= count


def test_what_a_call_raises_is_raised_here_and_workers_can_be_used_again() -> None:
    with Workers(2) as workers:
        with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
            list(workers.map(math.sqrt, [4.0, -1.0, 9.0]))
        assert dict(workers.map(math.sqrt, [4.0, 9.0])) == {0: 2.0, 1: 3.0}


def test_items_that_cannot_be_sent_are_told() -> None:
    with Workers(2) as workers, pytest.raises((TypeError, AttributeError)):
        list(workers.map(repr, [(x for x in ()), (x for x in ())]))


def test_a_caller_that_has_enough_does_not_wait_for_the_rest() -> None:
    start = time.monotonic()
    with Workers(2) as workers:
        for _place, _ in workers.map(time.sleep, [0.0, 600.0, 600.0]):
            break
        assert dict(workers.map(math.sqrt, [4.0, 9.0])) == {0: 2.0, 1: 3.0}
    assert time.monotonic() - start < 300


def test_work_whose_worker_dies_is_done_here() -> None:
    own = os.getpid()
    with Workers(2) as workers:
        found = dict(workers.map(_unless_elsewhere, [own] * 5))
    assert found == dict.fromkeys(range(5), own)


def test_where_no_process_can_be_started_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/interpreter")
    with Workers(2) as workers:
        assert dict(workers.map(_where, [0.0] * 3)) == dict.fromkeys(range(3), os.getpid())


def test_a_worker_starts_none_of_its_own() -> None:
    with Workers(2) as workers:
        assert dict(workers.map(_cores, [0, 0])) == {0: 1, 1: 1}
    assert cores() >= 1


def test_workers_end_with_a_process_that_is_killed_and_never_run_its_script(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import os, time, sys\nfrom funnel.optimise.workers import Workers\nprint('once', flush=True)\n"
        "workers = Workers(2)\nlist(workers.map(time.sleep, [0, 0]))\n"
        "print(*[one.pid for one in workers._processes], flush=True)\nlist(workers.map(time.sleep, [600, 600]))\n"
    )
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "once\n"
    pids = [int(pid) for pid in child.stdout.readline().split()]
    assert len(pids) == 2
    child.kill()
    child.wait()
    child.stdout.close()
    patience = time.monotonic() + 60
    while any(map(_running, pids)):
        assert time.monotonic() < patience, "workers outlive their parent"
        time.sleep(0.02)


def _where(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def _cores(_: int) -> int:
    return cores()


def _unless_elsewhere(home: int) -> int:
    if os.getpid() != home:
        os._exit(3)
    return home


def _running(pid: int) -> bool:
    """Whether a process exists that has not ended; one that nobody waits for has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
