"""`funnel audit`: every claim re-checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import progress, say, show
from funnel.cli.options import Json, Private

EPILOG = "Example: funnel audit releases/census/latest --private private/census"


def audit(
    release: Annotated[
        Path | None, typer.Argument(help="A release, or the folder of all.", show_default=False, readable=False)
    ] = None,
    private: Private = None,
    public_key: Annotated[
        str | None,
        typer.Option(help="The publisher's public key, or a file with it: the release must be signed by it."),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="The source table, a path or an address: its records are counted again, as the kept policy "
            "says. Of a folder of releases the latest is looked at."),
    ] = None,
    json: Json = False,
    standalone: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.pyz",
            help="Write the audit's kernel as one file to keep and run apart: python FILE.pyz RELEASE --private DIR; "
            "python FILE.pyz verify RELEASE --key publisher.pub.",
        ),
    ] = None,
) -> None:
    """Re-check every claim of a release, or of all releases and their ledger, in exact arithmetic."""
    from funnel import api

    if standalone is not None:
        say(
            f"{api.standalone_audit(standalone)}: the kernel of the audit, which needs Python and numpy alone, and"
            " cryptography to verify a signature"
        )
    if release is None:
        if standalone is None:
            raise typer.BadParameter("name a release", param_hint="RELEASE")
        return
    if table is not None and private is None:
        raise typer.BadParameter("records are counted again for the private evidence: give --private, too")
    with progress() as report:
        found = api.audit(release, private, public_key=public_key, table=table, progress=report)
    show(found, json, _shade)
    if not found.passed:
        raise typer.Exit(1)


def _shade(line: str) -> str | None:
    """Colour of an audit line on a terminal."""
    if "FAIL" in line:
        return "bold red"
    return "yellow" if "not checked" in line else None
