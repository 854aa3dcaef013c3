"""Independent pieces of work on all cores, in processes of their own, since NumPy's small steps hold the interpreter.

A worker is a fresh interpreter that takes pickled calls from a pipe and answers on another one. It inherits no
thread, lock or descriptor of this process, and never runs the caller's own script again, as `multiprocessing` would.
When the pipe ends, with this process however that ends, the worker ends at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar

A = TypeVar("A")
R = TypeVar("R")

MOST = 16
"""Workers at most, however many cores there are."""
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from funnel.optimise.workers import serve; serve()"
_SINGLE = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""A worker has one core, so its linear algebra has one thread."""
_INSIDE = "FUNNEL_INSIDE_WORKER"


def cores() -> int:
    """The cores that this process may use, `MOST` at most; 1 inside a worker, which starts none of its own."""
    if os.environ.get(_INSIDE):
        return 1
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    return min(count, MOST)


class Workers:
    """Up to `count` processes (one per core), started when first needed and kept until the `with` block ends.

    With one core, or one piece of work, or where no process can be started, everything is done in this process; once
    a worker has died, so is everything that comes later. Workers are not told the environment's FUNNEL variables.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = cores() if count is None else count
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, also in the middle of their work; more work starts new ones."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def map(self, function: Callable[[A], R], items: Sequence[A]) -> Iterator[tuple[int, R]]:
        """(place, function(item)) for all items, as they end; a caller that stops early ends the rest (`close`).

        The function and the items are pickled, so they should be small, and the function one that can be imported.
        What it raises is raised here. A piece of work that a worker did not survive is done in this process.
        """
        if min(self.count, len(items)) > 1:
            self._start(min(self.count, len(items)))
        if not self._processes:
            yield from ((place, function(item)) for place, item in enumerate(items))
            return
        share = _Share(function, items)
        threads = [threading.Thread(target=share.feed, args=(one,), daemon=True) for one in self._processes]
        for thread in threads:
            thread.start()
        try:
            yield from share.results(len(threads))
        finally:
            if share.lost:
                self.count = 1
            if share.pending or share.lost:
                self.close()
            for thread in threads:
                thread.join()

    def _start(self, count: int) -> None:
        """Have at least so many workers, or as many as can be started."""
        known = {name: value for name, value in os.environ.items() if not name.startswith("FUNNEL")}
        environment = known | dict.fromkeys((*_SINGLE, _INSIDE), "1")
        command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path)]
        with contextlib.suppress(OSError):
            while sys.executable and len(self._processes) < count:
                self._processes.append(
                    subprocess.Popen(  # noqa: S603 - this very interpreter, with nothing from outside
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        env=environment,
                    )
                )


@dataclass(eq=False)
class _Share:
    """One round of work: a thread per worker takes the next item when its worker is free."""

    function: Callable[[Any], Any]
    items: Sequence[Any]
    pending: set[int] = field(init=False)
    lost: bool = False

    def __post_init__(self) -> None:
        self.pending = set(range(len(self.items)))
        self.next: queue.SimpleQueue[int] = queue.SimpleQueue()
        for place in range(len(self.items)):
            self.next.put(place)
        self.ended: queue.SimpleQueue[tuple[int, bool, Any] | None] = queue.SimpleQueue()

    def feed(self, process: subprocess.Popen[bytes]) -> None:
        """Let a worker do items until none is left, or it dies; then it hands back the one it had."""
        with contextlib.suppress(queue.Empty):
            while not self.lost:
                place = self.next.get_nowait()
                try:
                    call = pickle.dumps((self.function, self.items[place]))
                except Exception as error:  # noqa: BLE001 - raised again by the caller's thread
                    self.ended.put((place, False, error))
                    continue
                try:
                    self.ended.put((place, *_asked(process, call)))
                except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                    self.lost = True
        self.ended.put(None)

    def results(self, threads: int) -> Iterator[tuple[int, Any]]:
        """What workers answer; once they have all gone, what is left is done here."""
        while threads:
            told = self.ended.get()
            if told is None:
                threads -= 1
                continue
            place, well, result = told
            if not well:
                raise result
            self.pending.discard(place)
            yield place, result
        for place in sorted(self.pending):
            self.pending.discard(place)
            yield place, self.function(self.items[place])


def _asked(process: subprocess.Popen[bytes], call: bytes) -> tuple[bool, Any]:
    """Whether a call ended well, and its result or what it raised."""
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(call)
    process.stdin.flush()
    well, result = pickle.load(process.stdout)  # noqa: S301 - from a child of this process
    return bool(well), result


def serve() -> None:
    """A worker's whole life: answer calls, end where the parent does. What the calls print goes nowhere."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is asked to end, and ends its workers
    calls: queue.SimpleQueue[tuple[Callable[[Any], Any], Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, calls), daemon=True).start()
    while True:
        function, item = calls.get()
        try:
            answer = pickle.dumps((True, function(item)))
        except Exception as error:  # noqa: BLE001 - raised again by the parent
            answer = pickle.dumps((False, error))
        sink.write(answer)
        sink.flush()


def _listen(source: IO[bytes], calls: queue.SimpleQueue[tuple[Callable[[Any], Any], Any]]) -> None:
    """Hand on calls; the end of the pipe, or a call that cannot be read, ends the worker in the middle of its work."""
    try:
        while True:
            calls.put(pickle.load(source))  # noqa: S301 - from the parent
    finally:
        os._exit(0)
