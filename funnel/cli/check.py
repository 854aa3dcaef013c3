"""`funnel check`: what is wrong with policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import complain, emit, say
from funnel.cli.options import Json
from funnel.errors import worst

EPILOG = "Example: funnel check policies/*.yaml"


def check(
    policies: Annotated[list[Path], typer.Argument(help="Policy files.", show_default=False, readable=False)],
    source: Annotated[
        bool, typer.Option("--source", help="A table that is not there is an error, too: for a check where runs are.")
    ] = False,
    json: Json = False,
) -> None:
    """Validate policies: errors of all sections at once, with file, line, column and what to do.

    Where its table is at hand it is counted, and what a run would refuse of it before it solves is an error, too.
    """
    from funnel import api

    results = [api.check(path, source=source) for path in policies]
    code = worst(result.code for result in results)
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
