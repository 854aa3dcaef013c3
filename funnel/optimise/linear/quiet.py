"""Keeping a library's debugging lines out of our standard output."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Send what C code prints to standard output nowhere.

    HiGHS's integer solver prints a line now and then, whatever its options; standard output is for our
    results, which programs read. C's own buffer is emptied on the way in and out. Does nothing where there is
    no standard output.
    """
    library = ctypes.CDLL(None)
    try:
        kept = os.dup(1)
    except OSError:
        yield
        return
    library.fflush(None)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    try:
        yield
    finally:
        library.fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
