"""Options and arguments that several commands take: said once, checked once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from funnel.text import SIZE


def _size(text: str) -> str:
    """A size that the engine understands."""
    if not re.fullmatch(SIZE, text):
        raise typer.BadParameter("a size such as 500MB or 4GB")
    return text


_LOCK = ".lock.yaml"


def each(given: list[Path]) -> list[Path]:
    """The policies to work on: `*.yaml` names locks, too; each once. Raises BadParameter."""
    chosen = [path for path in given if not path.name.endswith(_LOCK)] or given
    if twice := [path for path in chosen if chosen.count(path) > 1]:
        raise typer.BadParameter(f"named twice: {twice[0]}")
    return chosen


# Where a path may not be read it is said whose it is, which is no wrong usage: so nothing is `readable` for the shell.
PolicyFile = Annotated[Path, typer.Argument(help="A policy file (YAML).", show_default=False, readable=False)]
PolicyFiles = Annotated[list[Path], typer.Argument(help="Policy files (YAML).", show_default=False, readable=False)]
Release = Annotated[Path, typer.Argument(help="A release folder.", show_default=False, readable=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for a program.")]
Memory = Annotated[
    str, typer.Option(help="Memory that the engine may use before it spills to disk.", callback=_size)
]
Threads = Annotated[int | None, typer.Option(help="Threads of the engine (default: all cores).", min=1, max=1024)]
Private = Annotated[
    Path | None,
    typer.Option(help="The private folder: evidence, counts, ledger.", show_default=False, readable=False),
]
