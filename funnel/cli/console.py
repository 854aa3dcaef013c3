"""What the commands print: progress on a terminal, plain lines in a log, JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from funnel.plan.prepare import Report

_SHADES = {"weaker": "bold red", "stronger": "green", "incomparable": "yellow"}
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def console(*, error: bool = False) -> Console:
    """A console that uses colour only on a terminal and never reads markup into data."""
    return Console(stderr=error, highlight=False, markup=False, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """Print to standard output."""
    console().print(_visible(text), style=style)


class Told(Protocol):
    """What a function of the Python interface found, for people and for programs."""

    def text(self) -> str:
        """Lines for a person."""

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""


def show(found: Told, json: bool, shade: Callable[[str], str | None] = lambda _: None) -> None:
    """Print what was found: as JSON where it was asked for, else its lines, each in its `shade`."""
    if json:
        emit(found.as_dict())
    else:
        for line in found.text().split("\n"):  # not at what else ends lines: values are data
            say(line, shade(line))


def verdict(line: str) -> str | None:
    """The colour of a finding's verdict, its first word."""
    return _SHADES.get(line.split(" ", 1)[0])


def complain(text: str) -> None:
    """Print an error to standard error."""
    console(error=True).print(_visible(text), style="bold red" if sys.stderr.isatty() else None)


def _visible(text: str) -> str:
    """The text with characters that steer a terminal, turn its direction round, or belong to no encoding (bytes of a
    path), as numbers: values are data."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def emit(data: Any) -> None:
    """Print one JSON object to standard output; what JSON lets stand but a terminal obeys is escaped as it allows."""
    print(_visible(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)))


@contextmanager
def progress() -> Iterator[Report]:
    """A progress bar per long step on a terminal; nothing in a log."""
    from funnel.plan.prepare import silent

    terminal = console(error=True)
    if not terminal.is_terminal:
        yield silent
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
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
                tasks[stage] = bars.add_task(_visible(stage), total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report
