"""`funnel compare`: utility against epsilon."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from funnel.analyst import SECONDS
from funnel.cli.console import progress, show
from funnel.cli.options import Json, Memory, PolicyFile, Threads

EPILOG = "Example: funnel compare policies/income.yaml --epsilon 0.5,1,2 --picture income.svg"


def _numbers(text: str | None, option: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        found = [float(part) for part in text.split(",")] if text is not None else []
    except ValueError:
        found = [math.nan]
    if not all(0 <= epsilon < math.inf for epsilon in found):
        raise typer.BadParameter("give numbers with commas, such as 0.5,1,2", param_hint=option)
    return found


def _picture(path: Path | None) -> Path | None:
    """A file whose name says what to draw."""
    if path is not None and path.suffix not in {".svg", ".html"}:
        raise typer.BadParameter("name a file that ends in .svg or .html")
    return path


def compare(
    policy: PolicyFile,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Bounds in nats, with commas. Default: 0.25,0.5,1,1.5,2.", show_default=False),
    ] = None,
    beliefs: Annotated[
        str | None,
        typer.Option(
            help="Also from beliefs rounded outward to these steps, such as 0,0.02,0.05; and rldp.", show_default=False
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw the curves into a file: .svg or .html.", callback=_picture, show_default=False
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for one mechanism at one epsilon.", min=0.001)
    ] = SECONDS,
    json: Json = False,
    memory: Memory = "2GB",
    threads: Threads = None,
) -> None:
    """Utility against epsilon for every mechanism that fits the policy. Nothing is released.

    Over a private estimate all figures follow from one that is kept; where none is, this spends `estimate.epsilon`.
    """
    from funnel import api

    bounds, steps = _numbers(epsilon, "--epsilon"), _numbers(beliefs, "--beliefs")
    with progress() as report:
        found = api.compare(
            policy, bounds, beliefs=steps, time_limit=time_limit, memory=memory, threads=threads, progress=report
        )
    if picture is not None:
        api.write_picture(found, picture)
    show(found, json)
