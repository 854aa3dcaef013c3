"""`funnel also`: the newest release, in the database too."""

from __future__ import annotations

from funnel.cli.console import show
from funnel.cli.options import Json, PolicyFile

EPILOG = """Example: funnel also examples/postgres/people.yaml

A run does it by itself; this catches up where the database was out of reach then."""


def also(policy: PolicyFile, json: Json = False) -> None:
    """Write the newest release to the database that `release.also` names, unless it is there."""
    from funnel import api

    show(api.send_newest(policy), json)
