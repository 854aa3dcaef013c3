"""`funnel estimate`: what an analyst works out from a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from funnel.cli.console import show
from funnel.cli.options import Json, Release

EPILOG = 'Example: funnel estimate releases/census/latest --by town,income --where "age >= 37" --mean hours'
_MANY = "may be given several times"


def estimate(
    release: Release,
    by: Annotated[
        list[str] | None, typer.Option(help="Columns whose values make groups: --by town,income.", show_default=False)
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="Only records whose true values meet a condition (SQL).", show_default=False)
    ] = None,
    mean: Annotated[
        list[str] | None, typer.Option(help=f"Mean of a number over those who have one; {_MANY}.", show_default=False)
    ] = None,
    sum: Annotated[list[str] | None, typer.Option(help=f"Sum of a number; {_MANY}.", show_default=False)] = None,
    share: Annotated[
        list[str] | None, typer.Option(help=f"Share of a group that meets a condition; {_MANY}.", show_default=False)
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="About the chance that an interval holds the true figure, between 0 and 1.")
    ] = 0.95,
    csv: Annotated[bool, typer.Option("--csv", help="Print a line for each figure, for a spreadsheet.")] = False,
    json: Json = False,
) -> None:
    """Work out true counts, sums, means and shares from a release: unbiased, each with its error and interval.

    Without a question: the counts of every block's values, and what its protocol lets be known.
    """
    if not 0 < confidence < 1:
        raise typer.BadParameter("give a share between 0 and 1, such as 0.95", param_hint="--confidence")
    if csv and json:
        raise typer.BadParameter("give --csv or --json, not both", param_hint="--csv")
    asked = any((by, where is not None, mean, sum, share))
    if not asked and csv:
        raise typer.BadParameter("say of what: --by, --where, --mean, --sum or --share", param_hint="--csv")
    if not asked:
        from funnel.analyst.estimate import estimate as counts

        show(counts(release, confidence), json)
        return
    from funnel.analyst.release import open_release

    opened = open_release(release)
    groups = [name for one in by or () for name in _names(one, opened.columns)]
    found = opened.estimate(
        by=groups, where=where, sum=sum or (), mean=mean or (), share=share or (), confidence=confidence
    )
    if csv:
        typer.echo(found.csv(), nl=False)
    else:
        show(found, json)


def _names(text: str, known: Sequence[str]) -> list[str]:
    """The one column of that name, which may have commas in it; else names with commas between them."""
    from funnel.data.alphabet import folded

    return [text] if folded(text) in map(folded, known) else [name.strip() for name in text.split(",")]
