"""Ctrl-C and SIGTERM: both end a run by the same way out."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from types import FrameType
from typing import Any, NoReturn

from funnel.cli.streams import lost

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit codes after Ctrl-C and after SIGTERM, as shells count them."""
INTERRUPTION = "interrupted; nothing was published by halves [interrupted]"
"""What is said of either."""
_IMPORTING = "<frozen importlib._bootstrap>"
_MODELS = f"{os.sep}pydantic{os.sep}"
_AGAIN = 0.05
"""Seconds until a signal that came during an import is looked at again."""
_came: list[int] = []


def heed_termination() -> None:
    """From now on SIGTERM interrupts as Ctrl-C does: what a run holds is given back, and what it left aside removed.

    Either waits for an import to end: compiled code in the midst of one has nobody to hand an exception to, and the
    process would abort. So it waits for a policy to be read, for the code that does it takes an exception for a
    mistake in the policy. Who started it to ignore Ctrl-C still does.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _in_compiled(frame):
        signal.signal(signal.SIGALRM, lambda _, now: _interrupt(number, now))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        return
    _came.append(number)
    raise KeyboardInterrupt


def _in_compiled(frame: FrameType | None) -> bool:
    """Whether a signal came inside an import, or while pydantic reads a policy."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING or _MODELS in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def asks_events(given: Sequence[str]) -> bool:
    """Whether `--log json` stands among arguments: then standard error has one object a line, and nothing else."""
    return "--log=json" in given or ("--log", "json") in pairwise(given)


def happened(event: str, **told: Any) -> dict[str, Any]:
    """An event as a log has it, with when it was."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": time, "event": event, **told}


def tell(event: str, message: str, given: Sequence[str]) -> None:
    """A line on standard error, or the event that it is where these arguments ask for events."""
    if asks_events(given):
        message = json.dumps(happened(event, message=message))
    print(message, file=sys.stderr)


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
        done = "what was to be done is done, or told above [output]"
        tell("output-lost", f"not all could be printed: {why}; {done}", sys.argv)
        sys.stderr.flush()
    os._exit(code or int(why is not None))
