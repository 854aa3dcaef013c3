"""`funnel prune`: data of old releases taken away."""

from __future__ import annotations

from typing import Annotated

import typer

from funnel.cli.console import Asked, emit, own_up, show
from funnel.cli.options import Json, PolicyFiles, each
from funnel.errors import worst
from funnel.failed import as_error

EPILOG = """Example: funnel prune policies/*.yaml --keep 30 --dry-run;
--json prints one line for each when it has ended"""


def prune(
    context: typer.Context,
    policies: PolicyFiles,
    keep: Annotated[int, typer.Option(help="Releases that stay whole: the newest ones.", min=1, show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and change nothing.")] = False,
    json: Json = False,
) -> None:
    """Take data and pages of a policy's old releases away; `latest` always stays whole.

    release.json and its attestation stay in the published folder, evidence and ledger in the private one: what a
    release told stays told, and the audit checks what is left of it. Of several policies each is pruned, whatever
    became of the others. Tables in databases (`release.also`) are left alone.
    """
    from funnel import api

    asked, codes = context.find_object(Asked) or Asked(), list[int]()
    for policy in each(policies):
        try:
            found = api.prune(policy, keep, dry_run=dry_run)
        except Exception as failed:  # noqa: BLE001  each is pruned, whatever became of the others
            error = as_error(failed)
            if json:
                emit({"policy": str(policy), "error": error.as_dict(), "code": error.exit_code}, line=True)
            own_up(error, asked)
            codes.append(error.exit_code)
        else:
            show(found, json, brief=True)
    raise typer.Exit(worst(codes))
