"""`funnel estimate`: what an analyst works out from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import show
from funnel.cli.options import Json

EPILOG = "Example: funnel estimate releases/census/latest --confidence 0.99"


def estimate(
    release: Annotated[Path, typer.Argument(help="A release folder.", show_default=False)],
    confidence: Annotated[
        float, typer.Option(help="Chance that an interval holds the true count, between 0 and 1.")
    ] = 0.95,
    json: Json = False,
) -> None:
    """Work out true counts from a release: unbiased estimates with standard errors and confidence intervals."""
    from funnel import api

    if not 0 < confidence < 1:
        raise typer.BadParameter("give a share between 0 and 1, such as 0.95", param_hint="--confidence")
    show(api.estimate_counts(release, confidence), json)
