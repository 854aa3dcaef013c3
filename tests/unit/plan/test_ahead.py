"""Libraries that are brought in beside the count: a process that ends early still says how."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import funnel

ROOT = Path(funnel.__file__).parent.parent


def test_a_process_that_ends_waits_for_the_import_under_way_and_begins_no_other(tmp_path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.5)\nprint('brought', flush=True)\n")
    (tmp_path / "never.py").write_text("print('begun', flush=True)\n")
    code = (
        "import sys, time, funnel.plan.ahead as a; a._LATER = ('slow', 'never'); a.ahead(solving=False)\n"
        "while 'slow' not in sys.modules: time.sleep(0.01)\n"
        "sys.exit(4)"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "brought\n"), done.stderr
