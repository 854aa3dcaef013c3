"""`funnel prune`: data of old releases taken away."""

from __future__ import annotations

from typing import Annotated

import typer

from funnel.cli.console import show
from funnel.cli.options import Json, PolicyFile

EPILOG = "Example: funnel prune policies/census.yaml --keep 30 --dry-run"


def prune(
    policy: PolicyFile,
    keep: Annotated[int, typer.Option(help="Releases that stay whole: the newest ones.", min=1, show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and change nothing.")] = False,
    json: Json = False,
) -> None:
    """Take data and pages of a policy's old releases away; `latest` always stays whole.

    release.json and its attestation stay in the published folder, evidence and ledger in the private one: what a
    release told stays told, and the audit checks what is left of it.
    """
    from funnel import api

    show(api.prune(policy, keep, dry_run=dry_run), json)
