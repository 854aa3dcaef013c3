"""`funnel lock`: the solved protocol, pinned."""

from __future__ import annotations

from typing import Annotated

import typer

from funnel.analyst import ROOM
from funnel.cli.console import complain, progress, show, verdict
from funnel.cli.options import Json, Memory, PolicyFile, Threads

EPILOG = """Examples: funnel lock census.yaml, then git add census.lock.yaml; funnel lock --check census.yaml;
after drift, with another epsilon in the policy: funnel lock --keep census.yaml

Exit codes: 0 written, up to date, or in agreement; 1 not written, or not in agreement; 2 wrong usage; 4 a person must
decide (`estimate.budget` is spent, a promise would end, the key or cells are others, the protocol to keep tells more
than the policy allows); 5 try again (busy, disk full, source out of reach or changing)."""


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
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep the protocol under another epsilon or budget: the chances stay as they are."),
    ] = False,
    json: Json = False,
    memory: Memory = "2GB",
    threads: Threads = None,
) -> None:
    """Solve once and pin the protocol in NAME.lock.yaml, so that nightly runs (`run --locked`) do not solve anew.

    Where there is a lock, shows what another one would change for privacy and cost each promise, and writes nothing.
    Over a private estimate its noisy counts are pinned too: `estimate.epsilon` is spent here, unless an estimate of the
    last twelve hours stands, and by no run.
    """
    from funnel import api

    if check:
        if force:
            raise typer.BadParameter("--check changes nothing, so --force has nothing to do")
        found = api.check_lock(policy)
        show(found, json, lambda _: None if found.ok else "bold red")
        raise typer.Exit(0 if found.ok else 1)
    if keep and (room is not None or force):
        raise typer.BadParameter("--keep solves nothing: it goes with neither --room nor --force")
    if room is not None and not 0 <= room < 1:
        raise typer.BadParameter("give a part of epsilon, such as 0.05", param_hint="--room")
    with progress() as report:
        made = api.make_lock(
            policy, room=room, force=force, keep=keep, memory=memory, threads=threads, progress=report
        )
    show(made, json, verdict)
    if not made.written and not made.same:
        complain(
            f"{made.path}: there is another lock, and it stays as it is [lock-exists]\n"
            "  Above is what changes for privacy; the same command with `--force` replaces it."
        )
        raise typer.Exit(1)
