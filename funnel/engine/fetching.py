"""Batches that a thread fetches while those before them are worked on: engines work without Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_WAITING = 2
"""Batches that wait."""
_LOOK = 0.01
"""Seconds after which a thread that should end is looked at again."""


def fetched(
    batches: Iterable[pa.RecordBatch], interrupt: Callable[[], None]
) -> Generator[pa.RecordBatch, None, None]:
    """The batches in order; what goes wrong with one is raised in its place.

    Whoever stops before the last one closes this: the thread is interrupted then, and has ended.
    """
    waiting: Queue[pa.RecordBatch | BaseException | None] = Queue(_WAITING)
    ended = Event()
    thread = Thread(target=_fetch, args=(batches, waiting, ended), name="fetching", daemon=True)
    thread.start()
    try:
        while (found := waiting.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        ended.set()
        while thread.is_alive():
            interrupt()
            with suppress(Empty):
                waiting.get_nowait()
            thread.join(_LOOK)


def _fetch(
    batches: Iterable[pa.RecordBatch], waiting: Queue[pa.RecordBatch | BaseException | None], ended: Event
) -> None:
    try:
        for batch in batches:
            waiting.put(batch)
            if ended.is_set():
                return
        waiting.put(None)
    except BaseException as error:  # noqa: BLE001
        waiting.put(error)
