"""Signals: a process ends with the code that says which came, wherever in the program that was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import funnel

ROOT = Path(funnel.__file__).parents[1]
START = (
    "import os, signal, sys\nfrom funnel.cli.signals import heed_termination, interrupted, leave\n"
    # A shell starts what goes on in the background without Ctrl-C.
    "signal.signal(signal.SIGINT, signal.default_int_handler); heed_termination()\n"
)


def ended(code: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    """A process that runs the code and leaves as the command line does."""
    text = f"{START}try:\n    {code}\nexcept KeyboardInterrupt:\n    print('out', flush=True); leave(interrupted())\n"
    environment = os.environ | {"PYTHONPATH": ":".join(map(str, (ROOT, *folders)))}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_in_code_made_from_text_leaves_its_exit_code(number, code):
    done = ended(f'exec("os.kill(os.getpid(), {int(number)})")')
    assert (done.returncode, done.stdout) == (code, "out\n"), done.stderr


def test_a_signal_during_an_import_is_heard_when_that_has_ended(tmp_path):
    module = f"import os, time\nos.kill(os.getpid(), {int(signal.SIGTERM)})\ntime.sleep(0.2)\nprint('in', flush=True)\n"
    (tmp_path / "slow.py").write_text(module)
    # Not one long wait: a signal that comes just before it begins is heard when that has ended.
    done = ended("import slow, time\n    while True: time.sleep(0.01)", tmp_path)
    assert (done.returncode, done.stdout) == (143, "in\nout\n"), done.stderr


def test_a_signal_while_a_policy_is_read_is_heard_when_it_is_and_blames_nothing_in_it(tmp_path):
    """Compiled code takes an exception for a mistake in what it reads, or in itself."""
    (tmp_path / "read.py").write_text(
        "import os, time\nfrom pydantic import BaseModel, field_validator\n"
        "class Model(BaseModel):\n    name: str\n    @field_validator('name')\n    @classmethod\n"
        f"    def _check(cls, one):\n        os.kill(os.getpid(), {int(signal.SIGTERM)})\n        time.sleep(0.2)\n"
        "        return one\n"
        "def read():\n    print(Model.model_validate({'name': 'in'}).name, flush=True)\n"
    )
    done = ended("import read, time; read.read()\n    while True: time.sleep(0.01)", tmp_path)
    assert (done.returncode, done.stdout) == (143, "in\nout\n"), done.stderr
