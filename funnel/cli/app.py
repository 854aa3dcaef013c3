"""The command line, thin over the Python API: one file for each command.

Exit codes (`funnel.errors.EXITS`): 0 done, 1 the policy, data, a claim or a disk is at fault, 2 wrong usage, 3 our bug,
4 a person must decide, 5 try again.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from funnel.cli.console import KEY, VALUES, Asked, complain, emit, own_up, say
from funnel.cli.log import Log, write_event
from funnel.cli.signals import INTERRUPTED, INTERRUPTION, asks_events, interrupted, tell
from funnel.failed import as_error

if TYPE_CHECKING:
    from typer._click import Command, Context

_USAGE = 2

COMMANDS = (
    "init", "check", "plan", "run", "also", "compare", "audit", "verify", "ledger", "lock", "diff", "report",
    "estimate", "prune", "schema", "key",
)  # fmt: skip
"""In the order of `--help`; each is a module of its name, with a function or a group of that name, and its EPILOG."""


@cache
def _command(name: str) -> Command:
    """A command, made when it is first asked for: most calls are about one."""
    module = import_module(f"funnel.cli.{name}")
    found, group = getattr(module, name), typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        group.add_typer(found, name=name)
    else:
        group.command(name, epilog=module.EPILOG)(found)
    return typer.main.get_group(group).commands[name]


class _Commands(TyperGroup):
    """The commands of `COMMANDS`, none of which is imported before it is asked for."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # From these names the one is proposed that was meant; what stands under them is never asked for.
        self.commands = dict.fromkeys(COMMANDS, self)

    def list_commands(self, ctx: Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        return _command(cmd_name) if cmd_name in COMMANDS else None


app = typer.Typer(
    name="funnel",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Publish tables about people while what a record tells about a named secret stays bounded.",
    epilog="Begin with `funnel init table.parquet`; say in table.yaml what it is for, then `funnel run table.yaml`.",
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="With any command: show where in the code an error arose.")
    ] = False,
    show_values: Annotated[
        bool, typer.Option(VALUES, help="With any command, at a terminal: errors name the values they are about.")
    ] = False,
) -> None:
    if version:
        from funnel.version import __version__

        say(f"funnel {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code; errors are one paragraph, never a traceback unless asked."""
    given = sys.argv[1:] if arguments is None else arguments
    if VALUES in given and not sys.stderr.isatty():
        complain(f"{VALUES} is for a terminal: here, what errors print goes into a file, a log or a mail")
        sys.exit(_USAGE)
    if any(map(KEY.search, given)):
        complain("a key was given as an argument: by now it stands in lists of processes and of commands; make another")
        sys.exit(_USAGE)
    asked = Asked("--traceback" in given, VALUES in given)
    try:
        # Both may stand anywhere: they are asked for after something went wrong, at the end of the line.
        app([word for word in given if word not in ("--traceback", VALUES)], obj=asked)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer says so after every KeyboardInterrupt
            if not (Log.interrupted and asks_events(given)):
                tell("interrupted", INTERRUPTION, given)
            sys.exit(interrupted())
        raise
    except Exception as failed:  # noqa: BLE001  the last line of defence: a bug must not look like a policy's fault
        error = as_error(failed)
        if "--json" in given:
            emit({"error": error.as_dict(), "code": error.exit_code}, line=True)
        if asks_events(given) and not asked.traceback:
            write_event("failed", code=error.exit_code, error=error.as_dict())
        else:
            own_up(error, asked)
        sys.exit(error.exit_code)
