"""Libraries that a run needs once its table is counted, brought in while the engine, which is no Python, counts."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Thread

_LATER = ("scipy.sparse.csgraph", "scipy.special", "highspy", "jinja2")
"""What solvers, auditors and reports import on first use, all of it once in a process."""


def ahead() -> None:
    """Begin; nothing waits for it, and what it has not brought in by then comes when it is asked for."""
    Thread(target=_bring, name="imports", daemon=True).start()


def _bring() -> None:
    import pyarrow as pa

    pa.array([0])  # looks for pandas, which takes as long as all else where it is installed
    for name in _LATER:
        with suppress(ImportError):
            import_module(name)
