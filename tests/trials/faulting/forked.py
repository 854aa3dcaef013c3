"""Runs of the real command, each in a process (and process group) of its own that may be killed.

`python -m tests.trials.faulting.forked POLICY` reads one job (JSON) a line and forks for each, because an interpreter
takes seconds to start, and that is not what is tried here. It runs POLICY once, to learn what to import.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.trials.faulting.fuse import Harm

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Job:
    """One command in one folder, and what is wrong while it runs; its output goes to `out` and `err`."""

    command: tuple[str, ...]
    folder: str
    out: str
    err: str
    environment: dict[str, str]
    harm: Harm | None = None
    clock: float = 0.0
    no_override: bool = False
    file_size: int = 0
    source: tuple[str, str, int, str] | None = None

    def carry_out(self) -> None:
        """In the child: become the command. Ends the process."""
        os.setsid()
        os.chdir(self.folder)
        os.environ.update(self.environment)
        for number, path in ((1, self.out), (2, self.err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self._hurt()
        _run(list(self.command))

    def _hurt(self) -> None:
        from tests.trials.faulting import hurting

        if self.clock:
            hurting.shift_clock(self.clock)
        if self.no_override:
            hurting.obey_permissions()
        if self.file_size:
            hurting.limit_files(self.file_size)
        if self.source:
            hurting.Reader(*self.source).watch()
        if self.harm:
            self.harm.light()


def _run(command: list[str]) -> None:
    """Run `funnel COMMAND` as the interpreter would, to the flushing of its output."""
    from funnel.cli.app import main as funnel_main

    code: Any = 0
    try:
        funnel_main(command)
    except SystemExit as end:
        code = end.code
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _learn(policy: str) -> list[str]:
    """The modules that a run imports, from one in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        from funnel.cli.app import main as funnel_main

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        with suppress(SystemExit):
            funnel_main(["run", policy])
            funnel_main(["audit", str(Path(policy).parent / "releases")])
        with os.fdopen(write, "w") as pipe:
            pipe.write("\n".join(sys.modules))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = pipe.read().split()
    os.waitpid(child, 0)
    return found


def main(policy: str) -> None:
    """Answer each job with its process number, then with how it ended: a code, negative for a signal, or `stopped`."""
    for name in _learn(policy):
        with suppress(ImportError):
            importlib.import_module(name)
    importlib.import_module("funnel.report.words").template("page.html")
    # What is there to stay is not looked through in every child, whose pages would all be copied.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        told = json.loads(line)
        if "wait" in told:
            child = int(told["wait"])
        else:
            child = os.fork()
            if child == 0:
                _become(told)
            print(child, flush=True)
        _, status = os.waitpid(child, os.WUNTRACED)
        print("stopped" if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status), flush=True)
    # What was frozen cannot be taken down in order.
    os._exit(0)


def _become(told: dict[str, Any]) -> None:
    harm = told.pop("harm")
    Job(**told, harm=Harm(**harm) if harm else None).carry_out()


class Forker:
    """The parent's side: a context manager. One job at a time."""

    def __init__(self, policy: Path) -> None:
        self._policy = policy

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.trials.faulting.forked", str(self._policy)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def start(self, job: Job) -> int:
        """Begin a job; its process number, which is also that of its group."""
        return int(self._ask(asdict(job)))

    def end(self) -> int | None:
        """How it ended: an exit code, negative for a signal; None where it stopped itself."""
        return self._status(self._answer())

    def resume(self, process: int) -> int | None:
        """Let a stopped job go on; how it ended."""
        os.kill(process, 18)
        return self._status(self._ask({"wait": process}))

    def _ask(self, told: dict[str, Any]) -> str:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    @staticmethod
    def _status(answer: str) -> int | None:
        return None if answer == "stopped" else int(answer)


if __name__ == "__main__":
    main(sys.argv[1])
