"""Inside a run that is to be hurt: counts its calls that change the disk, and does harm at one of them.

A step is a call, through `os`, `open` or `fcntl`, that changes what lies under one folder, or makes it durable; between
two steps that folder stays as it is, so a kill before each of them visits every state that a run can leave. What
libraries in C++ write goes to staged files only; small disks and random moments are for those. What is asked of a
database is a step as well, where that is wished.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BY_PATH = ("mkdir", "chmod", "rename", "replace", "unlink", "rmdir")
BY_DESCRIPTOR = ("fsync", "ftruncate", "fchmod", "write")
LETTING_GO = ("unlink", "rmdir", "ftruncate", "flock", "fsync")
"""What a full disk still does."""


@dataclass(frozen=True)
class Harm:
    """What to do at step `at` (from 0): kill, stop, fail with `error` once, or fail from then on.

    `under` is the folder watched, `database` says that databases are, too. Every step is written to `log`, a line each.
    """

    under: str
    how: str = "nothing"
    at: int = -1
    error: str = "EIO"
    log: str | None = None
    database: bool = False

    def light(self) -> None:
        """Watch this process from now on."""
        _Fuse(self).watch()


class _Fuse:
    """The calls of `os`, `io` and `fcntl`, replaced by ones that count."""

    def __init__(self, harm: Harm) -> None:
        self.harm, self.count = harm, 0
        self.folder = os.path.realpath(harm.under)
        self.log = os.open(harm.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if harm.log else None
        self.write = os.write

    def watch(self) -> None:
        """Replace the calls."""
        for name in (*BY_PATH, *BY_DESCRIPTOR):
            setattr(os, name, self._watched(name, getattr(os, name), lambda first, *_, **more: (first, more)))
        os.symlink = self._watched("symlink", os.symlink, lambda _, second, *__, **more: (second, more))
        os.open = self._watched("open", os.open, _opened)
        fcntl.flock = self._watched("flock", fcntl.flock, lambda first, *_: (first, {}))
        io.open = self._file
        if self.harm.database:
            from adbc_driver_manager import dbapi

            for kind, names in ((dbapi.Cursor, ("execute", "adbc_ingest")), (dbapi.Connection, ("commit",))):
                for name in names:
                    setattr(kind, name, self._asked(name, getattr(kind, name)))

    def _asked(self, name: str, original: Callable[..., Any]) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self._step(name, self.folder, None)
            return original(*arguments, **options)

        return call

    def _watched(self, name: str, original: Callable[..., Any], target: Callable[..., Any]) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            found = target(*arguments, **options)
            if found is None or not self._ours(found[0], found[1].get("dir_fd")):
                return original(*arguments, **options)
            half = _half(original, arguments) if name == "write" else None
            self._step(name, found[0], half)
            return original(*arguments, **options)

        return call

    def _file(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        """`open`, with a file that counts its writes where it is opened for writing."""
        if not set(mode) & set("wax+") or not self._ours(file, None):
            return _plain_open(file, mode, *arguments, **options)
        self._step("create", file, None)
        raw = _Counting(file, mode.replace("b", "").replace("t", ""), fuse=self)
        buffered = io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding=options.get("encoding"))

    def _ours(self, target: Any, parent: int | None) -> bool:
        return self._place(target, parent).startswith(self.folder)

    def _place(self, target: Any, parent: int | None) -> str:
        if isinstance(target, int):
            return str(_of_descriptor(target))
        at = Path.cwd() if parent is None else _of_descriptor(parent)
        return str(at / os.fspath(target))

    def _step(self, name: str, target: Any, half: Callable[[], object] | None) -> None:
        """One step begins; here it may end."""
        mine, self.count = self.count, self.count + 1
        if self.log is not None:
            self.write(self.log, f"{name} {self._place(target, None)}\n".encode())
        if self.harm.how == "fail from" and mine >= self.harm.at:
            if not (self.harm.error == "ENOSPC" and name in LETTING_GO):
                self._fail(target, half)
        elif mine == self.harm.at:
            self._hurt(target, half)

    def _hurt(self, target: Any, half: Callable[[], object] | None) -> None:
        if self.harm.how == "kill":
            if half:
                half()
            os.killpg(0, signal.SIGKILL)
        elif self.harm.how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.harm.how == "fail":
            self._fail(target, half)

    def _fail(self, target: Any, half: Callable[[], object] | None) -> None:
        if half:
            half()
        number = getattr(errno, self.harm.error)
        name = [] if isinstance(target, int) else [os.fspath(target)]
        raise OSError(number, os.strerror(number), *name)


class _Counting(io.FileIO):
    """A file opened for writing whose every write is a step."""

    def __init__(self, file: Any, mode: str, *, fuse: _Fuse) -> None:
        self._fuse = fuse
        super().__init__(file, mode)

    def write(self, content: Any) -> int:
        """Write, or half of it and no more."""
        whole = super().write
        self._fuse._step("write", self.fileno(), lambda: whole(bytes(content)[: len(content) // 2]))
        return whole(content)


_plain_open = io.open


def _of_descriptor(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


def _opened(path: Any, flags: int, *_: Any, **more: Any) -> tuple[Any, dict[str, Any]] | None:
    """Of `os.open`, what is opened, where that may change it."""
    return (path, more) if flags & (os.O_CREAT | os.O_TRUNC | os.O_APPEND) else None


def _half(write: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], object]:
    descriptor, content = arguments
    return lambda: write(descriptor, bytes(content)[: len(content) // 2])
