"""Where nobody can be told of a run, since a disk is full or who read has gone, it is done all the same."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import funnel
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

FUNNEL = [sys.executable, "-m", "funnel"]


@pytest.fixture
def policies(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two policies over one table, one after the other."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    monkeypatch.setenv("PYTHONPATH", str(Path(funnel.__file__).parent.parent))
    people(tmp_path, MONDAY)
    for name in ("one", "two"):
        own = {"name": name, "release": {"to": f"out/{name}", "private": f"kept/{name}"}}
        write_policy(tmp_path, **(SMALL | own)).rename(tmp_path / f"{name}.yaml")
    return [str(tmp_path / f"{name}.yaml") for name in ("one", "two")]


def published(folder: Path) -> set[str]:
    return {name for name in ("one", "two") if (folder / "out" / name / "latest/release.json").exists()}


def shell(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A line of a shell, where `"$@"` is funnel with these arguments."""
    line = ["bash", "-c", f"set -o pipefail; {command}", "bash", *FUNNEL, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("options", [[], ["--json"], ["--log", "json"]], ids=["text", "json", "events"])
@pytest.mark.parametrize("stream", [1, 2])
def test_a_full_disk_behind_what_is_printed_costs_no_release(tmp_path: Path, policies, options, stream: int) -> None:
    metrics = tmp_path / "funnel.prom"
    done = shell(f'"$@" {stream}>/dev/full', "run", *options, "--metrics", str(metrics), *policies)
    assert published(tmp_path) == {"one", "two"}
    assert done.returncode == 1 or (stream == 2 and "--log" not in options and done.returncode == 0)  # nothing to say
    assert metrics.read_text().count("funnel_run_code{") == 2
    assert "Traceback" not in done.stderr and "[internal]" not in done.stderr
    if stream == 1:
        assert "No space left on device" in done.stderr and "[output]" in done.stderr


def test_who_reads_no_further_stops_no_run(tmp_path: Path, policies) -> None:
    done = shell('"$@" | true', "run", "--json", *policies)
    assert published(tmp_path) == {"one", "two"}
    assert done.returncode == 1
    assert "[" not in done.stderr.replace("[output]", "") and "[output]" not in done.stderr


def test_what_is_printed_to_a_closed_stream_is_written_into_no_file(tmp_path: Path, policies) -> None:
    """The next file that is opened would have its number."""
    done = shell('"$@" >&- 2>&-', "run", *policies)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert published(tmp_path) == {"one", "two"}
    assert funnel.audit_release(tmp_path / "out/one/latest", tmp_path / "kept/one").passed


@pytest.mark.parametrize("arguments", [["--version"], ["schema"], ["key", "new"], ["check"], ["check", "--json"]])
def test_a_full_disk_is_no_bug(policies, arguments) -> None:
    done = shell('"$@" >/dev/full', *arguments, *([policies[0]] if "check" in arguments else []))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("not all could be printed: No space left on device")
    assert "Traceback" not in done.stderr and "[internal]" not in done.stderr


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_who_reads_slowly_from_a_pipe_that_does_not_wait_reads_all(tmp_path: Path, policies, stream: str) -> None:
    """A full pipe of that kind says so at once, which is no end of it."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    for name in ("three", "four"):
        copy = Path(policies[0]).read_text().replace("one", name)
        policies.append(str(tmp_path / f"{name}.yaml"))
        Path(policies[-1]).write_text(copy)
    command = [*FUNNEL, "run", "--json", "--log", "json", *policies]
    process = subprocess.Popen(command, **{stream: write, other: subprocess.DEVNULL})
    os.close(write)
    time.sleep(3)  # it is full by now
    told = b""
    while part := os.read(read, 512):
        told += part
        time.sleep(0.001)
    os.close(read)
    assert process.wait() == 0
    assert len(told) > 4096, "it was never full"
    lines = [json.loads(line) for line in told.decode().splitlines()]
    assert [one["policy"] for one in lines if "code" in one] == policies
    assert published(tmp_path) == {"one", "two"}


def test_events_stay_events_to_the_end(tmp_path: Path, policies) -> None:
    """What went wrong after the runs, too, and what was lost."""
    for command in ("", ">/dev/full"):
        done = shell(f'"$@" {command}', "run", "--json", "--log", "json", "--metrics", str(tmp_path), policies[0])
        events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
        assert events[-1 if not command else -2] == "failed"
        assert not command or events[-1] == "output-lost"
        assert done.returncode == 1
        assert command or [sorted(json.loads(line))[:1] for line in done.stdout.splitlines()][-1] == ["code"]


def test_metrics_replace_neither_links_nor_devices(tmp_path: Path, policies) -> None:
    target, link = tmp_path / "real.prom", tmp_path / "funnel.prom"
    target.touch()
    link.symlink_to(target)
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (link, pipe, tmp_path):
        reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) if path == pipe else None
        done = shell('"$@"', "run", "--dry-run", "--metrics", str(path), policies[0])
        assert done.returncode == (1 if path == tmp_path else 0), done.stderr
        if reader is not None:
            assert "funnel_run_code{" in reader.communicate(timeout=60)[0]
    (tmp_path / "loop").symlink_to("loop")
    looped = shell('"$@"', "run", "--dry-run", "--metrics", str(tmp_path / "loop"), policies[0])
    assert looped.returncode == 0, looped.stderr
    assert link.is_symlink() and "funnel_run_code{" in target.read_text()
    assert pipe.is_fifo() and not list(tmp_path.parent.glob(".*.new"))
