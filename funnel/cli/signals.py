"""Ctrl-C and SIGTERM: both end a run by the same way out."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from funnel.cli.streams import lost

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit codes after Ctrl-C and after SIGTERM, as shells count them."""
_IMPORTING = "<frozen importlib._bootstrap>"
_AGAIN = 0.05
"""Seconds until a signal that came during an import is looked at again."""
_came: list[int] = []


def heed_termination() -> None:
    """From now on SIGTERM interrupts as Ctrl-C does: what a run holds is given back, and what it left aside removed.

    Either waits for an import to end: compiled code in the midst of one has nobody to hand an exception to, and the
    process would abort. Who started it to ignore Ctrl-C still does.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        signal.signal(signal.SIGALRM, lambda _, now: _interrupt(number, now))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        return
    _came.append(number)
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


def interrupted() -> int:
    """What a command that was interrupted exits with."""
    return TERMINATED if signal.SIGTERM in _came else INTERRUPTED


def leave(code: int) -> NoReturn:
    """End this process with the code, once all is given back; with 1 for 0 where what was printed is lost.

    Python's own way out would forget the code where an interrupt came in code made from text, as dataclasses are, would
    wait for threads, and takes every module apart first, which lasts as long as a fifth of a start.
    """
    atexit._run_exitfuncs()
    why = lost()
    if why:
        print(f"not all could be printed: {why}; what was to be done is done, or told above [output]", file=sys.stderr)
        sys.stderr.flush()
    os._exit(code or int(why is not None))
