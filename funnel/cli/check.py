"""`funnel check`: every error of a policy at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import complain, emit, say
from funnel.cli.options import Json

EPILOG = "Example: funnel check policies/*.yaml"


def check(
    policies: Annotated[list[Path], typer.Argument(help="Policy files.", show_default=False)],
    json: Json = False,
) -> None:
    """Validate policies: every error at once, with file, line, column and what to do.

    Where its table is at hand it is counted, and what a run would refuse is an error, too.
    """
    from funnel import api

    results = [api.check(path) for path in policies]
    # A fault before what a person must decide, and that before what may be tried again.
    code = min((result.code for result in results if not result.ok), default=0)
    if json:
        emit({"ok": not code, "code": code, "policies": [result.as_dict() for result in results]})
    else:
        for result in results:
            if result.ok:
                say(result.text(), "green")
            else:
                complain(result.text())
    if code:
        raise typer.Exit(code)
