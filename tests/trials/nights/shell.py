"""The funnel command in a process of its own, forked from an interpreter that has loaded it once.

`python -m tests.trials.nights.shell` answers two lines for every line of its input, which is a JSON object

    {"argv": [...], "env": {...}, "cwd": ..., "out": FILE, "err": FILE, "fault": {...} or null}

the process number as the command begins, and {"code": ..., "cpu": seconds} as it ends. Faults are those that cannot
be made from outside: a death between two steps, a limit on the size of files, a clock that is wrong.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code (negative: the signal), texts, seconds of processor time."""

    code: int
    out: str
    err: str
    cpu: float

    @property
    def json(self) -> dict[str, Any]:
        """What `--json` printed."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def error(self) -> str | None:
        """The code of the error that it ended with, None where it did not."""
        if self.code == 0 or not self.out.startswith("{"):
            return None
        told = self.json.get("error")
        return None if told is None else str(told["code"])


class Shell:
    """Runs commands in `folder`, one after another; `begin` and `end` are the two halves of `__call__`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._texts = Path(tempfile.mkdtemp(prefix="year-shell-"))
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.trials.nights.shell"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def __call__(self, *argv: object, fault: Mapping[str, Any] | None = None, **env: str | None) -> Outcome:
        """Run to the end; `env` changes the environment, None takes a name out of it."""
        self.begin(*argv, fault=fault, **env)
        return self.end()

    def begin(self, *argv: object, fault: Mapping[str, Any] | None = None, **env: str | None) -> int:
        """Start a command; its process number."""
        asked = {
            "argv": [*map(str, argv)], "env": env, "cwd": str(self.folder), "fault": fault,
            "out": str(self._texts / "out"), "err": str(self._texts / "err"),
        }  # fmt: skip
        self._stream("stdin").write(json.dumps(asked) + "\n")
        self._stream("stdin").flush()
        return int(self._stream("stdout").readline())

    def end(self) -> Outcome:
        """Wait for the command that was begun."""
        told = json.loads(self._stream("stdout").readline())
        texts = [(self._texts / name).read_text(errors="replace") for name in ("out", "err")]
        return Outcome(int(told["code"]), *texts, float(told["cpu"]))

    def close(self) -> None:
        """No more commands."""
        self._stream("stdin").close()
        self._server.wait(timeout=60)
        self._stream("stdout").close()
        for name in ("out", "err"):
            (self._texts / name).unlink(missing_ok=True)
        self._texts.rmdir()

    def _stream(self, name: str) -> Any:
        return getattr(self._server, name)


def serve() -> None:
    """Fork a process for each line, because an interpreter takes longer to start than most commands to run."""
    _load()
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_carry_out(asked))
        print(child, flush=True)
        _, status, used = os.wait4(child, 0)
        told = {"code": os.waitstatus_to_exitcode(status), "cpu": used.ru_utime + used.ru_stime}
        print(json.dumps(told), flush=True)


def _load() -> None:
    """What a run imports, before any thread is started."""
    import duckdb  # noqa: F401
    import scipy.optimize
    import scipy.sparse  # noqa: F401

    import funnel.audit.history
    import funnel.cli.app
    import funnel.plan.run  # noqa: F401


def _carry_out(asked: Mapping[str, Any]) -> int:
    """The command, in this process; its exit code."""
    for descriptor, name in ((1, "out"), (2, "err")):
        file = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, descriptor)
    for name, value in asked["env"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    os.chdir(asked["cwd"])
    _hurt(asked["fault"] or {})
    from funnel.cli.app import main

    try:
        main(asked["argv"])
    except SystemExit as end:
        code = end.code
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0 if code is None else 1


def _hurt(fault: Mapping[str, Any]) -> None:
    """Prepare the fault that was asked for."""
    if "bytes" in fault:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sys.dont_write_bytecode = True  # Python itself would keep modules cut short
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault["bytes"], fault["bytes"]))
    if "die_before" in fault:
        _die_before(str(fault["die_before"]))
    if "days" in fault:
        _set_clock(float(fault["days"]))


def _die_before(target: str) -> None:
    """Kill this process as it is about to rename something into a folder of this name."""
    rename = Path.rename

    def renamed(self: Path, to: Path) -> Path:
        if Path(to).parent.name == target:
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, to)

    Path.rename = renamed  # type: ignore[method-assign,assignment]


def _set_clock(days: float) -> None:
    """Let every module of funnel read a clock that is off by so many days."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=days)

    for name, module in list(sys.modules.items()):
        if name.startswith("funnel") and getattr(module, "datetime", None) is datetime:
            module.datetime = Wrong  # type: ignore[attr-defined]


if __name__ == "__main__":
    serve()
