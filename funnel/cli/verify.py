"""`funnel verify`: what a reader can check with the publisher's public key alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import show
from funnel.cli.options import Json

EPILOG = "Example: funnel verify releases/census/latest --key publisher.pub"


def verify(
    release: Annotated[
        Path,
        typer.Argument(help="A release, or the folder of all: then the latest.", show_default=False, readable=False),
    ],
    key: Annotated[
        str,
        typer.Option(help="The publisher's public key, or a file with it.", show_default=False),
    ],
    feed: Annotated[
        Path | None,
        typer.Option(
            help="A releases.json kept from before, or from elsewhere: the one beside the release must not be older.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check that a release is whole, unchanged, and signed with this key; it needs no private file and no solver.

    Get the key from the publisher by another way than the release. Whoever asks for `latest`, or for the
    folder of all, is told where an older release stands in its place, as far as releases.json shows that.
    """
    from funnel import api

    found = api.verify(release, key, feed)
    show(found, json, lambda line: "bold red" if "FAIL" in line else None)
    if not found.passed:
        raise typer.Exit(1)
