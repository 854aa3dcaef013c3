"""What the commands print: progress on a terminal, plain lines in a log, JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from funnel.errors import FunnelError
from funnel.progress import Report, silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

VALUES = "--show-values"
_SHADES = {"weaker": "bold red", "stronger": "green", "incomparable": "yellow"}
KEY = re.compile(r"funnel-(?:key|signing)-\d+:[\w+/=-]{8,}…?")
"""A key of draws or of signatures; too short a one is left, for what it begins with is told to people."""
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def console(*, error: bool = False) -> Console:
    """A console that never reads markup into data; a log does not wait for it."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, markup=False, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """Print to standard output; with colour, which only a terminal shows."""
    if style is None or not sys.stdout.isatty():
        print(_visible(text))
    else:
        console().print(_visible(text), style=style)


class Told(Protocol):
    """What a function of the Python interface found, for people and for programs."""

    def text(self) -> str:
        """Lines for a person."""

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""


def show(
    found: Told, json: bool, shade: Callable[[str], str | None] = lambda _: None, *, brief: bool = False
) -> None:
    """Print what was found: as JSON where it was asked for, `brief` on one line, else in its `shade`."""
    if json:
        emit(found.as_dict(), line=brief)
    else:
        for line in found.text().split("\n"):  # not at what else ends lines: values are data
            say(line, shade(line))


def verdict(line: str) -> str | None:
    """The colour of a finding's verdict, its first word."""
    return _SHADES.get(line.split(" ", 1)[0])


def complain(text: str) -> None:
    """Print an error to standard error."""
    if sys.stderr.isatty():
        console(error=True).print(_visible(text), style="bold red")
    else:
        print(_visible(text), file=sys.stderr)


@dataclass(frozen=True)
class Asked:
    """What is wanted of errors: where in the code they arose, and which of people's values they are about."""

    traceback: bool = False
    values: bool = False


def own_up(error: FunnelError, asked: Asked) -> None:
    """Print an error to standard error, with what was asked of it."""
    if asked.traceback:
        from rich.traceback import Traceback

        console(error=True).print(Traceback.from_exception(type(error), error, error.__traceback__))
    complain(error.text(values=asked.values))
    if error.values and not asked.values:
        complain(f"  The values it is about are left out here; at a terminal, {VALUES} names them.")


def _visible(text: str) -> str:
    """The text with characters that steer a terminal, turn its direction round, or belong to no encoding (bytes of a
    path), as numbers: values are data. Keys, wherever somebody gave one by mistake, are left out."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", KEY.sub("(a key)", text))


def emit(data: Any, *, line: bool = False, error: bool = False) -> None:
    """Print one JSON object, where asked on one `line`; what JSON lets stand but a terminal obeys is escaped."""
    stream = sys.stderr if error else sys.stdout
    narrow = (stream.encoding or "utf-8").lower() not in ("utf-8", "utf8")  # where JSON's own escapes are needed
    text = json.dumps(data, indent=None if line else 1, ensure_ascii=narrow, allow_nan=False)
    print(_visible(text), file=stream, flush=line)


@contextmanager
def progress() -> Iterator[Report]:
    """A progress bar per long step on a terminal; nothing in a log."""
    if not sys.stderr.isatty():
        yield silent
        return
    with _bars() as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int = 0, total: int | None = None) -> None:
            if stage not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, visible=False)
                tasks[stage] = bars.add_task(_visible(stage), total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


def _bars() -> Progress:
    """A bar for each step, with what it is, how far, and how long; gone when all is done."""
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console(error=True), transient=True)
