"""Inside a run that is to be hurt: another clock, fewer rights, a table that changes while it is read."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

from funnel.engine.duckdb import DuckDB
from funnel.plan import draw

CAPABILITIES_3 = 0x20080522
OVERRIDE = 1 << 1 | 1 << 2
"""The capabilities to pass over the permission bits of files, which is what makes root root here."""


def shift_clock(seconds: float) -> None:
    """The clock that funnel reads says another time from now on."""

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(seconds=seconds)

    for name, module in list(sys.modules.items()):
        if name.startswith("funnel") and getattr(module, "datetime", None) is datetime:
            module.datetime = Shifted  # type: ignore[attr-defined]


def obey_permissions() -> None:
    """Permission bits hold for this process even where it is root's."""
    system = ctypes.CDLL(None, use_errno=True)
    header, held = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    system.capget(header, held)
    held[0], held[1] = held[0] & ~OVERRIDE, held[1] & ~OVERRIDE
    if system.capset(header, held):
        raise OSError(ctypes.get_errno(), "capset")


def limit_files(size: int) -> None:
    """No file may grow beyond `size` bytes; Python itself would keep modules cut short."""
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _others(content: bytes) -> bytes:
    """As many bytes, about other people."""
    return content.replace(b",a,", b",?,").replace(b",b,", b",a,").replace(b",?,", b",b,")


def _same_times(path: Path, stamp: os.stat_result) -> None:
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def _replace(path: Path) -> None:
    other, stamp = path.with_name("other-" + path.name), path.stat()
    other.write_bytes(_others(path.read_bytes()))
    _same_times(other, stamp)
    other.replace(path)


def _overwrite(path: Path) -> None:
    content, stamp = path.read_bytes(), path.stat()
    with path.open("r+b") as file:
        file.write(_others(content))
    _same_times(path, stamp)


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"9999,a,p,u\n")


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


SOURCE_CHANGES: dict[str, Callable[[Path], None]] = {
    "replaced": _replace,
    "overwritten": _overwrite,
    "appended": _append,
    "cut": _cut,
    "removed": Path.unlink,
}
"""How a CSV table changes while it is read; changes that keep its size set its time of change back as well."""


@dataclass
class Reader:
    """Counts the readings of a source by the engine, a step before each query and each batch of the last one.

    Before step `at` the source `path` changes as `how` says. Steps are written to `log`.
    """

    path: str
    how: str
    at: int
    log: str
    count: int = 0

    def watch(self) -> None:
        """Replace the engine's methods; batches become small, so that drawing has several."""
        draw.BATCH = 64
        for name in ("schema", "prepare", "rows"):
            setattr(DuckDB, name, self._watched(name, getattr(DuckDB, name)))
        stream = DuckDB.stream

        def streamed(engine: DuckDB, statement: str, rows: int) -> Iterator[Any]:
            for batch in stream(engine, statement, rows):
                self._step("batch")
                yield batch
            self._step("end")

        DuckDB.stream = streamed  # type: ignore[method-assign]

    def _watched(self, name: str, original: Callable[..., Any]) -> Any:
        def call(*arguments: Any) -> Any:
            self._step(name)
            return original(*arguments)

        return call

    def _step(self, name: str) -> None:
        mine, self.count = self.count, self.count + 1
        with Path(self.log).open("a") as log:
            log.write(name + "\n")
        if mine == self.at:
            SOURCE_CHANGES[self.how](Path(self.path))
