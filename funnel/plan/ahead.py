"""Libraries that a run needs once its table is counted, brought in while the engine, which is no Python, counts."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Thread, main_thread

_LATER = ("scipy.sparse.csgraph", "scipy.special", "highspy", "jinja2")
"""What solvers, auditors and reports import on first use, all of it once in a process."""


def ahead() -> None:
    """Begin; what it has not brought in when it is asked for comes then.

    A process that ends waits for the one library that is on its way, for whatever is cut off in the midst of an
    import of compiled code aborts it, and then nobody learns its exit code; it begins no other.
    """
    Thread(target=_bring, name="imports").start()


def _bring() -> None:
    import pyarrow as pa

    pa.array([0])  # looks for pandas, which takes as long as all else where it is installed
    for name in _LATER:
        if not main_thread().is_alive():
            return
        with suppress(ImportError):
            import_module(name)
