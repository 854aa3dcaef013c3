"""`funnel run`: one audited release, or one of each of several policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from funnel.cli.console import Asked, complain, emit, own_up, progress, say, show
from funnel.cli.log import Log
from funnel.cli.metrics import write_metrics
from funnel.cli.options import Json, Memory, PolicyFiles, Threads, each
from funnel.errors import worst

if TYPE_CHECKING:
    from funnel.plan.outcome import Outcome

EPILOG = """Example: funnel run policies/marital-status.yaml

Several policies are run one after the other, each whatever became of those before it; locks among them are passed over.
--json prints one line for each when it has ended: funnel run --json --metrics funnel.prom policies/*.yaml

Exit codes: 0 released; 1 the policy, the data or a disk are at fault (also a disk that fills once the release is
published, or has no room for the metrics or for what is printed), or a database does not take what is published; 4 a
person must decide (drift, a budget, a promise that the release would end, a changed key, other cells); 5 try again
(busy, disk full, source or database out of reach, source changing). Of several policies the worst: 3 (a bug of
funnel), then 1, 4, 5, 0."""


def run(
    context: typer.Context,
    policies: PolicyFiles,
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
    metrics: Annotated[
        Path | None,
        typer.Option(
            help="Write code, seconds, rows, leakage, budget left and drift to this file for Prometheus, also where a "
            "policy fails; a run that is interrupted leaves the file as it was. For operators, not for readers of the "
            "release.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        Literal["text", "json"],
        typer.Option(help="json: events on standard error, one object a line, in place of text and progress bars."),
    ] = "text",
) -> None:
    """Count, solve, draw, audit and publish: an audited sanitised release with its privacy report."""
    from funnel import api

    asked, chosen, codes = context.find_object(Asked) or Asked(), each(policies), list[int]()
    if metrics is not None and not metrics.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {metrics.parent} for the metrics")
    outcomes = list[dict[str, Any]]()
    for policy in chosen:
        events = Log(str(policy)) if log == "json" else None
        with progress() if events is None else events.stages() as report:
            outcome = api.attempt(
                policy, memory=memory, threads=threads, dry_run=dry_run, locked=locked, progress=report
            )
        if len(chosen) > 1 and not json:
            say(f"{policy}:")
        _show(outcome, json)
        if events is None:
            _complain(outcome, asked, several=len(chosen) > 1)
        else:
            events.outcome(outcome)
        codes.append(outcome.code)
        if metrics is not None:
            outcomes.append(outcome.as_dict())
    if metrics is not None:
        # After all of them: a run that was interrupted leaves the figures, and the times, of the one before.
        write_metrics(metrics, outcomes)
    raise typer.Exit(worst(codes))


def _show(outcome: Outcome, json: bool) -> None:
    """Print the figures of one policy's run."""
    if json:
        emit(outcome.as_dict(), line=True)
    elif outcome.summary is not None:
        show(outcome.summary, json)


def _complain(outcome: Outcome, asked: Asked, *, several: bool) -> None:
    """Print what went wrong in one policy's run, or what to know of it; of which one, where there are several."""
    if several and (outcome.error is not None or (outcome.summary is not None and outcome.summary.warnings)):
        complain(f"{outcome.policy}: exit code {outcome.code}")
    if outcome.error is not None:
        own_up(outcome.error, asked)
    for warning in () if outcome.summary is None else outcome.summary.warnings:
        complain(f"warning: {warning}")
