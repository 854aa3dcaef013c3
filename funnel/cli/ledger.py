"""`funnel ledger`: what all releases tell together."""

from __future__ import annotations

from funnel.cli.console import show
from funnel.cli.options import Json, PolicyFile

EPILOG = "Example: funnel ledger policies/marital-status.yaml"


def ledger(policy: PolicyFile, json: Json = False) -> None:
    """Show the releases so far, what they give away together, and what is left of the budget."""
    from funnel import api

    show(api.read_ledger(policy), json)
