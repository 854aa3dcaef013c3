"""Ctrl-C and SIGTERM: both end a run by the same way out, and wait while something is done that must be done whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit codes after Ctrl-C and after SIGTERM, as shells count them."""
_HEEDED = (signal.SIGINT, signal.SIGTERM)
_came: list[int] = []


def heed_termination() -> None:
    """From now on SIGTERM interrupts as Ctrl-C does: what a run holds is given back, and what it left aside removed."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, _: FrameType | None) -> None:
    _came.append(number)
    raise KeyboardInterrupt


def interrupted() -> int:
    """What a command that was interrupted exits with."""
    return TERMINATED if _came else INTERRUPTED


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is inside is done whole; signals that came meanwhile are heard afterwards. Elsewhere than in the main thread
    none are heard anyway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = {one: signal.getsignal(one) for one in _HEEDED}
    for one in _HEEDED:
        signal.signal(one, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler if handler is not None else signal.SIG_DFL)
        if waiting:
            signal.raise_signal(waiting[0])
