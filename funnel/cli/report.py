"""`funnel report`: the report, rendered again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import say
from funnel.cli.options import Private, Release

EPILOG = """Examples: funnel report releases/census/latest --private private/census --to full-report;
funnel report releases/census/latest --to print --pdf"""


def report(
    release: Release,
    private: Private = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder for report.html and report.json; default: the release itself.")
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Beside them report.pdf, by an optional library; wants --to.")
    ] = False,
) -> None:
    """Rebuild the HTML and JSON report. With --private, the full report, with counts."""
    from funnel import api

    for path in api.rebuild_report(release, private, to, pdf=pdf):
        say(f"wrote {path}")
