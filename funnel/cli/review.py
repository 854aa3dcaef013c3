"""The commands of those who review: `lock` and `diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel import api
from funnel.analyst.relock import ROOM
from funnel.cli.console import complain, emit, progress, say
from funnel.cli.options import Json, Memory, PolicyFile, Threads

_SHADES = {"weaker": "bold red", "stronger": "green", "incomparable": "yellow"}

LOCK_EPILOG = """Examples: funnel lock census.yaml, then git add census.lock.yaml; funnel lock --check census.yaml

Exit codes: 0 written, up to date, or in agreement; 1 not written, or not in agreement; 2 wrong usage."""
DIFF_EPILOG = """Examples: funnel diff old.yaml new.yaml; git show HEAD:census.yaml | funnel diff - census.yaml

Exit codes: 0 nothing is weaker; 1 something is weaker or cannot be compared, or a file cannot be read."""


def lock(
    policy: PolicyFile,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether policy and lock agree; no table is read.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a lock that pins something else; shows what changes.")
    ] = False,
    room: Annotated[
        float | None,
        typer.Option(
            help="Part of epsilon left to drift: the table moves, the protocol does not. "
            f"{ROOM:g} unless given, 0 over a private estimate.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    memory: Memory = "2GB",
    threads: Threads = None,
) -> None:
    """Solve once and pin the protocol in NAME.lock.yaml, so that nightly runs (`run --locked`) do not solve anew.

    Over a private estimate its noisy counts are pinned too: `estimate.epsilon` is spent here, and by no run.
    """
    if check:
        if force:
            raise typer.BadParameter("--check changes nothing, so --force has nothing to do")
        found = api.check_lock(policy)
        emit(found.as_dict()) if json else say(found.text(), None if found.ok else "bold red")
        raise typer.Exit(0 if found.ok else 1)
    if room is not None and not 0 <= room < 1:
        raise typer.BadParameter("give a part of epsilon, such as 0.05", param_hint="--room")
    with progress() as report:
        made = api.lock(policy, room=room, force=force, memory=memory, threads=threads, progress=report)
    if json:
        emit(made.as_dict())
    else:
        _lines(made.text())
    if not made.written and not made.same:
        complain(
            f"{made.path}: there is another lock, and it stays as it is [lock-exists]\n"
            "  Above is what changes for privacy; `funnel lock --force` replaces it."
        )
        raise typer.Exit(1)


def diff(
    old: Annotated[
        Path,
        typer.Argument(help="A policy, a lock, or a release; - reads standard input.", show_default=False),
    ],
    new: Annotated[Path, typer.Argument(help="What it became.", show_default=False)],
    allow: Annotated[
        bool,
        typer.Option("--allow", help="Let changes pass that cannot be compared, such as another filter."),
    ] = False,
    json: Json = False,
) -> None:
    """What changed between two policies, locks or releases in terms of privacy, a finding a line.

    Findings are weaker, stronger, incomparable or unchanged; measured figures in brackets are told and do not count.
    What cannot be compared counts as weaker for a check, since nobody has shown that it is not.
    """
    if str(old) == str(new) == "-":
        raise typer.BadParameter("standard input can be one side only")
    found = api.diff(old, new)
    if json:
        emit(found.as_dict())
    else:
        _lines(found.text())
    raise typer.Exit(1 if found.fails(allow=allow) else 0)


def _lines(text: str) -> None:
    """Findings in their colours."""
    for line in text.splitlines():
        say(line, _SHADES.get(line.split(" ", 1)[0]))
