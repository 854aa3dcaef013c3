"""`funnel diff`: what changed for privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import show, verdict
from funnel.cli.options import Json

EPILOG = """Examples: funnel diff old.yaml new.yaml; git show HEAD:census.yaml | funnel diff - census.yaml;
funnel diff releases/census/latest census.yaml

Exit codes: 0 nothing is weaker; 1 something is weaker or cannot be compared, or a file cannot be read."""


def diff(
    old: Annotated[
        Path,
        typer.Argument(
            help="A policy, a lock, or a release; - reads standard input.", show_default=False, readable=False
        ),
    ],
    new: Annotated[Path, typer.Argument(help="What it became.", show_default=False, readable=False)],
    allow: Annotated[
        bool,
        typer.Option("--allow", help="Let changes pass that cannot be compared, such as another filter."),
    ] = False,
    private: Annotated[
        Path | None,
        typer.Option(help="The private folder of a release, whose whole policy is compared; that of a policy beside it "
                     "is found without.", show_default=False, readable=False),
    ] = None,
    json: Json = False,
) -> None:
    """What changed between two policies, locks or releases in terms of privacy, a finding a line.

    Findings are weaker, stronger, incomparable or unchanged; measured figures in brackets are told and do not count.
    What cannot be compared counts as weaker for a check, since nobody has shown that it is not.
    """
    from funnel import api

    if str(old) == str(new) == "-":
        raise typer.BadParameter("standard input can be one side only")
    found = api.diff(old, new, private)
    show(found, json, verdict)
    raise typer.Exit(1 if found.fails(allow=allow) else 0)
