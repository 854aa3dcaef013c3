"""examples/analyst: the same question to a release in each tool, beside the truth, as its page says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import funnel

ROOT = Path(__file__).parents[2]


def test_the_example_answers_alike_in_every_tool(key, tmp_path, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    for name in ("analyst", "census"):
        shutil.copytree(ROOT / "examples" / name, tmp_path / "examples" / name)
    funnel.run(tmp_path / "examples" / "analyst" / "policy.yaml")
    asked = [sys.executable, "-W", "error:::funnel", "examples/analyst/ask.py"]
    told = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    opened = funnel.open_release(tmp_path / "releases" / "working-hours")
    found = opened.estimate(by="sex", where="age >= 37", mean="hours_per_week")
    true = {"Female": 38.363083, "Male": 43.448509}  # of the source, rounded as the policy says
    for count, mean in zip(found.figures[::2], found.figures[1::2], strict=True):
        assert abs(mean.estimate - true[count.group[0]]) <= 5 * mean.standard_error + 1e-3
        near = [one for one in map(float, re.findall(r"\d+\.\d+", told.stdout)) if abs(one - mean.estimate) < 0.006]
        assert len(near) >= 3, "funnel, DuckDB and pandas"
    (line,) = [line.split() for line in told.stdout.splitlines() if line.startswith("C(sex)")]
    weighted, released, truth = map(float, line[1:])
    assert abs(weighted - truth) < abs(released - truth)
