"""Everybody who was ever told more than was said, again: what is claimed against what published files tell.

    python -m tests.trials attackers                                       own tables, shipped policies, a wide release
    python -m tests.trials attackers --only whole hidden --shipped income  two of them, and one shipped policy
    python -m tests.trials attackers --only wide --people 4000 --cells 20 --most 1

Each attacker has what was published, is told which rows are of one person, knows the distribution of everybody's true
records, and has code of its own: exact Bayes by brute force (`attacking.together`). Claimed is what the run, ledger,
manifest and audit say of all releases together. A run that is refused is made again with all that it ends accepted by
name, to see what it would have told.

Held: no finite figure is below what is told, unless it says that it takes for granted what the attacker broke. What
sentences say is held by tests/sentences.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from tests.trials.attacking import absent, columns, counts, hidden, noisy, promised, whole, wide
from tests.trials.attacking.bench import CENSUS, Bench, Table
from tests.trials.attacking.row import Row

OWN: dict[str, Callable[[Path], Iterator[Row]]] = {
    "absent": absent.own,  # filters, missing values: one release, or two
    "promised": promised.own,  # other notions, other secrets, a protocol solved anew
    "columns": columns.own,  # other tables, labels, numbers of people
    "whole": whole.own,  # the table's exact counts
    "noisy": noisy.own,  # noise that is averaged, noise that is improbable
}
"""Attackers with tables of their own."""
SHIPPED: dict[str, Callable[[Bench, Table, str], Iterator[Row]]] = {
    "absent": absent.shipped,
    "promised": promised.shipped,
    "columns": columns.shipped,
    "counts": counts.shipped,  # what figures and protocol leave open
    "whole": whole.shipped,
    "hidden": hidden.shipped,  # counts in words
}
"""Attackers of a policy that was released once."""
POLICIES = (
    "marital-status", "income", "usual-ldp", "race-and-sex", "randomised-response", "pml", "alip", "average", "auto",
    "identify", "perfect", "beliefs",
)  # fmt: skip
"""Shipped policies with one block that is drawn from its own value, of columns as they are."""
WIDE = "wide"


def attacked(names: Sequence[str], policies: Sequence[str], folder: Path) -> Iterator[Row]:
    """Every attacker named, on tables of its own and on shipped policies."""
    for name in names:
        if name in OWN:
            yield from OWN[name](folder / name)
    census = duckdb.sql(f"FROM '{CENSUS}' ORDER BY person_id").fetchnumpy() if policies else {}
    table = {name: values.tolist() for name, values in census.items()}
    for policy in policies:
        bench = Bench.shipped(policy, folder / f"shipped {policy}")
        bench.night(table)
        measure = bench.told["composed"]["measure"]  # what is told last may be another policy's
        for name in names:
            if name in SHIPPED:
                rows = SHIPPED[name](bench, table, measure)
                yield from (Row(one.attacker, f"{policy}: {one.what}", *_rest(one)) for one in rows)


def _rest(row: Row) -> tuple[str, str, bool]:
    return row.claimed, row.real, row.held


def text(rows: Sequence[Row]) -> str:
    """A table, a line for each row."""
    head = Row("attacker", "of what", "claimed", "real", True)
    cells = [(one.attacker, one.what, one.claimed, one.real) for one in (head, *rows)]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip() for row in cells]
    marks = ["", *("" if one.held else "  FALSE" for one in rows)]
    return "\n".join(line + mark for line, mark in zip(lines, marks, strict=True))


def main(arguments: list[str]) -> int:
    """Run from the command line; exit code 1 where less was claimed than is told."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.trials attackers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = [*dict.fromkeys([*OWN, *SHIPPED, WIDE])]
    parser.add_argument("--only", nargs="+", choices=every, default=every, help="these attackers (all)")
    parser.add_argument("--shipped", nargs="*", choices=POLICIES, default=POLICIES, help="of these policies (all)")
    wide.options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object for a program")
    given = vars(parser.parse_args(arguments))
    with tempfile.TemporaryDirectory() as scratch:
        rows = list(attacked(given["only"], given["shipped"], Path(scratch)))
        trial = wide.Trial()
        if WIDE in given["only"]:
            trial = wide.run(wide.asked(given), given["claims"], Path(scratch) / WIDE)
    wrong = [f"{one.attacker}, {one.what}: {one.claimed} claimed, {one.real} told" for one in rows if not one.held]
    found: dict[str, Any] = {"rows": [asdict(one) for one in rows], "wide": trial.as_dict(), "wrong": wrong}
    print(json.dumps(found, indent=1, allow_nan=False) if given["json"] else _printed(rows, trial, wrong))
    return 1 if wrong or trial.findings else 0


def _printed(rows: Sequence[Row], trial: wide.Trial, wrong: Sequence[str]) -> str:
    parts = [text(rows)] * bool(rows) + [wide.text(trial)] * bool(trial.linked)
    return "\n\n".join([*parts, "\n".join(wrong) if wrong else f"{len(rows)} claims held"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
