"""`funnel schema`: the policy language for editors."""

from __future__ import annotations

from funnel.cli.console import emit

EPILOG = "Example: funnel schema > funnel.schema.json"


def schema() -> None:
    """Print the JSON Schema of the policy language, for editors."""
    from funnel import api

    emit(api.schema())
