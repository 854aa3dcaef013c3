"""The commands of those who keep keys: `key new`, `key public` and `key rotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from funnel.cli.console import progress, say, show
from funnel.cli.options import Json, Memory, PolicyFile, Threads
from funnel.text import argument

key = typer.Typer(no_args_is_help=True, help="Keys for permanent draws and for signatures.")


@key.command(
    "new", epilog="Examples: export FUNNEL_KEY=$(funnel key new); funnel key new --signing --to sign.key"
)
def key_new(
    to: Annotated[
        Path | None, typer.Option(help="Write the key to a new file that only you can read.")
    ] = None,
    signing: Annotated[
        bool, typer.Option("--signing", help="A private key that signs releases (Ed25519).")
    ] = False,
) -> None:
    """Make a fresh key for permanent draws, or one that signs releases."""
    from funnel import api

    if to is None:
        print(api.new_signing_key() if signing else api.new_key())
    elif signing:
        print_ = api.write_signing_key(to)
        say(f"wrote {to}, public key fingerprint {print_}; `funnel key public {argument(to)}` prints the public key")
    else:
        say(f"wrote {to}, key fingerprint {api.write_key(to)}")


@key.command("public", epilog="Example: funnel key public sign.key > publisher.pub")
def key_public(
    source: Annotated[
        str,
        typer.Argument(help="A file with a signing key, or env:NAME.", metavar="FILE", show_default=False),
    ],
) -> None:
    """Print the public half of a signing key as one line: give it to whoever is to check releases."""
    from funnel import api

    print(api.public_key(source))


@key.command("rotate", epilog="Example: funnel key rotate census.yaml --to 2027.key")
def key_rotate(
    policy: PolicyFile,
    to: Annotated[
        Path | None,
        typer.Option(help="Make the new key in this file, which must not exist.", show_default=False),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help="Take the key that the policy names now: the old one is lost or given up."
        ),
    ] = False,
    locked: Annotated[
        bool, typer.Option("--locked", help="Measure with the protocol that `funnel lock` pinned.")
    ] = False,
    json: Json = False,
    memory: Memory = "2GB",
    threads: Threads = None,
) -> None:
    """Show what a new key costs each promise, in composed leakage; with --to or --accept, let the next release use it.

    A run whose key is not that of the policy's last release, or is new to one of its columns under whatever policy, is
    refused: a new key asks everybody anew. This command records, in the private folder, that it is meant. Keep the old
    key until the first release under the new one is published and audited; after that this policy needs it no more, and
    whoever has it could undo the draws made with it. Over a private estimate it goes by that of the lock, or
    else of the last twelve hours, as the next run does; where there is none, one is drawn, and spent.
    """
    from funnel import api

    if to is not None and accept:
        raise typer.BadParameter("--to makes a new key, --accept takes the one named: give one of them")
    with progress() as report:
        found = api.rotate_key(
            policy, to, accept=accept, locked=locked, memory=memory, threads=threads, progress=report
        )
    show(found, json)
