"""Standard output and error that last: a command does what it is asked also where nobody can be told of it.

What reads them may have gone, and the disk behind them may be full. A run that ended there would leave releases of
which nothing is said, and the policies behind its own without their night.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

_STANDARD = (0, 1, 2)
_lost: list[OSError] = []


class _Lasting(FileIO):
    """A file whose writes do not fail: what was not written is lost, and `lost` says so."""

    def write(self, content: Buffer, /) -> int:
        try:
            while (written := super().write(content)) is None:  # it does not wait by itself
                select.select([], [self], [])
            return written
        except OSError as error:
            _lost.append(error)
            return memoryview(content).nbytes


def begin() -> None:
    """Make the standard streams last. Those that were closed go nowhere: else the next file to be opened had their
    number, and what is printed would be written into it. Letters that an encoding lacks are printed as numbers."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _lasting(sys.stdout, 1)
    sys.stderr = _lasting(sys.stderr, 2)


def _lasting(stream: object, number: int) -> TextIOWrapper:
    encoding, lines = "utf-8", True
    if isinstance(stream, TextIOWrapper):
        encoding, lines = stream.encoding, stream.line_buffering or stream.write_through
    raw = BufferedWriter(_Lasting(number, "w", closefd=False))
    return TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", line_buffering=lines)


def lost() -> str | None:
    """Why something that was printed is lost; None where nothing is, and empty where its reader went away."""
    sys.stdout.flush()
    sys.stderr.flush()
    told = next((error for error in _lost if error.errno != errno.EPIPE), None)
    return (told.strerror or str(told)) if told else "" if _lost else None
