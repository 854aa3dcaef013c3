"""`funnel plan`: what a run would do."""

from __future__ import annotations

from funnel.cli.console import show
from funnel.cli.options import Json, Memory, PolicyFile, Threads

EPILOG = "Example: funnel plan policies/marital-status.yaml"


def plan(policy: PolicyFile, json: Json = False, memory: Memory = "2GB", threads: Threads = None) -> None:
    """Show the steps that `run` would take, their SQL, the sizes, and which solver will serve.

    What a run would refuse of the table before it solves is refused here, without a value of anybody.
    """
    from funnel import api

    show(api.explain(policy, memory=memory, threads=threads), json)
