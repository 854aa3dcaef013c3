"""Optimal protocols: what was asked of the solver and what it reaches, beside listing and explicit mechanisms."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from optima import CASES

_HEAD = (
    ("problem", 32), ("nats", 9), ("/H", 9), ("at most", 9), ("gap (asked)", 16), ("seconds (asked)", 16),
    ("way", 20), ("rows", 9), ("boxes", 8), ("otherwise (asked)", 38), ("best explicit (asked)", 34), ("", 1),
)  # fmt: skip
"""Titles and widths of the table."""


def main(arguments: list[str]) -> None:
    """Run the cases one after the other, each in a process of its own, and print their rows as they come."""
    parser = argparse.ArgumentParser(prog="benchmark optimal", description=__doc__)
    parser.add_argument("--case", choices=CASES, action="append", help="one case; may be given again")
    parser.add_argument("--quick", action="store_true", help="the first row of each case, in little time")
    parser.add_argument("--json", action="store_true", help="one JSON object per row, as they come")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for name in options.case or CASES:
        if options.inside:
            for row in CASES[name].rows(options.quick):
                print(json.dumps(row.as_dict()), flush=True)
        else:
            _show(name, quick=options.quick, as_json=options.json)


def _show(name: str, *, quick: bool, as_json: bool) -> None:
    """One case: its head, and a line per row as soon as it is there."""
    if not as_json:
        print(
            f"\n{name}: {CASES[name].about}\n{''.join(title.ljust(wide) for title, wide in _HEAD)}",
            flush=True,
        )
    for row in _rows(name, quick=quick):
        if as_json:
            print(json.dumps({"case": name} | row), flush=True)
        else:
            print(row["ended"] if "ended" in row else _line(row), flush=True)


def _rows(name: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """What the case's process reports; it is ended when its time is over, with all that it began."""
    program = [sys.executable, str(Path(__file__).parent), "optimal", "--inside", "--case", name]
    child = subprocess.Popen(
        program + (["--quick"] if quick else []), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    over = threading.Event()

    def end() -> None:
        over.set()
        os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(CASES[name].limit, end)
    timer.start()
    try:
        for line in child.stdout or ():
            yield json.loads(line)
        if child.wait() or over.is_set():
            why = (
                f"the limit of {CASES[name].limit:g} s"
                if over.is_set()
                else f"exit status {child.returncode}"
            )
            yield {"ended": f"ended early: {why}"}
    finally:
        timer.cancel()
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _line(row: dict[str, Any]) -> str:
    """A row under the head."""
    share = row["entropy"]
    faster = f"{row['faster']:,.3g} times" if row["faster"] else "not finished"
    told = (
        row["problem"],
        f"{row['utility']:.6f}",
        f"{row['utility'] / share:.6f}",
        _number(row["bound"] and row["bound"] / share, ".6f"),
        _beside(_number(row["gap"], ".1e"), row["asked_gap"]),
        _beside(f"{row['seconds']:.3g}", row["asked_seconds"]),
        row["way"],
        _number(row["columns"], ","),
        _number(row["nodes"], ","),
        _beside(f"{row['than']}: {faster}", row["asked_faster"]) if row["than"] else "",
        _beside(f"{row['better']:.2f} times {row['explicit']}", row["asked_better"]) if row["better"] else "",
        "✓" if row["reached"] else "✗",
    )
    return "".join(
        text.ljust(wide) + ("" if len(text) < wide else " ")
        for text, (_, wide) in zip(told, _HEAD, strict=True)
    )


def _number(value: float | None, form: str) -> str:
    """A number, or nothing."""
    return "" if value is None else format(value, form)


def _beside(reached: str, asked: float | None) -> str:
    """What was reached, and what was asked for."""
    return reached if asked is None else f"{reached} ({asked:,g})"
