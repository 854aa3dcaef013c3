"""`funnel init`: a first policy for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import say

EPILOG = "Example: funnel init census.parquet --to census.yaml"


def init(
    table: Annotated[
        Path,
        typer.Argument(
            help="A file, a glob, a folder of partitions, or people.duckdb#table.", show_default=False
        ),
    ],
    to: Annotated[
        Path | None, typer.Option(help="Where to write the policy; - prints it. Default: NAME.yaml here.")
    ] = None,
) -> None:
    """Read a table once and write a commented starter policy: the secret guessed, keys left out, the rest public."""
    from funnel import api

    target = to or Path(table.name.split(".")[0] + ".yaml")
    text = api.starter_policy(table, target.parent if str(target) != "-" else Path())
    if str(target) == "-":
        print(text, end="")
        return
    api.write_new(target, text)
    say(f"wrote {target}: review it, then run `funnel check {target}`")
