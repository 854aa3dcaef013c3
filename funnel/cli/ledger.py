"""`funnel ledger`: what all releases tell together."""

from __future__ import annotations

from funnel import api
from funnel.cli.console import emit, say
from funnel.cli.options import Json, PolicyFile

EPILOG = "Example: funnel ledger policies/marital-status.yaml"


def ledger(policy: PolicyFile, json: Json = False) -> None:
    """Show the releases so far, what they give away together, and what is left of the budget."""
    found = api.ledger(policy)
    if json:
        emit(found.as_dict())
    else:
        say(found.text())
