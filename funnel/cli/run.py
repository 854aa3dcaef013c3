"""`funnel run`: one audited release."""

from __future__ import annotations

from typing import Annotated

import typer

from funnel.cli.console import complain, progress, show
from funnel.cli.options import Json, Memory, PolicyFile, Threads

EPILOG = """Example: funnel run policies/marital-status.yaml

Exit codes: 0 released; 1 the policy or the data are at fault; 4 a person must decide (drift, a budget, a promise that
the release would end, a changed key); 5 try again (busy, disk full, source out of reach or changing)."""


def run(
    policy: PolicyFile,
    json: Json = False,
    memory: Memory = "2GB",
    threads: Threads = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Stop before records are drawn; nothing is released. A private estimate that is kept is taken; else "
            "one is spent.",
        ),
    ] = False,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="Solve nothing: draw from the protocol that `funnel lock` pinned."),
    ] = False,
) -> None:
    """Count, solve, draw, audit and publish: an audited sanitised release with its privacy report."""
    from funnel import api

    with progress() as report:
        summary = api.run(
            policy, memory=memory, threads=threads, dry_run=dry_run, locked=locked, progress=report
        )
    show(summary, json)
    for warning in summary.warnings:
        complain(f"warning: {warning}")
