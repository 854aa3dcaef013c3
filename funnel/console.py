"""What the commands print: progress on a terminal, plain lines in a log, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from funnel.execute import Report, silent


def console(*, error: bool = False) -> Console:
    """A console that uses colour only on a terminal and never reads markup into data."""
    return Console(stderr=error, highlight=False, markup=False, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """Print to standard output."""
    console().print(text, style=style)


def complain(text: str) -> None:
    """Print an error to standard error."""
    console(error=True).print(text, style="bold red" if sys.stderr.isatty() else None)


def emit(data: Any) -> None:
    """Print one JSON object to standard output."""
    print(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))


@contextmanager
def progress() -> Iterator[Report]:
    """A progress bar per long step on a terminal; nothing in a log."""
    terminal = console(error=True)
    if not terminal.is_terminal:
        yield silent
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=terminal, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int = 0, total: int | None = None) -> None:
            if stage not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, visible=False)
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report
