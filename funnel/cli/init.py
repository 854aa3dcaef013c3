"""`funnel init`: a first policy for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import say
from funnel.files import write_new
from funnel.text import argument

EPILOG = "Examples: funnel init census.parquet --to census.yaml; funnel init export.csv --names id,town,income --trim"


def init(
    table: Annotated[
        str,
        typer.Argument(
            help="A file, a glob, a folder of partitions, or people.duckdb#table.", show_default=False
        ),
    ],
    to: Annotated[
        Path | None, typer.Option(help="Where to write the policy; - prints it. Default: NAME.yaml here.")
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="The columns of a CSV whose header lacks any, in order: id,town,income.", show_default=False),
    ] = None,
    trim: Annotated[bool, typer.Option("--trim", help="Leave out blanks around the texts of public columns.")] = False,
) -> None:
    """Read a table once and write a commented starter policy: the secret guessed, keys left out, the rest public."""
    from funnel import api

    if "://" in table:
        raise typer.BadParameter("files are read here: begin with one that holds some rows of that table")
    target = to or Path(Path(table).name.split(".")[0] + ".yaml")
    columns = [] if names is None else [one.strip() for one in names.split(",")]
    text = api.starter_policy(table, target.parent if str(target) != "-" else Path(), names=columns, trim=trim)
    if str(target) == "-":
        print(text, end="")
        return
    write_new(target, text)
    then = f"funnel check {argument(target)}"
    say(f"wrote {target}: review it and say in `description` what it is for, then run `{then}`")
