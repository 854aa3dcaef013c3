"""The command line: thin over the Python API. Exit codes: 0 done, 1 at fault, 2 wrong usage, 3 our bug."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import funnel
from funnel import api
from funnel.analyst.compare import SECONDS
from funnel.cli import keys, review
from funnel.cli.console import complain, console, emit, progress, say
from funnel.cli.options import Json, Memory, PolicyFile, Private, Threads
from funnel.errors import FunnelError, InternalError

_INTERRUPTED = 130
"""What the shell, and typer, say after Ctrl-C."""

app = typer.Typer(
    name="funnel",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Publish tables about people while a named secret stays within a proven bound.",
    epilog="Begin with `funnel init table.parquet`, then `funnel run table.yaml`.",
)
app.add_typer(keys.keys, name="key")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="With any command: show where in the code an error arose.")
    ] = False,
) -> None:
    if version:
        say(f"funnel {funnel.__version__}")
        raise typer.Exit


@app.command(epilog="Example: funnel init census.parquet --to census.yaml")
def init(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file, or a glob.", show_default=False)],
    to: Annotated[
        Path | None, typer.Option(help="Where to write the policy; - prints it. Default: NAME.yaml here.")
    ] = None,
) -> None:
    """Look at a table and write a commented starter policy."""
    target = to or Path(table.name.split(".")[0] + ".yaml")
    text = api.starter_policy(table, target.parent if str(target) != "-" else Path())
    if str(target) == "-":
        print(text, end="")
        return
    api.write_new(target, text)
    say(f"wrote {target}: review it, then run `funnel check {target}`")


@app.command(epilog="Example: funnel check policies/*.yaml")
def check(
    policies: Annotated[list[Path], typer.Argument(help="Policy files.", show_default=False)],
    json: Json = False,
) -> None:
    """Validate policies: every error at once, with file, line, column and what to do."""
    results = [api.check(path) for path in policies]
    if json:
        emit(
            {"ok": all(result.ok for result in results), "policies": [result.as_dict() for result in results]}
        )
    else:
        for result in results:
            if result.ok:
                say(result.text(), "green")
            else:
                complain(result.text())
    if not all(result.ok for result in results):
        raise typer.Exit(1)


@app.command(epilog="Example: funnel plan policies/marital-status.yaml")
def plan(policy: PolicyFile, json: Json = False, memory: Memory = "2GB", threads: Threads = None) -> None:
    """Show the steps that `run` would take, their SQL, the sizes, and which solver will serve."""
    explained = api.plan(policy, memory=memory, threads=threads)
    if json:
        emit(explained.as_dict())
    else:
        say(explained.text())


@app.command(epilog="Example: funnel run policies/marital-status.yaml")
def run(
    policy: PolicyFile,
    json: Json = False,
    memory: Memory = "2GB",
    threads: Threads = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Stop before anything is drawn or written.")
    ] = False,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="Solve nothing: draw from the protocol that `funnel lock` pinned."),
    ] = False,
) -> None:
    """Count, solve, draw, audit and publish: an audited sanitised release with its privacy report."""
    with progress() as report:
        summary = api.run(
            policy, memory=memory, threads=threads, dry_run=dry_run, locked=locked, progress=report
        )
    if json:
        emit(summary.as_dict())
    else:
        say(summary.text())
    for warning in summary.warnings:
        complain(f"warning: {warning}")


def _epsilons(text: str | None) -> list[float]:
    """Numbers with commas between them."""
    try:
        found = [float(part) for part in text.split(",")] if text is not None else []
    except ValueError:
        found = [math.nan]
    if not all(0 <= epsilon < math.inf for epsilon in found):
        raise typer.BadParameter("give numbers with commas, such as 0.5,1,2", param_hint="--epsilon")
    return found


def _picture(path: Path | None) -> Path | None:
    """A file whose name says what to draw."""
    if path is not None and path.suffix not in {".svg", ".html"}:
        raise typer.BadParameter("name a file that ends in .svg or .html")
    return path


@app.command(epilog="Example: funnel compare policies/income.yaml --epsilon 0.5,1,2 --picture income.svg")
def compare(
    policy: PolicyFile,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Bounds in nats, with commas. Default: 0.25,0.5,1,1.5,2.", show_default=False),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw the curves into a file: .svg or .html.", callback=_picture, show_default=False
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for one mechanism at one epsilon.", min=0.001)
    ] = SECONDS,
    json: Json = False,
    memory: Memory = "2GB",
    threads: Threads = None,
) -> None:
    """Utility against epsilon for every mechanism that fits the policy. Nothing is released."""
    bounds = _epsilons(epsilon)
    with progress() as report:
        found = api.compare(
            policy, bounds, time_limit=time_limit, memory=memory, threads=threads, progress=report
        )
    if picture is not None:
        api.write_picture(found, picture)
    if json:
        emit(found.as_dict())
    else:
        say(found.text())


@app.command(epilog="Example: funnel audit releases/census/latest --private private/census")
def audit(
    release: Annotated[Path, typer.Argument(help="A release, or the folder of all.", show_default=False)],
    private: Private = None,
    public_key: Annotated[
        str | None,
        typer.Option(help="The publisher's public key, or a file with it: the release must be signed by it."),
    ] = None,
    json: Json = False,
) -> None:
    """Re-check every claim of a release, or of all releases and their ledger, in exact arithmetic."""
    with progress() as report:
        found = api.audit(release, private, public_key=public_key, progress=report)
    if json:
        emit(found.as_dict())
    else:
        for line in found.text().splitlines():
            say(line, _shade(line))
    if not found.passed:
        raise typer.Exit(1)


@app.command(epilog="Example: funnel ledger policies/marital-status.yaml")
def ledger(policy: PolicyFile, json: Json = False) -> None:
    """Show the releases so far, what they give away together, and what is left of the budget."""
    found = api.ledger(policy)
    if json:
        emit(found.as_dict())
    else:
        say(found.text())


app.command(epilog=review.LOCK_EPILOG)(review.lock)
app.command(epilog=review.DIFF_EPILOG)(review.diff)


@app.command(epilog="Example: funnel report releases/census/latest --private private/census --to full-report")
def report(
    release: Annotated[Path, typer.Argument(help="A release folder.", show_default=False)],
    private: Private = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder for report.html and report.json; default: the release itself.")
    ] = None,
) -> None:
    """Rebuild the HTML and JSON report. With --private, the full report with unrounded figures."""
    for path in api.rebuild_report(release, private, to):
        say(f"wrote {path}")


@app.command(epilog="Example: funnel estimate releases/census/latest --confidence 0.99")
def estimate(
    release: Annotated[Path, typer.Argument(help="A release folder.", show_default=False)],
    confidence: Annotated[
        float, typer.Option(help="Chance that an interval holds the true count, between 0 and 1.")
    ] = 0.95,
    json: Json = False,
) -> None:
    """Work out true counts from a release: unbiased estimates with standard errors and confidence intervals."""
    if not 0 < confidence < 1:
        raise typer.BadParameter("give a share between 0 and 1, such as 0.95", param_hint="--confidence")
    found = api.estimate_counts(release, confidence)
    if json:
        emit(found.as_dict())
    else:
        say(found.text())


@app.command(epilog="Example: funnel schema > funnel.schema.json")
def schema() -> None:
    """Print the JSON Schema of the policy language, for editors."""
    emit(api.schema())


def _shade(line: str) -> str | None:
    """Colour of an audit line on a terminal."""
    if "FAIL" in line:
        return "bold red"
    return "yellow" if "not checked" in line else None


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code; errors are one paragraph, never a traceback unless asked."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        # --traceback may stand anywhere: it is asked for after something went wrong, at the end of the line.
        app([word for word in given if word != "--traceback"])
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
        _fail(InternalError(f"{type(error).__name__}: {error}"), given)


def _fail(error: FunnelError, given: list[str]) -> None:
    """Print an error as text, or as JSON where that was asked for, and exit with its code."""
    if "--traceback" in given:
        console(error=True).print_exception()
    if "--json" in given:
        emit({"error": error.as_dict()})
    complain(error.text())
    sys.exit(error.exit_code)
