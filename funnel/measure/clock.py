"""Limits for whoever solves: set around a search, heeded by the mechanisms inside it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from funnel.errors import SolverError

T = TypeVar("T")

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)
_NODES: ContextVar[float] = ContextVar("nodes", default=math.inf)


@contextmanager
def within(seconds: float, nodes: float = math.inf) -> Iterator[None]:
    """Everything solved inside has this many seconds, or fewer where less is left already.

    No single search looks at more than so many `nodes`, which are the same on every machine.
    """
    deadline = _DEADLINE.set(min(_DEADLINE.get(), time.monotonic() + seconds))
    most = _NODES.set(min(_NODES.get(), nodes))
    try:
        yield
    finally:
        _DEADLINE.reset(deadline)
        _NODES.reset(most)


def nodes() -> float:
    """Nodes that one search may look at, infinite where no limit was set."""
    return _NODES.get()


def left() -> float:
    """Seconds that are left, infinite where no limit was set."""
    return _DEADLINE.get() - time.monotonic()


def check() -> None:
    """Raise SolverError when the time is over; called between steps, so a single step may pass the limit."""
    if left() <= 0:
        raise SolverError(
            "solver-time",
            "no protocol was found in the time allowed",
            status="time",
            advice="Allow more time, or shrink the public columns with `groups` or `bins`.",
        )


def in_time(steps: Iterable[T]) -> Iterator[T]:
    """The steps one by one; raises SolverError instead of going on when the time is over."""
    for step in steps:
        check()
        yield step
