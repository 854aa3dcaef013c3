"""Libraries that a run needs once its table is counted, brought in while the engine, which is no Python, counts."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Thread, main_thread

_SOLVING = ("scipy.optimize",)
"""What solvers import on first use: a run under a lock does without."""
_LATER = ("highspy", "funnel.plan.write", "jinja2", "funnel.audit.audit")
"""What reports and auditors import on first use, all of it once in a process, in that order."""


def ahead(*, solving: bool) -> None:
    """Begin; what it has not brought in when it is asked for comes then.

    A process that ends waits for the one library that is on its way, for whatever is cut off in the midst of an
    import of compiled code aborts it, and then nobody learns its exit code; it begins no other.
    """
    Thread(target=_bring, args=((*_SOLVING, *_LATER) if solving else _LATER,), name="imports").start()


def _bring(names: tuple[str, ...]) -> None:
    for name in names:
        if not main_thread().is_alive():
            return
        with suppress(ImportError):
            import_module(name)
