"""The command line, thin over the Python API: one file for each command.

Exit codes (`funnel.errors.EXITS`): 0 done, 1 the policy, data or claim is at fault, 2 wrong usage, 3 our bug, 4 a
person must decide, 5 try again.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import funnel
from funnel.cli import (
    audit,
    check,
    compare,
    diff,
    estimate,
    init,
    key,
    ledger,
    lock,
    plan,
    report,
    run,
    schema,
)
from funnel.cli.console import complain, console, emit, say
from funnel.errors import FunnelError, InternalError

_INTERRUPTED = 130
"""What the shell, and typer, say after Ctrl-C."""
_USAGE = 2
_VALUES = "--show-values"

app = typer.Typer(
    name="funnel",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Publish tables about people while what a record tells about a named secret stays bounded.",
    epilog="Begin with `funnel init table.parquet`, then `funnel run table.yaml`.",
)
app.add_typer(key.key, name="key")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="With any command: show where in the code an error arose.")
    ] = False,
    show_values: Annotated[
        bool, typer.Option(_VALUES, help="With any command, at a terminal: errors name the values they are about.")
    ] = False,
) -> None:
    if version:
        say(f"funnel {funnel.__version__}")
        raise typer.Exit


for _command in (init, check, plan, run, compare, audit, ledger, lock, diff, report, estimate, schema):
    _name = _command.__name__.rpartition(".")[2]
    app.command(epilog=_command.EPILOG)(getattr(_command, _name))


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code; errors are one paragraph, never a traceback unless asked."""
    given = sys.argv[1:] if arguments is None else arguments
    if _VALUES in given and not sys.stderr.isatty():
        complain(f"{_VALUES} is for a terminal: here, what errors print goes into a file, a log or a mail")
        sys.exit(_USAGE)
    try:
        # Both may stand anywhere: they are asked for after something went wrong, at the end of the line.
        app([word for word in given if word not in ("--traceback", _VALUES)])
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            complain("interrupted; nothing was published [interrupted]")
        raise
    except FunnelError as error:
        _fail(error, given)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # noqa: BLE001  the last line of defence: a bug must not look like a policy's fault
        _fail(InternalError(type(error).__name__, values=str(error)), given)


def _fail(error: FunnelError, given: list[str]) -> None:
    """Print an error as text, or as JSON where that was asked for, and exit with its code."""
    if "--traceback" in given:
        console(error=True).print_exception()
    if "--json" in given:
        emit({"error": error.as_dict(), "code": error.exit_code})
    complain(error.text(values=_VALUES in given))
    if error.values and _VALUES not in given:
        complain(f"  The values it is about are left out here; at a terminal, {_VALUES} names them.")
    sys.exit(error.exit_code)
